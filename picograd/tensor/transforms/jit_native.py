"""The short way of a replay as native functions, for a trace of a short plan.

They look at what `Closure.run` looks at. `replay` then runs the plan, and makes the tensors that a
trace gives which only computes, or trains (jit_changes.py); `ready` gives the memory that any other
reads. Where anything differs, or a check fails, they give None and have changed nothing;
`Closure.run` goes on from there. `is_fitting`, which comes first, may run Python; behind it nothing
does (runtime/python_calls.py).
"""

import weakref
from types import MappingProxyType
from typing import Any

from picograd.buffer import REPLAYS
from picograd.dtype import dtype_named
from picograd.engine import native_calls
from picograd.engine.foreign import SHARED
from picograd.engine.native_calls import CALLS
from picograd.engine.realize import CHECK_LIMIT, CHECKS
from picograd.engine.tracing import STATE, Changes
from picograd.number import Given, GivenInt
from picograd.runtime.python_calls import places
from picograd.runtime.python_layout import Table
from picograd.target import is_host
from picograd.tensor.core.aliasing import View
from picograd.tensor.transforms import jit_changes
from picograd.tensor.transforms.jit_changes import (
    changed_words,
    labels_of,
    target_words,
    trains_simply,
)
from picograd.tensor.transforms.jit_state import MISSING
from picograd.tensor.transforms.jit_trace import Capture, Captured

REPLAY = (
    "native", "holds", "count", "is_recording", "epoch", "token", "given", "gives", "is_single",
    "checked", "checks", "is_later", "wanted", "captured", "captures", "missing", "losses", "added",
    "gradients", "own", "states", "state", "sources", "order", "inputs", "known", "scalars",
    "trains", "is_told", "capture", "looked", "looks", "writes", "written", "changed", "changes",
    "owners", "owned",
)  # fmt: skip
# of a tensor that is given, and of a bool that must be false: which slot of the plan it is
GIVEN = "place", "shape", "is_made"
CHECKED = "place", "error"
# what an argument must be, and the first that is the same tensor, and the same memory
WANTED = "shape", "dtype", "device", "is_frozen", "tracks", "tensor", "memory"
# what Python's state must be: an entry of a dict, or (0) the content of a cell; itself, or (1) what
# a weak reference refers to; (2) an attribute of what a weak reference refers to, itself
STATED = "holder", "key", "expected", "is_weak"
CAPTURED = "find", "expected", "tracks", "is_frozen"
# what a gradient that is read must be, first as arguments, and the weak reference to its owner
ADDED = "shape", "dtype", "device", "is_frozen", "tracks", "find"
VIEWS = 4  # views of a view that are followed
MOST = 1024  # arguments, captured tensors, and other memory that a trace reads
MOST_GIVEN = 32  # arguments, which are compared in pairs
FIXED = Given, GivenInt  # numbers of a user's, which a trace has for good


FITTING = """
def entry_of(holder, key):
    "an entry of a dict, or of the names of a class, borrowed; 0 for none"
    if type_of(holder) == world.dict:
        return PyDict_GetItemWithError(holder, key)
    found = PyObject_GetItem(holder, key)
    if found == 0:
        PyErr_Clear()
    Py_DecRef(found)
    return found

def is_stated(stated: stated):
    "whether an entry of a dict, or the content of a cell, is what it was"
    if stated.is_weak == 2:
        holder = referred(stated.holder)
        need(holder != None)
        now = PyObject_GetAttr(holder, stated.key)
        Py_DecRef(now)
        return now == stated.expected
    if stated.key:
        now = entry_of(stated.holder, stated.key)
    else:
        now = PyObject_GetAttr(stated.holder, world.cell_contents)
        Py_DecRef(now)
    if stated.is_weak == 0:
        return now == stated.expected
    was = referred(stated.expected)
    need(was != None)
    return now == was

def is_fitting(replay: replay):
    "whether modes, settings and Python's state are what they were; may run Python"
    state: Changes = world.state
    need(sweep_live() and not (is_traced() | PyDict_Size(world.writes)))
    need(own_of_thread(world.mode, world.enabled) == replay.is_recording)
    need(PyDict_GetItemWithError(world.settings, world.epoch) == replay.epoch)
    for number in range(replay.states):
        need(is_stated(replay.state + number * STATED))
    if replay.holds == 0:
        return state.token == replay.token
    return referred(replay.holds) == True
"""

ARGUMENTS = """
def is_first(table, value, first):
    "whether the first equal word of a table is at this place"
    for before in range(first):
        need(table[before] != value)
    return table[first] == value

def is_known(tensor: Tensor, known):
    "whether a tensor, or what it shows, is one that the function reaches otherwise, too"
    need(PyDict_Size(known))
    for step in range(VIEWS):
        if at_address(known, tensor):
            return 1
        if tensor._view == None:
            return 0
        view: View = tensor._view
        tensor = view.base
    return 1

def is_wanted(node: Node, wanted: wanted):
    if node.op != world.buffer or node.dtype != wanted.dtype or type_of(node.arg) != world.Storage:
        return 0
    return is_alike(node.shape, wanted.shape) & is_alike(node.device, wanted.device)

def is_kind(tensor: Tensor, wanted: wanted):
    "whether an argument is a leaf that asks for gradients, and has no hooks, or does not ask"
    need(tensor._tracks == wanted.tracks)
    if wanted.tracks == False:
        return tensor._is_frozen == wanted.is_frozen
    node: Node = tensor._node
    need(tensor._hooks == None and node.leaf != None)
    return referred(node.leaf) == tensor

def memory_of(replay: replay, arguments, memory):
    "the buffers of arguments; 0 if they are not what they were"
    for number in range(replay.count):
        wanted: wanted = replay.wanted + number * WANTED
        tensor: Tensor = arguments[number]
        need(type_of(tensor) == world.Tensor and tensor._node and is_kind(tensor, wanted))
        need(not is_known(tensor, replay.known))
        node: Node = tensor._node
        need(is_wanted(node, wanted) and is_first(arguments, tensor, wanted.tensor))
        storage: Storage = node.arg
        memory[number] = storage.buffer
        need(is_first(memory, storage.buffer, wanted.memory))
    return 1

def target(place, arguments):
    "an argument by its number, or what a weak reference refers to: `found` of jit_replay.py"
    if place < MOST_GIVEN:
        return arguments[place]
    return referred(place)

def memory_captured(replay: replay, arguments, memory):
    "the buffers of captured tensors, parameters among them; 0 if they are not what they were"
    captured = replay.captured
    for number in range(replay.captures):
        each: Captured = captured[number]
        tensor: Tensor = referred(each.find)
        need(tensor != None and tensor._tracks == each.tracks)
        need(tensor._views == None and tensor._view == None and tensor._is_frozen == each.is_frozen)
        node: Node = tensor._node
        need(node == each.expected or node.arg == each.expected)
        memory[number] = node.realized
        if node.realized == None and type_of(each.expected) == world.Storage:
            storage: Storage = each.expected
            memory[number] = storage.buffer
    missing = replay.missing
    for number in range(replay.losses):
        owner: Tensor = target(missing[number], arguments)
        need(owner != None and owner._grad == None)
    return 1

def memory_added(replay: replay, memory):
    "the buffers of gradients that a trace reads; 0 if they are not what they were"
    for number in range(replay.gradients):
        each: added = replay.added + number * ADDED
        owner: Tensor = referred(each.find)
        need(owner != None and type_of(owner._grad) == world.Tensor)
        gradient: Tensor = owner._grad
        need(gradient._node and gradient._view == None and gradient._views == None)
        need(gradient._tracks == each.tracks and gradient._is_frozen == each.is_frozen)
        node: Node = gradient._node
        need(is_wanted(node, each))
        storage: Storage = node.arg
        memory[number] = storage.buffer
    return 1
"""

REPLAYING = """
def memory_here(replay: replay, arguments, count, memory):
    "all that a trace reads: of arguments, others, gradients, and itself; 0 for other calls"
    need(count == replay.count and is_fitting(replay))
    captured = memory + 8 * count
    need(memory_of(replay, arguments, memory) and memory_captured(replay, arguments, captured))
    added = captured + 8 * replay.captures
    need(memory_added(replay, added))
    made = added + 8 * replay.gradients
    need(PyList_Size(replay.own) == replay.inputs)
    for number in range(replay.inputs):
        made[number] = PyList_GetItem(replay.own, number)
    return 1

@python
def picograd_ready(self, arguments, count):
    "a list of the memory that the trace reads, in its order, or None"
    replay: replay = own_table(self)
    memory = room(MOST)
    need(memory_here(replay, arguments, count, memory))
    order = replay.order
    for number in range(replay.inputs):
        need(type_of(memory[order[number]]) == world.Buffer)
    listed = PyList_New(replay.inputs)
    if listed:
        for number in range(replay.inputs):
            PyList_SetItem(listed, number, own(memory[order[number]]))
    return listed

"""

GIVING = """
def passes(checked: checked, buffer: Buffer, is_later):
    "whether a bool is false; where nobody looks yet, it waits for the next who does"
    if is_later == 0:
        word = PyLong_AsUnsignedLongLong(buffer.address)
        return word[0] & BYTE == 0
    pair = PyTuple_Pack(2, buffer, checked.error)
    need(pair)
    is_noted = PyList_Append(world.checks, pair) == 0
    Py_DecRef(pair)
    return is_noted

def given_one(given: given, found):
    return computed(found[given.place], given.shape, given.is_made)

def given_all(replay: replay, found):
    "the tensors that a trace gives, unless a check fails"
    for number in range(replay.checks):
        checked: checked = replay.checked + number * CHECKED
        need(passes(checked, found[checked.place], replay.is_later))
    if replay.is_single:
        return given_one(replay.given, found)
    listed = PyTuple_New(replay.gives)
    need(listed)
    for number in range(replay.gives):
        tensor = given_one(replay.given + number * GIVEN, found)
        if tensor == 0:
            Py_DecRef(listed)
            return 0
        PyTuple_SetItem(listed, number, tensor)
    return listed

def replayed(replay: replay, native: Native, arguments, memory):
    plan: plan = PyLong_AsUnsignedLongLong(native.address)
    table = own(native.table)
    sources = replay.sources
    found = room(SLOTS)
    for number in range(plan.inputs):
        found[number] = memory[sources[number]]
    kept = 0
    if replay.trains:
        kept = kept_memory(replay, plan, arguments)
        count_replay()
    given = 0
    if run(plan, replay.scalars, world.no_text, kept, found):
        replace(native.is_used, own(True))
        if not replay.trains or change_gradients(replay, arguments, found, kept):
            given = given_all(replay, found)
        let_go(found, plan.slots)
    Py_DecRef(kept)
    Py_DecRef(table)
    return given

@python
def picograd_replay(self, arguments, count):
    "the one tensor that the trace gives, a tuple of others, or None"
    replay: replay = own_table(self)
    native: Native = replay.native
    memory = room(MOST)
    need(memory_here(replay, arguments, count, memory) and native.address != world.zero)
    if replay.is_later:
        need(PyList_Size(world.checks) + replay.checks <= CHECK_LIMIT)
    if replay.trains:
        need(are_labels(replay, memory) and are_writable(replay, arguments))
    return replayed(replay, native, arguments, memory)
"""

TEXT = FITTING + ARGUMENTS + REPLAYING + jit_changes.TEXT + GIVING


def declare_replay() -> None:
    """Let these functions be compiled with the others."""
    world = {
        "state": STATE, "cell_contents": "cell_contents", "dict": dict, "checks": CHECKS,
        "replays": REPLAYS, "foreign": SHARED,
    }  # fmt: skip
    slots = {Changes: ("token",), Captured: CAPTURED, Capture: ("recorded",), View: ("base",)}
    listed = {
        "wanted": WANTED, "stated": STATED, "added": ADDED, "given": GIVEN, "checked": CHECKED,
        "changed": jit_changes.CHANGED, "looked": jit_changes.LOOKED,
    }  # fmt: skip
    tables = places("replay", REPLAY)
    numbers = {"MOST": MOST, "CHECK_LIMIT": CHECK_LIMIT, "BYTE": 255, "VIEWS": VIEWS}
    numbers["MOST_GIVEN"], numbers["MOST_LABELS"] = MOST_GIVEN, jit_changes.MOST_LABELS
    for name, words in listed.items():
        tables |= places(name, words)
        numbers[name.upper()] = 8 * len(words)
    functions = "picograd_replay", "picograd_ready"
    native_calls.declare(TEXT, functions, world, slots, tables, numbers)


def state_rows(guard: Any, table: Table) -> list[int]:
    """List what Python's state must be: by identity, an entry or a cell a row, as `STATED`."""
    rows: list[int] = []
    for holder, key, was in guard.entries:
        rows += [table.name(holder), table.name(key), 0 if was is MISSING else table.name(was), 0]
    for cell, was in guard.cells:
        rows += [table.name(cell), 0, table.name(was), 0]
    for holder, key, find in guard.links:
        place, is_weak = 0 if key is None else table.name(key), type(find) is weakref.ref
        rows += [table.name(holder), place, table.name(find if is_weak else find()), int(is_weak)]
    for find, name, was in guard.definitions:
        rows += [table.name(find), table.name(name), table.name(was), 2]
    return rows


def sources_of(closure: Any) -> list[int] | None:
    """Say where each input of a trace is among arguments, captured tensors, and its own memory."""
    capture, count = closure.capture, len(closure.wanted)
    found = dict(capture.arguments)
    found |= {each.position: count + n for n, each in enumerate(capture.captured)}
    count += len(capture.captured)
    found |= {position: count + n for n, (position, *_) in enumerate(closure.added)}
    first, own = count + len(closure.added), len(capture.inputs)
    listed = [found.get(number, first + number) for number in range(own)]
    return listed if first + own <= MOST and len(closure.wanted) <= MOST_GIVEN else None


def is_native(closure: Any) -> bool:
    """Tell whether tensors, and places of state, can be looked at without running Python."""
    capture, guard = closure.capture, closure.capture.guard
    named = [holder for holder, *_ in guard.entries]
    named += [holder for holder, key, _ in guard.links if key is not None]
    finds = [each.find for each in capture.captured]
    finds += [each for each in closure.missing if type(each) is not int]
    finds += [find for _, find, _ in closure.added]
    are_weak = all(type(find) is weakref.ref for find in finds)
    are_leaves = all(described[-1] for *_, described in closure.added)
    named_well = all(type(holder) in (dict, MappingProxyType) for holder in named)
    return are_weak and are_leaves and named_well


def native_of(closure: Any, plan: Any) -> tuple[Any, Any, Any]:
    """Make `replay` and `ready` of a closure; None for what it is too much for.

    The second is `replay` where numbers are written to `closure.scalars` before each call.
    """
    sources = sources_of(closure)
    if sources is None or not is_native(closure):
        return None, None, None
    table, gives = Table(), gives_all(closure, plan)
    head = replay_words(closure, plan, table, sources)
    head |= given_words(closure, plan, table) if gives else {}
    if gives and closure.changes is not None:
        looked = labels_of(closure, sources)
        gives = looked is not None
        head |= training_words(closure, plan, table, looked or [])
    table.fill([head.get(name, 0) for name in REPLAY])
    replay = CALLS.find("picograd_replay", table) if gives else None
    ready = CALLS.find("picograd_ready", table)
    return (None, replay, ready) if is_renewed(closure) else (replay, None, ready)


def is_renewed(closure: Any) -> bool:
    """Tell whether numbers of a plan may be others at the next call."""
    is_fixed = all(type(each) in FIXED for each in closure.capture.scalars)
    return closure.evaluates or closure.draws or not is_fixed


def gives_all(closure: Any, plan: Any) -> bool:
    """Tell whether a trace computes tensors, or trains, and nothing else."""
    capture, trains = closure.capture, closure.changes is not None
    if (
        capture.graph is not None
        or closure.gives_back
        or not (closure.results or trains)
        or not plan.native.address
    ):
        return False
    if trains and not trains_simply(closure):
        return False
    if trains and capture.checks and is_host(plan.stretch.device.name):
        return False  # one that fails would be run again
    slots = [plan.plan.slots[plan.plan.outputs[number]] for number, _ in capture.checks]
    return all(e.kind == "output" and e.size * e.dtype.itemsize == 1 for e in slots)


def given_words(closure: Any, plan: Any, table: Table) -> dict[str, int]:
    """Write what a trace gives, and checks, for the table of a closure."""
    capture, outputs, given, checked = closure.capture, plan.plan.outputs, [], []
    for number, shape, is_made in closure.results:
        given += [outputs[number], table.name(shape), int(is_made)]
    for number, error in capture.checks:
        checked += [outputs[number], table.name(error)]
    return {
        "native": table.name(plan.native), "is_single": int(closure.is_single),
        "given": table.part(given), "gives": len(closure.results),
        "checked": table.part(checked), "checks": len(capture.checks),
        "is_later": int(bool(checked) and not is_host(plan.stretch.device.name)),
    }  # fmt: skip


def training_words(closure: Any, plan: Any, table: Table, looked: list[int]) -> dict[str, int]:
    """Write what a trace changes for the table of a closure."""
    capture, changed = closure.capture, changed_words(closure, plan.plan.outputs, table)
    return {
        "trains": 1, "capture": table.name(capture),
        "is_told": int(closure.changes.writes_arguments),
        "looked": table.part(looked), "looks": len(looked) // len(jit_changes.LOOKED),
        "writes": table.part(target_words(capture.written, table)), "written": len(capture.written),
        "owners": table.part(target_words(capture.written_gradients, table)),
        "owned": len(capture.written_gradients), "changed": table.part(changed),
        "changes": len(changed) // len(jit_changes.CHANGED),
    }  # fmt: skip


def replay_words(closure: Any, plan: Any, table: Table, sources: list[int]) -> dict[str, int]:
    """Write what a trace reads for the table of a closure."""
    capture, guard, count = closure.capture, closure.capture.guard, len(closure.wanted)
    is_slow = guard.sized or guard.containers or guard.arrays
    states = [] if is_slow else state_rows(guard, table)
    closure.scalars = [capture.scalars[number] for number in plan.scalar_numbers]
    return {
        "count": count,
        "scalars": table.name(closure.scalars),
        "holds": table.name(guard.holds) if is_slow else 0,
        "is_recording": table.name(closure.is_recording), "epoch": table.name(closure.epoch),
        "token": table.name(guard.token),
        "wanted": table.part(wanted_words(closure, table)),
        "captured": table.part([*map(table.name, capture.captured)]),
        "captures": len(capture.captured),
        "missing": table.part(target_words(closure.missing, table)),
        "losses": len(closure.missing), "gradients": len(closure.added),
        "added": table.part(added_words(closure, table)), "inputs": len(capture.inputs),
        "own": table.name(capture.inputs), "states": len(states) // len(STATED),
        "state": table.part(states), "known": table.name(closure.known),
        "order": table.part(sources),
        "sources": table.part([sources[each] for each in plan.input_numbers]),
    }  # fmt: skip


def wanted_words(closure: Any, table: Table) -> list[int]:
    """Say what arguments must be, as `WANTED` lists it."""
    count, words = len(closure.wanted), []
    same = closure.same or (*range(count), *range(count))
    for at, (size, dtype, device, kind) in enumerate(closure.wanted):
        facts = size, dtype_named(dtype), device, kind is True, kind not in (True, False)
        words += [*map(table.name, facts)]
        words += [same[at], same[count + at]]
    return words


def added_words(closure: Any, table: Table) -> list[int]:
    """Say what gradients that are read must be, as `ADDED` lists it."""
    words = []
    for _, find, (shape, dtype, device, tracks, is_frozen, _) in closure.added:
        words += [*map(table.name, (shape, dtype, device, is_frozen, tracks, find))]
    return words

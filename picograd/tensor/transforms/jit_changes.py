"""What a replay of a training step does beside its plan, as native functions.

They do what `Changes.run` does (jit_closure.py), in the usual case: labels in memory lie in their
range, no graph reads what is written, gradients go to leaves from outside. A gradient to which
nothing but its owner leads is written where it lies, as by `own_memory`. Whatever else there is, is
seen before anything is changed. Gradients of before are kept until all is done.
"""

import weakref
from collections.abc import Sequence
from typing import Any

from picograd.dtype import int64
from picograd.runtime.python_layout import Table
from picograd.tensor.core.demands import Below

# of a gradient: whose (the number of an argument, or a weak reference); which slot of the plan, and
# which result, it is, or -1; what it is made of
CHANGED = "find", "place", "kept", "shape", "is_made"
LOOKED = "source", "stop"  # of labels: which memory, and the first number that is none
MOST_LABELS = 1 << 12

LOOKING = """
def are_below(buffer: Buffer, stop):
    "whether integers lie in 0..stop-1"
    count = PyLong_AsLongLong(buffer.count)
    need(count <= MOST_LABELS)
    words = PyLong_AsUnsignedLongLong(buffer.address)
    for number in range(count):
        need(words[number] >= 0 and words[number] < stop)
    return 1

def are_labels(replay: replay, memory):
    "whether values that are looked at are as they must be"
    for number in range(replay.looks):
        looked: looked = replay.looked + number * LOOKED
        buffer: Buffer = memory[looked.source]
        need(type_of(buffer) == world.Buffer and are_below(buffer, looked.stop))
    return 1
"""

KEEPING = """
def is_lone(object):
    "whether one reference leads to an object: its first word counts them"
    return object[0] == 1

def is_read(tensor: Tensor):
    "whether views or other libraries show the memory of a tensor, or graphs may: `is_shared`"
    if tensor._view != None or tensor._views != None:
        return 1
    node: Node = tensor._node
    if not is_lone(node) or node.op != world.buffer or type_of(node.arg) != world.Storage:
        return 1
    storage: Storage = node.arg
    if storage.source != None or at_address(world.foreign, storage.buffer):
        return 1
    return 0

def recorded():
    recorded = PyLong_AsLongLong(PyList_GetItem(world.recorded, 0))
    return recorded + PyLong_AsLongLong(PyList_GetItem(world.flushed, 0))

def are_writable(replay: replay, arguments):
    "whether what the plan writes has no readers: none came since the last call, or there is none"
    capture: Capture = replay.capture
    if replay.is_told == 0 and PyLong_AsLongLong(capture.recorded) == recorded():
        return 1
    writes = replay.writes
    for number in range(replay.written):
        tensor = target(writes[number], arguments)
        need(tensor)
        need(tensor == None or not is_read(tensor))
    owners = replay.owners
    for number in range(replay.owned):
        owner: Tensor = target(owners[number], arguments)
        need(owner != None)
        need(owner._grad == None or not is_read(owner._grad))
    return 1

def own_memory(owner: Tensor, changed: changed, made: made):
    "the memory of a gradient to which nothing else leads, or 0"
    gradient: Tensor = owner._grad
    need(type_of(gradient) == world.Tensor and is_lone(gradient) and gradient._tracks == False)
    need(gradient._view == None and gradient._hooks == None and gradient._history == None)
    node: Node = gradient._node
    need(is_lone(node) and is_alike(node.shape, changed.shape))
    need(type_of(node.arg) == world.Storage and is_lone(node.arg))
    storage: Storage = node.arg
    buffer: Buffer = storage.buffer
    need(storage.source == None and type_of(buffer) == world.Buffer and is_lone(buffer))
    need(type_of(buffer.handle) == world.Allocation and is_lone(buffer.handle))
    need(buffer.dtype == made.dtype and is_number(buffer.count, made.count))
    return buffer

def kept_memory(replay: replay, plan: plan, arguments):
    "a list with the memory that the plan writes where it lies, or 0"
    kept = PyList_New(plan.made)
    need(kept)
    for number in range(plan.made):
        PyList_SetItem(kept, number, own(None))
    for number in range(replay.changes):
        changed: changed = replay.changed + number * CHANGED
        owner = target(changed.find, arguments)
        if changed.kept >= 0 and owner and owner != None:
            buffer = own_memory(owner, changed, plan + HEAD + changed.kept * ROW)
            if buffer:
                PyList_SetItem(kept, changed.kept, own(buffer))
    return kept
"""

CHANGING = """
def count_writes(owner: Tensor):
    gradient: Tensor = owner._grad
    node: Node = gradient._node
    storage: Storage = node.arg
    replace(storage.version, sum_of(storage.version, 1))

def set_gradient(owner: Tensor, changed: changed, found, gone):
    "a new one, or none; 0 where there is no memory"
    made = own(None)
    if changed.place >= 0:
        Py_DecRef(made)
        made = computed(found[changed.place], changed.shape, changed.is_made)
        need(made)
    PyList_Append(gone, owner._grad)
    replace(owner._grad, made)
    return 1

def give_gradient(owner, changed: changed, found, kept, gone):
    if changed.kept >= 0:
        if PyList_GetItem(kept, changed.kept) != None:
            count_writes(owner)
            return 1
    return set_gradient(owner, changed, found, gone)

def change_gradients(replay: replay, arguments, found, kept):
    "1; 0 after an error, which is raised"
    capture: Capture = replay.capture
    replace(capture.recorded, PyLong_FromLongLong(recorded()))
    gone = PyList_New(0)
    need(gone)
    is_done = 1
    for number in range(replay.changes):
        changed: changed = replay.changed + number * CHANGED
        owner = target(changed.find, arguments)
        if owner and owner != None and is_done:
            is_done = give_gradient(owner, changed, found, kept, gone)
    Py_DecRef(gone)
    return is_done

def count_replay():
    now = PyList_GetItem(world.replays, 0)
    PyList_SetItem(world.replays, 0, sum_of(now, 1))
"""

TEXT = LOOKING + KEEPING + CHANGING


def trains_simply(closure: Any) -> bool:
    """Tell whether a trace does nothing beside computing but what these functions do."""
    changes, capture = closure.changes, closure.capture
    targets = [*capture.written, *capture.written_gradients, *[e[0] for e in changes.gradients]]
    if any(type(each) not in (int, weakref.ref) for each in targets):
        return False
    if any(r.kind != "none" and place < 0 for _, r, place in changes.gradients):
        return False
    return capture.early is None or are_simple(capture.early)


def are_simple(early: Any) -> bool:
    """Tell whether checks that come first are of labels in memory, and nothing else."""
    if early.plan is not None or any(each.views for each in early.looks):
        return False
    looks = [each.look for each in early.looks]
    return all(type(each) is Below and type(each.stop) is int for each in looks)


def labels_of(closure: Any, sources: list[int]) -> list[int] | None:
    """Write what is looked at, as `LOOKED` lists it; None if it is no int64."""
    early, words = closure.capture.early, []
    arguments = dict(closure.capture.arguments)
    for each in () if early is None else early.looks:
        dtype = closure.wanted[arguments[each.position]][1] if each.position in arguments else ""
        if dtype != int64.name:
            return None
        words += [sources[each.position], each.look.stop]
    return words


def changed_words(closure: Any, outputs: Any, table: Table) -> list[int]:
    """Write what gradients a trace sets, as `CHANGED` lists it."""
    words = []
    for find, result, place in closure.changes.gradients:
        slot = -1 if result.kind == "none" else outputs[result.number]
        kept = -1 if closure.changes.reads else place
        words += [*target_words([find], table), slot, kept, table.name(result.shape)]
        words.append(int(result.is_made))
    return words


def target_words(targets: Sequence[Any], table: Table) -> list[int]:
    """Write tensors that a trace changes: numbers of arguments, and weak references."""
    return [each if type(each) is int else table.name(each) for each in targets]

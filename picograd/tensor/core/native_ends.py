"""The end of a way that was followed, and computations on it, by machine code.

`picograd_finish` does all of it where nothing is written and no optimizer steps. For the end of
other ways `picograd_ready_end` gives the memory that the plan takes, where gradients, tensors that
are alive, what was met and what the optimizer writes are as they were, and `picograd_give_end` lets
what was written, and what lives on, have the results. At anything unusual they give None, with
nothing changed, and following.py does all of it. What they let go ends when all is in place. The
language is that of runtime/python_code.py.
"""

from typing import Any

from picograd.buffer import Overwritten
from picograd.config import config
from picograd.engine import carried, native_calls, pending
from picograd.engine.followed import Events, Record
from picograd.engine.native_calls import CALLS
from picograd.runtime.python_calls import places
from picograd.runtime.python_layout import Table
from picograd.tensor.core.pieces import MET
from picograd.tensor.core.recording import Recorded
from picograd.tensor.core.ways import Computation, Constant, Way

USES = 6  # of a way, until machine code ends it
END = (
    "met", "changed", "targets", "target", "buffers", "buffer", "writes", "write", "values",
    "value", "results",
)  # fmt: skip
PAIR = "first", "second"
GIVEN = "place", "at", "result"  # a tensor that was met or made, its node, and what it gets

ENDING = """
def node_of_met(met: Tensor):
    "the node of a tensor that was met, or of what stands for one; or 0"
    if PyType_IsSubtype(type_of(met), world.Tensor):
        return met._node
    alone: Alone = met
    if type_of(met) == world.Alone:
        return alone._node
    constant: Constant = met
    need(type_of(met) == world.Constant)
    return constant._node

def are_current(follower: Follower, record: Record):
    "whether what was met is as it was"
    need(PyList_Size(follower.met) == PyList_Size(record.found))
    for at in range(PyList_Size(record.found)):
        need(node_of_met(PyList_GetItem(follower.met, at)) == PyList_GetItem(record.found, at))
    return 1

def are_alive(made, alive):
    "whether tensors that were made live, and no others"
    count = 0
    for number in range(PyList_Size(made)):
        tensor = referred(PyList_GetItem(made, number))
        need(tensor)
        if tensor != None:
            need(count < PyList_Size(alive))
            need(PyLong_AsLongLong(PyList_GetItem(alive, count)) == number)
            count = count + 1
    return count == PyList_Size(alive)

def is_asked(record: Record, asked, wanted):
    need(type_of(asked) == world.list and type_of(wanted) == world.list)
    need(PyList_Size(asked) == PyList_Size(wanted))
    for at in range(PyList_Size(wanted)):
        node = PyDict_GetItemWithError(record.standing, PyList_GetItem(wanted, at))
        need(node == PyList_GetItem(asked, at))
    return 1

def have_gradients(follower: Follower, gradients):
    "whether parameters have the gradients that they had"
    for at in range(PyList_Size(gradients)):
        pair = PyList_GetItem(gradients, at)
        parameter: Tensor = PyTuple_GetItem(pair, 0)
        number = PyLong_AsLongLong(PyTuple_GetItem(pair, 1))
        need(PyType_IsSubtype(type_of(parameter), world.Tensor))
        if number < 0:
            need(parameter._grad == None)
        else:
            need(parameter._grad == referred(PyList_GetItem(follower.made, number)))
    return 1

def is_due_now(follower: Follower, part: Computation, asked, origin):
    "whether all is as it was, and nothing else is to be computed"
    way: Way = follower.way
    record: Record = follower.record
    last: Event = PyList_GetItem(way.events, PyList_Size(way.events) - 1)
    epoch = PyDict_GetItemWithError(world.settings, world.epoch)
    need(type_of(part) == world.Computation and part.is_simple == True)
    need(PyList_Size(world.starts) == 0)
    need(PyLong_AsLongLong(follower.at) == PyLong_AsLongLong(part.at))
    need(is_number(epoch, PyTuple_GetItem(last.modes, 2)))
    need(PyList_GetItem(world.depth, 0) == world.zero)
    need((part.is_ahead == True) == is_ahead(origin))
    need(is_asked(record, asked, part.asked) and are_alive(follower.made, part.living))
    return are_current(follower, record)

def memory_at(node: Node):
    storage: Storage = node.arg
    if type_of(storage) == world.Storage:
        return storage.buffer
    return node.realized

def memory_taken(follower: Follower, told):
    "the buffer that a plan takes; borrowed, or 0"
    record: Record = follower.record
    kind = PyLong_AsLongLong(PyTuple_GetItem(told, 0))
    node: Node = 0
    if kind == MADE:
        return PyDict_GetItemWithError(follower.computed, PyTuple_GetItem(told, 1))
    if kind == MET:
        node = PyList_GetItem(record.found, PyLong_AsLongLong(PyTuple_GetItem(told, 1)))
    if kind == IS:
        node = node_of_met(PyTuple_GetItem(told, 1))
    need(node)
    return memory_at(node)

def find_memory(follower, several, found):
    "whether all that a plan takes is there, and is no other's"
    for number in range(PyList_Size(several)):
        buffer = memory_taken(follower, PyList_GetItem(several, number))
        need(type_of(buffer) == world.Buffer)
        for other in range(number):
            need(found[other] != buffer)
        found[number] = buffer
    return 1

def find_numbers(record: Record, several):
    "a list of the numbers that a plan takes; or 0"
    numbers = PyList_New(PyList_Size(several))
    need(numbers)
    for at in range(PyList_Size(several)):
        number = PyList_GetItem(several, at)
        drawn = at_address(record.drawn, number)
        if drawn:
            number = drawn
        if type_of(number) != world.Given and type_of(number) != world.GivenInt:
            Py_DecRef(numbers)
            return 0
        PyList_SetItem(numbers, at, own(number))
    return numbers

def let_leaf_be(node: Node):
    "`as_leaf`: a leaf of the memory of a computed node"
    if node.realized == None:
        return own(node)
    leaf: Node = new_leaf(node.realized, node.shape)
    need(leaf)
    replace(leaf.dtype, own(node.dtype))
    replace(leaf.device, own(node.device))
    return leaf

def let_old_go(record: Record, old):
    "what made them is of an earlier step"
    for number in range(PyList_Size(old)):
        at = PyLong_AsLongLong(PyList_GetItem(old, number))
        leaf = let_leaf_be(PyList_GetItem(record.found, at))
        if leaf:
            PyList_SetItem(record.found, at, leaf)

def stand_no_more(node):
    standing: Standing = node
    stood: object = node
    if type_of(node) == world.Standing:
        stood.type = own(world.Node)
        Py_DecRef(world.Standing)
        replace(standing.record, 0)

def become_leaf(node: Node, storage):
    "takes the storage"
    stand_no_more(node)
    replace(node.op, own(world.buffer))
    replace(node.inputs, own(world.nothing))
    replace(node.arg, storage)

def be_leaf_of(node: Node, buffer, reference):
    storage = new_storage(buffer)
    need(storage)
    become_leaf(node, storage)
    replace(node.realized, own(None))
    replace(node.leaf, own(reference))
    return enter_live(node, reference)

def note_kept(record: Record, at, node):
    reference = PyWeakref_NewRef(node, 0)
    if reference:
        PyDict_SetItem(record.kept, at, reference)
        Py_DecRef(reference)

def give_value(record: Record, at, reference, buffer, enabled):
    "as in following.py"
    node: Node = PyDict_GetItemWithError(record.standing, at)
    tensor: Tensor = referred(reference)
    if node.leaf != None or (tensor._tracks == False and not (enabled and is_tracked(node.dtype))):
        return be_leaf_of(node, buffer, reference)
    replace(node.realized, own(buffer))
    note_kept(record, at, node)
    if tensor._tracks == True:
        return enter_live(node, reference)
    own(node)
    settle_tensor(tensor, node, buffer, reference, enabled)
    Py_DecRef(node)

def is_among_roots(part: Computation, at):
    for number in range(PyList_Size(part.roots)):
        if is_number(PyList_GetItem(part.roots, number), at):
            return 1
    return 0

def give_results(follower: Follower, part: Computation, enabled):
    "gives what was computed to tensors that live"
    way: Way = follower.way
    record: Record = follower.record
    for number in range(PyList_Size(part.living)):
        which = PyLong_AsLongLong(PyList_GetItem(part.living, number))
        made: Made = PyList_GetItem(way.made, which)
        buffer = PyDict_GetItemWithError(follower.computed, made.at)
        if buffer and is_among_roots(part, made.at):
            give_value(record, made.at, PyList_GetItem(follower.made, which), buffer, enabled)

def run_natively(follower: Follower, part: Computation, numbers, found, origin):
    "runs a plan that has a table, and notes what it computed; 0 where nothing was done"
    events: Events = world.events
    native: Native = part.native
    plan: plan = PyLong_AsUnsignedLongLong(native.address)
    need(PyList_Size(part.buffers) == plan.inputs and PyList_Size(numbers) == plan.numbers)
    need(PyList_Size(part.roots) == plan.outputs)
    table = own(native.table)
    ran = run(plan, numbers, origin, 0, found)
    if ran:
        replace(native.is_used, own(True))
        replace(events.take, own(None))
        replace(events.record, own(None))
        places = plan.places
        for number in range(PyList_Size(part.roots)):
            buffer = found[places[number]]
            PyDict_SetItem(follower.computed, PyList_GetItem(part.roots, number), buffer)
        let_go(found, plan.slots)
    Py_DecRef(table)
    return ran

def run_by_python(follower: Follower, part: Computation, numbers, found):
    "`Follower.run`, which runs Python; 0 where nothing was done, or after an error"
    buffers = PyList_New(PyList_Size(part.buffers))
    need(buffers)
    for number in range(PyList_Size(part.buffers)):
        PyList_SetItem(buffers, number, own(found[number]))
    function = world.run_follower
    plan = part.plan
    ran = PyObject_CallFunctionObjArgs(function, follower, plan, part.roots, buffers, numbers, 0)
    Py_DecRef(buffers)
    Py_DecRef(ran)
    return ran == True

def run_part(follower: Follower, part: Computation, numbers, enabled, origin):
    "runs a plan, and gives what it computed; 0 where nothing was done"
    native: Native = part.native
    need(type_of(native) == world.Native and PyList_Size(part.buffers) <= MOST_INPUTS)
    found = room(SLOTS)
    need(find_memory(follower, part.buffers, found))
    if native.address == world.zero:
        need(run_by_python(follower, part, numbers, found))
    else:
        need(run_natively(follower, part, numbers, found, origin))
    flushed()
    return 1

def end_here(follower: Follower):
    "lets go what only the way needed"
    way: Way = follower.way
    record: Record = follower.record
    events: Events = world.events
    last: Computation = way.last
    replace(events.computed, own(referred(last.plan)))
    replace(record.follower, own(None))
    PyDict_Clear(record.standing)

@python
def picograd_finish(self, arguments, count):
    "`finish(follower, asked, place, read)`: True, or None where nothing was done"
    if count != 4:
        refuse("finish takes a follower, nodes, a line, and a computation on the way or None")
    need(sweep_live() and is_idle())
    enabled = is_enabled()
    events: Events = world.events
    follower: Follower = arguments[0]
    need(type_of(follower) == world.Follower and follower.record == events.record)
    way: Way = follower.way
    part: Computation = arguments[3]
    is_end = part == None
    if is_end:
        part = way.last
        need(have_gradients(follower, way.gradients))
    need(is_due_now(follower, part, arguments[1], arguments[2]))
    numbers = find_numbers(follower.record, part.scalars)
    need(numbers)
    ran = run_part(follower, part, numbers, enabled, arguments[2])
    Py_DecRef(numbers)
    need(ran)
    if is_end:
        let_old_go(follower.record, way.old)
    give_results(follower, part, enabled)
    if is_end:
        end_here(follower)
    return own(True)
"""

READY = """
def are_current_now(follower: Follower, record: Record, end: end):
    "whether what was met is as it was, but for what was written on the way"
    need(PyList_Size(follower.met) == end.met and PyList_Size(record.found) == end.met)
    changed = end.changed
    for at in range(end.met):
        node = PyList_GetItem(record.found, at)
        if changed[at]:
            node = PyDict_GetItemWithError(record.standing, changed[at])
        need(node and node_of_met(PyList_GetItem(follower.met, at)) == node)
    return 1

def are_own(end: end):
    "as `have_own_memory`"
    target = end.target
    for at in range(end.targets):
        tensor: Tensor = target[at]
        leaf: Node = tensor._node
        need(leaf.op == world.buffer and leaf.realized == None)
        need(tensor._view == None and tensor._views == None)
        need(type_of(leaf.arg) == world.Storage)
        need(tensor._tracks == False or is_leaf(leaf, tensor))
    return 1

def put_memory(record: Record, end: end, listed, found):
    "fills a list with the memory of the plan, each once; 0 where it has another kind"
    for at in range(end.buffers):
        pair: pair = end.buffer + at * PAIR
        if pair.first == MET:
            memory = memory_at(PyList_GetItem(record.found, pair.second))
        else:
            tensor: Tensor = pair.second
            memory = memory_at(tensor._node)
        need(memory and type_of(memory) == world.Buffer)
        PyList_SetItem(listed, at, own(memory))
        need(PySet_Add(found, memory) == 0)
    return PySet_Size(found) == end.buffers

@python
def picograd_ready_end(self, arguments, count):
    "`ready(follower)`: the memory that the plan takes, in its order; or None"
    if count != 1:
        refuse("ready takes a follower")
    follower: Follower = arguments[0]
    end: end = own_table(self)
    record: Record = follower.record
    need(type_of(follower.met) == world.list)  # else the handler of a signal has stopped it
    way: Way = follower.way
    last: Computation = way.last
    need(have_gradients(follower, way.gradients) and are_alive(follower.made, last.living))
    need(are_own(end) and are_current_now(follower, record, end))
    listed = PyList_New(end.buffers)
    found = PySet_New(0)
    if listed and found and put_memory(record, end, listed, found):
        Py_DecRef(found)
        return listed
    Py_DecRef(found)
    Py_DecRef(listed)
    return 0
"""

GIVE = """
def are_givable(follower: Follower, record: Record, end: end):
    "whether all that gets a result is of the usual kind"
    for at in range(end.writes):
        given: given = end.write + at * GIVEN
        older: Node = PyList_GetItem(record.found, given.place)
        node: Node = PyDict_GetItemWithError(record.standing, given.at)
        need(type_of(older.arg) == world.Storage and node and node.realized == None)
        need(type_of(node) == world.Standing)
    for at in range(end.values):
        given: given = end.value + at * GIVEN
        tensor: Tensor = referred(PyList_GetItem(follower.made, given.place))
        node: Node = PyDict_GetItemWithError(record.standing, given.at)
        need(tensor != None and node and node.realized == None)
        need(type_of(node) == world.Standing and tensor._node == node)
    return 1

def enter_moved(node, to, target):
    "`LiveTable.move`"
    live: LiveTable = world.live
    key = PyLong_FromVoidPtr(node)
    need(key)
    found = PyDict_GetItemWithError(live.data, key)
    if found:
        if referred(found) == target:
            PyDict_DelItem(live.data, key)
    drop(live.waiting, key)
    Py_DecRef(key)
    key = PyLong_FromVoidPtr(to)
    need(key)
    drop(live.data, key)
    reference = PyWeakref_NewRef(target, 0)
    if reference:
        PyDict_SetItem(live.data, key, reference)
    Py_DecRef(reference)
    Py_DecRef(key)

def count_write(storage: Storage, gone):
    "`Storage.count_writes`; what ends is kept in a list"
    replace(storage.version, sum_of(storage.version, 1))
    if storage.source != None:
        node: Node = referred(storage.source)
        if node != None:
            PyList_Append(gone, node.realized)
            replace(node.realized, own(None))
        PyList_Append(gone, storage.source)
        replace(storage.source, own(None))

def give_write(follower: Follower, record: Record, given: given, buffer, gone):
    "as `give_write` in following.py; 0 where there is no memory"
    older: Node = PyList_GetItem(record.found, given.place)
    node: Node = PyDict_GetItemWithError(record.standing, given.at)
    storage: Storage = older.arg
    overwritten: Overwritten = PyType_GenericAlloc(world.Overwritten, 0)
    need(overwritten)
    overwritten.storage = own(storage)
    overwritten.version = own(storage.version)
    become_leaf(node, own(storage))
    replace(older.arg, overwritten)
    note_kept(record, given.at, node)
    count_write(storage, gone)
    PyList_Append(gone, storage.buffer)
    replace(storage.buffer, own(buffer))
    enter_moved(older, node, PyList_GetItem(follower.met, given.place))
    return 1

def give_all(follower: Follower, record: Record, end: end, results, enabled, gone):
    for at in range(end.writes):
        given: given = end.write + at * GIVEN
        buffer = PyList_GetItem(results, given.result)
        need(give_write(follower, record, given, buffer, gone))
    for at in range(end.values):
        given: given = end.value + at * GIVEN
        buffer = PyList_GetItem(results, given.result)
        reference = PyList_GetItem(follower.made, given.place)
        give_value(record, given.at, reference, buffer, enabled)
    return 1

@python
def picograd_give_end(self, arguments, count):
    "`give(follower, results)`: True, or None where nothing was done"
    if count != 2 or type_of(arguments[1]) != world.list:
        refuse("give takes a follower and a list of results")
    follower: Follower = arguments[0]
    end: end = own_table(self)
    record: Record = follower.record
    enabled = is_enabled()
    need(type_of(follower.met) == world.list and PyList_Size(arguments[1]) >= end.results)
    need(are_givable(follower, record, end))
    gone = PyList_New(0)
    need(gone)
    is_done = give_all(follower, record, end, arguments[1], enabled, gone)
    Py_DecRef(gone)
    if is_done:
        return own(True)
    return 0
"""

TEXT = ENDING + READY + GIVE


def declare_ends(follower: Any) -> None:
    """Let these functions be compiled with the others, for a class of what follows ways."""
    world = {
        "starts": carried.STARTS, "depth": pending.DEPTH, "Constant": Constant,
        "Computation": Computation, "run_follower": follower.run, "Overwritten": Overwritten,
    }  # fmt: skip
    slots: dict[type, tuple[str, ...]] = {
        Constant: ("_node",), Overwritten: ("storage", "version"), Record: ("kept",),
        Events: ("computed",), follower: ("computed",), Way: ("gradients", "last", "old"),
        Computation: (
            "asked", "at", "buffers", "is_ahead", "is_simple", "living", "native", "plan", "roots",
            "scalars",
        ),
    }  # fmt: skip
    tables = {"end": END, "pair": PAIR, "given": GIVEN}
    found = {key: at for name, words in tables.items() for key, at in places(name, words).items()}
    sizes = {name.upper(): 8 * len(words) for name, words in tables.items()}
    sizes["MOST_INPUTS"] = 64  # a few are compared with all others
    functions = "picograd_finish", "picograd_ready_end", "picograd_give_end"
    native_calls.declare(TEXT, functions, world, slots, found, sizes)


def ends_of(way: Way) -> tuple[Any, Any] | None:
    """Give `ready` and `give` of a way that came a few times; None for what Python does."""
    if not config.native:
        return None
    way.uses += 1
    if way.uses == USES and not way.last.is_simple:
        can_end = CALLS.find("picograd_ready_end") is not None
        if can_end and (table := table_of(way)) is not None:
            ready = CALLS.find("picograd_ready_end", table)
            way.ends = ready, CALLS.find("picograd_give_end", table)
        way.uses -= CALLS.is_coming  # or it is asked for at the next end
    return way.ends


def table_of(way: Way) -> Table | None:
    """Write the table of the end of a way, as `END` lists it; None for what Python has to do."""
    writes = [write for event in way.events for write in event.writes]
    left, shown = dict(writes), any(event.shows for event in way.events)
    roots = {at: number for number, at in enumerate(way.last.roots)}
    is_usual = len(left) == len(writes) and {*left.values()} <= {*roots}
    if way.reads or way.final or shown or not is_usual:
        return None
    if any(kind != MET and not isinstance(each, Recorded) for kind, each in way.last.buffers):
        return None
    table = Table()
    name, part = table.name, table.part
    taken = [(k, each if k == MET else name(each)) for k, each in way.last.buffers]
    given = [(met, name(at), roots[at]) for met, at in writes]
    living = [(n, way.made[n].at) for n in way.last.living if way.made[n].at in roots]
    values = [(n, name(at), roots[at]) for n, at in living]
    changed = [name(left[n]) if n in left else 0 for n in range(way.template.count)]
    found = {
        "met": way.template.count, "changed": part(changed),
        "targets": len(way.targets), "target": part([*map(name, way.targets)]),
        "buffers": len(taken), "buffer": part(flat(taken)),
        "writes": len(given), "write": part(flat(given)),
        "values": len(values), "value": part(flat(values)), "results": len(way.last.roots),
    }  # fmt: skip
    return table.fill([found[word] for word in END])


def flat(rows: list[Any]) -> list[int]:
    """Put rows one behind another."""
    return [word for row in rows for word in row]

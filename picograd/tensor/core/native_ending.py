"""Ends of ways, and computations on them, by machine code: `Follower.finish` and `read`.

That is done where no optimizer steps and nothing that was met is written (`is_simple` of ways.py):
it is compared that what was met is as it was, that the same tensors live, and what is asked for;
then the plan runs, and the tensors that live get their values. A plan that machine code does not
run is run by Python in between. Where anything else is so, nothing was done, and Python looks. The
language is that of runtime/python_code.py, other functions are those of native_following.py.
"""

from picograd.engine import carried, native_calls, pending
from picograd.runtime.python_calls import places
from picograd.tensor.core.following import Follower
from picograd.tensor.core.ways import Constant, Read

# A computation at the end of a way, or on it: how many events come before, the rest as in `Read`.
PART = "at", "asked", "alive", "buffers", "scalars", "roots", "is_ahead", "plan", "native"

TEXT = """
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

def describe_end(part: part, way: Way):
    "what the computation at the end of a way is; 0 where Python has to look"
    need(way.is_simple == True)
    part.at = PyList_Size(way.events)
    part.asked = way.asked
    part.alive = way.alive
    part.buffers = way.buffers
    part.scalars = way.scalars
    part.roots = way.roots
    part.is_ahead = way.is_ahead
    part.plan = way.plan
    part.native = way.native
    return 1

def describe_read(part: part, read: Read):
    "the same of one on the way"
    need(type_of(read) == world.Read and read.is_simple == True)
    part.at = PyLong_AsLongLong(read.at)
    part.asked = read.asked
    part.alive = read.living
    part.buffers = read.buffers
    part.scalars = read.scalars
    part.roots = read.roots
    part.is_ahead = read.is_ahead
    part.plan = read.plan
    part.native = read.native
    return 1

def is_due_now(follower: Follower, part: part, asked, origin):
    "whether all is as it was, and nothing else is to be computed"
    way: Way = follower.way
    record: Record = follower.record
    last: Event = PyList_GetItem(way.events, PyList_Size(way.events) - 1)
    epoch = PyDict_GetItemWithError(world.settings, world.epoch)
    need(PyList_Size(world.starts) == 0 and PyLong_AsLongLong(follower.at) == part.at)
    need(is_number(epoch, PyTuple_GetItem(last.modes, 2)))
    need(PyList_GetItem(world.depth, 0) == world.zero)
    need((part.is_ahead == True) == is_ahead(origin))
    need(is_asked(record, asked, part.asked) and are_alive(follower.made, part.alive))
    return are_current(follower, record)

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
    storage: Storage = node.arg
    if type_of(storage) == world.Storage:
        return storage.buffer
    return node.realized

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

def new_storage(buffer, source):
    "takes the source"
    storage: Storage = PyType_GenericAlloc(world.Storage, 0)
    if storage:
        storage.buffer = own(buffer)
        storage.version = own(world.zero)
        storage.source = source
        storage.answers = own(None)
    return storage

def become_leaf(node: Node, buffer, reference):
    storage = new_storage(buffer, own(None))
    need(storage)
    stand_no_more(node)
    replace(node.op, own(world.buffer))
    replace(node.inputs, own(world.nothing))
    replace(node.arg, storage)
    replace(node.realized, own(None))
    replace(node.leaf, own(reference))
    return enter_live(node, reference)

def keep_history(tensor: Tensor, node: Node, buffer, reference):
    "gives a tensor a leaf, behind which is its node"
    leaf: Node = new_leaf(buffer, node.shape)
    need(leaf)
    storage: Storage = leaf.arg
    replace(leaf.dtype, own(node.dtype))
    replace(leaf.device, own(node.device))
    replace(leaf.leaf, own(reference))
    replace(storage.source, PyWeakref_NewRef(node, 0))
    replace(tensor._history, own(node))
    replace(tensor._node, leaf)
    return enter_live(leaf, reference)

def give_value(record: Record, at, reference, buffer, enabled):
    "as in following.py"
    node: Node = PyDict_GetItemWithError(record.standing, at)
    tensor: Tensor = referred(reference)
    if node.leaf != None or (tensor._tracks == False and not (enabled and is_tracked(node.dtype))):
        return become_leaf(node, buffer, reference)
    replace(node.realized, own(buffer))
    kept = PyWeakref_NewRef(node, 0)
    PyDict_SetItem(record.kept, at, kept)
    Py_DecRef(kept)
    if tensor._tracks == True:
        return enter_live(node, reference)
    own(node)
    keep_history(tensor, node, buffer, reference)
    Py_DecRef(node)

def is_among_roots(part: part, at):
    for number in range(PyList_Size(part.roots)):
        if is_number(PyList_GetItem(part.roots, number), at):
            return 1
    return 0

def give_results(follower: Follower, part: part, enabled):
    "gives what was computed to tensors that live"
    way: Way = follower.way
    record: Record = follower.record
    for number in range(PyList_Size(part.alive)):
        which = PyLong_AsLongLong(PyList_GetItem(part.alive, number))
        made: Made = PyList_GetItem(way.made, which)
        buffer = PyDict_GetItemWithError(follower.computed, made.at)
        if buffer and is_among_roots(part, made.at):
            give_value(record, made.at, PyList_GetItem(follower.made, which), buffer, enabled)

def run_natively(follower: Follower, part: part, numbers, found, origin):
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

def run_by_python(follower: Follower, part: part, numbers, found):
    "`Follower.run`, which runs Python; 0 where nothing was done, or after an error"
    buffers = PyList_New(PyList_Size(part.buffers))
    given = PyTuple_New(5)
    need(buffers and given)
    for number in range(PyList_Size(part.buffers)):
        PyList_SetItem(buffers, number, own(found[number]))
    set_item(given, 0, follower)
    set_item(given, 1, part.plan)
    set_item(given, 2, part.roots)
    set_item(given, 3, buffers)
    set_item(given, 4, numbers)
    ran = PyObject_CallObject(world.run_follower, given)
    Py_DecRef(buffers)
    Py_DecRef(given)
    Py_DecRef(ran)
    return ran == True

def run_part(follower: Follower, part: part, numbers, enabled, origin):
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
    replace(events.computed, own(referred(way.plan)))
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
    part: part = room(PART_WORDS)
    is_end = arguments[3] == None
    if is_end:
        need(describe_end(part, way) and have_gradients(follower, way.gradients))
    else:
        need(describe_read(part, arguments[3]))
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


def declare_ending() -> None:
    """Let these functions be compiled with the others, behind those of native_following.py."""
    world = {
        "starts": carried.STARTS, "depth": pending.DEPTH, "Constant": Constant, "Read": Read,
        "run_follower": Follower.run,
    }  # fmt: skip
    slots: dict[type, tuple[str, ...]] = {
        Constant: ("_node",),
        Read: (
            "at", "asked", "living", "buffers", "scalars", "roots", "is_ahead", "plan", "native",
            "is_simple",
        ),
    }  # fmt: skip
    # each of the inputs is compared with all others
    numbers = {"PART_WORDS": len(PART), "MOST_INPUTS": 64}
    native_calls.declare(TEXT, ("picograd_finish",), world, slots, places("part", PART), numbers)

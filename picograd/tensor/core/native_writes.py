"""Writes to memory, recorded and retired by machine code.

`assign(tensor, node)` gives a tensor that has memory its next value there, as `write_memory` of
recording.py does; `update(tensor, function, operands)` what a recipe records, too, as `update` does
where nobody shows that memory. A small graph (native_small.py) may have all writes that wait among
its roots, where nobody else has to read before what they overwrite; what is computed then is a leaf
of its storage, as `pending.retire` leaves it. The language is that of runtime/python_code.py.
"""

import weakref

from picograd.buffer import Overwritten
from picograd.engine import foreign, native_calls, pending
from picograd.engine.followed import Events

WRITING = """
def is_left(node: Node):
    "whether a node is still to be computed"
    need(type_of(node) == world.Node and node.realized == None)
    if PyTuple_Size(node.inputs):
        return 1
    return PyDict_GetItemWithError(world.memory, node.op) == 0

def is_there(tops):
    "whether one leaf of memory is asked for, and nothing waits to be written"
    need(PyList_Size(tops) == 1 and PyDict_Size(world.writes) == 0)
    node: Node = PyList_GetItem(tops, 0)
    need(type_of(node) == world.Node and PyTuple_Size(node.inputs) == 0)
    return is_alike(node.op, world.buffer)

def add_left(listed, node):
    "adds what is still to be computed to a list, once"
    for number in range(PyList_Size(listed)):
        if PyList_GetItem(listed, number) == node:
            return 0
    if is_left(node):
        PyList_Append(listed, node)

def with_writes(tops):
    "what is asked for, and the writes that are still to run, as `pending.with_writes`: a new list"
    if PyDict_Size(world.writes) == 0:
        return own(tops)
    need(PyList_GetItem(world.depth, 0) == world.zero and PyDict_Size(world.writes) <= LIMIT)
    listed = PyList_New(0)
    need(listed)
    for number in range(PyList_Size(tops)):
        add_left(listed, PyList_GetItem(tops, number))
    at = room(1)
    entry = room(2)
    at[0] = 0
    for number in range(PyDict_Size(world.writes)):
        PyDict_Next(world.writes, at, entry, entry + 8)
        add_left(listed, referred(entry[0]))
    return listed

def memory_held(node: Node):
    "the buffer of a value that is in memory, or 0"
    if node.realized != None:
        return node.realized
    storage: Storage = node.arg
    need(node.op == world.buffer and type_of(storage) == world.Storage)
    return storage.buffer

def note_written(graph: graph, node: Node):
    "notes the memory that a root writes, itself or behind another one; 0 where Python has to look"
    need(place_in(graph.nodes, graph.asked, node) < graph.asked and node.arg == None)
    target: Node = PyTuple_GetItem(node.inputs, 0)
    need(type_of(target) == world.Node)
    written = graph.written
    memory = memory_held(target)
    if memory == 0:
        need(is_alike(target.op, world.assign))
    written[graph.written_count] = memory
    graph.written_count = graph.written_count + 1
    return 1

def is_unread(graph: graph, reference):
    "whether a tensor that waits reads what is written through the write alone"
    tensor: Tensor = referred(reference)
    need(tensor)
    if tensor == None:
        return 1
    need(PyType_IsSubtype(type_of(tensor), world.Tensor))
    stack = room(MOST_NODES)
    stack[0] = tensor._node
    top = 1
    for step in range(LIMIT):
        if top == 0:
            return 1
        top = top - 1
        node: Node = stack[top]
        need(type_of(node) == world.Node)
        if place_in(graph.nodes, graph.asked, node) == graph.asked:
            memory = memory_held(node)
            if memory:
                found = place_in(graph.written, graph.written_count, memory)
                need(found == graph.written_count or step == 0)
            else:
                need(type_of(node.inputs) == world.tuple)
                need(top + PyTuple_Size(node.inputs) <= LIMIT)
                for number in range(PyTuple_Size(node.inputs)):
                    stack[top] = PyTuple_GetItem(node.inputs, number)
                    top = top + 1
    return 0

def may_write_all(graph: graph):
    "whether all that waits to be written is a root, and nobody has to read before what is there"
    need(PyDict_Size(world.writes) == graph.written_count)
    if graph.written_count == 0:
        return 1
    need(graph.living_count == 0 and graph.waiting_count == 0)
    nodes = graph.nodes
    for number in range(graph.asked):
        owner = owner_of(nodes[number])
        if owner and referred(owner) != None:
            tensor: Tensor = referred(owner)
            need(tensor._tracks == False)
    live: LiveTable = world.live
    need(PyDict_Size(live.waiting) <= MOST_UNREAD)
    at = room(1)
    entry = room(2)
    at[0] = 0
    for number in range(PyDict_Size(live.waiting)):
        PyDict_Next(live.waiting, at, entry, entry + 8)
        need(is_unread(graph, entry[1]))
    return 1
"""

RETIRING = """
def past_of(storage, version):
    "what a leaf names whose contents are gone"
    gone: Overwritten = PyType_GenericAlloc(world.Overwritten, 0)
    need(gone)
    gone.storage = own(storage)
    gone.version = PyLong_FromLongLong(version)
    return gone

def wait_no_more(node: Node, storage):
    "turns a write, or a leaf, into a leaf of a storage, which is taken"
    name = PyWeakref_NewRef(node, 0)
    if name:
        drop(world.writes, name)
        Py_DecRef(name)
    become_leaf(node, storage)
    replace(node.realized, own(None))

def storage_below(write: Node):
    "the storage that a write is of, and those that it follows"
    while is_alike(write.op, world.assign):
        write = PyTuple_GetItem(write.inputs, 0)
    return write.arg

def retire(write: Node, buffer):
    "`pending.retire`: all nodes are held elsewhere, so that nothing ends here"
    if is_alike(write.op, world.assign) == 0:
        return 1
    storage: Storage = own(storage_below(write))
    version = PyLong_AsLongLong(storage.version)
    node: Node = write
    count = 0
    while is_alike(node.op, world.assign):
        count = count + 1
        node = PyTuple_GetItem(node.inputs, 0)
    node = PyTuple_GetItem(write.inputs, 0)
    for number in range(count):
        older: Node = node
        if number + 1 < count:
            node = PyTuple_GetItem(older.inputs, 0)
        wait_no_more(older, past_of(storage, version + count - 1 - number))
    source: Node = 0
    if storage.source != None:
        source = referred(storage.source)
    if source and source != None:
        replace(source.realized, own(None))
    replace(storage.source, own(None))
    replace(storage.version, PyLong_FromLongLong(version + count))
    replace(storage.buffer, own(buffer))
    wait_no_more(write, storage)
    return 1
"""

MOVING_ON = """
def has_memory(target: Tensor):
    "whether a tensor that tracks nothing has memory, and few writes of it wait"
    node: Node = target._node
    need(target._tracks == False and type_of(node) == world.Node and node.realized == None)
    longest = PyLong_AsLongLong(PyDict_GetItemWithError(world.pending, world.chain))
    for depth in range(longest - 1):  # else Python sees that all is to be computed
        if node.op == world.buffer:
            return 1
        need(is_alike(node.op, world.assign))
        node = PyTuple_GetItem(node.inputs, 0)
    return 0

def write_to(target: Tensor, value: Node):
    "a node that writes a value where a tensor is; 0 where Python has to look"
    node: Node = target._node
    need(is_alike(value.shape, node.shape) and value.dtype == node.dtype)
    need(is_alike(value.device, node.device))
    inputs = PyTuple_Pack(2, node, value)
    need(inputs)
    dtype = node.dtype
    return new_node(world.Node, world.assign, inputs, own(None), node.shape, dtype, node.device)

def enter_write(before, after: Node, target):
    "enters a write, and the tensor that it is of now, as `pending.move_on` does: 1, or 0"
    live: LiveTable = world.live
    reference = PyWeakref_NewRef(target, 0)
    write = PyWeakref_NewRef(after, world.end_write)
    key = PyLong_FromVoidPtr(before)
    need(reference and write and key)
    replace(after.leaf, own(reference))
    found = PyDict_GetItemWithError(live.data, key)
    if found and referred(found) == target:
        PyDict_DelItem(live.data, key)
        drop(live.waiting, key)
    named = PyObject_CallFunctionObjArgs(world.KeyedRef, after, world.end_target, key, 0)
    if named:
        PyDict_SetItem(world.by_target, key, named)
    PyDict_SetItem(world.writes, write, None)
    Py_DecRef(named)
    Py_DecRef(write)
    Py_DecRef(key)
    key = PyLong_FromVoidPtr(after)
    need(key)
    drop(live.data, key)
    drop(live.waiting, key)
    drop(world.new, key)
    PyDict_SetItem(live.data, key, reference)
    PyDict_SetItem(live.waiting, key, reference)
    PyDict_SetItem(world.new, key, None)
    Py_DecRef(key)
    Py_DecRef(reference)
    return 1

def move_to(target: Tensor, value):
    "writes a value where a tensor with memory is: 1; 0, and nothing, where Python has to look"
    after = write_to(target, value)
    need(after)
    if enter_write(target._node, after, target):
        replace(target._node, after)
        replace(target._history, own(None))
        return 1
    Py_DecRef(after)
    return 0

@python
def picograd_assign(self, arguments, count):
    "`assign(tensor, node)`: True, or None where `write_memory` has to look"
    if count != 2:
        refuse("assign takes a tensor and a node")
    target: Tensor = arguments[0]
    events: Events = world.events
    need(PyType_IsSubtype(type_of(target), world.Tensor) and type_of(arguments[1]) == world.Node)
    need(events.learning == None and events.take == None and not PyDict_Size(world.shared))
    need(not PyList_Size(world.open))
    if is_allowed() and has_memory(target) and move_to(target, arguments[1]):
        return own(True)

@python
def picograd_update(self, arguments, count):
    "`update(tensor, function, operands)`: True; a key in a list, as `record` gives it; or None"
    if count != 3:
        refuse("update takes a tensor, a function and its operands")
    target: Tensor = arguments[0]
    need(is_tensor(target) and target._view == None and target._views == None)
    need(not PyList_Size(world.open) and has_memory(target) and next_count())
    return record_over(arguments + 8, target)
"""

TEXT = WRITING + RETIRING + MOVING_ON


def declare_writes() -> None:
    """Let these functions be compiled with the others."""
    world = {
        "assign": "assign", "chain": "CHAIN", "shared": foreign.SHARED, "Overwritten": Overwritten,
        "depth": pending.DEPTH, "KeyedRef": weakref.KeyedRef,
        "by_target": vars(pending.BY_TARGET)["data"],
        "end_target": vars(pending.BY_TARGET)["_remove"],
        "end_write": vars(pending.WRITES)["_remove"],
    }  # fmt: skip
    slots: dict[type, tuple[str, ...]] = {
        Overwritten: ("storage", "version"), Events: ("learning",),
    }  # fmt: skip
    numbers = {
        "MOST_UNREAD": 32  # tensors that wait beside a write, and are walked each time
    }
    native_calls.declare(TEXT, ("picograd_assign", "picograd_update"), world, slots, {}, numbers)

"""The end of a way that was followed, by machine code: what is compared before its plan runs, and
what tensors get behind it.

`picograd_ready` gives the memory that the plan takes, where gradients, tensors that are alive, what
was met and what the optimizer writes are as they were (`is_as_told` and `memory` of following.py).
`picograd_give` lets what was written, and what lives on, have the results (`give`). At anything
unusual they give None, with nothing changed, and Python does all of it. What they let go ends when
all is in place. The language is that of runtime/python_code.py.
"""

import weakref
from typing import Any

from picograd.buffer import Overwritten, Storage
from picograd.engine import native_calls, pending
from picograd.engine.carried import become_leaf
from picograd.engine.followed import Record, stand_no_more
from picograd.engine.native_calls import CALLS
from picograd.graph.node import Node
from picograd.runtime.python_calls import places
from picograd.runtime.python_layout import Table
from picograd.tensor.core.autograd import MODE, TRACKED
from picograd.tensor.core.recording import Recorded
from picograd.tensor.core.ways import MET, Way

END = (
    "gradients", "gradient", "made", "alive", "met", "changed", "targets", "target", "buffers",
    "buffer", "writes", "write", "values", "value", "results",
)  # fmt: skip
PAIR = "first", "second"
GIVEN = "place", "at", "result"  # a tensor that was met or made, its node, and what it gets

READY = """
def are_gradients(follower: Follower, end: end):
    "whether parameters have the gradients that the way gave them, or none"
    for at in range(end.gradients):
        pair: pair = end.gradient + at * PAIR
        parameter: Tensor = pair.first
        if pair.second < 0:
            need(parameter._grad == None)
        else:
            need(refers_to(follower.made, pair.second, parameter._grad))
    return 1

def are_alive(follower: Follower, end: end):
    "whether tensors that were made live, and no others"
    need(PyList_Size(follower.made) == end.made)
    alive = end.alive
    for at in range(end.made):
        need((referred(PyList_GetItem(follower.made, at)) != None) == alive[at])
    return 1

def node_of(value: Tensor):
    "the node of what was met"
    if PyType_IsSubtype(type_of(value), world.Tensor):
        return value._node
    alone: Alone = value
    need(type_of(value) == world.Alone)
    return alone._node

def are_current(follower: Follower, record: Record, end: end):
    "whether what was met is as it was, but for what was written on the way"
    need(PyList_Size(follower.met) == end.met and PyList_Size(record.found) == end.met)
    changed = end.changed
    for at in range(end.met):
        node = PyList_GetItem(record.found, at)
        if changed[at]:
            node = PyDict_GetItemWithError(record.standing, changed[at])
        need(node and node_of(PyList_GetItem(follower.met, at)) == node)
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
        need(tensor._tracks == False or is_own_leaf(leaf, tensor))
    return 1

def memory_at(node: Node):
    if type_of(node.arg) == world.Storage:
        storage: Storage = node.arg
        return storage.buffer
    return node.realized

def put_memory(record: Record, end: end, listed, found):
    "fills a list with the memory of the plan, each once; 0 where it has another kind"
    for at in range(end.buffers):
        pair: pair = end.buffer + at * PAIR
        if pair.first == OF_MET:
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
    need(are_gradients(follower, end) and are_alive(follower, end) and are_own(end))
    need(are_current(follower, record, end))
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

def stand_no_more(node: Standing):
    "as in followed.py: what it stood for is another's to hold"
    pair = node.record
    node.record = 0
    PyObject_SetAttr(node, world.class_name, world.Node)
    Py_DecRef(pair)

def become_leaf(node: Node, storage):
    "as in carried.py, of a node that stands in; takes the storage"
    replace(node.op, own(world.buffer))
    node.inputs = own(world.nothing)
    replace(node.arg, storage)

def new_storage(buffer):
    storage: Storage = PyType_GenericAlloc(world.Storage, 0)
    need(storage)
    storage.buffer = own(buffer)
    storage.version = own(world.zero)
    storage.source = own(None)
    storage.answers = own(None)
    return storage

def note_kept(record: Record, at, node):
    reference = PyWeakref_NewRef(node, 0)
    if reference:
        PyDict_SetItem(record.kept, at, reference)
        Py_DecRef(reference)

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
    stand_no_more(node)
    note_kept(record, given.at, node)
    count_write(storage, gone)
    PyList_Append(gone, storage.buffer)
    replace(storage.buffer, own(buffer))
    enter_moved(older, node, PyList_GetItem(follower.met, given.place))
    return 1

def give_leaf(tensor: Tensor, node: Node, buffer, reference):
    "lets a tensor that others may ask how it was computed have a leaf; 0 where there is no memory"
    leaf: Node = new_leaf(buffer, node.shape)
    need(leaf)
    storage: Storage = leaf.arg
    source = PyWeakref_NewRef(node, 0)
    if source == 0:
        Py_DecRef(leaf)
        return 0
    replace(storage.source, source)
    replace(node.realized, own(buffer))
    replace(leaf.leaf, own(reference))
    replace(tensor._history, own(node))
    replace(tensor._node, leaf)
    return leaf

def give_value(follower: Follower, record: Record, given: given, buffer, enabled):
    "as `give_value` in following.py; 0 where there is no memory"
    reference = PyList_GetItem(follower.made, given.place)
    tensor: Tensor = referred(reference)
    node: Node = PyDict_GetItemWithError(record.standing, given.at)
    leaf = node
    is_graph = 0
    if node.leaf == None:
        if tensor._tracks == True:
            is_graph = 1
            replace(node.realized, own(buffer))
        elif enabled and is_tracked(node.dtype):
            is_graph = 1
            leaf = give_leaf(tensor, node, buffer, reference)
            need(leaf)
    if is_graph:
        note_kept(record, given.at, node)
    else:
        storage = new_storage(buffer)
        need(storage)
        become_leaf(node, storage)
        stand_no_more(node)
        replace(node.leaf, own(reference))
    return enter_live(leaf, reference)

def give_all(follower, record, end: end, results, enabled, gone):
    for at in range(end.writes):
        given: given = end.write + at * GIVEN
        buffer = PyList_GetItem(results, given.result)
        need(give_write(follower, record, given, buffer, gone))
    for at in range(end.values):
        given: given = end.value + at * GIVEN
        buffer = PyList_GetItem(results, given.result)
        need(give_value(follower, record, given, buffer, enabled))
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

TEXT = READY + GIVE


def declare_ends(alone: type) -> None:
    """Let these functions be compiled with the others; `alone` has a node as tensors do."""
    world = {"Overwritten": Overwritten, "Alone": alone, "class_name": "__class__"}
    tables = {"end": END, "pair": PAIR, "given": GIVEN}
    found = {key: at for name, words in tables.items() for key, at in places(name, words).items()}
    sizes = {name.upper(): 8 * len(words) for name, words in tables.items()}
    slots = {alone: ("_node",), Overwritten: ("storage", "version"), Record: ("kept",)}
    functions = "picograd_ready_end", "picograd_give_end"
    native_calls.declare(TEXT, functions, world, slots, found, sizes)


def ends_of(way: Way) -> tuple[Any, Any] | None:
    """Make `ready` and `give` of a way; None for what Python has to do."""
    table = table_of(way)
    if table is None or CALLS.find("picograd_ready_end") is None:
        return None
    return CALLS.find("picograd_ready_end", table), CALLS.find("picograd_give_end", table)


def table_of(way: Way) -> Table | None:
    """Write the table of the end of a way, as `END` lists it; None for what Python has to do."""
    writes = [write for event in way.events for write in event.writes]
    last, shown = dict(writes), any(event.shows for event in way.events)
    roots = {at: number for number, at in enumerate(way.roots)}
    is_usual = len(last) == len(writes) and {*last.values()} <= {*roots}
    if way.reads or way.final or shown or not is_usual:
        return None
    if any(kind != MET and not isinstance(each, Recorded) for kind, each in way.buffers):
        return None
    table, alive = Table(), {*way.alive}
    name, part = table.name, table.part
    rows = [(name(each), number) for each, number in way.gradients]
    taken = [(k, each if k == MET else name(each)) for k, each in way.buffers]
    given = [(met, name(at), roots[at]) for met, at in writes]
    living = [(n, way.made[n].at) for n in way.alive if way.made[n].at in roots]
    values = [(n, name(at), roots[at]) for n, at in living]
    changed = [name(last[n]) if n in last else 0 for n in range(way.template.count)]
    found = {
        "gradients": len(rows), "gradient": part(flat(rows)), "made": len(way.made),
        "alive": part([int(n in alive) for n in range(len(way.made))]),
        "met": way.template.count, "changed": part(changed),
        "targets": len(way.targets), "target": part([*map(name, way.targets)]),
        "buffers": len(taken), "buffer": part(flat(taken)),
        "writes": len(given), "write": part(flat(given)),
        "values": len(values), "value": part(flat(values)), "results": len(way.roots),
    }  # fmt: skip
    return table.fill([found[word] for word in END])


def flat(rows: list[Any]) -> list[int]:
    """Put rows one behind another."""
    return [word for row in rows for word in row]


def give_value(reference: Any, node: Node, buffer: Any) -> bool:
    """Give a tensor its value; tells whether its node is still one of a graph.

    What tracks gradients keeps its graph. Others get a leaf: the node, where no graph is kept.
    """
    tensor, data = reference(), pending.LIVE.data
    leaf = node
    is_graph = node.leaf is None and tensor._tracks
    if is_graph:
        node.realized = buffer
    elif node.leaf is None and MODE.enabled and node.dtype.kind in TRACKED:
        node.realized = buffer
        storage = Storage(buffer)
        storage.source = weakref.ref(node)
        tensor._node = leaf = Node("buffer", (), storage, node.shape, node.dtype, node.device)
        leaf.leaf, tensor._history, is_graph = reference, node, True
    else:
        become_leaf(node, Storage(buffer))
        stand_no_more(node)
        node.leaf = reference
    data.pop(id(leaf), None)  # of a node that is gone
    pending.LIVE.waiting.pop(id(leaf), None)
    data[id(leaf)] = reference
    return is_graph

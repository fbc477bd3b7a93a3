"""Tensors, their nodes and their entries among those that are alive, made by machine code.

Each function does what the one of its name in Python does, for the usual case. The caller holds
`pending.LOCK`. The language is that of runtime/python_code.py; which part of a function may run
Python, runtime/python_calls.py says.
"""

from picograd.buffer import Storage
from picograd.dtype import DType
from picograd.engine import carried, native_calls, pending
from picograd.engine.followed import EVENTS, Events
from picograd.engine.live import LiveTable
from picograd.engine.tracing import OPEN, RUNNING
from picograd.graph.formula import nothing
from picograd.graph.node import Node
from picograd.graph.room import CLEARLY_FINE
from picograd.graph.row import MOVES, PAIRS, WRITES
from picograd.tensor.core.aliasing import View
from picograd.tensor.core.autocast import REGIONS
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.recording import ALWAYS, CUTTING, Recorded

# All slots of the objects that are made here.
STORAGE = "buffer", "version", "source", "answers"
NODE = "op", "inputs", "arg", "shape", "dtype", "device", "realized", "leaf", "is_asked"
TENSOR = (
    "_node", "_tracks", "_is_frozen", "name", "_history", "_hooks", "_view", "_views", "_grad",
)  # fmt: skip
VIEW = "base", "function", "operands", "passes", "in_no_grad", "always", "known", "moves"

MAKING = """
def new_storage(buffer):
    storage: Storage = PyType_GenericAlloc(world.Storage, 0)
    need(storage)
    storage.buffer = own(buffer)
    storage.version = own(world.zero)
    storage.source = own(None)
    storage.answers = own(None)
    return storage

def new_node(kind, op, inputs, arg, shape, dtype, device):
    "takes the argument and the inputs, which are 0 where the node has none of its own yet"
    node: Node = PyType_GenericAlloc(kind, 0)
    if node == 0:
        Py_DecRef(inputs)
        Py_DecRef(arg)
        return 0
    node.op = own(op)
    node.inputs = inputs
    node.arg = arg
    node.shape = own(shape)
    node.dtype = own(dtype)
    node.device = own(device)
    node.realized = own(None)
    node.leaf = own(None)
    node.is_asked = own(False)
    return node

def new_leaf(buffer: Buffer, shape):
    "the node of memory"
    storage = new_storage(buffer)
    need(storage)
    nothing = own(world.nothing)
    dtype = buffer.dtype
    return new_node(world.Node, world.buffer, nothing, storage, shape, dtype, buffer.device)

def new_tensor(node):
    "takes the node"
    tensor: Tensor = PyType_GenericAlloc(world.Tensor, 0)
    if tensor == 0:
        Py_DecRef(node)
        return 0
    tensor._node = node
    tensor._tracks = own(False)
    tensor._is_frozen = own(False)
    tensor.name = own(world.no_text)
    tensor._history = own(None)
    tensor._hooks = own(None)
    tensor._view = own(None)
    tensor._views = own(None)
    tensor._grad = own(None)
    return tensor
"""

LIVING = """
def referred(find):
    "what a function gives, a weak reference for example; borrowed: somebody else holds it"
    found = PyObject_CallObject(find, 0)
    Py_DecRef(found)
    return found

def at_address(table, place):
    "what a dict has for an address, or 0"
    key = PyLong_FromVoidPtr(place)
    need(key)
    found = PyDict_GetItemWithError(table, key)
    Py_DecRef(key)
    return found

def drop(table, key):
    if PyDict_GetItemWithError(table, key):
        PyDict_DelItem(table, key)

def sweep_live():
    "runs Python: 0 after an error"
    live: LiveTable = world.live
    if PyDict_Size(live.data) <= PyLong_AsLongLong(live.limit):
        return 1
    swept = PyObject_CallObject(world.sweep, 0)
    Py_DecRef(swept)
    return swept != 0

def enter_live(node, reference):
    live: LiveTable = world.live
    key = PyLong_FromVoidPtr(node)
    need(key)
    drop(live.data, key)
    drop(live.waiting, key)
    is_entered = PyDict_SetItem(live.data, key, reference) == 0
    Py_DecRef(key)
    return is_entered

def computed(buffer, shape, is_made):
    "a new tensor over memory; `is_made` if nothing leads to it"
    node: Node = new_leaf(buffer, shape)
    need(node)
    tensor = new_tensor(node)
    need(tensor)
    reference = PyWeakref_NewRef(tensor, 0)
    if reference == 0 or not enter_live(node, reference):
        Py_DecRef(reference)
        Py_DecRef(tensor)
        return 0
    if is_made:
        replace(node.leaf, own(reference))
    Py_DecRef(reference)
    return tensor
"""

MODES = """
def own_of_thread(owner, name):
    "what each thread has its own of, borrowed from `owner`; may run Python: 0 after an error"
    found = PyObject_GetAttr(owner, name)
    Py_DecRef(found)
    return found

def is_enabled():
    return own_of_thread(world.mode, world.enabled) == True

def is_traced():
    "a trace, or autocast; may run Python"
    if PyList_Size(world.open) == 0:
        return 0
    active = own_of_thread(world.running, world.active)
    if active == 0:
        return 1
    dtypes = own_of_thread(world.regions, world.dtypes)
    if dtypes == 0:
        return 1
    return PyList_Size(active) | PyDict_Size(dtypes)
"""

AROUND = """
def is_unnoted():
    "no trace of this thread notes what is recorded; may run Python"
    if PyList_Size(world.open) == 0:
        return 1
    traces = own_of_thread(world.running, world.traces)
    need(traces)
    return PyList_Size(traces) == 0

def is_idle():
    "nothing else is due with a computation; may run Python"
    need(not PyDict_Size(world.writes))
    return is_idle_but_for_writes()

def is_idle_but_for_writes():
    need(not (PyList_Size(world.waiting) | PyDict_Size(world.changed)))
    if PyList_Size(world.open):
        active = own_of_thread(world.running, world.active)
        need(active)
        need(not PyList_Size(active))
        need(is_unnoted())
    return PyDict_Size(world.new) <= budget()

def budget():
    return PyLong_AsLongLong(PyDict_GetItemWithError(world.pending, world.budget))

def flushed():
    "as in pending.py, without the sweep"
    recorded = PyLong_AsLongLong(PyList_GetItem(world.recorded, 0))
    before = PyLong_AsLongLong(PyList_GetItem(world.flushed, 0))
    total = PyLong_FromLongLong(before + recorded)
    if total:
        PyList_SetItem(world.flushed, 0, total)
        PyList_SetItem(world.recorded, 0, own(world.zero))
    PyList_SetItem(world.is_due, 0, own(False))
"""

SETTLING = """
def owner_of(node):
    "the tensor of a node, and the weak reference to it; 0 for none"
    live: LiveTable = world.live
    return at_address(live.data, node)

def is_usual(node: Node, reference):
    "whether the tensor of a node settles as `settle_tensor` does it, or, as it tracks, not at all"
    if reference == 0:
        return 1
    tensor: Tensor = referred(reference)
    need(tensor)
    if tensor == None:
        return 1
    need(type_of(tensor) == world.Tensor and tensor._node == node and tensor._history == None)
    return (tensor._tracks == False) | (node.leaf == None)

def is_tracked(dtype: DType):
    return is_alike(dtype.kind, world.float) | is_alike(dtype.kind, world.complex)

def settle_tensor(tensor: Tensor, node: Node, buffer, reference, enabled):
    "`Recorded.settle`: the node is held elsewhere, so that nothing ends here"
    live: LiveTable = world.live
    leaf: Node = new_leaf(buffer, node.shape)
    before = PyLong_FromVoidPtr(node)
    source = PyWeakref_NewRef(node, 0)
    if leaf == 0 or before == 0 or source == 0 or not enter_live(leaf, reference):
        Py_DecRef(leaf)
        Py_DecRef(before)
        Py_DecRef(source)
        return 0
    storage: Storage = leaf.arg
    replace(storage.source, source)
    drop(live.data, before)
    drop(live.waiting, before)
    Py_DecRef(before)
    replace(leaf.leaf, own(reference))
    if enabled and node.leaf == None and is_tracked(node.dtype):
        replace(tensor._history, own(node))
    replace(tensor._node, leaf)

def settle(node: Node, buffer, reference, enabled):
    "gives a node its buffer, and its tensor, if that does not track, the leaf of that"
    own(reference)
    replace(node.realized, own(buffer))
    key = PyLong_FromVoidPtr(node)
    if key:
        drop(world.new, key)
        Py_DecRef(key)
    if reference:
        tensor: Tensor = PyObject_CallObject(reference, 0)
        if tensor and tensor != None and tensor._tracks == False:
            settle_tensor(tensor, node, buffer, reference, enabled)
        Py_DecRef(tensor)
    Py_DecRef(reference)
"""

MADE = """
@python
def picograd_computed(self, arguments, count):
    if count != 3:
        refuse("computed takes a buffer, a shape and a flag")
    if type_of(arguments[0]) != world.Buffer or type_of(arguments[1]) != world.tuple:
        refuse("computed takes a buffer, a shape and a flag")
    need(sweep_live())
    return computed(arguments[0], arguments[1], arguments[2] == True)
"""

WRAPPING = """
def enter_waiting(node: Node, reference, key):
    "enters the tensor of a node that waits, as the last one; 0 where another has that"
    live: LiveTable = world.live
    found = PyDict_GetItemWithError(live.data, key)
    if found:
        need(referred(found) == None)
        PyDict_DelItem(live.data, key)
    drop(live.waiting, key)
    drop(world.new, key)
    PyDict_SetItem(live.data, key, reference)
    PyDict_SetItem(live.waiting, key, reference)
    PyDict_SetItem(world.new, key, None)
    return 1

def is_modest(shape):
    "whether any device holds as many elements, of whatever dtype"
    total = 1
    for number in range(PyTuple_Size(shape)):
        size = PyTuple_GetItem(shape, number)
        need(type_of(size) == world.int and PyLong_AsLongLong(size) <= MOST_OF_AXIS)
        total = total * PyLong_AsLongLong(size)
        need(total <= CLEARLY_FINE)
    return 1

def is_allowed():
    return PyDict_GetItemWithError(world.settings, world.switch) != world.zero

def is_untold():
    "no trace, or way, is told of what is recorded, and machine code is wanted; may run Python"
    events: Events = world.events
    need(events.take == None and is_allowed())
    return is_unnoted()

def next_count():
    "how many operations will have been recorded; 0 where work is due"
    count = PyLong_AsLongLong(PyList_GetItem(world.recorded, 0)) + 1
    need(PyList_GetItem(world.is_due, 0) == False and count <= budget())
    return count

def wrapped(node: Node, tracks):
    "the tensor of a node that waits, as `wrap_own` makes it; 0 where Python has to look"
    need(type_of(node) == world.Node and node.realized == None and PyTuple_Size(node.inputs))
    need(not PyDict_GetItemWithError(world.writing, node.op) and is_modest(node.shape))
    need(not (tracks == True and PyDict_GetItemWithError(world.pairs, node.op)))
    recorded = next_count()
    need(recorded)
    tensor: Tensor = new_tensor(own(node))
    need(tensor)
    replace(tensor._tracks, own(tracks))
    if tracks == True and PyDict_GetItemWithError(world.moves, node.op):
        replace(node.is_asked, own(True))
    reference = PyWeakref_NewRef(tensor, 0)
    key = PyLong_FromVoidPtr(node)
    if reference and key and enter_waiting(node, reference, key):
        PyList_SetItem(world.recorded, 0, PyLong_FromLongLong(recorded))
    else:
        Py_DecRef(tensor)
        tensor = 0
    Py_DecRef(reference)
    Py_DecRef(key)
    return tensor

@python
def picograd_wrap(self, arguments, count):
    "`wrap(node, tracks)`: the tensor of a node that waits; None where Python has to look"
    if count != 2:
        refuse("wrap takes a node and a flag")
    need(is_untold())
    return wrapped(arguments[0], arguments[1])
"""

SHOWING = """
def new_view(base, function, operands, enabled):
    "a View; 0 where there is no memory"
    view: View = PyType_GenericAlloc(world.View, 0)
    need(view)
    view.base = own(base)
    view.function = own(function)
    view.operands = own(operands)
    view.passes = own(False)
    if enabled and PySet_Contains(world.cutting, function) == 0:
        replace(view.passes, own(True))
    view.in_no_grad = own(True)
    if enabled:
        replace(view.in_no_grad, own(False))
    view.always = own(False)
    if PySet_Contains(world.always, function) == 1:
        replace(view.always, own(True))
    view.known = own(None)
    view.moves = own(None)
    return view

def is_short(views):
    "whether a list of views is none that Python may have to look through"
    if views == None:
        return 1
    return PyList_Size(views) < MOST_VIEWS

def attach(tensor: Tensor, view, base: Tensor):
    "lets a new tensor be a view, which is taken, and its base know of it; 0 without memory"
    node: Node = tensor._node
    replace(tensor._view, view)
    if tensor._tracks == True:
        replace(node.is_asked, own(True))
    reference = PyWeakref_NewRef(tensor, 0)
    if base._views == None:
        listed = PyList_New(0)
        if listed:
            replace(base._views, listed)
    need(reference and base._views != None)
    failed = PyList_Append(base._views, reference)
    Py_DecRef(reference)
    return failed == 0

def tensor_of_view(node, tracks, base: Tensor, function, operands, enabled):
    "the tensor that shows a part of another, as `shown` makes it"
    need(is_short(base._views))
    view = new_view(base, function, operands, enabled)
    need(view)
    tensor = wrapped(node, tracks)
    if tensor == 0:
        Py_DecRef(view)
        return 0
    if attach(tensor, view, base):
        return tensor
    Py_DecRef(tensor)
    return 0

@python
def picograd_show(self, arguments, count):
    "`show(node, tracks, base, function, operands)`: the tensor of a view; or None"
    if count != 5:
        refuse("show takes a node, a flag, a tensor, a function and its operands")
    base: Tensor = arguments[2]
    need(PyType_IsSubtype(type_of(base), world.Tensor) and type_of(arguments[4]) == world.tuple)
    enabled = is_enabled()
    need(is_untold())
    return tensor_of_view(arguments[0], arguments[1], base, arguments[3], arguments[4], enabled)
"""

STAMPING = """
def read_of(nodes, place, several):
    "the nodes that a step reads, as a tuple"
    if several == world.reads_nothing:
        return own(world.nothing)
    if several != None:
        return PyObject_CallFunctionObjArgs(several, nodes, 0)
    return PyTuple_Pack(1, PyList_GetItem(nodes, PyLong_AsLongLong(place)))

def node_of_step(kind, step, inputs):
    "the node of a step; takes the inputs, as `new_node` does"
    op = PyTuple_GetItem(step, 0)
    arg = own(PyTuple_GetItem(step, 3))
    shape = PyTuple_GetItem(step, 4)
    dtype = PyTuple_GetItem(step, 5)
    return new_node(kind, op, inputs, arg, shape, dtype, PyTuple_GetItem(step, 6))

def stamp_step(nodes, step):
    "appends the node of a step: 1, or 0"
    read = read_of(nodes, PyTuple_GetItem(step, 1), PyTuple_GetItem(step, 2))
    need(read)
    node = node_of_step(world.Node, step, read)
    need(node)
    failed = PyList_Append(nodes, node)
    Py_DecRef(node)
    return failed == 0

@python
def picograd_stamp(self, arguments, count):
    "`stamp(nodes, steps)` appends the node of each step; at None Python goes on from the last one"
    if count != 2:
        refuse("stamp takes a list of nodes and one of steps")
    if type_of(arguments[0]) != world.list or type_of(arguments[1]) != world.list:
        refuse("stamp takes a list of nodes and one of steps")
    for at in range(PyList_Size(arguments[1])):
        need(stamp_step(arguments[0], PyList_GetItem(arguments[1], at)))
    return own(True)
"""

TEXT = MAKING + LIVING + MODES + AROUND + SETTLING + MADE + WRAPPING + SHOWING + STAMPING


def declare_tensors() -> None:
    """Let these functions be compiled with the others."""
    world = {
        "Storage": Storage, "Node": Node, "Tensor": Recorded.kind, "buffer": "buffer",
        "live": pending.LIVE, "sweep": pending.LIVE.sweep, "new": carried.NEW,
        "running": RUNNING, "open": OPEN,
        "active": "active", "regions": REGIONS, "dtypes": "dtypes",
        "writes": carried.entries(pending.WRITES), "mode": MODE, "enabled": "enabled",
        "epoch": "epoch", "traces": "traces", "float": "float", "complex": "complex",
        "waiting": pending.WAITING, "changed": carried.entries(pending.CHANGED),
        "flushed": pending.FLUSHED,
        "recorded": pending.RECORDED, "is_due": pending.IS_DUE,
        "pending": vars(pending), "budget": "BUDGET", "writing": dict.fromkeys(WRITES, True),
        "reads_nothing": nothing, "events": EVENTS, "pairs": dict.fromkeys(PAIRS, True),
        "moves": dict.fromkeys(MOVES, True), "View": View, "cutting": frozenset(CUTTING),
        "always": ALWAYS,
    }  # fmt: skip
    slots = {
        Storage: STORAGE, Node: NODE, Recorded.kind: TENSOR,
        LiveTable: ("data", "waiting", "limit"), DType: ("kind",), Events: ("take",), View: VIEW,
    }  # fmt: skip
    functions = "picograd_computed", "picograd_wrap", "picograd_show", "picograd_stamp"
    numbers = {
        "CLEARLY_FINE": CLEARLY_FINE, "MOST_OF_AXIS": 1 << 26,  # the product of both is one word
        "MOST_VIEWS": 16,
    }  # fmt: skip
    native_calls.declare(TEXT, functions, world, slots, {}, numbers)

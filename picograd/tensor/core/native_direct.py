"""`pending.compute` of an operation that direct.py knows, by machine code.

From the node to the tensor that has its memory: what must not be there is looked for, the plan is
found by `direct.key_of` and run, and the tensor settles. The caller holds `pending.LOCK`. The
language is that of runtime/python_code.py; the first part ends where `compute_known` begins.
"""

from picograd.dtype import DType
from picograd.engine import carried, direct, native_calls, pending
from picograd.engine.direct import MOST_INPUTS
from picograd.graph.node import RESULT
from picograd.tensor.core.recording import VERSIONS

MOST_PASSED = 64  # values that passed and are looked at one by one

AROUND = """
def is_passed():
    "whether a value that lives on was computed on the way, and is not stored yet; or too many were"
    if PyDict_Size(world.passed) > MOST_PASSED:
        return 1
    at = room(1)
    entry = room(2)
    at[0] = 0
    for number in range(PyDict_Size(world.passed)):
        PyDict_Next(world.passed, at, entry, entry + 8)
        node: Node = referred(entry[0])
        if node == 0:
            return 1
        if node != None and node.realized == None and node.op != world.buffer:
            return 1
    return 0

def is_idle():
    "nothing else is due with a computation; may run Python"
    active = own_of_thread(world.running, world.active)
    need(active)
    traces = own_of_thread(world.running, world.traces)
    need(traces)
    waiting = PyList_Size(world.waiting) | PyDict_Size(world.writes) | PyDict_Size(world.changed)
    need(not (PyList_Size(active) | PyList_Size(traces) | waiting | is_passed()))
    return PyDict_Size(world.new) <= PyLong_AsLongLong(world.budget)

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

FINDING = """
def result_below(node: Node):
    "the result of a formula, if that is all that a node reads; else 0"
    need(PyTuple_Size(node.inputs) == 1)
    result: Node = PyTuple_GetItem(node.inputs, 0)
    need(type_of(result) == world.Node and result.op == world.result and result.realized == None)
    return result

def memory_below(inputs, held):
    "the memory that an operation reads: how many, or 0"
    count = PyTuple_Size(inputs)
    need(count <= MOST_INPUTS)
    for number in range(count):
        child: Node = PyTuple_GetItem(inputs, number)
        need(type_of(child) == world.Node)
        held[number] = child.realized
        if child.realized == None:
            storage: Storage = child.arg
            need(child.op == world.buffer and type_of(storage) == world.Storage)
            held[number] = storage.buffer
        need(type_of(held[number]) == world.Buffer)
    return count

def pattern_of(held, count):
    "which of the memory is the same, as a number"
    pattern = 0
    for number in range(count):
        first = number
        for back in range(number):
            if held[number - 1 - back] == held[number]:
                first = number - 1 - back
        pattern = pattern * MOST_INPUTS + first
    return PyLong_FromLongLong(pattern)

def known_direct(node: Node, formula, number, inputs, held, count):
    "looks `direct.key_of` up, which may run Python; owned"
    key = PyTuple_New(10 + 2 * count)
    need(key)
    first: Node = PyTuple_GetItem(inputs, 0)
    PyTuple_SetItem(key, 0, own(PyDict_GetItemWithError(world.settings, world.epoch)))
    PyTuple_SetItem(key, 1, own(node.op))
    PyTuple_SetItem(key, 2, own(node.arg))
    PyTuple_SetItem(key, 3, own(formula))
    PyTuple_SetItem(key, 4, own(number))
    PyTuple_SetItem(key, 5, own(node.shape))
    PyTuple_SetItem(key, 6, own(node.dtype))
    PyTuple_SetItem(key, 7, own(node.device))
    PyTuple_SetItem(key, 8, own(first.device))
    pattern = pattern_of(held, count)
    PyTuple_SetItem(key, 9, pattern)
    for at in range(count):
        child: Node = PyTuple_GetItem(inputs, at)
        PyTuple_SetItem(key, 10 + 2 * at, own(child.shape))
        PyTuple_SetItem(key, 11 + 2 * at, own(child.dtype))
    known = 0
    if pattern:
        known = own(PyDict_GetItemWithError(world.direct, key))
    Py_DecRef(key)
    return known
"""

SETTLING = """
def is_alone(node, whole):
    "nothing that is alive, and new, may read what a formula computes; its gradient is the only one"
    live: LiveTable = world.live
    need(not PyDict_Size(world.carried))
    if PyDict_Size(world.gradients):
        reference = PyWeakref_NewRef(whole, 0)
        need(reference)
        waiting = PyDict_GetItemWithError(world.gradients, reference)
        Py_DecRef(reference)
        need(not waiting or PyList_Size(waiting) <= 1)
    at = room(1)
    entry = room(2)
    at[0] = 0
    for number in range(PyDict_Size(world.new)):
        PyDict_Next(world.new, at, entry, entry + 8)
        reference = PyDict_GetItemWithError(live.data, entry[0])
        if reference and PyLong_AsUnsignedLongLong(entry[0]) != node:
            need(referred(reference) == None)
    return 1

def forget_gradients(whole):
    "the gradients of a formula wait no longer"
    reference = PyWeakref_NewRef(whole, 0)
    if reference:
        drop(world.gradients, reference)
        Py_DecRef(reference)

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

COMPUTING = """
def compute_known(node: Node, known: Direct, held, whole, enabled, origin):
    "no Python runs here; `whole` is the formula of which the node is the gradient, or 0"
    native: Native = known.native
    need(node.realized == None and native.address != world.zero)
    reference = owner_of(node)
    need(is_usual(node, reference))
    need(not whole or is_alone(node, whole))
    plan: plan = PyLong_AsUnsignedLongLong(native.address)
    table = own(native.table)
    found = room(SLOTS)
    for number in range(plan.inputs):
        place = PyLong_AsLongLong(PyTuple_GetItem(known.places, number))
        found[number] = held[place]
    ran = run(plan, 0, origin, 0, found)
    if ran:
        replace(native.is_used, own(True))
        flushed()
        if whole:
            PyDict_Clear(world.new)
            forget_gradients(whole)
        settle(node, found[plan.inputs], reference, enabled)
        let_go(found, plan.slots)
    Py_DecRef(table)
    return ran

def compute_node(node: Node, enabled, origin):
    inputs = node.inputs
    whole: Node = 0
    formula = None
    number = None
    result: Node = result_below(node)
    if result:
        whole = own(PyTuple_GetItem(result.inputs, 0))
        inputs = whole.inputs
        formula = whole.arg
        number = result.arg
    held = room(MOST_INPUTS)
    count = memory_below(inputs, held)
    for at in range(count):
        own(held[at])
    is_done = 0
    if count:
        known: Direct = known_direct(node, formula, number, inputs, held, count)
        if known:
            is_done = compute_known(node, known, held, whole, enabled, origin)
        Py_DecRef(known)
    let_go(held, count)
    Py_DecRef(whole)
    return is_done

@python
def picograd_direct(self, arguments, count):
    "`direct(node, origin)`: True, or None where nothing was done"
    if count != 2:
        refuse("direct takes a node and a line")
    node: Node = arguments[0]
    need(type_of(node) == world.Node and node.realized == None and not PyDict_Size(world.versions))
    need(sweep_live() and is_idle())
    enabled = is_enabled()
    if compute_node(node, enabled, arguments[1]):
        return own(True)
"""

TEXT = AROUND + FINDING + SETTLING + COMPUTING


def declare_direct() -> None:
    """Let these functions be compiled with the others."""
    world = {
        "waiting": pending.WAITING, "changed": carried.entries(pending.CHANGED),
        "passed": carried.entries(carried.PASSED), "flushed": pending.FLUSHED,
        "recorded": pending.RECORDED, "is_due": pending.IS_DUE, "budget": pending.BUDGET,
        "versions": carried.entries(VERSIONS), "float": "float", "complex": "complex",
        "direct": direct.KNOWN, "result": RESULT,
        "carried": carried.entries(carried.WAITING), "traces": "traces",
        "gradients": carried.entries(carried.GRADIENTS),
    }  # fmt: skip
    slots = {direct.Direct: ("places", "native"), DType: ("kind",)}
    numbers = {"MOST_INPUTS": MOST_INPUTS, "MOST_PASSED": MOST_PASSED}
    native_calls.declare(TEXT, ("picograd_direct",), world, slots, {}, numbers)

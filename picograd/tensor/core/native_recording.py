"""Operations that were recorded before, by machine code: tensors to tensors in one call.

`record(function, operands)` makes the key of a call as `Operands` of repeated.py does, flat, and
stamps out the steps that are kept for it (`learn`): the nodes, and the tensors of the results. At
the first call of a key it notes that, at the second it gives the key in a list, so that Python
records, and keeps how. None leaves a call to Python: a trace or a way is told of it, `autocast`
changes it, or something among its operands is none of tensors, ints, words, and ranges of these.
The caller holds `pending.LOCK`; the language is that of runtime/python_code.py.
"""

from picograd.dtype import NEW_FLOATS
from picograd.engine import foreign, native_calls
from picograd.engine.followed import STEADY
from picograd.graph.ops import OPS
from picograd.graph.row import MOVES, NUMBERS, PAIRS
from picograd.number import LARGEST, NOTES, Notes
from picograd.runtime.python_calls import places
from picograd.tensor.core.native_small import GRAPH
from picograd.tensor.core.recipes import RECIPES, note_rooms
from picograd.tensor.core.recording import SHOWING
from picograd.tensor.core.repeated import DEEPEST, PLAIN, PURE
from picograd.traced_number import SIZED

OPERANDS = """
def is_tensor(value):
    if type_of(value) == world.Tensor:
        return 1
    return PyType_IsSubtype(type_of(value), world.Tensor)

def is_seen_through(node: Node):
    "whether constructors of nodes look at what a node is"
    if node.realized != None:
        return 0
    return PyDict_GetItemWithError(world.seen_through, node.op)

def add_node(graph: graph, node: Node):
    "the words of a node, and of what it is a view of; 0 where Python has to look"
    for depth in range(DEEPEST):
        need(type_of(node) == world.Node)
        place = place_in(graph.nodes, graph.count, node)
        if place < graph.count:
            add(graph, PyLong_FromLongLong(place))
            return 1
        need(meet_node(graph, node) < LIMIT and graph.length < MOST_WORDS - 2 * ROW)
        dtype: DType = node.dtype
        need(not is_alike(dtype.kind, world.complex))
        kind = is_seen_through(node)
        if kind == 0:
            add_kind(graph, node)
            return 1
        need(kind == True and PyTuple_Size(node.inputs))
        add(graph, own(node.op))
        add(graph, own(node.arg))
        add(graph, own(node.is_asked))
        add(graph, own(node.shape))
        node = PyTuple_GetItem(node.inputs, 0)
    return 0

def add_detached(graph: graph, source: Node):
    "the words of what gradients do not pass"
    node = new_move(world.detach, source, None, source.shape)
    need(node)
    is_told = add_node(graph, node)
    Py_DecRef(node)
    return is_told

def add_listed(graph: graph, listed):
    "a list or tuple of ints, of tensors"
    copy = own(listed)
    if type_of(listed) == world.list:
        Py_DecRef(copy)
        copy = PyList_AsTuple(listed)
    need(copy)
    add(graph, own(type_of(listed)))
    add(graph, PyLong_FromLongLong(PyTuple_Size(copy)))
    is_told = 1
    for number in range(PyTuple_Size(copy)):
        each = PyTuple_GetItem(copy, number)
        if graph.length > MOST_WORDS - 2 * ROW or type_of(each) == world.float_kind:
            is_told = 0
        if is_told:
            is_told = add_value(graph, each)
    Py_DecRef(copy)
    return is_told

def add_float(graph: graph, value):
    "a number, which operators take by its kind alone; none that is kept as it is, and not -0.0"
    need(PyObject_RichCompareBool(value, world.largest, LESS) == 1)
    need(PyObject_RichCompareBool(world.least, value, LESS) == 1)
    add(graph, own(world.float_kind))
    if graph.is_steady == 0:
        bits = PyFloat_AsDouble(value)
        need(bits == 0 or bits << 1 != 0)
        add(graph, own(value))
    return 1

def add_value(graph: graph, value):
    "the words of an operand, or of one of a list; 0 where Python has to look"
    kind = type_of(value)
    if is_tensor(value):
        tensor: Tensor = value
        if tensor._tracks == True and not graph.enabled:
            return add_detached(graph, tensor._node)
        graph.tracks = graph.tracks | (tensor._tracks == True)
        return add_node(graph, tensor._node)
    if kind == world.Node:
        return add_node(graph, value)
    if kind == world.list or kind == world.tuple:
        need(graph.is_steady == 0)
        return add_listed(graph, value)
    if kind == world.float_kind:
        return add_float(graph, value)
    need(PyDict_GetItemWithError(world.plain_kinds, kind))
    add(graph, own(kind))
    add(graph, own(value))
    return 1

def add_call(graph: graph, function, operands):
    "the words of a call; 0 where Python has to look"
    add(graph, own(function))
    add(graph, own(PyDict_GetItemWithError(world.settings, world.epoch)))
    add(graph, own(PyList_GetItem(world.new_floats, 0)))
    for number in range(PyTuple_Size(operands)):
        need(graph.length < MOST_WORDS - 2 * ROW)
        need(add_value(graph, PyTuple_GetItem(operands, number)))
    return graph.count
"""

RESULTS = """
def renew(nodes, row, operands):
    "gives a step a number of this call: an operand, one of its own, or that of another step"
    value = PyTuple_GetItem(row, 2)
    kind = PyTuple_GetItem(row, 3)
    node: Node = PyList_GetItem(nodes, PyLong_AsLongLong(PyTuple_GetItem(row, 0)))
    if kind == None:
        other: Node = PyList_GetItem(nodes, PyLong_AsLongLong(value))
        replace(node.arg, own(other.arg))
        return 1
    if PyTuple_GetItem(row, 1) != None:
        value = PyTuple_GetItem(operands, PyLong_AsLongLong(PyTuple_GetItem(row, 1)))
    number = PyObject_CallFunctionObjArgs(kind, value, 0)
    need(number)
    replace(node.arg, number)
    return 1

def is_met(graph: graph, demands):
    "whether what is demanded of what a call reads holds; runs Python"
    nodes = graph.nodes
    for number in range(PyTuple_Size(demands)):
        pair = PyTuple_GetItem(demands, number)
        place = PyLong_AsLongLong(PyTuple_GetItem(pair, 0))
        found = PyObject_CallFunctionObjArgs(PyTuple_GetItem(pair, 1), nodes[place], 0)
        Py_DecRef(found)
        need(found == True)
    return 1

def stamp_all(graph: graph, nodes, recipe, operands):
    "appends the nodes of a recipe to those that a call reads"
    listed = graph.nodes
    need(is_met(graph, PyTuple_GetItem(recipe, 4)))
    for number in range(graph.count):
        need(PyList_Append(nodes, listed[number]) == 0)
    steps = PyTuple_GetItem(recipe, 0)
    for at in range(PyList_Size(steps)):
        need(stamp_step(nodes, PyList_GetItem(steps, at)))
    numbers = PyTuple_GetItem(recipe, 1)
    for at in range(PyTuple_Size(numbers)):
        need(renew(nodes, PyTuple_GetItem(numbers, at), operands))
    return 1

def view_of(node, tracks, function, operands, enabled):
    "the tensor of a view of the first operand"
    others = PyTuple_GetSlice(operands, 1, PyTuple_Size(operands))
    need(others)
    found = tensor_of_view(node, tracks, PyTuple_GetItem(operands, 0), function, others, enabled)
    Py_DecRef(others)
    return found

def one_result(graph: graph, nodes, row, call, enabled):
    "the tensor of a result, of which the recipe says where it is, and whether it may track"
    node = PyList_GetItem(nodes, PyLong_AsLongLong(PyTuple_GetItem(row, 0)))
    tracks = False
    if graph.tracks and enabled:
        tracks = PyTuple_GetItem(row, 1)
    if PySet_Contains(world.cutting, call[0]):
        tracks = False
    if PySet_Contains(world.showing, call[0]):
        return view_of(node, tracks, call[0], call[1], enabled)
    return wrapped(node, tracks)

def written_result(graph: graph, nodes, rows):
    "True where the one result is the next value of what is written"
    need(PyTuple_Size(rows) == 1)
    row = PyTuple_GetItem(rows, 0)
    need(move_to(graph.target, PyList_GetItem(nodes, PyLong_AsLongLong(PyTuple_GetItem(row, 0)))))
    PyList_SetItem(world.recorded, 0, PyLong_FromLongLong(next_count()))
    return own(True)

def all_results(graph: graph, nodes, recipe, call, enabled):
    rows = PyTuple_GetItem(recipe, 2)
    count = PyTuple_Size(rows)
    if graph.target:
        return written_result(graph, nodes, rows)
    if PyTuple_GetItem(recipe, 3) == True:
        return one_result(graph, nodes, PyTuple_GetItem(rows, 0), call, enabled)
    made = PyTuple_New(count)
    need(made)
    for number in range(count):
        tensor = one_result(graph, nodes, PyTuple_GetItem(rows, number), call, enabled)
        if tensor == 0:
            Py_DecRef(made)
            return 0
        PyTuple_SetItem(made, number, tensor)
    return made

def results_of(graph: graph, recipe, call, enabled):
    nodes = PyList_New(0)
    need(nodes)
    made = 0
    if stamp_all(graph, nodes, recipe, call[1]):
        if is_untold():
            made = all_results(graph, nodes, recipe, call, enabled)
    Py_DecRef(nodes)
    return made

def note_key(key):
    "what is known of a key, owned; a new one is noted; runs Python"
    recipe = PyDict_GetItemWithError(world.recipes, key)
    if recipe == 0 and PyErr_Occurred() == 0:
        if PyDict_Size(world.recipes) >= MOST_RECIPES:
            PyDict_Clear(world.recipes)
        PyDict_SetItem(world.recipes, key, False)
    return own(recipe)

def boxed(key):
    made = PyList_New(0)
    need(made)
    PyList_Append(made, key)
    return made

def record_call(graph: graph, call):
    enabled = is_enabled()
    graph.enabled = enabled
    need(PyErr_Occurred() == 0 and add_call(graph, call[0], call[1]))
    need(graph.tracks == 0 or graph.target == 0)
    if enabled:
        add(graph, own(True))
    key = key_of(graph)
    need(key)
    recipe = note_key(key)
    made = 0
    if recipe == False:
        made = boxed(key)
    elif recipe and recipe != None and PyErr_Occurred() == 0:
        made = results_of(graph, recipe, call, enabled)
    Py_DecRef(recipe)
    Py_DecRef(key)
    return made

def is_simple_time():
    "whether what is recorded is that of any other time; runs Python"
    events: Events = world.events
    notes: Notes = world.notes
    need(not PyDict_Size(world.shared) and not PyList_Size(world.sized))
    need(events.learning == None and notes.table == None)
    need(is_traced() == 0)
    return is_untold()

def record_over(call, target):
    "what a call of a function gives, or writes to a target that is not 0; runs Python"
    need(type_of(call[1]) == world.tuple and PyTuple_Size(call[1]))
    need(PyDict_GetItemWithError(world.settings, world.verify) == world.zero)
    need(PySet_Contains(world.pure, call[0]) == 1 and is_simple_time())
    graph: graph = room(CALL_WORDS)
    graph.count = 0
    graph.length = 0
    graph.tracks = 0
    graph.living_count = 0
    graph.waiting_count = 0
    graph.is_ahead = 0
    graph.target = target
    graph.is_steady = PySet_Contains(world.steady, call[0])
    graph.nodes = room(MOST_NODES)
    graph.key = room(MOST_WORDS)
    made = record_call(graph, call)
    let_go(graph.nodes, graph.count)
    let_go(graph.key, graph.length)
    return made

@python
def picograd_record(self, arguments, count):
    "`record(function, operands)`: what Python's gives; a key in a list; or None"
    if count != 2:
        refuse("record takes a function and its operands")
    return record_over(arguments, 0)
"""

TEXT = OPERANDS + RESULTS


def declare_recording() -> None:
    """Let these functions be compiled with the others."""
    note_rooms()
    views = {*MOVES, *(name for name, row in OPS.items() if row.is_repeating)}
    world = {
        "pure": PURE, "steady": STEADY, "showing": SHOWING, "recipes": RECIPES,
        "seen_through": {**dict.fromkeys((*NUMBERS, *PAIRS), False), **dict.fromkeys(views, True)},
        "plain_kinds": dict.fromkeys(PLAIN, True), "float_kind": float, "verify": "verify",
        "largest": LARGEST, "least": -LARGEST, "new_floats": NEW_FLOATS,
        "shared": foreign.SHARED, "sized": SIZED, "notes": NOTES,
    }  # fmt: skip
    tables = places("graph", (*GRAPH, "tracks", "is_steady", "target", "enabled"))
    numbers = {"CALL_WORDS": len(GRAPH) + 4, "MOST_RECIPES": 4096, "DEEPEST": DEEPEST, "LESS": 0}
    slots: dict[type, tuple[str, ...]] = {Notes: ("table",)}
    native_calls.declare(TEXT, ("picograd_record",), world, slots, tables, numbers)

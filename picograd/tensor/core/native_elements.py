"""Rows and numbers of tensors by machine code: `x[i]`, `x[i, j]`, what `item` reads, `tensor([1])`.

Each function does what its Python does for the usual case, and gives None for any other: `row` what
`Tensor._read_items` does for whole numbers, `number` what known_values.py does for the one element
of memory of the host, or of slices of it, `fill` what `Tensor._fill` does for a few numbers of
Python, alone or in lists. The language is that of runtime/python_code.py.
"""

from picograd.dtype import bool_, dtype_named, float32, float64, int64
from picograd.engine import native_calls
from picograd.engine.followed import Events
from picograd.engine.realize import CHECKS, NUMBER_KINDS
from picograd.graph.row import NUMBERS, PAIRS
from picograd.number import GivenInt
from picograd.runtime.memory import SMALLEST
from picograd.runtime.python_calls import MADE, PLAN, places
from picograd.tensor.core.aliasing import show_items

ROWS = """
def new_move(op, source: Node, arg, shape):
    "a view of a node; 0 where there is no memory"
    read = PyTuple_Pack(1, source)
    need(read)
    arg = own(arg)
    return new_node(world.Node, op, read, arg, shape, source.dtype, source.device)

def place_on(item, size):
    "where a whole number is on an axis of more than one element; or the size"
    if type_of(item) != world.int or size == 1:
        return size
    at = PyLong_AsLongLong(item)
    if at < 0:
        at = at + size
    if PyErr_Occurred():
        PyErr_Clear()
        return size
    if at < 0 or at > size:
        return size
    return at

def set_range(ranges, axis, start, stop):
    "takes the start"
    row = PyTuple_New(3)
    if row == 0 or start == 0:
        Py_DecRef(start)
        Py_DecRef(row)
        return 0
    PyTuple_SetItem(row, 0, start)
    PyTuple_SetItem(row, 1, PyLong_FromLongLong(stop))
    PyTuple_SetItem(row, 2, PyLong_FromLongLong(1))
    PyTuple_SetItem(ranges, axis, row)
    return 1

def given_start(number, item, at):
    "the number that a user gave, if that is where it counts from; owned"
    if PyLong_AsLongLong(item) >= 0:
        return own(number)
    place = PyLong_FromLongLong(at)
    start = PyObject_CallFunctionObjArgs(world.GivenInt, place, 0)
    Py_DecRef(place)
    return start

def choose_axis(chosen: chosen, axis, item, size):
    at = place_on(item, size)
    need(at < size)
    number = PyObject_CallFunctionObjArgs(world.GivenInt, item, 0)
    need(number)
    failed = PyList_Append(chosen.listed, number)
    start = given_start(number, item, at)
    Py_DecRef(number)
    PyTuple_SetItem(chosen.cut, axis, PyLong_FromLongLong(1))
    need(set_range(chosen.ranges, axis, start, at + 1))
    return failed == 0

def fill_chosen(chosen: chosen, node: Node, items, count):
    for axis in range(PyTuple_Size(node.shape)):
        size = PyTuple_GetItem(node.shape, axis)
        need(type_of(size) == world.int)
        if axis < count:
            item = items
            if type_of(items) == world.tuple:
                item = PyTuple_GetItem(items, axis)
            need(choose_axis(chosen, axis, item, PyLong_AsLongLong(size)))
        else:
            PyTuple_SetItem(chosen.cut, axis, own(size))
            PyTuple_SetItem(chosen.rest, axis - count, own(size))
            need(set_range(chosen.ranges, axis, own(world.zero), PyLong_AsLongLong(size)))
    return 1

def show_chosen(chosen: chosen, tensor: Tensor, enabled):
    "the tensor of the view"
    node = new_move(world.slice, tensor._node, chosen.ranges, chosen.cut)
    need(node)
    shown = new_move(world.reshape, node, chosen.rest, chosen.rest)
    Py_DecRef(node)
    operands = PyTuple_Pack(1, chosen.listed)
    found = 0
    if shown and operands:
        found = tensor_of_view(shown, tensor._tracks, tensor, world.show_items, operands, enabled)
    Py_DecRef(operands)
    Py_DecRef(shown)
    return found

@python
def picograd_row(self, arguments, count):
    "`row(tensor, items)`: the view of a whole number, or of a tuple of some; None for others"
    if count != 2:
        refuse("row takes a tensor and an index")
    tensor: Tensor = arguments[0]
    items = arguments[1]
    number = 1
    if type_of(items) == world.tuple:
        number = PyTuple_Size(items)
    else:
        need(type_of(items) == world.int)
    need(is_tensor(tensor) and number and is_simple_time())
    enabled = is_enabled()
    node: Node = tensor._node
    need(type_of(node) == world.Node and (enabled or tensor._tracks == False))
    need(node.realized != None or not PyDict_GetItemWithError(world.parted, node.op))
    rank = PyTuple_Size(node.shape)
    need(number <= rank)
    chosen: chosen = room(CHOSEN_WORDS)
    chosen.listed = PyList_New(0)
    chosen.ranges = PyTuple_New(rank)
    chosen.cut = PyTuple_New(rank)
    chosen.rest = PyTuple_New(rank - number)
    found = 0
    if chosen.listed and chosen.ranges and chosen.cut and chosen.rest:
        if fill_chosen(chosen, node, items, number):
            found = show_chosen(chosen, tensor, enabled)
    let_go(chosen, CHOSEN_WORDS)
    return found
"""

READING = """
def place_behind(node: Node, place):
    "where an element of a slice is in what that shows"
    source: Node = PyTuple_GetItem(node.inputs, 0)
    rank = PyTuple_Size(node.shape)
    found = 0
    stride = 1
    for done in range(rank):
        axis = rank - 1 - done
        size = PyLong_AsLongLong(PyTuple_GetItem(node.shape, axis))
        row = PyTuple_GetItem(node.arg, axis)
        rest = place // size
        at = place - rest * size
        place = rest
        start = PyLong_AsLongLong(PyTuple_GetItem(row, 0))
        found = found + (start + at * PyLong_AsLongLong(PyTuple_GetItem(row, 2))) * stride
        stride = stride * PyLong_AsLongLong(PyTuple_GetItem(source.shape, axis))
    return found

def number_of(kind, word):
    "the number of a word whose low bits have it; a kind has these in its low byte"
    bits = kind & 255
    if kind & IS_FLOAT:
        if bits == 32:
            word = widened(word)
        return PyFloat_FromDouble(word)
    if bits < 64:
        word = word & ((1 << bits) - 1)
        if kind & IS_SIGNED and word >> (bits - 1):
            word = word - (1 << bits)
    if kind & IS_BOOL:
        if word:
            return own(True)
        return own(False)
    return PyLong_FromLongLong(word)

def number_in(buffer: Buffer, place):
    need(type_of(buffer) == world.Buffer and is_alike(buffer.device, world.cpu))
    named = PyDict_GetItemWithError(world.number_kinds, buffer.dtype)
    need(named and place >= 0 and place < PyLong_AsLongLong(buffer.count))
    start = PyLong_AsUnsignedLongLong(buffer.address)
    need(start and not PyErr_Occurred())
    kind = PyLong_AsLongLong(named)
    at = start + place * ((kind & 255) >> 3)
    words = at - (at & 7)
    word = words[0] >> ((at & 7) << 3)
    return number_of(kind, word)

def memory_behind(node: Node):
    if node.realized != None:
        return node.realized
    need(is_alike(node.op, world.buffer))
    storage: Storage = node.arg
    need(type_of(storage) == world.Storage)
    return storage.buffer

def number_behind(node: Node):
    "the one number that a node has, or shows, in memory of the host"
    need(type_of(node) == world.Node)
    for axis in range(PyTuple_Size(node.shape)):
        need(PyLong_AsLongLong(PyTuple_GetItem(node.shape, axis)) == 1)
    place = 0
    for hop in range(HOPS):
        need(type_of(node) == world.Node)
        buffer = memory_behind(node)
        if buffer:
            return number_in(buffer, place)
        if is_alike(node.op, world.slice):
            place = place_behind(node, place)
        else:
            need(is_alike(node.op, world.reshape))
        node = PyTuple_GetItem(node.inputs, 0)
    return 0

@python
def picograd_number(self, arguments, count):
    "`number(node)`: the one number of a node in memory of the host; None where that is more"
    if count != 1:
        refuse("number takes a node")
    events: Events = world.events
    need(not PyList_Size(world.checks) and not is_watched() and events.learning == None)
    found = number_behind(arguments[0])
    if PyErr_Occurred():
        PyErr_Clear()
        Py_DecRef(found)
        return 0
    return found
"""

LISTING = """
def length_of(listed):
    "of a list, or a tuple; 0 for anything else"
    if type_of(listed) == world.list:
        return PyList_Size(listed)
    if type_of(listed) == world.tuple:
        return PyTuple_Size(listed)
    return 0

def item_of(listed, number):
    if type_of(listed) == world.list:
        return PyList_GetItem(listed, number)
    return PyTuple_GetItem(listed, number)

def kinds_of(data, sizes, depth, rank):
    "which kinds of numbers are in lists of some sizes, as bits; 0 where these are others"
    if depth == rank:
        kind = PyDict_GetItemWithError(world.listed_kinds, type_of(data))
        need(kind)
        return PyLong_AsLongLong(kind)
    need(length_of(data) == sizes[depth])
    kinds = 0
    for number in range(sizes[depth]):
        found = kinds_of(item_of(data, number), sizes, depth + 1, rank)
        need(found)
        kinds = kinds | found
    return kinds

def word_of(kind, value):
    "the word of a number that a place of a kind has"
    if kind & IS_FLOAT:
        word = PyFloat_AsDouble(value)
        if type_of(value) == world.int and PyErr_Occurred() == 0:
            whole = PyLong_AsLongLong(value)
            if whole > EXACT or whole < 0 - EXACT:  # it is rounded once, not twice
                refuse("no such number")
        if kind & 255 == 32:
            return single(word)
        return word
    return PyLong_AsLongLong(value)

def put_numbers(start, kind, data, sizes, depth, rank, place):
    "writes the numbers of lists into memory of zeros, from a place on; gives the next place"
    if data == 0:  # a list was changed while memory was found: there is an error
        return place
    if depth == rank:
        at = place * (kind & 255)
        words = start + ((at >> 6) << 3)
        words[0] = words[0] | (word_of(kind, data) << (at & 63))
        return place + 1
    for number in range(sizes[depth]):
        place = put_numbers(start, kind, item_of(data, number), sizes, depth + 1, rank, place)
    return place

def dtype_beside(kinds, dtype):
    "the dtype of numbers, where `dtype` was asked for, or None"
    if dtype != None:
        need(dtype != world.int64 or kinds & HAS_FLOATS == 0)
        need(dtype != world.bool_ or kinds == HAS_BOOLS)
        return dtype
    if kinds & HAS_FLOATS:
        return PyList_GetItem(world.new_floats, 0)
    if kinds == HAS_BOOLS:
        return world.bool_
    return world.int64

def new_memory(pool: Pool, dtype, count, origin):
    "a Buffer of one of the smallest blocks, or 0"
    size = PyLong_FromLongLong(SMALLEST)
    need(size)
    made: made = room(MADE_WORDS)
    plan: plan = room(PLAN_WORDS)
    made.blocks = PyDict_GetItemWithError(pool.free, size)
    made.bytes = SMALLEST
    made.size = size
    made.dtype = dtype
    made.count = PyLong_FromLongLong(count)
    plan.pool = pool
    plan.device = world.cpu
    buffer = 0
    if made.blocks and made.count:
        buffer = new_buffer(plan, made, origin)
    Py_DecRef(size)
    Py_DecRef(made.count)
    return buffer

def shape_of(sizes, rank):
    shape = PyTuple_New(rank)
    need(shape)
    for axis in range(rank):
        PyTuple_SetItem(shape, axis, PyLong_FromLongLong(sizes[axis]))
    return shape

def fill_leaf(tensor: Tensor, node: Node):
    "lets a tensor be a leaf, which is taken"
    replace(tensor._node, node)
    replace(tensor._tracks, own(False))
    replace(tensor._is_frozen, own(False))
    replace(tensor.name, own(world.no_text))
    replace(tensor._history, own(None))
    replace(tensor._hooks, own(None))
    replace(tensor._view, own(None))
    replace(tensor._views, own(None))
    replace(tensor._grad, own(None))
    reference = PyWeakref_NewRef(tensor, 0)
    need(reference)
    is_entered = enter_live(node, reference)
    replace(node.leaf, reference)
    return is_entered

def fill_listed(tensor, data, sizes, rank, count, call):
    "1; 0, and nothing, where Python has to look"
    kinds = kinds_of(data, sizes, 0, rank)
    need(kinds)
    dtype = dtype_beside(kinds, call[2])
    need(dtype)
    named = PyDict_GetItemWithError(world.number_kinds, dtype)
    need(named)
    kind = PyLong_AsLongLong(named)
    need(count * (kind & 255) <= SMALLEST * 8)
    buffer: Buffer = new_memory(call[3], dtype, count, call[4])
    need(buffer)
    start = PyLong_AsUnsignedLongLong(buffer.address)
    for number in range((count * (kind & 255) + 63) >> 6):
        words = start + number * 8
        words[0] = 0
    put_numbers(start, kind, data, sizes, 0, rank, 0)
    shape = shape_of(sizes, rank)
    node = 0
    if shape and PyErr_Occurred() == 0:
        node = new_leaf(buffer, shape)
    Py_DecRef(shape)
    Py_DecRef(buffer)
    need(node)
    return fill_leaf(tensor, node)

@python
def picograd_fill(self, arguments, count):
    "`fill(tensor, data, dtype, pool, origin)`: True where a blank tensor has the numbers; or None"
    if count != 5:
        refuse("fill takes a tensor, numbers, a dtype, a pool and a line")
    need(not is_watched() and not PyList_Size(world.open))
    need(arguments[2] == None or PyDict_GetItemWithError(world.listed_dtypes, arguments[2]))
    each = arguments[1]
    sizes = room(MOST_LISTS)
    rank = 0
    total = 1
    while rank < MOST_LISTS and length_of(each):
        sizes[rank] = length_of(each)
        total = total * sizes[rank]
        need(total <= SMALLEST)
        each = item_of(each, 0)
        rank = rank + 1
    if fill_listed(arguments[0], arguments[1], sizes, rank, total, arguments):
        return own(True)
    PyErr_Clear()
"""

TEXT = ROWS + READING + LISTING
CHOSEN = "listed", "ranges", "cut", "rest"
IS_FLOAT, IS_SIGNED, IS_BOOL = 256, 512, 1024
LISTED = {bool: 1, int: 2, float: 4}  # kinds of numbers of Python


def number_kinds() -> dict[object, int]:
    """Tell machine code how numbers of each dtype lie in memory."""
    marks = {"float": IS_FLOAT, "int": IS_SIGNED, "bool": IS_BOOL}
    dtypes = [*map(dtype_named, NUMBER_KINDS)]
    return {dtype: dtype.bits | marks.get(dtype.kind, 0) for dtype in dtypes}


def declare_elements() -> None:
    """Let these functions be compiled with the others."""
    world = {
        "reshape": "reshape", "show_items": show_items, "GivenInt": GivenInt, "cpu": "cpu",
        "parted": dict.fromkeys((*NUMBERS, *PAIRS), True), "checks": CHECKS,
        "number_kinds": number_kinds(), "int64": int64, "bool_": bool_,
        "listed_kinds": LISTED,
        "listed_dtypes": dict.fromkeys((float32, float64, int64, bool_), True),
    }  # fmt: skip
    constants = {
        "CHOSEN_WORDS": len(CHOSEN),
        "IS_FLOAT": IS_FLOAT, "IS_SIGNED": IS_SIGNED, "IS_BOOL": IS_BOOL,
        "HAS_BOOLS": LISTED[bool], "HAS_FLOATS": LISTED[float], "EXACT": 1 << 53,
        "SMALLEST": SMALLEST, "MOST_LISTS": 8, "MADE_WORDS": len(MADE), "PLAN_WORDS": len(PLAN),
    }  # fmt: skip
    functions = "picograd_row", "picograd_number", "picograd_fill"
    slots: dict[type, tuple[str, ...]] = {Events: ("learning",)}
    native_calls.declare(TEXT, functions, world, slots, places("chosen", CHOSEN), constants)

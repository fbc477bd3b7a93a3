"""Events of ways that are followed, by machine code: `Follower.take` of following.py for most.

An event is *simple* (ways.py) if it makes tensors, writes what was met and gives leaves their first
gradients, and draws and looks at nothing. What fits it is compared here as `Follower.fit` compares
it; where that is not certain, nothing was done, and Python looks. Behind the look at what is each
thread's own no Python runs: nobody sees what is between. native_ends.py is for the end of a way.
The language is that of runtime/python_code.py.
"""

import struct

from picograd.engine import foreign, native_calls
from picograd.engine.followed import MISS, Events, Record, Template
from picograd.engine.update import Alone
from picograd.graph.gradient import WATCHERS
from picograd.graph.node import Standing
from picograd.number import LARGEST, Given
from picograd.tensor.core import pieces
from picograd.tensor.core.autograd import WALKS
from picograd.tensor.core.following import Follower
from picograd.tensor.core.varying import FACTOR, NUMBER
from picograd.tensor.core.ways import Event, Made, Shown, Way


def word_of(number: float) -> int:
    """Give the word of a double."""
    return int(struct.unpack("q", struct.pack("d", number))[0])


PLAIN = """
def is_argument(value):
    "whether a value is a float that a plan takes"
    need(type_of(value) == world.float_type)
    return (PyFloat_AsDouble(value) & MAGNITUDE) < TOO_LARGE

def is_factor(value):
    "the same, if it is none of 0, 1 and -1"
    need(is_argument(value))
    magnitude = PyFloat_AsDouble(value) & MAGNITUDE
    return (magnitude != 0) & (magnitude != ONE)

def is_same(value, told):
    "whether a plain value is as it was, for certain"
    if value == told:
        return 1
    kind = type_of(value)
    need(kind == type_of(told))
    if kind == world.tuple:
        need(PyTuple_Size(value) == PyTuple_Size(told))
        for at in range(PyTuple_Size(value)):
            need(is_same(PyTuple_GetItem(value, at), PyTuple_GetItem(told, at)))
        return 1
    if kind == world.float_type:
        need(PyFloat_AsDouble(value) == PyFloat_AsDouble(told))
    if kind == world.float_type or kind == world.int or kind == world.str:
        return PyObject_RichCompareBool(value, told, EQUAL) == 1
    return 0
"""

VIEWING = """
def is_range_as(row, told):
    "whether a range of a slice is what it was, but for its start if a user gave that"
    if type_of(row) != world.tuple or not is_given(row):
        return is_same(row, told)
    start = PyTuple_GetItem(row, 0)
    need(type_of(start) == world.GivenInt and type_of(told) == world.tuple)
    need(PyTuple_Size(told) == 3 and is_alike(PyTuple_GetItem(told, 0), world.at))
    length = PyLong_AsLongLong(PyTuple_GetItem(row, 1)) - PyLong_AsLongLong(start)
    need(length == PyLong_AsLongLong(PyTuple_GetItem(told, 1)))
    return is_same(PyTuple_GetItem(row, 2), PyTuple_GetItem(told, 2))

def is_view_as(node: Node, told):
    "whether a node is a view as another was: its op, argument and shape"
    need(type_of(node) == world.Node and node.realized == None and PyTuple_Size(told) == 3)
    need(PyDict_GetItemWithError(world.views, node.op))
    need(is_alike(node.op, PyTuple_GetItem(told, 0)))
    need(is_alike(node.shape, PyTuple_GetItem(told, 2)))
    ranges = node.arg
    wanted = PyTuple_GetItem(told, 1)
    if not is_alike(node.op, world.slice):
        return is_same(ranges, wanted)
    need(type_of(ranges) == world.tuple and type_of(wanted) == world.tuple)
    need(PyTuple_Size(ranges) == PyTuple_Size(wanted))
    for at in range(PyTuple_Size(ranges)):
        need(is_range_as(PyTuple_GetItem(ranges, at), PyTuple_GetItem(wanted, at)))
    return 1

def note_starts(record: Record, node: Node, told):
    "notes where a slice begins in the place of where it began"
    ranges = node.arg
    count = 0
    need(is_alike(node.op, world.slice))
    for at in range(PyTuple_Size(ranges)):
        row = PyTuple_GetItem(ranges, at)
        if is_given(row):
            need(count < PyList_Size(told))
            key = PyLong_FromVoidPtr(PyList_GetItem(told, count))
            need(key)
            failed = PyDict_SetItem(record.drawn, key, PyTuple_GetItem(row, 0))
            Py_DecRef(key)
            need(failed == 0)
            count = count + 1
    return count == PyList_Size(told)

def told_of_next(record: Record, table):
    "what a dict has for the number of the node that is met next, borrowed, or 0"
    if PyDict_Size(table) == 0:
        return 0
    key = PyLong_FromLongLong(PyList_Size(record.found))
    need(key)
    told = PyDict_GetItemWithError(table, key)
    Py_DecRef(key)
    return told

def note_moved(follower: Follower, node):
    "notes where a node that is met next begins, if a user said so"
    way: Way = follower.way
    told = told_of_next(follower.record, way.moving)
    if told == 0:
        return 1
    return note_starts(follower.record, node, told)
"""

FITTING = """
def is_in_memory(node: Node):
    if node.realized != None:
        return 1
    return type_of(node.arg) == world.Storage

def is_leaf(node: Node, tensor):
    if node.leaf == None:
        return 0
    return referred(node.leaf) == tensor

def is_as_shared(follower: Follower, node):
    "whether a node that is met next is the one that it was, where it was met before"
    way: Way = follower.way
    record: Record = follower.record
    entry = told_of_next(record, way.shared)
    if entry == 0:
        return 1
    return PyList_GetItem(record.found, PyLong_AsLongLong(PyTuple_GetItem(entry, 0))) == node

def note_met(follower: Follower, tensor, node):
    "notes a tensor, or what stands for one, and its node"
    record: Record = follower.record
    need(is_as_shared(follower, node) and note_moved(follower, node))
    return (PyList_Append(follower.met, tensor) == 0) & (PyList_Append(record.found, node) == 0)

def meet_below(follower: Follower, node):
    "notes what a view shows"
    alone: Alone = PyType_GenericAlloc(world.Alone, 0)
    need(alone)
    alone._node = own(node)
    is_noted = note_met(follower, alone, node)
    Py_DecRef(alone)
    return is_noted

def meet_views(follower: Follower, tensor, node: Node, views):
    "the same of a tensor that shows memory, and of all below"
    need(note_met(follower, tensor, node))
    for at in range(PyTuple_Size(views)):
        need(is_view_as(node, PyTuple_GetItem(views, at)))
        node = PyTuple_GetItem(node.inputs, 0)
        need(meet_below(follower, node))
    return (type_of(node.arg) == world.Storage) & (node.realized == None)

def meet(follower: Follower, facts, tensor: Tensor):
    "`Follower.meet` of what is in memory"
    need(type_of(tensor) == PyTuple_GetItem(facts, 0))
    node: Node = tensor._node
    need(node.dtype == PyTuple_GetItem(facts, 2))
    need(is_alike(node.shape, PyTuple_GetItem(facts, 1)))
    need(is_alike(node.device, PyTuple_GetItem(facts, 3)))
    tracks = PyTuple_GetItem(facts, 4)
    need(tensor._tracks == tracks and tensor._is_frozen == PyTuple_GetItem(facts, 5))
    need(tracks == False or tensor._hooks == None)
    need(PyTuple_GetItem(facts, 7) == False)
    need((PyTuple_GetItem(facts, 6) == True) == is_leaf(node, tensor))
    views = PyTuple_GetItem(facts, 8)
    if PyTuple_Size(views):
        return meet_views(follower, tensor, node, views)
    need(tensor._view == None and is_in_memory(node))
    return note_met(follower, tensor, node)

def fit_slice(follower, several, value):
    for at in range(3):
        name = PyTuple_GetItem(world.slice_parts, at)
        part = PyObject_GetAttr(value, name)
        Py_DecRef(part)
        need(part and fit(follower, PyList_GetItem(several, at), part))
    return 1

def fit_many(follower, several, value):
    kind = type_of(value)
    if kind == world.tuple:
        need(PyTuple_Size(value) == PyList_Size(several))
        for at in range(PyTuple_Size(value)):
            need(fit(follower, PyList_GetItem(several, at), PyTuple_GetItem(value, at)))
        return 1
    need(kind == world.list and PyList_Size(value) == PyList_Size(several))
    for at in range(PyList_Size(value)):
        need(fit(follower, PyList_GetItem(several, at), PyList_GetItem(value, at)))
    return 1

def fit(follower: Follower, told, value):
    "whether an argument is what it was, for certain"
    kind = PyLong_AsLongLong(PyTuple_GetItem(told, 0))
    wanted = PyTuple_GetItem(told, 1)
    if kind == IS:
        return is_same(value, wanted)
    if kind == MADE:
        need(value != None)  # as what is gone is, too
        return referred(PyList_GetItem(follower.made, PyLong_AsLongLong(wanted))) == value
    if kind == MET:
        return PyList_GetItem(follower.met, PyLong_AsLongLong(wanted)) == value
    if kind == NEW:
        return meet(follower, wanted, value)
    if kind == NUMBER:
        return is_argument(value)
    if kind == FACTOR:
        return is_factor(value)
    need(kind == MANY and type_of(value) == PyTuple_GetItem(wanted, 0))
    if type_of(value) == world.slice_type:
        return fit_slice(follower, PyTuple_GetItem(wanted, 1), value)
    return fit_many(follower, PyTuple_GetItem(wanted, 1), value)

def fit_named(follower, several, options):
    count = PyList_Size(several)
    need(PyDict_Size(options) == count)
    position = room(1)
    key = room(1)
    value = room(1)
    position[0] = 0
    for at in range(count):
        named = PyList_GetItem(several, at)
        need(PyDict_Next(options, position, key, value))
        need(is_alike(PyTuple_GetItem(named, 0), key[0]))
        need(fit(follower, PyTuple_GetItem(named, 1), value[0]))
    return 1

def are_distinct(follower: Follower):
    "as `Follower.are_distinct`"
    met = follower.met
    known = PySet_Size(follower.distinct)
    for more in range(PyList_Size(met) - known):
        key = PyLong_FromVoidPtr(PyList_GetItem(met, known + more))
        need(key)
        failed = PySet_Add(follower.distinct, key)
        Py_DecRef(key)
        need(failed == 0)
    return PySet_Size(follower.distinct) == PyList_Size(met)

def is_due(follower, event: Event, arguments, enabled):
    "whether a call is an event; what is met for the first time is noted"
    args = arguments[1]
    need(event.is_simple == True and event.function == arguments[0])
    need(type_of(args) == world.tuple and PyTuple_Size(args) == PyList_Size(event.args))
    epoch = PyDict_GetItemWithError(world.settings, world.epoch)
    need(PyTuple_GetItem(event.modes, 0) == enabled)
    need(PyLong_AsLongLong(event.walks) == 0 or PyList_Size(world.gradient_watchers) == 0)
    need(is_number(epoch, PyTuple_GetItem(event.modes, 2)))
    for at in range(PyTuple_Size(args)):
        need(fit(follower, PyList_GetItem(event.args, at), PyTuple_GetItem(args, at)))
    if event.may_cut == True:
        whole: Tensor = PyTuple_GetItem(args, 0)
        need(whole._tracks == True or type_of(whole._node) == world.Standing)
    need(fit_named(follower, event.options, arguments[2]))
    if event.is_change == True:
        need(may_change(follower, event))
    if event.is_change == True or PyLong_AsLongLong(event.walks):
        return are_distinct(follower)
    return 1
"""

BUILDING = """
def cut(listed, count):
    if type_of(listed) == world.list:  # else the handler of a signal has stopped what is followed
        PyList_SetSlice(listed, count, PyList_Size(listed), 0)

def take_numbers(record: Record, numbers, args):
    "notes the floats that are arguments of the plan"
    for at in range(PyList_Size(numbers)):
        pair = PyList_GetItem(numbers, at)
        place = PyTuple_GetItem(pair, 0)
        need(type_of(place) == world.int)
        value = PyTuple_GetItem(args, PyLong_AsLongLong(place))
        need(is_argument(value))
        given = PyObject_CallFunctionObjArgs(world.Given, value, 0)
        need(given)
        failed = PyDict_SetItem(record.drawn, PyTuple_GetItem(pair, 1), given)
        Py_DecRef(given)
        need(failed == 0)
    return 1

def standing_node(follower: Follower, at):
    "as in engine/followed.py: a new reference, or 0"
    way: Way = follower.way
    template: Template = way.template
    record: Record = follower.record
    place = PyLong_AsLongLong(at) - PyLong_AsLongLong(template.count)
    step = PyList_GetItem(template.steps, place)
    need(step)
    standing: Standing = node_of_step(world.Standing, step, 0)
    need(standing)
    pair = PyTuple_Pack(2, record, at)
    standing.record = pair
    if pair == 0 or PyDict_SetItem(record.standing, at, standing) != 0:
        Py_DecRef(standing)
        return 0
    return standing

def node_of(follower: Follower, made: Made):
    "the node of a tensor that is made next; or 0"
    way: Way = follower.way
    template: Template = way.template
    record: Record = follower.record
    at = PyLong_AsLongLong(made.at)
    if at < PyLong_AsLongLong(template.count):
        return own(PyList_GetItem(record.found, at))
    return standing_node(follower, made.at)

def shown_by(follower: Follower, shown: Shown):
    "the tensor that a view is of; 0 where Python has to look"
    kind = PyLong_AsLongLong(PyTuple_GetItem(shown.base, 0))
    number = PyLong_AsLongLong(PyTuple_GetItem(shown.base, 1))
    base: Tensor = 0
    if kind == MADE:
        base = referred(PyList_GetItem(follower.made, number))
    if kind == MET:
        base = PyList_GetItem(follower.met, number)
    need(base and PyType_IsSubtype(type_of(base), world.Tensor) and is_short(base._views))
    return base

def let_show(tensor, base, shown: Shown, enabled):
    if base == 0:
        return 1
    view = new_view(base, shown.function, shown.operands, enabled)
    need(view)
    return attach(tensor, view, base)

def made_tensor(follower: Follower, made: Made, enabled):
    "`Follower.add`; or 0"
    base = 0
    if made.shown != None:
        base = shown_by(follower, made.shown)
        need(base)
    node: Node = node_of(follower, made)
    need(node)
    tensor: Tensor = new_tensor(node)
    need(tensor)
    replace(tensor._tracks, own(made.tracks))
    reference = PyWeakref_NewRef(tensor, 0)
    if reference == 0 or not let_show(tensor, base, made.shown, enabled):
        Py_DecRef(reference)
        Py_DecRef(tensor)
        return 0
    if made.is_leaf == True:
        replace(node.leaf, own(reference))
    PyList_Append(follower.made, reference)
    Py_DecRef(reference)
    return tensor

def made_next(follower: Follower, enabled):
    "the tensor that is made next; or 0"
    way: Way = follower.way
    return made_tensor(follower, PyList_GetItem(way.made, PyList_Size(follower.made)), enabled)

def made_several(follower: Follower, kind, count, enabled):
    "a list of tensors, or a tuple of a class; or 0"
    found = PyList_New(count)
    need(found)
    for at in range(count):
        tensor = made_next(follower, enabled)
        if tensor == 0:
            Py_DecRef(found)
            return 0
        PyList_SetItem(found, at, tensor)
    if kind == world.list:
        return found
    made = PyObject_CallFunctionObjArgs(world.new_tuple, kind, found, 0)
    Py_DecRef(found)
    return made

def result_of(follower: Follower, result, enabled):
    "what an event gives; or 0"
    kind = PyLong_AsLongLong(PyTuple_GetItem(result, 0))
    told = PyTuple_GetItem(result, 1)
    if kind == IS:
        return own(told)
    if kind == MET:
        return own(PyList_GetItem(follower.met, PyLong_AsLongLong(told)))
    if kind == MADE:
        number = PyLong_AsLongLong(told)
        if number == PyList_Size(follower.made):
            return made_next(follower, enabled)
        return own(referred(PyList_GetItem(follower.made, number)))
    count = PyList_Size(PyTuple_GetItem(told, 1))
    return made_several(follower, PyTuple_GetItem(told, 0), count, enabled)
"""

CHANGING = """
def met_first(follower: Follower, told):
    "the tensor that was met whose number is the first of a tuple; 0 for what only stands for one"
    tensor = PyList_GetItem(follower.met, PyLong_AsLongLong(PyTuple_GetItem(told, 0)))
    need(PyType_IsSubtype(type_of(tensor), world.Tensor))
    return tensor

def may_write(follower, event: Event):
    "whether nothing shows what is written, an argument among them"
    for at in range(PyList_Size(event.writes)):
        target: Tensor = met_first(follower, PyList_GetItem(event.writes, at))
        need(target and target._view == None and target._views == None)
        need(target._history == None)
    return 1

def may_change(follower, event: Event):
    "whether an event writes to whole tensors, and leaves that get gradients are without"
    need(may_write(follower, event))
    for at in range(PyList_Size(event.gradients)):
        leaf: Tensor = met_first(follower, PyList_GetItem(event.gradients, at))
        need(leaf and leaf._hooks == None and leaf._grad == None)
    return 1

def give_gradients(follower, several, enabled):
    for at in range(PyList_Size(several)):
        leaf: Tensor = met_first(follower, PyList_GetItem(several, at))
        gradient = made_next(follower, enabled)
        need(gradient)
        replace(leaf._grad, gradient)
    return 1

def write_next(follower: Follower, told):
    "gives a tensor that was met its next value: 1, or 0 where there is no memory"
    target: Tensor = met_first(follower, told)
    node: Node = standing_node(follower, PyTuple_GetItem(told, 1))
    need(node)
    reference = PyWeakref_NewRef(target, 0)
    if reference == 0:
        Py_DecRef(node)
        return 0
    replace(node.leaf, reference)
    PyList_Append(follower.written_here, PyTuple_GetItem(told, 0))
    PyList_Append(follower.changed, told)
    replace(target._node, node)
    return 1

def count_walks(count):
    "notes that gradients were looked for"
    found = PyObject_GetAttr(world.walks, world.count)
    need(found)
    total = sum_of(found, count)
    Py_DecRef(found)
    PyObject_SetAttr(world.walks, world.count, total)
    Py_DecRef(total)

def change(follower: Follower, event: Event, enabled):
    "does what an event does but for its result; 0 where there is no memory"
    record: Record = follower.record
    need(give_gradients(follower, event.gradients, enabled))
    for at in range(PyList_Size(event.writes)):
        need(write_next(follower, PyList_GetItem(event.writes, at)))
    if PyList_Size(event.writes) | PyList_Size(event.checks):
        replace(record.is_awaited, own(True))
    walks = PyLong_AsLongLong(event.walks)
    if walks:
        count_walks(walks)
    return 1

def happened(follower: Follower, event: Event, args, enabled):
    "what an event gives, and the next one is due; or 0"
    record: Record = follower.record
    number = PyList_Size(follower.made)
    if PyList_Size(event.made):
        need(PyLong_AsLongLong(PyList_GetItem(event.made, 0)) == number)
    need(take_numbers(record, event.numbers, args))
    need(due_event() == event)  # no handler of a signal has stopped it
    after = PyLong_FromLongLong(PyLong_AsLongLong(follower.at) + 1)
    need(after)
    made = result_of(follower, event.result, enabled)
    if made and not change(follower, event, enabled):
        Py_DecRef(made)
        made = 0
    if made == 0:
        cut(follower.made, number)
        Py_DecRef(after)
        return 0
    replace(record.reached, own(event.reached))
    replace(follower.at, after)
    return made
"""

FOLLOWING = """
def due_event():
    "the event that is due to this thread, or 0"
    events: Events = world.events
    record: Record = events.record
    need(type_of(record) == world.Record)
    need(PyThread_get_thread_ident() == PyLong_AsUnsignedLongLong(record.owner))
    follower: Follower = record.follower
    need(type_of(follower) == world.Follower and follower.is_busy == False)
    way: Way = follower.way
    at = PyLong_AsLongLong(follower.at)
    need(at < PyLong_AsLongLong(follower.due))
    return PyList_GetItem(way.events, at)

def are_regions(dtypes):
    "whether autocast is what it was at the event that is due; may run Python"
    need(dtypes)
    event: Event = due_event()
    need(event)
    wanted = PyTuple_GetItem(event.modes, 1)
    if PyDict_Size(dtypes) | PyDict_Size(wanted):
        return PyObject_RichCompareBool(dtypes, wanted, EQUAL) == 1
    return 1

def followed(arguments):
    "what a call gives that is due; 0 where Python has to look, and nothing was done"
    enabled = own_of_thread(world.mode, world.enabled)
    need(enabled and are_regions(own_of_thread(world.regions, world.dtypes)))
    event: Event = due_event()
    need(event and PyDict_Size(world.shared) == 0)
    events: Events = world.events
    record: Record = events.record
    follower: Follower = record.follower
    met = PyList_Size(follower.met)
    found = PyList_Size(record.found)
    if is_due(follower, event, arguments, enabled):
        made = happened(follower, event, arguments[1], enabled == True)
        if made:
            return made
    PyErr_Clear()
    cut(follower.met, met)
    cut(record.found, found)
    if PySet_Size(follower.distinct) > met:
        replace(follower.distinct, PySet_New(0))
    return 0

def take_by_python(record: Record, arguments):
    "what `Follower.take` gives"
    if type_of(record) != world.Record:
        return own(world.MISS)
    take = PyObject_GetAttr(record.follower, world.take)
    need(take)
    found = PyObject_CallFunctionObjArgs(take, arguments[0], arguments[1], arguments[2], 0)
    Py_DecRef(take)
    return found

@python
def picograd_first(self, arguments, count):
    "the same of a way's first event; None, with none followed, where Python has to look"
    if count != 3:
        refuse("first takes a function, its arguments and its options")
    return followed(arguments)

@python
def picograd_follow(self, arguments, count):
    "`take(function, args, options)` of the way that is followed"
    if count != 3:
        refuse("take takes a function, its arguments and its options")
    made = followed(arguments)
    if made:
        return made
    need(not PyErr_Occurred())
    events: Events = world.events
    return take_by_python(events.record, arguments)
"""

TEXT = PLAIN + VIEWING + FITTING + BUILDING + CHANGING + FOLLOWING


def declare_following() -> None:
    """Let these functions be compiled with the others, behind those of native_tensors.py."""
    world = {
        "float_type": float, "slice_type": slice, "slice_parts": ("start", "stop", "step"),
        "shared": foreign.SHARED, "Given": Given, "Standing": Standing, "Record": Record,
        "Follower": Follower, "Alone": Alone, "walks": WALKS, "count": "count",
        "gradient_watchers": WATCHERS, "new_tuple": tuple.__new__, "MISS": MISS, "take": "take",
    }  # fmt: skip
    slots: dict[type, tuple[str, ...]] = {
        Events: ("take", "record"), Template: ("count", "steps"),
        Record: (
            "follower", "owner", "found", "drawn", "standing", "reached", "is_awaited",
        ),
        Follower: (
            "way", "at", "due", "met", "made", "record", "is_busy", "written_here", "changed",
            "distinct",
        ),
        Way: ("events", "shared", "made", "template", "moving"),
        Event: (
            "function", "args", "options", "modes", "result", "made", "numbers", "reached",
            "is_simple", "may_cut", "is_change", "writes", "gradients", "checks", "walks",
        ),
        Standing: ("record",), Made: ("at", "tracks", "is_leaf", "shown"),
        Shown: ("base", "function", "operands"), Alone: ("_node",),
    }  # fmt: skip
    kinds = {name: getattr(pieces, name) for name in ("IS", "MADE", "MET", "NEW", "MANY")}
    numbers = kinds | {
        "NUMBER": NUMBER, "FACTOR": FACTOR, "MAGNITUDE": (1 << 63) - 1, "ONE": word_of(1.0),
        "TOO_LARGE": word_of(LARGEST),
    }  # fmt: skip
    functions = "picograd_first", "picograd_follow"
    native_calls.declare(TEXT, functions, world, slots, {}, numbers)

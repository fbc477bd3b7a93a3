"""Events of ways that are followed, by machine code: `Follower.take` of following.py for most.

An event is *simple* (ways.py) if it makes one tensor and changes, draws and looks at nothing. What
fits it is compared here as `Follower.fit` compares it; where that is not certain, nothing was done,
and Python looks. Behind the look at what is each thread's own no Python runs: nobody sees what is
between. The language is that of runtime/python_code.py.
"""

import struct

from picograd.engine import carried, foreign, native_calls, pending
from picograd.engine.followed import MISS, Events, Record, Template
from picograd.engine.update import Alone
from picograd.graph.node import Standing
from picograd.number import LARGEST, Given
from picograd.runtime.python_calls import places
from picograd.tensor.core import ways
from picograd.tensor.core.following import Follower
from picograd.tensor.core.varying import FACTOR, NUMBER
from picograd.tensor.core.ways import Constant, Event, Made, Read, Shown, Way

# A computation at the end of a way, or on it: how many events come before, the rest as in `Read`.
PART = "at", "asked", "alive", "buffers", "scalars", "roots", "is_ahead", "plan", "native"


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

def note_moved(follower: Follower, node):
    "notes where a node that is met next begins, if a user said so"
    way: Way = follower.way
    record: Record = follower.record
    if PyDict_Size(way.moving) == 0:
        return 1
    key = PyLong_FromLongLong(PyList_Size(record.found))
    need(key)
    told = PyDict_GetItemWithError(way.moving, key)
    Py_DecRef(key)
    if told == 0:
        return 1
    return note_starts(record, node, told)
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
    if PyDict_Size(way.shared) == 0:
        return 1
    key = PyLong_FromLongLong(PyList_Size(record.found))
    need(key)
    entry = PyDict_GetItemWithError(way.shared, key)
    Py_DecRef(key)
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

def is_due(follower, event: Event, arguments, enabled):
    "whether a call is an event; what is met for the first time is noted"
    args = arguments[1]
    need(event.is_simple == True and event.function == arguments[0])
    need(type_of(args) == world.tuple and PyTuple_Size(args) == PyList_Size(event.args))
    epoch = PyDict_GetItemWithError(world.settings, world.epoch)
    need(PyTuple_GetItem(event.modes, 0) == enabled)
    need(is_number(epoch, PyTuple_GetItem(event.modes, 2)))
    for at in range(PyTuple_Size(args)):
        need(fit(follower, PyList_GetItem(event.args, at), PyTuple_GetItem(args, at)))
    if event.may_cut == True:
        whole: Tensor = PyTuple_GetItem(args, 0)
        need(whole._tracks == True or type_of(whole._node) == world.Standing)
    return fit_named(follower, event.options, arguments[2])
"""

BUILDING = """
def cut(listed, count):
    PyList_SetSlice(listed, count, PyList_Size(listed), 0)

def take_numbers(record: Record, numbers, args):
    "notes the floats that are arguments of the plan"
    for at in range(PyList_Size(numbers)):
        pair = PyList_GetItem(numbers, at)
        place = PyTuple_GetItem(pair, 0)
        need(type_of(place) == world.int)
        value = PyTuple_GetItem(args, PyLong_AsLongLong(place))
        need(is_argument(value))
        given = call_with(world.Given, value)
        need(given)
        failed = PyDict_SetItem(record.drawn, PyTuple_GetItem(pair, 1), given)
        Py_DecRef(given)
        need(failed == 0)
    return 1

def standing_node(record: Record, step, at):
    "as in engine/followed.py"
    node: Node = PyType_GenericAlloc(world.Standing, 0)
    need(node)
    pair = PyTuple_New(2)
    node.op = own(PyTuple_GetItem(step, 0))
    node.arg = own(PyTuple_GetItem(step, 3))
    node.shape = own(PyTuple_GetItem(step, 4))
    node.dtype = own(PyTuple_GetItem(step, 5))
    node.device = own(PyTuple_GetItem(step, 6))
    node.realized = own(None)
    node.leaf = own(None)
    node.is_asked = own(False)
    standing: Standing = node
    standing.record = pair
    if pair == 0 or PyDict_SetItem(record.standing, at, node) != 0:
        Py_DecRef(node)
        return 0
    set_item(pair, 0, record)
    set_item(pair, 1, at)
    return node

def node_of(follower: Follower, made: Made):
    "the node of a tensor that is made next; or 0"
    way: Way = follower.way
    template: Template = way.template
    record: Record = follower.record
    at = PyLong_AsLongLong(made.at)
    count = PyLong_AsLongLong(template.count)
    if at < count:
        return own(PyList_GetItem(record.found, at))
    return standing_node(record, PyList_GetItem(template.steps, at - count), made.at)

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
    given = PyTuple_New(2)
    made = 0
    if given:
        set_item(given, 0, kind)
        set_item(given, 1, found)
        made = PyObject_CallObject(world.new_tuple, given)
    Py_DecRef(given)
    Py_DecRef(found)
    return made

def result_of(follower, result, enabled):
    "what an event gives, which are the tensors that are made next; or 0"
    if PyLong_AsLongLong(PyTuple_GetItem(result, 0)) == MADE:
        return made_next(follower, enabled)
    several = PyTuple_GetItem(result, 1)
    count = PyList_Size(PyTuple_GetItem(several, 1))
    return made_several(follower, PyTuple_GetItem(several, 0), count, enabled)

def happened(follower: Follower, event: Event, args, enabled):
    "what an event gives, and the next one is due; or 0"
    record: Record = follower.record
    number = PyLong_AsLongLong(PyList_GetItem(event.made, 0))
    need(number == PyList_Size(follower.made) and take_numbers(record, event.numbers, args))
    after = PyLong_FromLongLong(PyLong_AsLongLong(follower.at) + 1)
    need(after)
    made = result_of(follower, event.result, enabled)
    if made == 0:
        cut(follower.made, number)
        Py_DecRef(after)
        return 0
    replace(record.reached, own(event.reached))
    replace(follower.at, after)
    return made
"""

FOLLOWING = """
def followed(arguments):
    "what a call gives that is due; 0 where Python has to look, and nothing was done"
    events: Events = world.events
    enabled = own_of_thread(world.mode, world.enabled)
    need(enabled)
    dtypes = own_of_thread(world.regions, world.dtypes)
    need(dtypes and PyDict_Size(dtypes) == 0 and PyDict_Size(world.shared) == 0)
    record: Record = events.record
    need(type_of(record) == world.Record)
    need(PyThread_get_thread_ident() == PyLong_AsUnsignedLongLong(record.owner))
    follower: Follower = record.follower
    need(type_of(follower) == world.Follower and follower.is_busy == False)
    way: Way = follower.way
    at = PyLong_AsLongLong(follower.at)
    need(at < PyLong_AsLongLong(follower.due))
    event: Event = PyList_GetItem(way.events, at)
    met = PyList_Size(follower.met)
    found = PyList_Size(record.found)
    if is_due(follower, event, arguments, enabled):
        made = happened(follower, event, arguments[1], enabled == True)
        if made:
            return made
    PyErr_Clear()
    cut(follower.met, met)
    cut(record.found, found)
    return 0

def take_by_python(record: Record, arguments):
    "what `Follower.take` gives"
    if type_of(record) != world.Record:
        return own(world.MISS)
    take = PyObject_GetAttr(record.follower, world.take)
    need(take)
    given = PyTuple_New(3)
    found = 0
    if given:
        for at in range(3):
            set_item(given, at, arguments[at])
        found = PyObject_CallObject(take, given)
    Py_DecRef(given)
    Py_DecRef(take)
    return found

@python
def picograd_first(self, arguments, count):
    "the same of a way's first event; None where Python has to look"
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

TEXT = PLAIN + VIEWING + FITTING + BUILDING + FOLLOWING + ENDING


def declare_following() -> None:
    """Let these functions be compiled with the others, behind those of native_tensors.py."""
    world = {
        "float_type": float, "slice_type": slice, "slice_parts": ("start", "stop", "step"),
        "starts": carried.STARTS, "depth": pending.DEPTH, "Alone": Alone, "Constant": Constant,
        "shared": foreign.SHARED, "Given": Given, "Standing": Standing, "Record": Record,
        "Follower": Follower, "run_follower": Follower.run,
        "Read": Read,
        "new_tuple": tuple.__new__, "MISS": MISS, "take": "take",
    }  # fmt: skip
    slots: dict[type, tuple[str, ...]] = {
        Events: ("take", "record", "computed"), Alone: ("_node",), Constant: ("_node",),
        Record: ("follower", "owner", "found", "drawn", "standing", "reached", "kept"),
        Follower: ("way", "at", "due", "met", "made", "record", "is_busy", "computed"),
        Way: (
            "events", "shared", "made", "template", "is_simple", "native", "plan", "asked", "alive",
            "gradients", "moving", "buffers", "scalars", "old", "roots", "is_ahead",
        ), Template: ("count", "steps"),
        Event: (
            "function", "args", "options", "modes", "result", "made", "numbers", "reached",
            "is_simple", "may_cut",
        ),
        Read: (
            "at", "asked", "living", "buffers", "scalars", "roots", "is_ahead", "plan", "native",
            "is_simple",
        ),
        Standing: ("record",), Made: ("at", "tracks", "is_leaf", "shown"),
        Shown: ("base", "function", "operands"),
    }  # fmt: skip
    kinds = {name: getattr(ways, name) for name in ("IS", "MADE", "MET", "NEW", "MANY")}
    numbers = kinds | {
        "NUMBER": NUMBER, "FACTOR": FACTOR, "MAGNITUDE": (1 << 63) - 1, "ONE": word_of(1.0),
        "TOO_LARGE": word_of(LARGEST), "PART_WORDS": len(PART),
        "MOST_INPUTS": 64,  # each is compared with all others
    }  # fmt: skip
    functions = "picograd_first", "picograd_follow", "picograd_finish"
    native_calls.declare(TEXT, functions, world, slots, places("part", PART), numbers)

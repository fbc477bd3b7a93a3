"""Ways are followed by machine code: the usual call of `Follower.take`, in the place of Python.

`picograd_follow` compares a call with the event that is due, and gives its tensors, as `is_due` and
`build` of following.py do. It knows plain values, tensors that were met or made, and those that
come for the first time and are in memory; events that make a tensor or none, write what was met, or
give leaves their first gradients. At any other it changes nothing and calls `Follower.take`, which
knows all. A way has a table of its own, which `WAY` and what follows list. The language is that of
runtime/python_code.py: a function's first part may run Python, its second, behind `is_mode`, not.
"""

from typing import Any

from picograd.config import config
from picograd.engine import foreign, native_calls
from picograd.engine.followed import CUTTING, MISS, Events, Record
from picograd.engine.native_calls import CALLS
from picograd.graph.gradient import WATCHERS
from picograd.graph.node import Standing
from picograd.runtime.python_calls import places
from picograd.runtime.python_layout import Table
from picograd.tensor.core.autograd import WALKS
from picograd.tensor.core.native_ends import ends_of
from picograd.tensor.core.native_tensors import NODE
from picograd.tensor.core.ways import IS, LISTS, MADE, MANY, MET, NAMED, NEW, Event, Told, Way

USES = 6  # of a way, until it has a table
WAY = ("events",)
# what a call must be, and what it does
EVENT = (
    "function", "count", "args", "named", "options", "enabled", "regions", "epoch", "walks",
    "result", "value", "writes", "write", "gradients", "gradient", "is_awaited", "next", "reached",
)  # fmt: skip
# what an argument must be: by `kind` an object, a number, a class, or other rows
TOLD = "kind", "value", "rows", "count", "name"
FACTS = "kind", "shape", "dtype", "device", "tracks", "is_frozen", "is_leaf"  # of what is met
# of a tensor that is made, and of what it shows, if it is a view
MAKES = "at", "step", "tracks", "is_leaf", "kind", "base", "function", "operands"
WRITE = "met", "at", "step", "pair", "number"
GIVES = "met", "made"  # the leaf, and the row of its gradient
KINDS = {"OF_IS": IS, "OF_MADE": MADE, "OF_MET": MET, "OF_NEW": NEW, "OF_MANY": MANY}
FOLLOWER = (
    "at", "begun", "changed", "computed", "count", "due", "is_busy", "known", "made", "met",
    "noted", "reads", "record", "stream", "way", "written", "written_here",
)  # fmt: skip

COMPARING = """
def refers_to(references, at, value):
    "whether a weak reference of a list is to an object; to none that is gone"
    need(at < PyList_Size(references))
    found = referred(PyList_GetItem(references, at))
    return (found == value) & (found != None)

def is_plain_same(value, wanted):
    "whether plain values are surely the same"
    if value == wanted:
        return 1
    kind = type_of(value)
    need(kind == type_of(wanted))
    if kind == world.tuple:
        need(PyTuple_Size(value) == PyTuple_Size(wanted))
        for at in range(PyTuple_Size(value)):
            need(is_plain_same(PyTuple_GetItem(value, at), PyTuple_GetItem(wanted, at)))
        return 1
    if kind == world.str:
        return is_alike(value, wanted)
    return is_number(value, wanted)

def is_own_leaf(node: Node, value):
    "whether a tensor is the leaf of its node"
    if node.leaf == None:
        return 0
    return referred(node.leaf) == value

def is_as_told(value: Tensor, facts: facts):
    "as `meet`, for what is in memory and shows no other"
    need(type_of(value) == facts.kind and value._view == None and value._hooks == None)
    node: Node = value._node
    need(type_of(node) == world.Node and node.dtype == facts.dtype)
    need(is_alike(node.shape, facts.shape) and is_alike(node.device, facts.device))
    need(value._tracks == facts.tracks and value._is_frozen == facts.is_frozen)
    need(node.realized != None or type_of(node.arg) == world.Storage)
    return is_own_leaf(node, value) == facts.is_leaf

def meets(follower: Follower, value: Tensor, facts):
    need(is_as_told(value, facts))
    record: Record = follower.record
    need(PyList_Append(follower.met, value) == 0)
    return PyList_Append(record.found, value._node) == 0

def item_of(given, at):
    if type_of(given) == world.list:
        return PyList_GetItem(given, at)
    return PyTuple_GetItem(given, at)

def fits_inside(follower, told: told, value):
    "whether a list or tuple is as it was"
    need(type_of(value) == told.value)
    if told.value == world.list:
        need(PyList_Size(value) == told.count)
    else:
        need(PyTuple_Size(value) == told.count)
    for at in range(told.count):
        need(fits(follower, told.rows + at * TOLD, item_of(value, at)))
    return 1

def fits(follower: Follower, told: told, value):
    "whether an argument is what it was"
    if told.kind == OF_MADE:
        return refers_to(follower.made, told.value, value)
    if told.kind == OF_MET:
        need(told.value < PyList_Size(follower.met))
        return PyList_GetItem(follower.met, told.value) == value
    if told.kind == OF_NEW:
        return meets(follower, value, told.rows)
    if told.kind == OF_IS:
        return is_plain_same(value, told.value)
    if told.kind == OF_MANY:
        return fits_inside(follower, told, value)
    need(type_of(value) == world.dict)
    return fits_named(follower, told.rows, told.count, value)

def fits_named(follower, rows, count, options):
    "whether options are what they were, in the same order"
    need(PyDict_Size(options) == count)
    entry = room(3)
    entry[0] = 0
    for at in range(count):
        told: told = rows + at * TOLD
        need(PyDict_Next(options, entry, entry + 8, entry + 16))
        need(is_plain_same(entry[1], told.name) and fits(follower, told, entry[2]))
    return 1
"""

CHANGING = """
def is_unshown(follower: Follower, event: event):
    "whether nothing else shows what is written, nor an argument a part of it"
    for at in range(event.writes):
        write: write = event.write + at * WRITE
        need(write.met < PyList_Size(follower.met))
        target: Tensor = PyList_GetItem(follower.met, write.met)
        need(target._views == None and target._history == None)
    if event.writes:
        for at in range(event.count):
            told: told = event.args + at * TOLD
            if told.kind == OF_MET:
                other: Tensor = PyList_GetItem(follower.met, told.value)
                need(other._view == None)
    return 1

def are_bare(follower: Follower, event: event):
    "whether leaves that get gradients have none, and no hooks"
    for at in range(event.gradients):
        gives: gives = event.gradient + at * GIVES
        need(gives.met < PyList_Size(follower.met))
        leaf: Tensor = PyList_GetItem(follower.met, gives.met)
        need(leaf._hooks == None and leaf._grad == None)
    return 1

def standing(record, step, at):
    "a node that stands in, entered; a new reference"
    own_record: Record = record
    node: Standing = PyType_GenericAlloc(world.Standing, 0)
    pair = PyTuple_New(2)
    if node == 0 or pair == 0:
        Py_DecRef(node)
        Py_DecRef(pair)
        return 0
    set_item(pair, 0, record)
    set_item(pair, 1, at)
    node.record = pair
    node.op = own(PyTuple_GetItem(step, 0))
    node.arg = own(PyTuple_GetItem(step, 3))
    node.shape = own(PyTuple_GetItem(step, 4))
    node.dtype = own(PyTuple_GetItem(step, 5))
    node.device = own(PyTuple_GetItem(step, 6))
    node.realized = own(None)
    node.leaf = own(None)
    node.is_asked = own(False)
    PyDict_SetItem(own_record.standing, at, node)
    return node

def shown_base(follower: Follower, makes: makes):
    "the tensor that a view shows, borrowed; 0 where Python has to look"
    if makes.kind == OF_MET:
        need(makes.base < PyList_Size(follower.met))
        base: Tensor = PyList_GetItem(follower.met, makes.base)
    else:
        need(makes.base < PyList_Size(follower.made))
        base: Tensor = referred(PyList_GetItem(follower.made, makes.base))
    need(PyType_IsSubtype(type_of(base), world.Tensor) and is_short(base._views))
    return base

def shows(follower, makes: makes, tensor):
    "lets a new tensor be a view; 0 where there is no memory"
    base = shown_base(follower, makes)
    view = new_view(base, makes.function, makes.operands, is_enabled())
    need(view)
    return attach(tensor, view, base)

def make_next(follower: Follower, makes: makes):
    "the next tensor of a way; a new reference, which is what keeps it"
    node: Node = standing(follower.record, makes.step, makes.at)
    need(node)
    tensor: Tensor = new_tensor(node)
    need(tensor)
    reference = PyWeakref_NewRef(tensor, 0)
    if reference == 0:
        Py_DecRef(tensor)
        return 0
    replace(tensor._tracks, own(makes.tracks))
    if makes.is_leaf:
        replace(node.leaf, own(reference))
    PyList_Append(follower.made, reference)
    Py_DecRef(reference)
    if makes.function and not shows(follower, makes, tensor):
        Py_DecRef(tensor)
        return 0
    return tensor

def give_gradients(follower: Follower, event: event):
    "gives leaves their gradients: 1, or 0 where there is no memory"
    for at in range(event.gradients):
        gives: gives = event.gradient + at * GIVES
        leaf: Tensor = PyList_GetItem(follower.met, gives.met)
        gradient = make_next(follower, gives.made)
        need(gradient)
        replace(leaf._grad, gradient)
    return 1

def write_next(follower: Follower, write: write):
    "gives a tensor that was met its next value: 1, or 0 where there is no memory"
    target: Tensor = PyList_GetItem(follower.met, write.met)
    node: Node = standing(follower.record, write.step, write.at)
    need(node)
    reference = PyWeakref_NewRef(target, 0)
    if reference == 0:
        Py_DecRef(node)
        return 0
    replace(node.leaf, reference)
    PyList_Append(follower.written_here, write.number)
    PyList_Append(follower.changed, write.pair)
    replace(target._node, node)
    return 1

def write_all(follower, event: event):
    for at in range(event.writes):
        need(write_next(follower, event.write + at * WRITE))
    return 1
"""

FOLLOWING = """
def is_mode(event: event):
    "whether modes and settings are what they were; may run Python"
    need(is_enabled() == (event.enabled == True))
    need(PyDict_GetItemWithError(world.settings, world.epoch) == event.epoch)
    need(PyDict_GetItemWithError(world.settings, world.switch) != world.zero)
    dtypes = own_of_thread(world.regions, world.dtypes)
    need(dtypes)
    if PyDict_Size(dtypes) | PyDict_Size(event.regions):
        return PyObject_RichCompareBool(dtypes, event.regions, EQUAL) == 1
    return 1

def is_followed(follower: Follower, record: Record):
    "whether this thread follows, and nothing is in the middle"
    events: Events = world.events
    need(events.record == record and follower.is_busy == False and PyDict_Size(world.shared) == 0)
    return PyLong_AsUnsignedLongLong(record.owner) == PyThread_get_thread_ident()

def fits_all(follower, event: event, given, options):
    need(type_of(given) == world.tuple and PyTuple_Size(given) == event.count)
    for at in range(event.count):
        need(fits(follower, event.args + at * TOLD, PyTuple_GetItem(given, at)))
    need(fits_named(follower, event.options, event.named, options))
    makes: makes = event.value
    if event.result == OF_NEW and makes.function:
        need(shown_base(follower, makes))
    need(is_unshown(follower, event) and are_bare(follower, event))
    return 1

def cut_off(listed, size):
    PyList_SetSlice(listed, size, PyList_Size(listed), 0)

def result_of(follower: Follower, event: event):
    "what the event gives, a new reference; True stands for None"
    if event.result == OF_NEW:
        return make_next(follower, event.value)
    if event.result == OF_MADE:
        need(event.value < PyList_Size(follower.made))
        return own(referred(PyList_GetItem(follower.made, event.value)))
    if event.result == OF_MET:
        return own(PyList_GetItem(follower.met, event.value))
    return own(event.value)

def count_walks(count):
    found = PyObject_GetAttr(world.walks, world.count)
    need(found)
    total = PyLong_FromLongLong(PyLong_AsLongLong(found) + count)
    Py_DecRef(found)
    PyObject_SetAttr(world.walks, world.count, total)
    Py_DecRef(total)

def does(follower: Follower, event: event):
    "what the event does; 0 with an error where there is no memory"
    record: Record = follower.record
    result = result_of(follower, event)
    need(result)
    if give_gradients(follower, event) == 0 or write_all(follower, event) == 0:
        Py_DecRef(result)
        return 0
    replace(follower.at, own(event.next))
    replace(record.reached, own(event.reached))
    if event.is_awaited:
        replace(record.is_awaited, own(True))
    if event.walks:
        count_walks(event.walks)
    return result

@python
def picograd_follow_known(self, arguments, count):
    "the result of a call that is due, True for None; None for any other"
    need(count == 3 and type_of(arguments[2]) == world.dict)
    way: way = own_table(self)
    follower: Follower = PyTuple_GetItem(self, 2)
    at = PyLong_AsLongLong(follower.at)
    need(at < PyLong_AsLongLong(follower.due))
    event: event = way.events + at * EVENT
    need(event.function == arguments[0] and is_mode(event))
    need(not (event.walks and PyList_Size(world.gradient_watchers)))
    record: Record = follower.record
    need(at == PyLong_AsLongLong(follower.at) and is_followed(follower, record))
    met = PyList_Size(follower.met)
    if fits_all(follower, event, arguments[1], arguments[2]):
        return does(follower, event)
    cut_off(follower.met, met)
    cut_off(record.found, met)
    return 0

@public
def picograd_follow(self, arguments, count):
    "`Follower.take`: Python does what is not known here"
    found = picograd_follow_known(self, arguments, count)
    if found == True:
        Py_DecRef(found)
        return own(None)
    if found != None:
        return found
    Py_DecRef(found)
    given = PyTuple_New(count)
    need(given)
    for at in range(count):
        set_item(given, at, arguments[at])
    made = PyObject_CallObject(PyTuple_GetItem(self, 3), given)
    Py_DecRef(given)
    return made
"""

TEXT = COMPARING + CHANGING + FOLLOWING


class Words:
    """This class writes the table of a way: see `WAY` and what follows."""

    def __init__(self, way: Way) -> None:
        self.way, self.table, self.met = way, Table(), 0

    def fill(self) -> Table:
        """Write all events; those that Python has to follow have no function."""
        words: list[int] = []
        for event in self.way.events:
            words += self.of_event(event)
        return self.table.fill([self.table.part(words)])

    def of_event(self, event: Event) -> list[int]:
        """Write an event, as `EVENT` lists it."""
        options = [told for _, told in event.options]
        names = [name for name, _ in event.options]
        is_known = is_usual(event, self.way)
        listed = [self.of_told(each, is_known) for each in (*event.args, *options)]
        self.met += sum(count_met(before) for _, _, before in event.gradients) + len(event.copies)
        if not is_known or None in listed:
            return [0] * len(EVENT)
        return self.of_usual(event, listed, names)

    def of_usual(self, event: Event, listed: list[Any], names: list[str]) -> list[int]:
        """Write an event that machine code knows."""
        name, part, (enabled, regions, epoch) = self.table.name, self.table.part, event.modes
        count, (kind, value) = len(event.args), event.result
        args = [word for told in listed[:count] for word in told]
        for told, word in zip(listed[count:], names):
            told[-1] = name(word)
        options = [word for told in listed[count:] for word in told]
        is_new = kind == MADE and value in event.made
        writes = [word for met, at in event.writes for word in self.of_write(met, at)]
        given = [word for met, n, _ in event.gradients for word in (met, self.of_made(n))]
        at = self.way.events.index(event)
        found = {
            "function": name(event.function), "count": count, "args": part(args),
            "named": len(names), "options": part(options), "enabled": name(enabled),
            "regions": name(regions), "epoch": name(epoch), "walks": event.walks,
            "result": NEW if is_new else kind,
            "value": self.of_result(kind, value, is_new),
            "writes": len(event.writes), "write": part(writes),
            "gradients": len(event.gradients), "gradient": part(given),
            "is_awaited": int(bool(event.writes or event.checks)),
            "next": name(at + 1), "reached": name(event.reached),
        }  # fmt: skip
        return [found[word] for word in EVENT]

    def of_told(self, told: Told, is_known: bool) -> list[int] | None:
        """Write what an argument must be, as `TOLD` lists it; None for what Python knows."""
        kind, value = told
        if kind in (MANY, NAMED):
            return self.of_several(kind, value, is_known)
        if kind == NEW:
            at, self.met = self.met, self.met + count_met(told)
            *facts, is_leaf, is_theirs, views = value
            if not is_known or is_theirs or views or at in self.way.shared:
                return None
            words = [*map(self.table.name, facts), int(is_leaf)]
            return [kind, 0, self.table.part(words), 0, 0]
        if kind in (MADE, MET):
            return [kind, value, 0, 0, 0]
        return [kind, self.table.name(value), 0, 0, 0] if kind == IS else None

    def of_several(self, kind: int, value: Any, is_known: bool) -> list[int] | None:
        """Write what a list, or options, must be."""
        own, several = (dict, [each for _, each in value]) if kind == NAMED else value
        listed = [self.of_told(each, is_known) for each in several]
        if None in listed or own not in (*LISTS[:2], dict):
            return None
        if kind == NAMED:
            for words, (name, _) in zip(listed, value):
                words[-1] = self.table.name(name)  # type: ignore[index]
        rows = self.table.part([word for words in listed for word in words or ()])
        return [kind, self.table.name(own), rows, len(several), 0]

    def step(self, at: int) -> int:
        """Name the step of a node that is made."""
        template = self.way.template
        return self.table.name(template.steps[at - template.count])

    def of_result(self, kind: int, value: Any, is_new: bool) -> int:
        """Write what an event gives: of a plain value itself, and True in the place of None."""
        if kind == IS:
            return self.table.name(True if value is None else value)
        return self.of_made(value) if is_new else value  # type: ignore[no-any-return]

    def of_made(self, number: int) -> int:
        """Write a tensor that is made, as `MAKES` lists it; where that is."""
        made, name = self.way.made[number], self.table.name
        words = [name(made.at), self.step(made.at), name(made.tracks), int(made.is_leaf)]
        if made.shown is None:
            return self.table.part([*words, 0, 0, 0, 0])
        shown = [*made.shown.base, name(made.shown.function), name(made.shown.operands)]
        return self.table.part([*words, *shown])

    def of_write(self, met: int, at: int) -> list[int]:
        """Write the next value of what was met, as `WRITE` lists it."""
        name = self.table.name
        return [met, name(at), self.step(at), name((met, at)), name(met)]


def count_met(told: Told) -> int:
    """Count the nodes that a tensor brings which comes for the first time."""
    kind, value = told
    return 1 + len(value[-1]) if kind == NEW else 0


def is_usual(event: Event, way: Way) -> bool:
    """Tell whether machine code knows what an event does."""
    others = (
        event.numbers, event.derived, event.advance, event.looks, event.copies, event.moves,
        event.shows,
    )  # fmt: skip
    if any(others) or event.function in CUTTING:
        return False
    kind, value = event.result
    if kind not in (MADE, MET, IS) or value is True:
        return False
    if any(before != (IS, None) for _, _, before in event.gradients):
        return False
    new = [value] if kind == MADE and value in event.made else []
    if new + [number for _, number, _ in event.gradients] != event.made:
        return False
    made = [way.made[number] for number in event.made]
    if any(each.shown and each.shown.base[0] not in (MET, MADE) for each in made):
        return False
    return all(each.at >= way.template.count for each in made)


def is_coded(way: Way) -> bool:
    """Tell whether machine code follows a way."""
    return way.table is not None and bool(config.native)


def take_of(follower: Any) -> Any:
    """Give what follows a way: machine code, once it was begun a few times, or Python."""
    way = follower.way
    way.uses += way.table is None
    if way.uses == USES and way.table is None and CALLS.find("picograd_follow"):
        way.table, way.ends = Words(way).fill(), ends_of(way)
    if not is_coded(way):
        return follower.take
    return CALLS.find("picograd_follow", way.table, follower, follower.take)


def first_of(follower: Any, way: Way, *call: Any) -> Any:
    """Follow the first call of a way that machine code knows; MISS where Python has to look."""
    made = CALLS.find("picograd_follow_known", way.table, follower)(*call)
    if made is None:
        return MISS
    return None if made is True else made


def declare_following(follower: type) -> None:
    """Let these functions be compiled with the others."""
    world = {
        "Standing": Standing, "shared": foreign.SHARED, "walks": WALKS, "count": "count",
        "gradient_watchers": WATCHERS, "dict": dict,
    }  # fmt: skip
    tables = {"way": WAY, "event": EVENT, "told": TOLD, "facts": FACTS, "makes": MAKES}
    tables |= {"write": WRITE, "gives": GIVES}
    found = {key: at for name, words in tables.items() for key, at in places(name, words).items()}
    sizes = {name.upper(): 8 * len(words) for name, words in tables.items()}
    stands = *[name for name in NODE if name != "inputs"], "record"
    record = "found", "standing", "reached", "is_awaited", "owner"
    slots = {follower: FOLLOWER, Record: record, Standing: stands, Events: ("record",)}
    functions = "picograd_follow_known", "picograd_follow"
    native_calls.declare(TEXT, functions, world, slots, found, sizes | KINDS)

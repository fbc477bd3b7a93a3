"""Tensors of Python's state in a trace: places that every call reads, and sets.

A *place* is an attribute, a variable of an outer function, an entry of a dict or list. A function
that puts another tensor there at each call (`self.state = new`) reads a tensor that is gone at the
next one. So what is in a place is an argument of the trace that the caller does not write: it goes
into the key and is described as arguments are, the function finds its twin there, and what it
leaves there is a result, which replays put there.

Places are learnt: those in which a trace found another tensor than before, or in a container
another number, and those that hold what it made (`find_places`). Lists to which the code only adds
tensors need nothing of the kind; what one call adds is a result of it.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from picograd.engine.tracing import RUNNING, note_refusal, trace_error
from picograd.first_import import holders_of
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.jit_arguments import BY_VALUE, Flattener, parts
from picograd.tensor.transforms.jit_variables import (
    GONE,
    Variable,
    is_internal,
    note_own_change,
    places_in,
)
from picograd.traced_number import KINDS, TracedNumber

MOST = 64  # places of calls of one kind
TRIALS = 3  # traces of one kind that may fail because of places
DEPTH = 4  # containers in containers
LARGEST = 1024  # elements of a container
TWINS = "the twins of what is in places"  # an argument of the function that is traced
SAME = type("Same", (), {})()  # a place in which the function left what was there


def is_portable(value: Any, depth: int = DEPTH) -> bool:
    """Tell whether a replay can build a value: tensors, plain values, and containers of these."""
    if value is SAME or value is GONE or isinstance(value, Tensor):
        return True
    if type(value) in KINDS or type(value) in (*BY_VALUE, TracedNumber):
        return True
    inner = parts(value)
    if inner is None or depth == 0 or len(inner) > LARGEST:
        return False
    return all(is_portable(each, depth - 1) for each in inner)


def tensors_of(value: Any, depth: int = DEPTH) -> list[Any]:
    """List the tensors in a value."""
    if isinstance(value, Tensor):
        return [value]
    inner = parts(value) if depth else None
    return [] if inner is None else [t for each in inner for t in tensors_of(each, depth - 1)]


def is_followed(value: Any) -> bool:
    """Tell whether an item differs from call to call: a tensor or traced number is in it."""
    if isinstance(value, Tensor) or type(value) is TracedNumber:
        return True
    return any(map(is_followed, parts(value) or ()))


def moves(was: Any, now: Any) -> bool:
    """Tell whether a place that changed holds tensors, which a trace could follow."""
    if was is now:
        return False
    is_state = bool(tensors_of(was) or tensors_of(now))
    return is_state and is_portable(was) and is_portable(now)


class Places:
    """This class is the places of calls of one kind, in the order in which they were found."""

    def __init__(self) -> None:
        self.found: dict[Any, Variable] = {}
        self.seen: set[Any] = set()  # found once: what a first call makes and later ones read
        self.failures, self.is_open, self.problem = 0, True, ""

    def learn(self, found: Iterable[Variable], is_sure: bool) -> bool:
        """Take up places; those that are not sure when they are found again."""
        before = len(self.found)
        for each in (place for place in found if place.owner() is not None):
            key = each.identity()
            if not is_sure and key not in self.seen:
                self.seen.add(key)
            elif key not in self.found and len(self.found) < MOST:
                self.found[key] = each
        return len(self.found) > before

    def open(self, flattener: Flattener) -> tuple[Any, "Opened | None"]:
        """Read the places for a call: gives their part of its key, and what a trace needs."""
        if not self.found or not self.is_open or self.failures >= TRIALS:
            return (), None
        places, values, described = [], [], []
        for place in self.found.values():
            value = place.read()
            is_active = is_portable(value)
            if is_active:
                places.append(place)
                values.append(value)
            is_there = is_active and value is not GONE
            described.append(flattener.flatten(value) if is_there else is_active)
        return tuple(described), Opened(places, values)


class Opened:
    """This class is the places of one call: what is in them, and what the function leaves there."""

    def __init__(self, places: list[Variable], values: list[Any]) -> None:
        self.places, self.values = places, values
        self.lists: list[Any] = []  # to which the code only adds
        self.given: list[Any] = []
        held = {id(each): each for each in map(holder_of, places)}
        self.orders = [(e, list(e)) for e in held.values() if isinstance(e, (list, deque))]

    def identities(self) -> set[Any]:
        """Tell which places these are: the table, and the entry."""
        return {place.identity()[:2] for place in self.places}

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Give the function that takes twins of what is in places, and returns what it leaves."""

        def run(*args: Any, **kwargs: Any) -> Any:
            self.given = kwargs.pop(TWINS)
            sizes = [len(each) for each in self.lists]
            for place, value in zip(self.places, self.given):
                if value is not GONE:
                    place.write(value)
            try:
                result = function(*args, **kwargs)
                left = [self.left(*each) for each in zip(self.places, self.given)]
                if any(len(held) != len(items) for held, items in self.orders):
                    text = "a list in which it replaces tensors gets longer or shorter"
                    raise trace_error("jit", text, "replace the list, or keep its length")
                return result, left, [cut(*each) for each in zip(self.lists, sizes)]
            finally:
                self.restore()
                self.given = []

        return run

    def left(self, place: Variable, given: Any) -> Any:
        """Give what the function left in a place."""
        now = place.read()
        if now is given:
            return SAME
        own = RUNNING.traces[-1].own
        kinds = {type(each) for each in tensors_of(now) if id(each) in own} - {Tensor}
        if kinds:
            text = f"{place.label} gets a new {kinds.pop().__name__}"
            raise trace_error("jit", text, "assign to the tensor that is there, in place")
        if not is_portable(now):
            note_refusal(f"{place.label} gets a {type(now).__name__}")
        return now

    def restore(self) -> None:
        """Put back what was in the places."""
        for held, items in self.orders:
            if len(held) != len(items):
                held.clear()
                held.extend(items)
        for place, value in zip(self.places, self.values):
            place.write(value)

    def put(self, call: Any, capture: Any) -> Any:
        """Put the results of a call in the places; gives what the function itself returned."""
        result, left, added = call
        is_told = False
        for place, value in zip(self.places, left):
            if value is SAME or value is place.read():
                continue
            place.write(value)
            is_told |= hasattr(type(place.owner()), "_trace_state")
        for held, items in zip(self.lists, added):
            held.extend(items)
        if is_told:
            note_own_change(capture.guard)
        self.values, self.orders = [], []
        return result

    def pairs(self) -> list[tuple[str, Any]]:
        """List the names of places, and what is in them."""
        pairs = zip(self.places, self.values)
        return [(place.label, value) for place, value in pairs if value is not GONE]


def with_lists(opened: "Opened | None", reach: Any) -> "Opened | None":
    """Look at lists, too, to which the code only adds; None where there is nothing to look at."""
    seen = [each for each, _, _ in reach.containers.values() if type(each) is list]
    lists = [e for e in seen if id(e) in reach.added and id(e) not in reach.read]
    if lists:
        opened = Opened([], []) if opened is None else opened
        opened.lists = lists
    return opened


def holder_of(place: Variable) -> Any:
    """Give the table that a place is an entry of; None of an object that is gone."""
    owner = place.owner()
    return None if owner is None else place.table(owner)


def cut(held: list[Any], size: int) -> list[Any]:
    """Take what the function added off a list, if it follows from what the call was given."""
    added = held[size:]
    if not any(map(is_followed, added)) or not all(map(is_portable, added)):
        return []
    del held[size:]
    return added


class Finder:
    """This class finds the places that hold tensors, by asking the collector of garbage."""

    def __init__(self, known: Any, own: Iterable[Any]) -> None:
        self.known, self.own = known, set(map(id, own))
        self.found: list[Variable] = []

    def find(self, tensors: Sequence[Any]) -> list[Variable]:
        """List the places; containers lead to those that hold them."""
        held: list[Any] = list(tensors)
        for _ in range(DEPTH):
            ids = set(map(id, held))
            self.own.add(id(held))
            holders = holders_of(held) if held else []
            self.own.add(id(holders))
            held = []
            for each in holders:
                if id(each) not in self.own and not is_internal(each):
                    held += self.visit(each, ids)
        return self.found

    def visit(self, holder: Any, ids: set[int]) -> list[Any]:
        """Note the places of a holder; gives it where who holds it is to be asked."""

        def wanted(value: Any) -> bool:
            return id(value) in ids

        places = self.known.places(holder, wanted)
        if places is not None:
            self.found += places
            return []
        if isinstance(holder, (list, deque)):
            return [] if id(holder) in self.known.lists else [holder]
        owner = owner_of(holder) if isinstance(holder, dict) else holder  # looks at all objects
        if owner is None or (owner is holder and parts(holder) is not None):
            return [holder]
        elif owner is not holder or is_object(holder):
            self.found += places_in(owner, vars, vars(owner), wanted)
        return []


def is_object(value: Any) -> bool:
    """Tell whether a value is an object with attributes of its own, and no tensor."""
    return hasattr(value, "__dict__") and not isinstance(value, (type, Tensor))


def owner_of(table: dict[Any, Any]) -> Any:
    """Find the object whose attributes a dict holds."""
    for each in holders_of([table]):
        if not isinstance(each, type) and getattr(each, "__dict__", None) is table:
            return each
    return None


def is_held(twin: Any, twins: list[Any], changed: dict[int, Any]) -> bool:
    """Tell whether somebody but these refers to a tensor, a frame and the views of it aside."""
    known = sum(each is twin for each in twins) + (id(twin) in changed)
    return sys.getrefcount(twin) > 3 + known

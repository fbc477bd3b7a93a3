"""Numbers of Python's state in a trace: read by replays, and set by them.

A *variable* is a place that holds a number: an attribute, an option of an optimizer, an entry of a
dict or list, a variable of an outer function. While a function is traced, a traced number stands
in the place of each variable that is followed, so that what is computed of it is noted like what is
computed of an argument. A replay reads the place. What the function puts there is put there by
every replay, and it is found wherever it puts a number that follows from others: whoever holds one
when the function has returned is asked for (`search`).

Followed are the options of optimizers and the counters of schedules, and places in which an earlier
trace found that the function itself changes them.
"""

import gc
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import CellType, FrameType, GeneratorType
from typing import Any

from picograd.engine.tracing import RUNNING, STATE, Trace, note_change
from picograd.first_import import holders_of
from picograd.number import GivenInt
from picograd.tensor.transforms.jit_arguments import numbers_in, parts, rebuilt, template
from picograd.traced_number import KINDS, Numbers, TracedNumber, value_of

Store = tuple["Variable", Any]  # where a number is put, and a template of it
GONE = object()
TRACING = ("picograd.tensor.transforms.jit", "picograd.traced_number", "picograd.engine")
CONTAINERS = (tuple, list, dict, set, frozenset, slice)
DEPTH = 4  # containers in containers of which is asked who holds them
HIDDEN = (FrameType, GeneratorType, GivenInt, TracedNumber)  # what only reads what it holds


def strong(value: Any) -> Callable[[], Any]:
    """Hold what allows no weak reference."""
    return lambda: value


def as_it_is(value: Any) -> Any:
    """Give a container itself."""
    return value


class Members:
    """This class reads and sets the attributes of a class, or of an object with `__slots__`."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner: Any = owner

    def get(self, name: str, default: Any = None) -> Any:
        """Read an attribute."""
        return getattr(self.owner, name, default)

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self.owner, name)
        except AttributeError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self.owner, name, value)

    def pop(self, name: str, default: Any = None) -> None:
        """Delete an attribute."""
        if hasattr(self.owner, name):
            delattr(self.owner, name)


class Variable:
    """This class is one place that holds a number: the entry `key` of what `table` gives of owner.

    The owner is held weakly where that is possible. `at` is an element of a tuple there.
    """

    __slots__ = ("at", "first", "key", "label", "owner", "stands", "table")

    def __init__(
        self, owner: Any, table: Callable[[Any], Any], key: Any, label: str, at: int = -1
    ) -> None:
        self.table, self.key, self.label, self.at = table, key, label, at
        try:
            self.owner: Callable[[], Any] = weakref.ref(owner)
        except TypeError:
            self.owner = strong(owner)
        self.first: Any = GONE  # what was there before the trace
        self.stands: Any = GONE  # what stands for it while tracing

    def identity(self) -> tuple[Any, ...]:
        """Tell places apart: which table, which entry."""
        owner = self.owner()
        held = None if owner is None else owner if self.table is Members else self.table(owner)
        return GONE if owner is None else id(held), self.key, self.at

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variable) and self.identity() == other.identity()

    def __hash__(self) -> int:
        return hash(self.identity())

    def read(self) -> Any:
        """Read what is there; GONE where there is no such place."""
        owner = self.owner()
        if owner is None:
            return GONE
        try:
            held = self.table(owner)
            value = held.cell_contents if self.key is None else held[self.key]
            return value if self.at < 0 else value[self.at]
        except (LookupError, TypeError, ValueError):
            return GONE

    def write(self, value: Any) -> None:
        """Put a value there; GONE if there is to be no such place."""
        owner = self.owner()
        if owner is None:
            return
        held = self.table(owner)
        if value is GONE:
            held.pop(self.key, None)
        elif self.key is None:
            held.cell_contents = value
        else:
            held[self.key] = value

    def follow(self, numbers: Numbers) -> None:
        """Let a traced number stand there, or a tuple or list of them."""
        self.first = self.read()
        if type(self.first) in KINDS:
            self.stands = numbers.variable(self.first, self)
        elif type(self.first) in (tuple, list):
            self.stands = type(self.first)(
                numbers.variable(each, self.element(at)) if type(each) in KINDS else each
                for at, each in enumerate(self.first)
            )
        if self.stands is not GONE:
            self.write(self.stands)

    def element(self, at: int) -> "Variable":
        """Give the place of an element of the tuple or list that is there."""
        return Variable(self.owner(), self.table, self.key, f"{self.label}[{at}]", at)

    def restore(self) -> None:
        """Put back what was there before the trace."""
        self.write(self.first)


def is_followable(value: Any) -> bool:
    """Tell whether a value is a number, or a short tuple or list of numbers."""
    if type(value) in (tuple, list):
        return 0 < len(value) <= 16 and all(type(each) in KINDS for each in value)
    return type(value) in KINDS


def follow(owner: Any, table: Callable[[Any], Any], key: Any, label: str) -> bool:
    """Follow a number of Python's state in the trace that runs; tells whether it is followed."""
    trace = RUNNING.traces[-1] if RUNNING.traces else None
    if trace is None or trace.numbers is None or owner is None:
        return False
    variable = Variable(owner, table, key, label)
    identity = variable.identity()
    if identity not in trace.variables:
        if not is_followable(variable.read()):
            return False
        variable.follow(trace.numbers)
        trace.variables[identity] = variable
    return True


def finish(trace: Trace) -> list[Store]:
    """Put plain numbers where traced ones stand; lists what the function put there."""
    let_go(trace)
    stores = []
    for variable in trace.variables.values():
        now = variable.read()
        if now is variable.stands:
            variable.restore()
        elif now is not GONE:
            if is_kept(now):
                stores.append((variable, placed(now)))
            else:
                trace.refusals.append(f"{variable.label} gets a {type(now).__name__} in it")
            variable.write(plain_of(now))
        variable.stands = None
    return stores


def let_go(trace: Trace) -> None:
    """Let optimizers die that the function made and dropped: only the trace holds them."""
    own = [key for key, (value, _) in trace.objects.items() if is_born(value, trace)]
    found = [weakref.ref(trace.objects.pop(key)[0]) for key in own]
    for generation in (1, 2) if found else ():  # an optimizer and its groups hold each other
        if any(find() is not None for find in found):
            gc.collect(generation)
    alive = [each for each in (find() for find in found) if each is not None]
    trace.objects |= {id(each): (each, each._trace_state()) for each in alive}


def is_born(value: Any, trace: Trace) -> bool:
    """Tell whether an object was made in a trace."""
    return getattr(value, "_birth", None) is trace.birth


def is_kept(value: Any) -> bool:
    """Tell whether a replay can build a value: of numbers, flags and texts."""
    if isinstance(value, (tuple, list)):
        return all(map(is_kept, value))
    return value is None or type(value) in (*KINDS, TracedNumber, bool, str)


def placed(value: Any) -> Any:
    """Make a template of a value that has traced numbers in it."""
    return template(value, lambda tensor: -1)


def plain_of(value: Any) -> Any:
    """Give a value with plain numbers in the place of traced ones, without a note."""
    if type(value) in (tuple, list) and any(type(value_of(e)) is not type(e) for e in value):
        return type(value)(map(value_of, value))
    return value_of(value)


class Holders:
    """This class tells which objects that hold numbers were there before the trace."""

    def __init__(self, reach: Any) -> None:
        owners = [value for value, _ in (*reach.watched.values(), *reach.plain.values())]
        self.owners = {id(each): each for each in owners}
        self.owners |= {id(vars(each)): each for each in owners if hasattr(each, "__dict__")}
        self.lists = {id(each): len(before) for each, before, _ in reach.containers.values()}
        self.tables = {id(each) for each in reach.seen.values() if type(each) is dict}
        self.tables |= {id(slot.holder) for slot in reach.slots.values()}

    def places(self, holder: Any, wanted: Callable[[Any], bool]) -> list[Variable] | None:
        """List the places of a holder with what is wanted in them; None where it is unknown."""
        owner = self.owners.get(id(holder))
        if hasattr(owner, "__dict__"):
            return places_in(owner, vars, vars(owner), wanted)
        if isinstance(holder, CellType):
            return places_in(holder, as_it_is, {None: holder.cell_contents}, wanted)
        if isinstance(holder, dict) and (id(holder) in self.tables or "__builtins__" in holder):
            return places_in(holder, as_it_is, holder, wanted)
        if isinstance(holder, (list, deque)) and self.lists.get(id(holder)) == len(holder):
            return places_in(holder, as_it_is, dict(enumerate(holder)), wanted)
        return None


def places_in(
    owner: Any, table: Callable[[Any], Any], entries: dict[Any, Any], wanted: Callable[[Any], bool]
) -> list[Variable]:
    """List the entries of a table of an owner with what is wanted in them."""
    name = type(owner).__name__ if table is vars else ""
    keys = [key for key, value in entries.items() if wanted(value) and key != "__dict__"]
    labels = {k: "a variable" if k is None else f"{name}.{k}" if name else f"[{k!r}]" for k in keys}
    return [Variable(owner, table, key, label) for key, label in labels.items()]


def is_traced(value: Any) -> bool:
    """Tell whether a number is traced, or one of a tuple."""
    return type(value) in (TracedNumber, tuple) and plain_of(value) is not value


def search(trace: Trace, reach: Any, result: Any) -> list[Store]:
    """Find where the function left traced numbers, beside its result: a replay sets them there.

    Where a later call would not find the place, the trace is not kept.
    """
    numbers = trace.numbers
    held = [] if numbers is None else numbers.held()
    if not held:
        return []
    returned = inner_of(result)
    mine = [numbers.known, numbers.handed, numbers.graph, held, returned, *returned]
    own = set(map(id, (mine, *mine, *[state for _, state in trace.objects.values()])))
    known, stores = Holders(reach), []
    inner: list[Any] = []
    for _ in range(DEPTH):
        own.add(id(held))
        holders = holders_of(held) if held else []
        holders = [each for each in holders if id(each) not in own and not is_internal(each)]
        own |= {id(holders), id(inner)}
        held = []
        for holder in holders:
            places = known.places(holder, is_traced)
            if places:
                stores += [moved_out(place) for place in places]
            elif places is None and isinstance(holder, CONTAINERS):
                held.append(holder)  # who holds it decides: a graph does not count
            else:
                refuse(trace, holder, inner)
        inner += held
    return stores


def moved_out(place: Variable) -> Store:
    """Put the plain number where a traced one is; gives what replays do there."""
    now = place.read()
    place.write(plain_of(now))
    return place, placed(now)


def refuse(trace: Trace, holder: Any, inner: Sequence[Any]) -> None:
    """Let the next call trace again; what was found holds plain numbers."""
    name = type(holder).__name__
    trace.refusals.append(f"a {name} keeps a number that it computes of others")
    for each in (holder, *inner):
        forget_numbers(each)


def inner_of(value: Any) -> list[Any]:
    """List a value and the containers inside."""
    inner = parts(value)
    if inner is None:
        return [value]
    more = [each for item in inner for each in inner_of(item)]
    return [value, inner, *more, getattr(value, "__dict__", None)]


def is_internal(holder: Any) -> bool:
    """Tell whether a holder is part of a graph, or what runs: nobody reads a number there."""
    if isinstance(holder, HIDDEN):
        return True
    kind = type(holder)
    is_state = hasattr(holder, "__dict__") and not kind.__module__.startswith(TRACING)
    return kind.__module__.startswith("picograd.") and not is_state


def forget_numbers(holder: Any) -> None:
    """Put plain numbers where traced ones are, where that is possible."""
    table = holder if isinstance(holder, (dict, list)) else getattr(holder, "__dict__", None)
    if isinstance(table, list):
        table[:] = map(plain_of, table)
    elif isinstance(table, dict):
        table.update({key: plain_of(value) for key, value in table.items() if is_traced(value)})


def wanted(stores: Iterable[Store]) -> list[int]:
    """List the slots of the numbers that replays put somewhere."""
    return [slot for _, made in stores for slot in numbers_in(made)]


def store(capture: Any, numbers: Sequence[Any]) -> None:
    """Put the numbers of a call where the function put those of the traced call."""
    is_changed = False
    for variable, made in capture.stores:
        value = rebuilt(made, lambda place: numbers[place.slot])
        if value != variable.read():
            variable.write(value)
            is_changed = True
    if is_changed:
        note_own_change(capture.guard)


def note_own_change(guard: Any) -> None:
    """Tell of a change that a replay makes; its own guard does not look at what it sets."""
    was = STATE.token
    note_change()
    if guard.token is was:
        guard.token = STATE.token

"""Numbers that a user gave: they are arguments of plans, where the numbers of formulas are code.

`given(0.3)` is a float like any other, and so are the sums, products, ... that Python makes of it,
so that no function has to know. What it becomes in the graph is a constant whose plan takes the
value at run time: another number of the same structure needs no other plan
(docs/design/0012-numbers-are-arguments.md).
"""

import operator
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from picograd.late_methods import dataclass
from picograd.traced_number import TracedNumber, derived, plain

Number = bool | int | float
LARGEST = 3.4e38  # beyond it, and for NaN, a number is kept as it is: not every dtype holds it
NAMED = (-1, 0, 1)  # ints that formulas treat as cases of their own: t + 0, start at 0, sign
VALUES_AS_CODE = 8  # of a place in a program that often has the same number
PLACES = 1000  # that are remembered
WHOLE = frozenset(kind for kind in np.sctypeDict.values() if issubclass(kind, np.integer))
SEEN: dict[Hashable, set[int]] = {}


class Given(float):
    """A number that a user gave: an argument of the plans it gets into."""

    __slots__ = ()
    renew: Callable[[], float] | None = None

    @property
    def value(self) -> float:
        """The number itself: a plan reads its arguments so."""
        return self


class GivenInt(int):
    """A whole number that a user gave; `source` is the traced number that it is, if it is one.

    Where sizes are traced, what is computed of it is too, and what compares it is a guard.
    """

    renew: Callable[[], int] | None = None
    source: TracedNumber | None = None

    @property
    def value(self) -> int:
        """The number itself."""
        return self


GIVEN = (Given, GivenInt, TracedNumber)
Given.__name__, GivenInt.__name__ = "float", "int"  # as errors of Python call them


Note = tuple[Given, Callable[..., Any], tuple[Any, ...]]  # a number, what made it, and of what


class Notes:
    """This class is where it is noted how given numbers are computed of others, if somebody asks.

    By identity; a table holds what it tells of.
    """

    __slots__ = ("table",)
    table: dict[int, Note] | None


LOST = -1  # no identity
NOTES = Notes()
NOTES.table = None


@contextmanager
def noting(table: dict[int, Note]) -> Iterator[dict[int, Note]]:
    """Note how given numbers are computed of others, in the table that is asked for already."""
    outer = NOTES.table
    NOTES.table = table if outer is None else outer
    try:
        yield NOTES.table
    finally:
        NOTES.table = outer


def note(number: Any, function: Callable[..., Any], *operands: Any) -> Any:
    """Note how a number was computed, and return it.

    One that is none of the given ones is code; it is `LOST` where it was made of those.
    """
    table = NOTES.table
    if table is not None:
        if type(number) is Given:
            table[id(number)] = number, function, operands
        elif any(type(each) in GIVEN for each in operands):
            table[LOST] = Given(0.0), function, operands
    return number


def computed(function: Callable[..., Any], values: Sequence[Any]) -> Any:
    """Compute a given number of others once more; None where that gives none."""
    try:
        number = given(function(*values))
    except ArithmeticError:
        return None
    return number if type(number) is Given else None


@dataclass(frozen=True, slots=True)
class Derivation:
    """How numbers are computed of `count` given ones: each of those, of earlier ones, of others.

    An operand is a place among the numbers so far, or -1 and a value.
    """

    count: int
    steps: tuple[tuple[Callable[..., Any], tuple[tuple[int, Any], ...]], ...]

    def numbers(self, given_numbers: Sequence[Any]) -> list[Any] | None:
        """Compute all of other given numbers; None where one is none that an argument can be."""
        found = [*given_numbers]
        for function, operands in self.steps:
            values = [value if place < 0 else found[place] for place, value in operands]
            number = computed(function, values)
            if number is None:
                return None
            found.append(note(number, function, *values))
        return found


def made_of(wanted: Sequence[Any], known: Container[int], table: dict[int, Note]) -> list[Note]:
    """List how numbers, and those between, were made of known ones, if all of it was noted.

    Those are known by identity. Of what has another origin nothing is listed.
    """
    found: dict[int, Note | None] = {}
    stack = [*reversed(wanted)]
    while stack:
        number = stack[-1]
        noted = table.get(id(number))
        if id(number) in known or id(number) in found:
            stack.pop()
            continue
        operands = [] if noted is None else [x for x in noted[2] if type(x) in GIVEN]
        unknown = [x for x in operands if id(x) not in known]
        if later := [x for x in unknown if id(x) not in found]:
            stack += later
            continue
        stack.pop()
        is_told = all(found[id(each)] is not None for each in unknown)
        found[id(number)] = noted if is_told else None
    return [each for each in found.values() if each is not None]


def derivation(notes: Sequence[Note], known: Sequence[Any]) -> tuple[Derivation, dict[int, int]]:
    """Write what `made_of` found as a derivation, and give the places of all numbers in it."""
    places = {id(number): place for place, number in enumerate(known)}
    steps: list[tuple[Callable[..., Any], tuple[tuple[int, Any], ...]]] = []
    for number, function, operands in notes:
        told = tuple([(places[id(x)], 0) if type(x) in GIVEN else (-1, x) for x in operands])
        places[id(number)] = len(known) + len(steps)
        steps.append((function, told))
    return Derivation(len(known), tuple(steps)), places


def keeping(name: str) -> Callable[[Any, Any], Any]:
    """Make an arithmetic method whose result is a given number too."""
    plain = getattr(float, name)

    def method(self: float, other: Any) -> Any:
        result = plain(self, other)
        return note(given(result), plain, self, other) if type(result) is float else result

    return method


for operation in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    for kind in ("__{}__", "__r{}__"):
        setattr(Given, kind.format(operation), keeping(kind.format(operation)))
for operation in ("neg", "abs", "pos"):
    unary = getattr(operator, operation)

    setattr(
        Given,
        f"__{operation}__",
        lambda self, unary=unary: note(Given(unary(float(self))), unary, self),
    )


def as_source(name: str) -> Callable[..., Any]:
    """Make a method of a position that is its source's where sizes are traced."""
    plain = getattr(int, name)

    def method(self: GivenInt, *other: Any) -> Any:
        source = self.source
        is_followed = source is not None and source.numbers.has_sizes
        return getattr(source, name)(*other) if is_followed else plain(self, *other)

    return method


for operation in ("add", "sub", "mul", "floordiv", "mod"):
    for kind in ("__{}__", "__r{}__"):
        setattr(GivenInt, kind.format(operation), as_source(kind.format(operation)))
for operation in ("neg", "lt", "le", "gt", "ge", "eq", "ne", "bool"):
    setattr(GivenInt, f"__{operation}__", as_source(f"__{operation}__"))


def given(value: Any) -> Any:
    """Mark a Python number as given; bools, named ints and what no float32 holds stay."""
    if type(value) is float:
        return Given(value) if -LARGEST < value < LARGEST else value
    if type(value) is TracedNumber:
        return for_graph(traced(value.item()))
    return GivenInt(value) if type(value) is int and value not in NAMED else value


def for_graph(value: Any) -> Any:
    """Give what graphs hold for a number: nobody else has that of a traced one."""
    return value.numbers.in_graph(value.slot) if type(value) is TracedNumber else value


def traced(value: Any) -> Any:
    """Keep a traced number as it is, unless it is none that a float32 holds."""
    return value if isinstance(value, int) or -LARGEST < value < LARGEST else plain(value)


def position_of(value: Any) -> Any:
    """Mark a position as given, one of NumPy too; what is no whole number stays."""
    if type(value) is np.ndarray and not value.shape:
        value = value[()]  # a number of its own, as PyTorch reads it: what it chooses is a view
    return GivenInt(value) if type(value) is int or type(value) in WHOLE else value


def once_varied(value: Any, *place: Hashable) -> Any:
    """Mark a whole number as given once its place has had many: kernels of one are faster."""
    if type(value) is not int or TracedNumber in map(type, place):
        return value
    if len(SEEN) > PLACES:
        SEEN.clear()
    seen = SEEN.setdefault(place, set())
    if len(seen) <= VALUES_AS_CODE:
        seen.add(value)
    return GivenInt(value) if len(seen) > VALUES_AS_CODE else value


def index_of(value: Any) -> Any:
    """Read a position as `operator.index` does; one that is traced stays."""
    is_traced = type(value) is TracedNumber and is_whole(value)
    return value if is_traced else operator.index(value)


def size_of(value: Any) -> Any:
    """Read a size as `operator.index` does; it stays traced where a trace follows sizes."""
    if type(value) is TracedNumber and value.numbers.has_sizes and is_whole(value):
        return value
    if type(value) is bool:
        raise TypeError("True and False are no sizes")
    return operator.index(value)


def start_of(value: Any, source: Any) -> Any:
    """Mark a position as given: the very number that the user gave, if that is it."""
    if type(value) is TracedNumber:
        if value.numbers.has_sizes:  # the end follows it
            return value
        value.numbers.positions.add(value.slot)
        start = GivenInt(value.value)
        start.source = value.numbers.in_graph(value.slot)
        return start
    if type(source) is not GivenInt:  # it is code: the body of a loop has no arguments
        return value
    return source if source == value else GivenInt(value)


def is_whole(value: Any) -> bool:
    """Tell whether a value is an int, or one that is traced."""
    return type(value) is int or (type(value) is TracedNumber and isinstance(value, int))


def is_given(value: Any) -> bool:
    """Tell whether a number is one that a user gave."""
    return type(value) in GIVEN


def like(value: Any, source: Any) -> Any:
    """Mark a number as given if the one that it was computed from is."""
    return given(value) if type(source) in GIVEN else value


def converted(function: Callable[[Any], Any], value: Any) -> Any:
    """Convert a number that may be traced; the mark of one that was given stays."""
    if type(value) is TracedNumber:
        return derived(function, value)
    return note(like(function(value), value), function, value)

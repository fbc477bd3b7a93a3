"""Numbers that a user gave: they are arguments of plans, where the numbers of formulas are code.

`given(0.3)` is a float like any other, and so are the sums, products, ... that Python makes of it,
so that no function has to know. What it becomes in the graph is a constant whose plan takes the
value at run time: another number of the same structure needs no other plan
(docs/design/0012-numbers-are-arguments.md).
"""

import operator
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

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


def keeping(name: str) -> Callable[[Any, Any], Any]:
    """Make an arithmetic method whose result is a given number too."""
    plain = getattr(float, name)

    def method(self: float, other: Any) -> Any:
        result = plain(self, other)
        return given(result) if type(result) is float else result

    return method


for operation in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    for kind in ("__{}__", "__r{}__"):
        setattr(Given, kind.format(operation), keeping(kind.format(operation)))
for operation in ("neg", "abs", "pos"):
    unary = getattr(operator, operation)
    setattr(Given, f"__{operation}__", lambda self, unary=unary: Given(unary(float(self))))


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
    return like(function(value), value)

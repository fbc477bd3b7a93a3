"""Numbers among the arguments of a function that is traced: what it computes of them is kept.

`picograd.jit` hands a `TracedNumber` in the place of a number. Arithmetic gives further ones, and
notes how; one that reaches a graph is a constant that plans take at run time, so that a replay
evaluates the notes for its own arguments (`Program`). What reads a value so that Python may depend
on it (a comparison, `int(n)`, `range(n)`, a text) is noted as a *guard*: the trace stands for the
numbers that read the same.

It is no float or int of C: what reads those in memory would do so unseen. It claims to be one
(`__class__`), so that `isinstance` holds, and C asks `__index__` and `__float__`, which are guards.
docs/design/0012-numbers-are-arguments.md says more.
"""

import functools
import math
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from picograd.late_methods import dataclass
from picograd.number_code import compiled

NUMPY = np.sctypeDict.values()
KINDS = frozenset(
    (int, float, *(kind for kind in NUMPY if issubclass(kind, (np.integer, np.floating))))
)
KIND = ("dtype", "shape", "ndim", "size", "itemsize", "nbytes")  # the same for all of one class
Step = tuple[int, Callable[..., Any], tuple[int, ...], type]  # slot, of these slots, its class
SIZED: "list[Numbers]" = []  # of the traces under way that have traced numbers in shapes


class Numbers:
    """The numbers of one trace: how each was computed, and which were read."""

    def __init__(self, values: Sequence[Any], line: Callable[[], str]) -> None:
        self.line = line
        self.slots: list[Any] = list(values)  # arguments, constants and results, as they were
        self.arguments: int = len(values)
        self.steps: list[Step] = []
        self.known: dict[Any, Any] = {}  # numbers by how they were computed
        self.guards: dict[int, str] = {}  # slots that were read, and the line
        self.positions: set[int] = set()  # slots that became plain ints in a graph
        self.follows_state = True  # numbers of Python's state too
        self.variables: dict[int, Any] = {}  # slots that a replay reads of Python's state
        self.handed: list[TracedNumber] = []  # what the function was given of these
        self.graph: dict[int, TracedNumber] = {}  # what graphs hold: nobody else does
        self.has_sizes: bool = False  # graphs hold traced numbers in shapes and arguments
        self.is_open: bool = True

    def argument(self, number: int) -> "TracedNumber":
        """Make the number that stands for an argument."""
        self.handed.append(TracedNumber(self, number))
        return self.handed[-1]

    def variable(self, value: Any, source: Any) -> "TracedNumber":
        """Make the number that stands for a place of Python's state, which `source` reads."""
        self.slots.append(value)
        self.variables[len(self.slots) - 1] = source
        return self.argument(len(self.slots) - 1)

    def in_graph(self, slot: int) -> "TracedNumber":
        """Give the number that graphs hold: one for each slot, and the function has no other."""
        if slot not in self.graph:
            self.graph[slot] = TracedNumber(self, slot)
        return self.graph[slot]

    def held(self) -> list["TracedNumber"]:
        """List the numbers that somebody holds beside this table."""
        known = [each for each in self.known.values() if type(each) is TracedNumber]
        found = [*self.handed, *known]
        del known
        return [each for each, count in zip(found, references(found)) if count > UNSHARED]

    def constant(self, value: Any) -> int:
        """Give the slot of a plain number."""
        key = type(value), repr(value)
        if key not in self.known:
            self.known[key] = len(self.slots)
            self.slots.append(value)
        return self.known[key]

    def apply(self, function: Callable[..., Any], operands: Sequence[Any]) -> Any:
        """Compute a number of others. What gives no number, or an error, reads them."""
        operands = [source_of(each) for each in operands]
        values = [value_of(each) for each in operands]
        if not self.is_open:
            for each in operands:
                if type(each) is TracedNumber and each.numbers.is_open:
                    return each.numbers.apply(function, operands)
            return function(*values)
        try:
            result = function(*values)
        except Exception:
            for each in operands:
                plain(each)
            raise
        if not isinstance(result, (int, float, np.number)):
            for each in operands:
                plain(each)
            return result
        places = tuple([self.place(each) for each in operands])
        key = function, places
        if key not in self.known:
            slot = len(self.slots)
            self.slots.append(result)
            self.steps.append((slot, function, places, type(result)))
            self.known[key] = TracedNumber(self, slot)
        return self.known[key]

    def place(self, operand: Any) -> int:
        """Find the slot of an operand."""
        is_own = type(operand) is TracedNumber and operand.numbers is self
        return operand.slot if is_own else self.constant(plain(operand))

    def read(self, slot: int) -> Any:
        """Give a value to who depends on it."""
        if self.is_open and slot not in self.guards:
            self.guards[slot] = self.line()
        return self.slots[slot]

    def follow_sizes(self) -> None:
        """Leave traced numbers in shapes, and in what is computed of shapes."""
        self.has_sizes = True
        SIZED.append(self)

    def close(self) -> None:
        """End the trace: numbers that are left over are what they are."""
        self.is_open = False
        if self in SIZED:
            SIZED.remove(self)
        self.known.clear()

    def needed(self, slots: Sequence[int]) -> list[Step]:
        """List the steps that slots come from."""
        wanted = set(slots)
        found: list[Step] = []
        for step in reversed(self.steps):
            if step[0] in wanted:
                wanted.update(step[2])
                found.append(step)
        return found[::-1]

    def sources(self, slots: Iterable[int]) -> set[int]:
        """List the arguments, and the places of Python's state, that slots come from."""
        found = set(slots)
        for step in reversed(self.steps):
            if step[0] in found:
                found.update(step[2])
        return {each for each in found if each < self.arguments or each in self.variables}


def references(listed: list[Any]) -> list[int]:
    """Count the references to each element of a list."""
    return [sys.getrefcount(each) for each in listed]


ALONE = SimpleNamespace(held=object())  # has the only reference to an object beside a list
UNSHARED = references([ALONE.held])[0]  # differs between versions of Python


class TracedNumber:
    """See the module docstring. `value` is for those who depend on it in no other way."""

    __slots__ = ("numbers", "slot")

    renew = None

    def __init__(self, numbers: Numbers, slot: int) -> None:
        self.numbers: Numbers = numbers
        self.slot: int = slot

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.numbers.slots[self.slot])

    @property
    def value(self) -> Any:
        """The number of the traced call, unnoted."""
        return self.numbers.slots[self.slot]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and not options:
            if all(isinstance(each, (int, float, np.number)) for each in inputs):
                return self.numbers.apply(ufunc, inputs)
        return getattr(ufunc, method)(*map(plain, inputs), **options)

    def item(self) -> Any:
        """Give the Python number of one of NumPy."""
        return self if type(self.value) in (int, float) else self.numbers.apply(as_python, (self,))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"a number has no {name}")
        return getattr(self.value if name in KIND else plain(self), name)

    def __index__(self) -> int:
        return operator.index(plain(self))

    def __hash__(self) -> int:
        return hash(plain(self))

    def __bool__(self) -> bool:
        return bool(plain(self.numbers.apply(bool, (self,))))

    def __int__(self) -> int:
        return int(plain(self.numbers.apply(int, (self,))))

    def __float__(self) -> float:
        return float(plain(self.numbers.apply(float, (self,))))

    def __complex__(self) -> complex:
        return complex(plain(self))

    def __str__(self) -> str:
        return str(plain(self))

    def __repr__(self) -> str:
        return repr(plain(self))

    def __format__(self, spec: str) -> str:
        return format(plain(self), spec)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(plain(self), dtype)

    def __round__(self, digits: Any = None) -> Any:
        return self.numbers.apply(round, (self,) if digits is None else (self, plain(digits)))

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return as_is, (plain(self),)


def as_python(value: Any) -> Any:
    """Give the Python number of one of NumPy."""
    return value.item()


def as_is(value: Any) -> Any:
    """Give what is given: numbers are pickled so."""
    return value


def source_of(operand: Any) -> Any:
    """Give the traced number that a position is, if it is one."""
    if type(operand) in (TracedNumber, int, float):
        return operand
    source = getattr(operand, "source", None)
    return source if type(source) is TracedNumber and source.numbers.has_sizes else operand


def value_of(operand: Any) -> Any:
    """Look at a number without a note."""
    return operand.value if type(operand) is TracedNumber else operand


def plain(value: Any) -> Any:
    """Read a number: the trace depends on its value from here on."""
    return value.numbers.read(value.slot) if type(value) is TracedNumber else value


def derived(function: Callable[..., Any], *operands: Any) -> Any:
    """Compute a number of numbers, as part of what a replay evaluates if one of them is traced."""
    for each in operands:
        if type(each) is TracedNumber:
            return each.numbers.apply(function, operands)
    return function(*operands)


def following(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of `math` that takes traced numbers: its result is one."""

    @functools.wraps(function)
    def followed(*numbers: Any, **options: Any) -> Any:
        return function(*numbers, **options) if options else derived(function, *numbers)

    return followed


FOLLOWED = {
    name: following(each)
    for name, each in vars(math).items()
    if callable(each) and not name.startswith("_")
}
NAMED = {getattr(math, name): function for name, function in FOLLOWED.items()}


@contextmanager
def math_followed(places: Iterable[tuple[dict[str, Any], str]] = ()) -> Iterator[None]:
    """Let the functions of `math` take traced numbers in this block, and in variables at `places`.

    Each converts its argument to a double of C, so that its result would tell nothing of where it
    came from. For every other number they do in this block what they always do.
    """
    listed = [(vars(math), name) for name in FOLLOWED] + list(places)
    before = [(table, name, table[name]) for table, name in listed]
    for table, name, function in before:
        table[name] = NAMED.get(function, function)
    try:
        yield
    finally:
        for table, name, function in before:
            table[name] = function


def arithmetic(function: Callable[..., Any], is_turned: bool) -> Callable[[Any, Any], Any]:
    """Make a method of two numbers. What is no number decides itself; arrays read the value."""

    def method(self: TracedNumber, other: Any) -> Any:
        if not isinstance(other, (int, float, np.number, np.ndarray)):
            return NotImplemented
        if isinstance(other, np.ndarray):
            return function(other, plain(self)) if is_turned else function(plain(self), other)
        return self.numbers.apply(function, (other, self) if is_turned else (self, other))

    return method


def comparison(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Make a method that compares: the outcome is a guard, unless it is one number twice."""
    compare = arithmetic(function, False)

    def method(self: TracedNumber, other: Any) -> Any:
        is_own = type(other) is TracedNumber and other.numbers is self.numbers
        if is_own and other.slot == self.slot and isinstance(self, int):
            return function(self.value, self.value)
        found = compare(self, other)
        return found if found is NotImplemented else plain(found)

    return method


for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift",
             "and", "or", "xor"):  # fmt: skip
    operation = getattr(operator, name if name not in ("and", "or") else name + "_")
    setattr(TracedNumber, f"__{name}__", arithmetic(operation, False))
    setattr(TracedNumber, f"__r{name}__", arithmetic(operation, True))
for name in ("neg", "pos", "abs", "invert"):
    unary = getattr(operator, name)
    setattr(TracedNumber, f"__{name}__",
            lambda self, unary=unary: self.numbers.apply(unary, (self,)))  # fmt: skip
for name in ("floor", "ceil", "trunc"):
    rounded = getattr(math, name)
    setattr(TracedNumber, f"__{name}__",
            lambda self, rounded=rounded: self.numbers.apply(rounded, (self,)))  # fmt: skip
for name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(TracedNumber, f"__{name}__", comparison(getattr(operator, name)))


def same(first: Any, second: Any) -> bool:
    """Tell whether two values read the same: -0.0 is not 0.0, NaN is NaN."""
    if type(first) is not type(second):
        return False
    return first is second or repr(first) == repr(second)


@dataclass(frozen=True, slots=True)
class Guard:
    """Where a number was read first, and the arguments that it comes from."""

    line: str
    sources: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """Why a trace does not stand for the numbers of a call."""

    sources: tuple[int, ...]
    text: str


@dataclass(slots=True)
class Program:
    """What a replay evaluates: numbers for the plan, and guards that must read as they did."""

    slots: list[Any]
    arguments: int
    steps: list[Step]
    guards: list[tuple[int, Any, Guard]]  # slot, expected
    exact: dict[int, Any]  # numbers that may differ only once a second trace was like the first
    variables: dict[int, Any]  # places of Python's state that are read for a replay, by slot
    code: Callable[[list[Any]], bool] | None = None
    runs: int = 0

    def is_like(self, other: "Program") -> bool:
        """Tell whether two traces computed the same of their numbers, and read the same."""
        if len(self.guards) != len(other.guards) or self.exact.keys() != other.exact.keys():
            return False
        if self.variables != other.variables:
            return False
        pairs = zip(self.guards, other.guards)
        is_same = all(a[0] == b[0] and same(a[1], b[1]) for a, b in pairs)
        if self.steps != other.steps or not is_same:
            return False
        made = {step[0] for step in self.steps}
        used = {place for step in self.steps for place in step[2]} - made
        fixed = [place for place in used - self.variables.keys() if place >= self.arguments]
        return all(same(self.slots[place], other.slots[place]) for place in fixed)

    def run(self, values: Sequence[Any]) -> "list[Any] | Difference":
        """Evaluate for the numbers of a call, or say which guard does not hold."""
        found = self.slots.copy()
        found[: self.arguments] = values
        for slot, variable in self.variables.items():
            found[slot] = variable.read()
            if type(found[slot]) is not type(self.slots[slot]):
                return Difference((), f"{variable.label} is another class of number, or gone")
        for slot, value in self.exact.items():
            if not same(found[slot], value):
                label = f"{self.variables[slot].label} " if slot in self.variables else ""
                text = f"{label}changed from {value!r} to {found[slot]!r}"
                which = () if label else (slot,)
                return Difference(which, f"{text}; it says where a slice begins")
        if self.holds(found):
            return found
        try:
            for slot, function, places, kind in self.steps:
                result = function(*[found[place] for place in places])
                if type(result) is not kind:
                    return Difference((), f"a result is {result!r}, another class of number")
                found[slot] = result
        except Exception as error:  # the function raises it itself
            return Difference((), f"a result is {type(error).__name__}")
        for slot, expected, guard in self.guards:
            now = found[slot]
            if now is not expected and not same(now, expected):
                return Difference(guard.sources, f"{guard.line} reads {now!r}, not {expected!r}")
        return found

    def holds(self, found: list[Any]) -> bool:
        """Fill the slots in by code, made at the second run; False where that cannot be."""
        if self.code is None:
            self.runs += 1
            if self.runs < 2:
                return False
            self.code = compiled(self.steps, [guard[:2] for guard in self.guards], same)
        try:
            return self.code(found)
        except Exception:  # a function raised: the steps will, too
            return False


def program(numbers: Numbers, wanted: Sequence[int]) -> Program:
    """Keep of a trace what its replays need: the numbers wanted, and the guards."""
    needed = [*wanted, *numbers.guards]
    steps = numbers.needed(needed)
    slots = numbers.slots.copy()
    guards = [
        (slot, slots[slot], guard_of(numbers, slot, line)) for slot, line in numbers.guards.items()
    ]
    sources = numbers.sources(numbers.positions)
    exact = {each: slots[each] for each in sources if each not in numbers.guards}
    read = numbers.sources([*needed, *numbers.positions])
    variables = {slot: each for slot, each in numbers.variables.items() if slot in read}
    return Program(slots, numbers.arguments, steps, guards, exact, variables)


def guard_of(numbers: Numbers, slot: int, line: str) -> Guard:
    """Name what a number that is read comes from: arguments by their places, state in the text."""
    found = sorted(numbers.sources([slot]))
    labels = [numbers.variables[each].label for each in found if each in numbers.variables]
    text = f"{', '.join(labels)}: {line}" if labels else line
    return Guard(text, tuple(each for each in found if each < numbers.arguments))

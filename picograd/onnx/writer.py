"""The writer of an ONNX graph: nodes, constants, and sizes that are known when the model runs.

A `Written` value stands for a node of Graph IR. Its own shape may have axes of size 1 where the
node repeats them, or be () for a number: ONNX's elementwise operators broadcast, and what asks for
the whole value calls `full`. Sizes are ints, or traced numbers: of those the model computes from
the shapes of its inputs, in `heads`, before all other nodes.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from picograd.conversion import convert
from picograd.dtype import BY_NAME, DType, float64, int64
from picograd.errors import DataError
from picograd.graph.shape import Shape
from picograd.late_methods import dataclass
from picograd.number import GivenInt
from picograd.onnx.values import NAMES, to_array
from picograd.tensor.public import full
from picograd.traced_number import TracedNumber, value_of

Size = Any  # an int or a traced number
# What sizes are computed with. ONNX divides integers towards zero: "floordiv" is written out.
ARITHMETIC: dict[Callable[..., Any], str] = {
    operator.add: "Add", operator.sub: "Sub", operator.mul: "Mul", operator.mod: "Mod",
    operator.neg: "Neg", operator.truediv: "Div", operator.pow: "Pow", abs: "Abs", max: "Max",
    min: "Min",
}  # fmt: skip


@dataclass(frozen=True)
class Written:
    """This class is a value of the ONNX graph: its name, its own shape and its dtype."""

    name: str
    shape: tuple[Size, ...]
    dtype: DType


def traced_of(size: Size) -> Size:
    """Give the traced number that a size is, if it is one."""
    source = size.source if type(size) is GivenInt else None
    return size if source is None else source


def fixed(size: Size, op: str) -> int:
    """Read a size or number that an attribute takes: no traced one can stand there."""
    if type(traced_of(size)) is TracedNumber:
        text = f"ONNX takes a size of {op} as a number, and it follows from a dynamic axis"
        raise DataError("onnx.export", text, "leave that axis out of dynamic")
    return int(size)


def is_same(first: Size, second: Size) -> bool:
    """Tell whether two sizes are one, in every call."""
    first, second = traced_of(first), traced_of(second)
    kinds = type(first) is TracedNumber, type(second) is TracedNumber
    return all(kinds) and first.slot == second.slot if any(kinds) else bool(first == second)


def is_one(size: Size) -> bool:
    """Tell whether a size is 1 in every call."""
    return type(traced_of(size)) is not TracedNumber and int(size) == 1


def same_shape(first: Sequence[Size], second: Sequence[Size]) -> bool:
    """Tell whether two shapes are one, in every call."""
    return len(first) == len(second) and all(map(is_same, first, second))


def broadcast(*shapes: Sequence[Size]) -> tuple[Size, ...]:
    """Give the shape of what is computed of values of some shapes, element by element."""
    rank = max(map(len, shapes))
    wide = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple([next((n for n in sizes if not is_one(n)), 1) for sizes in zip(*wide)])


class Writer:
    """This class collects the nodes and constants of a graph."""

    def __init__(self, opset: int, elementwise: Any) -> None:
        self.opset, self.elementwise = opset, elementwise
        self.nodes: list[Any] = []
        self.heads: list[Any] = []
        self.constants: dict[str, Any] = {}  # tensors by name
        self.named: dict[Any, str] = {}  # names of constants by their values
        self.counts: dict[str, int] = {}  # values of each kind of node
        self.places: dict[int, tuple[str, int]] = {}  # input and axis of a marked size
        self.origins: dict[str, Written] = {}  # what was reshaped to a value
        self.numbers: dict[Any, Written] = {}  # traced numbers by slot

    # nodes and constants

    def new_name(self, kind: str) -> str:
        """Name a value after the operator that computes it."""
        number = self.counts[kind] = self.counts.get(kind, -1) + 1
        return f"{kind.lower()}_{number}"

    def emit(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; gives the name of its output, or a list of several."""
        names = [self.new_name(kind) for _ in range(outputs)]
        given = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=names[0], **given))
        return names[0] if outputs == 1 else names

    def constant(self, array: Any, name: str = "") -> str:
        """Add a constant; equal ones are one."""
        key = array.dtype.name, array.shape, array.tobytes()
        if not name and key in self.named:
            return self.named[key]
        name = name or self.new_name("constant")
        self.constants[name] = numpy_helper.from_array(array, name)
        self.named.setdefault(key, name)
        return name

    def ints(self, *values: int) -> str:
        """Add a constant list of ints."""
        return self.constant(np.array([int(each) for each in values], np.int64))

    def number(self, value: Any, dtype: DType) -> Written:
        """Add a number, or compute a traced one."""
        value = traced_of(value)
        if type(value) is TracedNumber:
            flat = self.cast(self.traced(value), dtype)
            return Written(self.emit("Squeeze", flat.name), (), dtype)
        if dtype.numpy is None:
            return Written(self.constant(to_array(full((), float(value), dtype=dtype))), (), dtype)
        return Written(self.constant(np.asarray(convert(value, dtype))), (), dtype)

    @contextmanager
    def body(self, into: list[Any]) -> Iterator[None]:
        """Add nodes to another list in this block."""
        before, self.nodes = self.nodes, into
        try:
            yield
        finally:
            self.nodes = before

    # values

    def apply(self, kind: str, *values: Written, dtype: DType | None = None) -> Written:
        """Add an elementwise node."""
        name = self.emit(kind, *[each.name for each in values])
        shape = broadcast(*[each.shape for each in values])
        return Written(name, shape, dtype or values[0].dtype)

    def cast(self, x: Written, dtype: DType) -> Written:
        """Convert a value."""
        if x.dtype is dtype:
            return x
        return Written(self.emit("Cast", x.name, to=NAMES[dtype]), x.shape, dtype)

    def reshape(self, x: Written, shape: Shape) -> Written:
        """Give a value another shape; 0 keeps an axis, and -1 is what is left."""
        x = self.origins.get(x.name, x)
        if same_shape(x.shape, shape):
            return x
        sizes = []
        for axis, size in enumerate(shape):
            kept = axis < len(x.shape) and is_same(size, x.shape[axis])
            is_traced = type(traced_of(size)) is TracedNumber
            sizes.append(0 if kept and is_traced else (-1 if is_traced else int(size)))
        wanted = self.sizes(shape) if sizes.count(-1) > 1 else self.ints(*sizes)
        found = Written(self.emit("Reshape", x.name, wanted), tuple(shape), x.dtype)
        self.origins[found.name] = x
        return found

    def full(self, x: Written, shape: Shape) -> Written:
        """Repeat what a value shows repeated."""
        if same_shape(x.shape, shape):
            return x
        return Written(self.emit("Expand", x.name, self.sizes(shape)), tuple(shape), x.dtype)

    def transpose(self, x: Written, order: Sequence[int]) -> Written:
        """Reorder axes."""
        if list(order) == sorted(order):
            return x
        name = self.emit("Transpose", x.name, perm=[int(axis) for axis in order])
        return Written(name, tuple([x.shape[axis] for axis in order]), x.dtype)

    # sizes

    def sizes(self, shape: Sequence[Size]) -> str:
        """Give the name of a list of sizes."""
        listed = list(map(traced_of, shape))
        if not any(type(size) is TracedNumber for size in listed):
            return self.ints(*listed)
        parts = [self.size(size) for size in listed]
        return parts[0] if len(parts) == 1 else self.emit("Concat", *parts, axis=0)

    def size(self, size: Size) -> str:
        """Give the name of a size, as a list of one."""
        size = traced_of(size)
        if type(size) is not TracedNumber:
            return self.ints(size)
        return self.cast(self.traced(size), int64).name

    def traced(self, number: TracedNumber) -> Written:
        """Compute a traced number of the shapes of inputs."""
        with self.body(self.heads):
            if number.slot in self.places and number.slot not in self.numbers:
                self.numbers[number.slot] = self.measured(number.slot)
            for slot, function, operands, kind in number.numbers.needed([number.slot]):
                if slot not in self.numbers:
                    values = [self.operand(number, place) for place in operands]
                    self.numbers[slot] = self.computed(function, values, kind)
        return self.numbers[number.slot]

    def measured(self, slot: int) -> Written:
        """Read a size of an input."""
        name, axis = self.places[slot]
        return Written(self.emit("Shape", name, start=axis, end=axis + 1), (1,), int64)

    def operand(self, number: TracedNumber, slot: int) -> Written:
        """Give what a step computes with: a size, an earlier step or a constant."""
        if slot in self.places and slot not in self.numbers:
            self.numbers[slot] = self.measured(slot)
        if slot in self.numbers:
            return self.numbers[slot]
        value = value_of(number.numbers.slots[slot])
        array = np.array([value], np.int64 if isinstance(value, int) else np.float64)
        return Written(self.constant(array), (1,), BY_NAME[array.dtype.name])

    def computed(self, function: Any, values: list[Written], kind: type) -> Written:
        """Compute one step; a number that is no int is a double."""
        wanted = int64 if issubclass(kind, int) else float64
        folded = getattr(function, "folded", None)
        if function in (float, int) or (function is operator.pos):
            return self.cast(values[0], wanted)
        if folded is not None:
            op, inputs, dtype = folded
            given = values if inputs is None else map(self.cast, values, inputs)
            return self.elementwise[op](self, dtype, *given)
        if function is operator.floordiv and wanted is int64:
            return self.elementwise["floordiv"](self, int64, *values)
        name = ARITHMETIC.get(function)
        if name is None:
            named = getattr(function, "__name__", repr(function))
            text = f"a size is computed by {named}, which has no ONNX operator"
            raise DataError("onnx.export", text, "leave that axis out of dynamic")
        return self.apply(name, *[self.cast(each, wanted) for each in values])

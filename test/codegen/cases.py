"""Hand-built Loop-IR kernels with inputs, for the tests of every stage of codegen."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from picograd.dtype import DType, bool_, float32
from picograd.helpers import product, row_major
from picograd.schedule.index import Axis, Index, axis_index, constant
from picograd.schedule.loop import Compute, Condition, Expr, Kernel, Part, Slot, const

BOOL_OPS = {"less", "less_equal", "equal", "not_equal", "isnan"}


@dataclass
class Case:
    """A kernel with the arrays of its slots."""

    kernel: Kernel
    arrays: list[Any]
    scalars: list[Any] = field(default_factory=list)
    tolerance: float = 2e-6


def op(name: str, *args: Expr, dtype: DType | None = None) -> Expr:
    found = dtype or (bool_ if name in BOOL_OPS else args[-1].dtype)
    return Expr(name, args, None, found)


def load(slot: int, dtype: DType, index: Index) -> Expr:
    return Expr("load", (), (slot, index), dtype)


def at(axes: Sequence[Axis | None], shape: Sequence[int]) -> Index:
    """Row-major index of an array of `shape`; None stands for index 0 along an axis."""
    total = constant(0)
    for axis, stride in zip(axes, row_major(shape), strict=True):
        if axis is not None:
            total = total + axis_index(axis) * stride
    return total


def ref(number: int, dtype: DType = float32) -> Expr:
    return Expr("ref", (), number, dtype)


def guard(value: Expr, fill: Any, *conditions: Condition) -> Expr:
    return Expr("guard", (value, const(fill, value.dtype)), tuple(conditions), value.dtype)


def values(shape: Any, dtype: DType = float32, seed: int = 0) -> Any:
    generator = np.random.default_rng(seed)
    size = product(shape) if isinstance(shape, tuple) else shape
    if dtype is bool_:
        return generator.integers(0, 2, size).astype(bool)
    if dtype.is_integer:
        return generator.integers(-7 if dtype.kind == "int" else 0, 8, size).astype(dtype.numpy)
    found = generator.standard_normal(size).astype(np.float32)
    if dtype.name == "bfloat16":
        return (found.view(np.uint32) >> 16).astype(np.uint16)
    return found.astype(dtype.numpy)


def kernel(
    name: str, hero: str, slots: Sequence[tuple[DType, int, str]], *parts: Part, scalars: Any = ()
) -> Kernel:
    return Kernel(name, hero, tuple(Slot(*s) for s in slots), tuple(scalars), parts)


def build(made: Kernel, scalars: Sequence[Any] = (), tolerance: float = 2e-6) -> Case:
    arrays = []
    for number, slot in enumerate(made.slots):
        is_poisoned = slot.role == "out"
        array = values(slot.size, slot.dtype, number)
        if is_poisoned:
            array = np.full_like(array, 1 if slot.dtype is bool_ else 77)
        arrays.append(array)
    return Case(made, arrays, list(scalars), tolerance)


def unary(name: str, dtype: DType = float32, size: int = 1000) -> Case:
    i = Axis("i", size)
    x = load(0, dtype, axis_index(i))
    y = op(name, x)
    compute = Compute((i,), (), None, y, y.dtype, (1, axis_index(i)))
    made = kernel(
        f"{name}_{dtype.name}", "map", [(dtype, size, "in"), (y.dtype, size, "out")],
        Part((i,), (compute,)),
    )  # fmt: skip
    return build(made)


def binary(name: str, dtype: DType = float32, size: int = 1000) -> Case:
    i = Axis("i", size)
    x, y = load(0, dtype, axis_index(i)), load(1, dtype, axis_index(i))
    z = op(name, x, y)
    compute = Compute((i,), (), None, z, z.dtype, (2, axis_index(i)))
    slots = [(dtype, size, "in"), (dtype, size, "in"), (z.dtype, size, "out")]
    return build(kernel(f"{name}_{dtype.name}", "map", slots, Part((i,), (compute,))))


UNARY = [
    "neg", "exp", "log", "sin", "cos", "tanh", "sqrt", "rsqrt", "reciprocal", "abs", "sign",
    "floor", "ceil", "round", "trunc", "erf", "isnan",
]  # fmt: skip
BINARY = [
    "add", "sub", "mul", "div", "floordiv", "mod", "pow", "maximum", "minimum", "less",
    "less_equal", "equal", "not_equal",
]  # fmt: skip
INTEGER = [
    "add", "sub", "mul", "floordiv", "mod", "maximum", "minimum", "less", "equal", "bitwise_and",
    "bitwise_or", "bitwise_xor", "shift_left", "shift_right",
]  # fmt: skip

"""Hand-built Loop-IR kernels with inputs, for the tests of every stage of codegen."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from picograd.dtype import DType, bool_, float32, int32, int64
from picograd.helpers import product, row_major
from picograd.schedule.index import Axis, Dynamic, Index, axis_index, constant
from picograd.schedule.loop import Compute, Condition, Expr, Kernel, Part, Scatter, Slot, const

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


def softmax(rows: int = 20, columns: int = 37, is_column: bool = False) -> Case:
    r, c = Axis("r", rows), Axis("c", columns)
    size, index = rows * columns, at((r, c), (rows, columns))
    row, over = ((c,), (r,)) if is_column else ((r,), (c,))
    x = load(0, float32, index)
    shifted = op("exp", op("sub", x, ref(0)))
    computes = (
        Compute(row, over, "max", x, float32),
        Compute((*row, *over), (), None, shifted, float32),
        Compute(row, over, "sum", ref(1), float32),
        Compute((*row, *over), (), None, op("div", ref(1), ref(2)), float32, (1, index)),
    )
    slots = [(float32, size, "in"), (float32, size, "out")]
    name, hero = ("softmax_columns", "reduce.col") if is_column else ("softmax", "reduce.row")
    return build(kernel(name, hero, slots, Part(row, computes)))


def layer_norm(rows: int = 12, columns: int = 50) -> Case:
    r, c = Axis("r", rows), Axis("c", columns)
    size, index = rows * columns, at((r, c), (rows, columns))
    x, n = load(0, float32, index), const(float(columns), float32)
    centred = op("sub", x, ref(1))
    scaled = op("mul", centred, ref(4))
    w, b = load(1, float32, axis_index(c)), load(2, float32, axis_index(c))
    out = op("add", op("mul", scaled, w), b)
    computes = (
        Compute((r,), (c,), "sum", x, float32),
        Compute((r,), (), None, op("div", ref(0), n), float32, (4, axis_index(r))),
        Compute((r,), (c,), "sum", op("mul", centred, centred), float32),
        Compute((r,), (), None, op("div", ref(2), n), float32),
        Compute(
            (r,), (), None, op("rsqrt", op("add", ref(3), const(1e-5, float32))), float32,
            (5, axis_index(r)),
        ),
        Compute((r, c), (), None, out, float32, (3, index)),
    )  # fmt: skip
    slots = [
        (float32, size, "in"), (float32, columns, "in"), (float32, columns, "in"),
        (float32, size, "out"), (float32, rows, "out"), (float32, rows, "out"),
    ]  # fmt: skip
    return build(kernel("layer_norm", "reduce.row", slots, Part((r,), computes)), tolerance=1e-5)


def moments(rows: int = 9, columns: int = 40) -> Case:
    r, c = Axis("r", rows), Axis("c", columns)
    x = load(0, float32, at((r, c), (rows, columns)))
    computes = (
        Compute((r,), (c,), "sum", x, float32, (1, axis_index(r))),
        Compute((r,), (c,), "sum", op("mul", x, x), float32, (2, axis_index(r))),
        Compute((r,), (c,), "max", op("abs", x), float32, (3, axis_index(r))),
    )
    slots = [(float32, rows * columns, "in"), *[(float32, rows, "out")] * 3]
    return build(kernel("moments", "reduce.row", slots, Part((r,), computes)), tolerance=1e-5)


def column_sum(rows: int = 300, columns: int = 70, monoid: str = "sum") -> Case:
    r, c = Axis("r", rows), Axis("c", columns)
    x = load(0, float32, at((r, c), (rows, columns)))
    mean = op("mul", ref(0), const(0.5, float32))
    computes = (
        Compute((c,), (r,), monoid, x, float32, (1, axis_index(c))),
        Compute((c,), (), None, mean, float32, (2, axis_index(c))),
        Compute((c, r), (), None, op("neg", x), float32, (3, at((r, c), (rows, columns)))),
    )
    size = rows * columns
    slots = [
        (float32, size, "in"), (float32, columns, "out"), (float32, columns, "out"),
        (float32, size, "out"),
    ]  # fmt: skip
    made = kernel(f"column_{monoid}", "reduce.col", slots, Part((c,), computes))
    return build(made, tolerance=1e-4)


def total(size: int = 5000, shape: tuple[int, ...] = (), dtype: DType = float32) -> Case:
    shape = shape or (size,)
    axes = tuple(Axis(f"a{n}", s) for n, s in enumerate(shape))
    x = load(0, dtype, at(axes, shape))
    computes = (
        Compute((), axes, "sum", x, dtype, (1, constant(0))),
        Compute((), axes, "max", op("mul", x, x), dtype, (2, constant(0))),
        Compute((), (), None, op("add", ref(0, dtype), ref(0, dtype)), dtype, (3, constant(0))),
    )
    slots = [(dtype, product(shape), "in"), *[(dtype, 1, "out")] * 3]
    return build(kernel("total", "reduce.all", slots, Part((), computes)), tolerance=1e-4)


def argmax(rows: int = 11, columns: int = 33) -> Case:
    r, c = Axis("r", rows), Axis("c", columns)
    x = load(0, float32, at((r, c), (rows, columns)))
    place = Expr("index", (), axis_index(c), int64)
    chosen = op("where", op("equal", x, ref(0)), place, const(columns, int64))
    computes = (
        Compute((r,), (c,), "max", x, float32),
        Compute((r,), (c,), "min", chosen, int64, (1, axis_index(r))),
    )
    slots = [(float32, rows * columns, "in"), (int64, rows, "out")]
    return build(kernel("argmax", "reduce.row", slots, Part((r,), computes)))


def cross_entropy(rows: int = 40, classes: int = 10) -> Case:
    r, c = Axis("r", rows), Axis("c", classes)
    x = load(0, float32, at((r, c), (rows, classes)))
    label = Dynamic(load(1, int64, axis_index(r)), 0, classes - 1)
    picked = load(0, float32, axis_index(r) * classes + Index(((label, 1),), 0))
    loss = op("sub", op("add", op("log", ref(1)), ref(0)), picked)
    computes = (
        Compute((r,), (c,), "max", x, float32),
        Compute((r,), (c,), "sum", op("exp", op("sub", x, ref(0))), float32),
        Compute((r,), (), None, loss, float32, (3, axis_index(r))),
        Compute((), (r,), "sum", ref(2), float32),
        Compute((), (), None, op("div", ref(3), const(float(rows), float32)), float32,
                (2, constant(0))),
    )  # fmt: skip
    slots = [
        (float32, rows * classes, "in"), (int64, rows, "in"), (float32, 1, "out"),
        (float32, rows, "out"),
    ]  # fmt: skip
    case = build(kernel("cross_entropy", "reduce.row", slots, Part((r,), computes)))
    case.arrays[1] = np.random.default_rng(1).integers(0, classes, rows)
    return case


def max_pool() -> Case:
    n, h, w, kh, kw = (Axis(a, s) for a, s in (("n", 3), ("h", 6), ("w", 7), ("kh", 2), ("kw", 3)))
    row = axis_index(h) * 2 + axis_index(kh) - 1
    column = axis_index(w) + axis_index(kw) - 1
    index = axis_index(n) * 99 + row * 9 + column
    x = guard(load(0, float32, index), float("-inf"), (row, 0, 10), (column, 0, 8))
    out = at((n, h, w), (3, 6, 7))
    axes = (n, h, w)
    computes = (
        Compute(axes, (kh, kw), "max", x, float32),
        Compute(axes, (), None, op("maximum", ref(0), const(0.0, float32)), float32, (1, out)),
    )
    slots = [(float32, 297, "in"), (float32, 126, "out")]
    return build(kernel("max_pool", "map", slots, Part(axes, computes)))


def pad() -> Case:
    i, j = Axis("i", 9), Axis("j", 12)
    row, column = axis_index(i) - 2, axis_index(j) - 3
    x = guard(load(0, float32, row * 7 + column), 1.5, (row, 0, 5), (column, 0, 6))
    out = at((i, j), (9, 12))
    compute = Compute((i, j), (), None, x, float32, (1, out))
    return build(kernel("pad", "map", [(float32, 42, "in"), (float32, 108, "out")],
                        Part((i, j), (compute,))))  # fmt: skip


def transpose(rows: int = 33, columns: int = 45) -> Case:
    i, j = Axis("i", columns), Axis("j", rows)
    x = load(0, float32, at((j, i), (rows, columns)))
    index = at((i, j), (columns, rows))
    compute = Compute((i, j), (), None, x, float32, (1, index))
    size = rows * columns
    return build(kernel("transpose", "map", [(float32, size, "in"), (float32, size, "out")],
                        Part((i, j), (compute,))))  # fmt: skip


def reshaped() -> Case:
    i, j = Axis("i", 6), Axis("j", 10)
    flat = at((i, j), (6, 10))
    index = (flat % 4) * 15 + flat // 4  # a transpose seen through a reshape
    compute = Compute((i, j), (), None, load(0, float32, index), float32, (1, flat))
    return build(kernel("reshaped", "map", [(float32, 60, "in"), (float32, 60, "out")],
                        Part((i, j), (compute,))))  # fmt: skip


def gather() -> Case:
    i, j = Axis("i", 14), Axis("j", 8)
    row = Index(((Dynamic(load(1, int64, axis_index(i)), 0, 19), 8),), 0)
    x = load(0, float32, row + axis_index(j))
    compute = Compute((i, j), (), None, x, float32, (2, at((i, j), (14, 8))))
    slots = [(float32, 160, "in"), (int64, 14, "in"), (float32, 112, "out")]
    case = build(kernel("gather", "gather", slots, Part((i, j), (compute,))))
    case.arrays[1] = np.random.default_rng(1).integers(0, 20, 14)
    return case


def scatter(monoid: str | None = "sum") -> Case:
    i, j = Axis("i", 30), Axis("j", 8)
    row = Index(((Dynamic(load(1, int64, axis_index(i)), 0, 9), 8),), 0)
    x = load(0, float32, at((i, j), (30, 8)))
    update = Scatter((i,), (j,), monoid, x, 2, row + axis_index(j))
    slots = [(float32, 240, "in"), (int64, 30, "in"), (float32, 80, "inout")]
    made = kernel(f"scatter_{monoid or 'set'}", "scatter", slots, Part((), (), update))
    case = build(made)
    case.arrays[1] = np.random.default_rng(1).integers(0, 10, 30)
    return case


def adam() -> Case:
    parts, slots = [], []
    for number, size in enumerate((5, 1200)):
        i, s = Axis(f"i{number}", size), 4 * number
        p, g, m, v = (load(s + k, float32, axis_index(i)) for k in range(4))
        rate = Expr("scalar", (), 0, float32)
        moment = op("add", op("mul", m, const(0.9, float32)), op("mul", g, const(0.1, float32)))
        fresh = op("mul", op("mul", g, g), const(0.01, float32))
        square = op("add", op("mul", v, const(0.99, float32)), fresh)
        step = op("div", ref(0), op("add", op("sqrt", ref(1)), const(1e-8, float32)))
        moved = op("sub", p, op("mul", rate, step))
        computes = (
            Compute((i,), (), None, moment, float32, (s + 2, axis_index(i))),
            Compute((i,), (), None, op("abs", square), float32, (s + 3, axis_index(i))),
            Compute((i,), (), None, moved, float32, (s, axis_index(i))),
        )
        roles = ("inout", "in", "inout", "inout")
        slots += [(float32, size, role) for role in roles]
        parts.append(Part((i,), computes))
    made = kernel("adam", "map", slots, *parts, scalars=(float32, int32))
    return build(made, [0.125, 3])


UNARY = ["neg", "exp", "log", "sin", "cos", "tanh", "sqrt", "rsqrt", "reciprocal", "abs", "sign", "floor", "ceil", "round", "trunc", "erf", "isnan"]  # fmt: skip
BINARY = ["add", "sub", "mul", "div", "floordiv", "mod", "pow", "maximum", "minimum", "less", "less_equal", "equal", "not_equal"]
INTEGER = ["add", "sub", "mul", "floordiv", "mod", "maximum", "minimum", "less", "equal", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right"]  # fmt: skip
STRUCTURED = {
    "softmax": softmax, "softmax_columns": lambda: softmax(is_column=True),
    "layer_norm": layer_norm, "moments": moments, "column_sum": column_sum,
    "column_max": lambda: column_sum(monoid="max"), "total": total,
    "total_int": lambda: total(700, dtype=int32), "total_shape": lambda: total(0, (7, 11, 13)),
    "argmax": argmax, "cross_entropy": cross_entropy, "max_pool": max_pool, "pad": pad,
    "transpose": transpose, "reshaped": reshaped, "gather": gather, "scatter_sum": scatter,
    "scatter_set": lambda: scatter(None), "scatter_max": lambda: scatter("max"), "adam": adam,
}  # fmt: skip

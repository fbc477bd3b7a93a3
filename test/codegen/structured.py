"""Hand-built kernels with structure: reductions, windows, views, gathers, scatters, parts."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from cases import Case, at, build, guard, kernel, load, op, ref

from picograd.dtype import DType, bool_, float32, int32, int64
from picograd.helpers import product
from picograd.schedule.index import Axis, Dynamic, Index, axis_index, constant
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Scatter, Slot, const, rewrite


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
            (r,),
            (),
            None,
            op("rsqrt", op("add", ref(3), const(1e-5, float32))),
            float32,
            (5, axis_index(r)),
        ),
        Compute((r, c), (), None, out, float32, (3, index)),
    )
    slots = [
        (float32, size, "in"),
        (float32, columns, "in"),
        (float32, columns, "in"),
        (float32, size, "out"),
        (float32, rows, "out"),
        (float32, rows, "out"),
    ]
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
        (float32, size, "in"),
        (float32, columns, "out"),
        (float32, columns, "out"),
        (float32, size, "out"),
    ]
    made = kernel(f"column_{monoid}", "reduce.col", slots, Part((c,), computes))
    return build(made, tolerance=1e-4)


def streamed(rows: int = 300, columns: int = 70, is_column: bool = True) -> Case:
    """A masked product, stored, and its sums along one side."""
    r, c = Axis("r", rows), Axis("c", columns)
    place = at((r, c), (rows, columns))
    x, y = load(0, float32, place), load(1, float32, place)
    kept, gone = (c, r) if is_column else (r, c)
    masked = op("mul", op("maximum", x, const(0.0, float32)), y)
    computes = (
        Compute((kept, gone), (), None, masked, float32, (2, place)),
        Compute((kept,), (gone,), "sum", ref(0), float32, (3, axis_index(kept))),
        Compute((kept,), (gone,), "sum", op("mul", ref(0), x), float32, (4, axis_index(kept))),
    )
    size = rows * columns
    slots = [(float32, size, "in")] * 2 + [(float32, size, "out")]
    slots += [(float32, kept.size, "out")] * 2
    hero = "reduce.col" if is_column else "reduce.row"
    return build(kernel("streamed", hero, slots, Part((kept,), computes)), tolerance=1e-4)


def column_statistics(shape: tuple[int, ...], columns: int) -> Case:
    """Sums of x - centre and of its square over all axes but the last, as a batch norm's."""
    rows = tuple(Axis(f"r{n}", size) for n, size in enumerate(shape))
    c, sizes = Axis("c", columns), (*shape, columns)
    x = load(0, float32, at((*rows, c), sizes))
    moved = op("sub", x, load(1, float32, axis_index(c)))
    square = op("mul", moved, moved)
    computes = (
        Compute((c,), rows, "sum", moved, float32, (2, axis_index(c))),
        Compute((c,), rows, "sum", square, float32, (3, axis_index(c))),
    )
    slots = [(float32, product(sizes), "in")]
    slots += [(float32, columns, kind) for kind in ("in", "out", "out")]
    made = kernel("column_statistics", "reduce.col", slots, Part((c,), computes))
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


def totals(sizes: tuple[int, ...] = (5000, 7, 300)) -> Case:
    """Sums of whole arrays in one launch."""
    parts, slots = [], []
    for size in sizes:
        axis, slot = Axis("a", size), len(slots)
        body = load(slot, float32, axis_index(axis))
        compute = Compute((), (axis,), "sum", body, float32, (slot + 1, constant(0)))
        parts.append(Part((), (compute,)))
        slots += [(float32, size, "in"), (float32, 1, "out")]
    return build(kernel("totals", "reduce.all", slots, *parts), tolerance=1e-4)


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
        Compute(
            (), (), None, op("div", ref(3), const(float(rows), float32)), float32, (2, constant(0))
        ),
    )
    slots = [
        (float32, rows * classes, "in"),
        (int64, rows, "in"),
        (float32, 1, "out"),
        (float32, rows, "out"),
    ]
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
    return build(
        kernel("pad", "map", [(float32, 42, "in"), (float32, 108, "out")], Part((i, j), (compute,)))
    )


def joined() -> Case:
    """Three arrays beside each other, each computed where it is: the loop is cut in pieces."""
    i, j = Axis("i", 9), Axis("j", 70)
    row, column = axis_index(i), axis_index(j)
    total = const(0.0, float32)
    for slot, (first, size) in enumerate(((0, 20), (20, 18), (38, 32))):
        x = op("exp", load(slot, float32, row * size + column - first))
        total = op("add", total, guard(x, 0.0, (column - first, 0, size - 1)))
    compute = Compute((i, j), (), None, total, float32, (3, at((i, j), (9, 70))))
    slots = [(float32, 9 * size, "in") for size in (20, 18, 32)]
    return build(kernel("joined", "map", [*slots, (float32, 630, "out")], Part((i, j), (compute,))))


def transpose(rows: int = 33, columns: int = 45) -> Case:
    i, j = Axis("i", columns), Axis("j", rows)
    x = load(0, float32, at((j, i), (rows, columns)))
    index = at((i, j), (columns, rows))
    compute = Compute((i, j), (), None, x, float32, (1, index))
    size = rows * columns
    return build(
        kernel(
            "transpose",
            "map",
            [(float32, size, "in"), (float32, size, "out")],
            Part((i, j), (compute,)),
        )
    )


def transpose_batch() -> Case:
    """A transpose with a ragged tile, a batch axis and an elementwise operand."""
    b, i, j = Axis("b", 2), Axis("i", 70), Axis("j", 130)
    x = load(0, float32, at((b, j, i), (2, 130, 70)))
    y = load(1, float32, at((b, i, j), (2, 70, 130)))
    axes, index, size = (b, i, j), at((b, i, j), (2, 70, 130)), 18200
    compute = Compute(axes, (), None, op("add", x, y), float32, (2, index))
    slots = [(float32, size, "in"), (float32, size, "in"), (float32, size, "out")]
    return build(kernel("transpose_batch", "map", slots, Part(axes, (compute,))))


def reshaped() -> Case:
    i, j = Axis("i", 6), Axis("j", 10)
    flat = at((i, j), (6, 10))
    index = (flat % 4) * 15 + flat // 4  # a transpose seen through a reshape
    compute = Compute((i, j), (), None, load(0, float32, index), float32, (1, flat))
    return build(
        kernel(
            "reshaped", "map", [(float32, 60, "in"), (float32, 60, "out")], Part((i, j), (compute,))
        )
    )


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


def scatter_where() -> Case:
    """Overwrite only where a bool of each update is true."""
    i, j = Axis("i", 30), Axis("j", 8)
    row = Index(((Dynamic(load(1, int64, axis_index(i)), 0, 9), 8),), 0)
    wanted = Expr("cast", (load(3, bool_, axis_index(i)),), None, int32)
    tests = ((Index(((Dynamic(wanted, 0, 1), 1),), 0), 1, 1),)
    x = load(0, float32, at((i, j), (30, 8)))
    update = Scatter((i,), (j,), None, x, 2, row + axis_index(j), tests)
    slots = [(float32, 240, "in"), (int64, 30, "in"), (float32, 80, "inout"), (bool_, 30, "in")]
    case = build(kernel("scatter_where", "scatter", slots, Part((), (), update)))
    case.arrays[1] = np.random.default_rng(1).integers(0, 10, 30)
    case.arrays[3] = np.random.default_rng(2).integers(0, 2, 30) > 0
    return case


def adam(sizes: tuple[int, ...] = (5, 1200), rates: tuple[int, ...] = (0, 0)) -> Case:
    """Updates of several parameters in one launch, with the runtime scalars of these numbers."""
    parts, slots = [], []
    for number, (size, scalar) in enumerate(zip(sizes, rates, strict=True)):
        i, s = Axis(f"i{number}", size), 4 * number
        p, g, m, v = (load(s + k, float32, axis_index(i)) for k in range(4))
        rate = Expr("scalar", (), scalar, float32)
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
    made = kernel("adam", "map", slots, *parts, scalars=(float32, int32, float32))
    return build(made, [0.125, 3, 0.5])


def beside(*cases: Case) -> Case:
    """Kernels over different domains in one launch."""
    slots: list[Slot] = []
    parts: list[Part] = []
    for case in cases:
        first = len(slots)
        slots += case.kernel.slots
        parts += [moved_part(part, first) for part in case.kernel.parts]
    made = Kernel("beside", "reduce.row", tuple(slots), (), tuple(parts))
    return Case(made, [array for case in cases for array in case.arrays], tolerance=1e-5)


def moved_part(part: Part, first: int) -> Part:
    """Number the slots of a part from `first`."""

    def move(expr: Expr) -> Expr | None:
        if expr.op != "load":
            return None
        return Expr("load", (), (first + expr.arg[0], expr.arg[1]), expr.dtype)

    computes = []
    for c in part.computes:
        store = (first + c.store[0], c.store[1]) if c.store else None
        computes.append(replace(c, body=rewrite(c.body, {}, move), store=store))
    return Part(part.rows, tuple(computes))


STRUCTURED: dict[str, Callable[[], Case]] = {
    "softmax": softmax,
    "softmax_columns": lambda: softmax(is_column=True),
    "layer_norm": layer_norm,
    "moments": moments,
    "column_sum": column_sum,
    "column_max": lambda: column_sum(monoid="max"),
    "total": total,
    "totals": totals,
    "total_int": lambda: total(700, dtype=int32),
    "total_shape": lambda: total(0, (7, 11, 13)),
    "argmax": argmax,
    "cross_entropy": cross_entropy,
    "max_pool": max_pool,
    "pad": pad,
    "joined": joined,
    "transpose": transpose,
    "transpose_batch": transpose_batch,
    "reshaped": reshaped,
    "gather": gather,
    "scatter_sum": scatter,
    "scatter_set": lambda: scatter(None),
    "scatter_max": lambda: scatter("max"),
    "scatter_where": scatter_where,
    "adam": adam,
    "adam_alike": lambda: adam((600, 5, 600, 600), (0, 0, 2, 0)),
    "adam_sizes": lambda: adam((600, 1, 2052, 600, 4, 2, 602), (0, 2, 2, 0, 0, 2, 0)),
    "beside": lambda: beside(softmax(), column_sum(), total(), cross_entropy(), transpose()),
    "beside_alike": lambda: beside(softmax(), column_sum(), softmax(), column_sum(), softmax()),
}

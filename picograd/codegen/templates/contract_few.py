"""Products of few rows, or few columns, on a GPU: sums along K, as many at once as there are rows.

A tile of a matrix product would be empty but for these rows. The other operand is read once, as
fast as memory gives it: the thread that has a value of it multiplies it for every row.
"""

from dataclasses import replace
from itertools import product as combinations

from picograd.codegen.operands import (
    Contraction,
    analyse,
    has_units,
    operand_dtype,
    runs_along,
    strides,
    swap,
)
from picograd.codegen.templates import reduce
from picograd.codegen.templates.grid import substitute_part
from picograd.codegen.tile import TileKernel
from picograd.dtype import DType
from picograd.schedule.index import axis_index, constant
from picograd.schedule.loop import Compute, Expr, Kernel, Part, rewrite, walk
from picograd.target import Target

MOST, FEW = 8, 4  # rows, where operands lie as threads like to read them, and else
DEEP = 128  # elements of K from which a matrix that runs along N is read for all rows at once
VECTOR_BYTES, WIDE = 16, 256  # columns from which few rows of K fill a GPU
SMALL = 1 << 24  # products that are summed before tensor cores have begun


def build(kernel: Kernel, target: Target) -> TileKernel | None:
    """Write products of few rows; None if one of them is another."""
    parts, along = [], set()
    for part in kernel.parts:
        side = few_rows(analyse(kernel, part), target)
        made = None
        if side is not None and not part.ends:
            made = apart(part, side)
        if side is None or made is None:
            return None
        is_row = is_along(side) and not reduce.is_short(made, target)
        along.add(is_row)
        parts.append(made)
    if len(along) > 1:
        return None
    hero = "reduce.row" if along.pop() else "reduce.col"
    sums = replace(kernel, hero=hero, parts=tuple(parts))
    return reduce.build(sums, target)


def few_rows(c: Contraction, target: Target) -> Contraction | None:
    """Turn a product so that its few sides are rows; None if tiles compute it sooner.

    The bounds are measured, on an H200. Where tensor cores multiply, tiles wait for memory too.
    """
    side = c
    if c.sizes[1] > c.sizes[2]:
        side = swap(c)
    _, rows, columns, depth = side.sizes
    dtype = operand_dtype(side, target)
    if has_units(dtype, target):
        is_small = rows <= FEW and rows * columns * depth <= SMALL
        is_few = is_along(side) and (rows == 1 or is_small)
        is_few |= rows <= FEW and columns >= WIDE and is_between(side, dtype)
        is_few &= dtype.bits == 16
    else:
        suits = depth >= DEEP
        if is_along(side):
            suits = is_along(swap(side))
        is_few = rows <= (MOST if suits else FEW)
    return side if is_few and side.number == 0 else None


def is_along(side: Contraction) -> bool:
    """Tell whether the matrix of a product runs along K."""
    axes = (*side.columns, *side.depth)
    steps = strides(side.b, axes)
    return runs_along(steps, side.depth)


def is_between(side: Contraction, dtype: DType) -> bool:
    """Tell whether rows of a matrix along N begin between vectors: tiles read single elements."""
    steps = strides(side.b, side.depth).values()
    return not is_along(side) and any(step * dtype.itemsize % VECTOR_BYTES for step in steps)


def apart(part: Part, side: Contraction) -> Part | None:
    """Compute rows one beside the other: a sum for each; None if sums are not what comes first."""
    part = along_one_axis(part)
    first, *others = [compute for compute in part.computes if compute.reduce]
    if any((each.axes, each.reduce) != (first.axes, first.reduce) for each in others):
        return None
    rows = [axis for axis in side.rows if axis.size != 1]
    for compute in part.computes:
        reads_windows = any(each.op == "element" for each in walk(compute.body))
        if reads_windows or not set(rows) <= set(compute.axes):
            return None
    ranges = [range(axis.size) for axis in rows]
    made = []
    for place in combinations(*ranges):
        values = dict(zip(rows, map(constant, place), strict=True))
        made.append(substitute_part(part, values, dict.fromkeys(rows, ())))
    computes = []
    for same in zip(*[each.computes for each in made], strict=True):
        computes += [renumbered(each, row, len(made)) for row, each in enumerate(same)]
    return replace(made[0], computes=tuple(computes))


def along_one_axis(part: Part) -> Part:
    """Let sums of as many products as the first be over its axes: one loop does all."""
    over = part.computes[0].reduce
    computes = []
    for compute in part.computes:
        own = compute.reduce
        if own and [axis.size for axis in own] == [axis.size for axis in over]:
            same = dict(zip(own, map(axis_index, over), strict=True))
            compute = replace(compute, reduce=over, body=rewrite(compute.body, same))
        computes.append(compute)
    return replace(part, computes=tuple(computes))


def renumbered(compute: Compute, row: int, count: int) -> Compute:
    """Let what is computed of a row read what that has: rows lie side by side."""

    def own(expr: Expr) -> Expr | None:
        if expr.op != "ref":
            return None
        number = expr.arg * count + row
        return Expr("ref", (), number, expr.dtype)

    return replace(compute, body=rewrite(compute.body, {}, own))

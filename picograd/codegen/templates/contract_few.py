"""Products of few rows, or few columns, on a GPU: sums along K, as many at once as there are rows.

A tile of a matrix product would be empty but for these rows. The other operand is read once, as
fast as memory gives it: the thread that has a value of it multiplies it for every row.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product as combinations

from picograd.codegen.operands import Contraction, analyse, operand_dtype, runs_along, strides, swap
from picograd.codegen.templates import reduce
from picograd.codegen.tile import TileKernel
from picograd.dtype import float32
from picograd.schedule.index import Axis, Index, constant, substitute
from picograd.schedule.loop import Compute, Expr, Kernel, Part, rewrite, walk
from picograd.target import Target

MOST, FEW = 8, 4  # rows, where operands lie as threads like to read them, and else
DEEP = 128  # elements of K from which a matrix that runs along N is read for all rows at once
SMALL = 1 << 24  # products that are summed before tensor cores have begun


def build(kernel: Kernel, target: Target) -> TileKernel | None:
    """Write products of few rows; None if one of them is another."""
    found = [few_rows(analyse(kernel, part), target) for part in kernel.parts]
    sides = [side for side in found if side is not None]
    if len(sides) < len(found) or any(part.ends for part in kernel.parts):
        return None
    made = [apart(part, side) for part, side in zip(kernel.parts, sides, strict=True)]
    parts = tuple(part for part in made if part is not None)
    along = {is_along(side) and not reduce.is_short(p, target) for side, p in zip(sides, parts)}
    if len(parts) < len(made) or len(along) > 1:
        return None
    hero = "reduce.row" if along.pop() else "reduce.col"
    return reduce.build(replace(kernel, hero=hero, parts=parts), target)


def few_rows(c: Contraction, target: Target) -> Contraction | None:
    """Turn a product so that its few sides are rows; None if tiles compute it sooner.

    The bounds are measured, on an H200. Where tensor cores multiply, tiles wait for memory too.
    """
    side = c if c.sizes[1] <= c.sizes[2] else swap(c)
    _, rows, columns, depth = side.sizes
    dtype = operand_dtype(side, target)
    if target.tensor_cores and (dtype.bits <= 16 or (target.tf32 and dtype is float32)):
        is_small = rows <= FEW and rows * columns * depth <= SMALL
        is_few = is_along(side) and dtype.bits == 16 and (rows == 1 or is_small)
    else:
        suits = is_along(swap(side)) if is_along(side) else depth >= DEEP
        is_few = rows <= (MOST if suits else FEW)
    return side if is_few and side.number == 0 else None


def is_along(side: Contraction) -> bool:
    """Tell whether the matrix of a product runs along K."""
    return runs_along(strides(side.b, (*side.columns, *side.depth)), side.depth)


def apart(part: Part, side: Contraction) -> Part | None:
    """Compute rows one beside the other: a sum for each; None if sums are not what comes first."""
    if any(compute.reduce for compute in part.computes[1:]):
        return None
    if any(each.op == "element" for compute in part.computes for each in walk(compute.body)):
        return None
    rows = [axis for axis in side.rows if axis.size != 1]
    places = list(combinations(*[range(axis.size) for axis in rows]))
    computes = []
    for compute in part.computes:
        if not set(rows) <= set(compute.axes):
            return None
        for row, place in enumerate(places):
            values = dict(zip(rows, map(constant, place), strict=True))
            computes.append(of_row(compute, values, row, len(places)))
    return replace(part, rows=without(part.rows, values), computes=tuple(computes))


def of_row(compute: Compute, values: Mapping[Axis, Index], row: int, count: int) -> Compute:
    """Compute one of several rows; what is computed of each lies side by side."""

    def renumbered(expr: Expr) -> Expr | None:
        return Expr("ref", (), expr.arg * count + row, expr.dtype) if expr.op == "ref" else None

    def moved(index: Index) -> Index:
        return substitute(index, values, lambda expr: rewrite(expr, values, renumbered))

    return replace(
        compute,
        axes=without(compute.axes, values),
        body=rewrite(compute.body, values, renumbered),
        store=compute.store and (compute.store[0], moved(compute.store[1])),
        seen=tuple((moved(index), lo, hi) for index, lo, hi in compute.seen),
    )


def without(axes: tuple[Axis, ...], values: Mapping[Axis, Index]) -> tuple[Axis, ...]:
    """Leave out the axes that have values."""
    return tuple(axis for axis in axes if axis not in values)

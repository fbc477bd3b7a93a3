"""Products whose results are reduced over rows or columns, as the statistics of batch norms are."""

from dataclasses import replace

import numpy as np

from picograd.codegen.operands import analyse
from picograd.dtype import float32, float64
from picograd.helpers import product
from picograd.schedule.index import axis_index, flatten
from picograd.schedule.loop import Compute, Expr, Kernel, Slot, cast, const


def with_statistics(kernel: Kernel, is_of_rows: bool = False) -> Kernel:
    """Store sums of elements and of their squares, for each column or row, and their difference.

    Elements are half above the products: those that are not there are not 0.
    """
    (part,) = kernel.parts
    c = analyse(kernel)
    kept, gone = (c.rows, c.columns) if is_of_rows else (c.columns, c.rows)
    count = product(axis.size for axis in kept)
    at = flatten([axis_index(axis) for axis in kept], [axis.size for axis in kept])
    wide = cast(Expr("ref", (), 0, part.computes[0].dtype), float64)
    wide = Expr("add", (wide, const(0.5, float64)), None, float64)
    square = Expr("mul", (wide, wide), None, float64)
    first, slots = len(part.computes), list(kernel.slots)
    bodies = (gone, wide, float64), (gone, square, float64)
    sums = [Expr("ref", (), first + n, float64) for n in (0, 1)]
    scaled = Expr("mul", (sums[0], const(0.5, float64)), None, float64)
    last = cast(Expr("sub", (sums[1], scaled), None, float64), float32)
    computes = list(part.computes)
    for over, body, dtype in (*bodies, ((), last, float32)):
        monoid = "sum" if over else None
        store = len(slots), at
        computes.append(Compute(kept, over, monoid, body, dtype, store))
        slots.append(Slot(dtype, count, "out"))
    part = replace(part, computes=tuple(computes))
    return replace(kernel, name=f"summed_{kernel.name}", slots=tuple(slots), parts=(part,))


def statistics(matrix: np.ndarray, is_of_rows: bool = False) -> list[np.ndarray]:
    """What is stored of a result that is seen as rows and columns, in float64."""
    axis, above = 1 if is_of_rows else 0, matrix + 0.5
    sums, squares = above.sum(axis), (above * above).sum(axis)
    return [sums, squares, squares - 0.5 * sums]

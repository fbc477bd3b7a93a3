"""Reflections template: R of few columns, and Householder's vectors, a block for each matrix.

grid: matrices    steps: read the matrix; for each column: its warp shows it; each warp finds its
length, the vector that turns it onto its first element, and takes the vector out of its own columns

Neighbouring threads have neighbouring rows, and a warp whole columns: sums over rows stay inside of
a warp, and a step waits once. What is shown lies in one of two places in turn. Columns are divided
by their largest elements on their way in, so that no square is lost. A vector has the length
sqrt(2), or 0 where there is nothing below to turn (Golub and Van Loan, 5.1):

    v = (x - r e) / sqrt(|r| (|r| + |x_1|))    r = -sign(x_1) |x|    (1 - v v^T) x = r e
"""

import numpy as np

from picograd.codegen.layout import Blocked
from picograd.codegen.templates.elimination import ALONE, WARP, Matrix, power_of_two, same_place
from picograd.codegen.templates.grid import merge_part
from picograd.codegen.terms import as_term, position
from picograd.codegen.tile import Accumulate, Assign, Barrier, For, Step, TileKernel
from picograd.errors import internal
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Elimination, Kernel

MOST_WARPS = 16


def build(kernel: Kernel) -> TileKernel:
    """Write the reflections of columns for a GPU."""
    step = merge_part(kernel.parts[0]).along
    if not isinstance(step, Elimination):
        internal("reflections need a step over matrices", kernel)
    down = min(WARP, power_of_two(step.axis.size))
    warps = min(MOST_WARPS, power_of_two(step.column.size))
    matrix = Matrix(step, max(down * warps, WARP), down)
    reflect(matrix)
    return matrix.leave(kernel)


def reflect(matrix: Matrix) -> None:
    """Turn column after column onto its first element."""
    i, j, dtype = matrix.i, matrix.j, matrix.dtype
    warps = matrix.threads // matrix.rows.thread_count
    size = j.size, i.size
    whole = Blocked(size, (warps, matrix.rows.thread_count), (1, 1))
    columns = Blocked((j.size,), (warps,), (1,))
    matrix.register("x", dtype, whole)
    matrix.register("scale", dtype, columns)
    matrix.register("dot", dtype, columns)
    matrix.register("vector", dtype, matrix.rows)
    for name in ("tail", "inverse"):
        matrix.register(name, dtype, ALONE)
    matrix.shared("column", dtype, 2, i.size)
    matrix.shared("diagonal", dtype, j.size)
    both = j, i
    x = matrix.of("x", *both)
    scale = matrix.of("scale", j)
    is_nothing = scale.is_at(0.0)
    divided = is_nothing.where(x, x / scale)
    k = Axis("k", j.size)
    back = x * is_nothing.where(scale + 1, scale)
    places = axis_index(i), axis_index(j)
    above = axis_index(j) - axis_index(i), 1, j.size
    own = (axis_index(j),)
    matrix.steps += [
        matrix.bring(),
        Barrier(),
        Assign("x", both, matrix.of("turned", i, j).expr),
        Accumulate("scale", (j,), (i,), "max", x.of("abs").expr, True, whole),
        Assign("x", both, divided.expr),
        For(k, (*find_vector(matrix, k, whole), *take_out(matrix, k, whole))),
        Barrier(),
        Assign("turned", both, back.expr, places, whole, (above,)),
        Assign("diagonal", both, back.expr, own, whole, (same_place(i, j),)),
    ]


def find_vector(matrix: Matrix, k: Axis, whole: Blocked) -> list[Step]:
    """Show a column, and find the vector that turns what is left of it."""
    i, j = matrix.i, matrix.j
    at = axis_index(k) % 2
    own = matrix.of("column", at, i)
    head = matrix.of("column", at, k)
    is_below = position(k) < matrix.row
    tail = matrix.of("tail")
    length = (head * head + tail).of("sqrt")
    is_negative = head < 0.0
    larger = is_negative.where(head - length, head + length)
    factor = (length * larger.of("abs")).of("sqrt")
    facts = np.finfo(matrix.dtype.numpy)
    least = float(facts.tiny / facts.eps)  # squares below it have lost digits
    one = as_term(1.0, matrix.dtype)
    inverse = (tail < least).where(tail * 0.0, one / factor)
    first = larger * matrix.of("inverse")
    rest = is_below.where(own * matrix.of("inverse"), 0.0)
    vector = matrix.row.is_at(position(k)).where(first, rest)
    below = is_below.where(own * own, 0.0)
    shown = at, axis_index(i)
    return [
        Assign("column", (j, i), matrix.of("x", j, i).expr, shown, whole, (same_place(j, k),)),
        Barrier(),
        matrix.over_rows("tail", "sum", below),
        matrix.set_alone("inverse", inverse),
        matrix.set_rows("vector", vector),
    ]


def take_out(matrix: Matrix, k: Axis, whole: Blocked) -> list[Step]:
    """Take multiples of the vector out of the columns from its own on, and keep it."""
    i, j = matrix.i, matrix.j
    x = matrix.of("x", j, i)
    vector = matrix.of("vector", i)
    is_left = position(k) <= matrix.column
    dot = is_left.where(matrix.of("dot", j), 0.0)
    place = axis_index(i), axis_index(k)
    below = axis_index(i) - axis_index(k), 0, i.size
    return [
        Accumulate("dot", (j,), (i,), "sum", (vector * x).expr, True, whole),
        Assign("dot", (j,), dot.expr),
        Assign("x", (j, i), (x - vector * matrix.of("dot", j)).expr),
        Assign("turned", (i,), vector.expr, place, matrix.rows, (below,)),
    ]

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

MOST_WARPS = 8  # few of many columns share what each does for itself


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
    down = matrix.rows.thread_count
    warps = matrix.threads // down
    whole = Blocked((j.size, i.size), (warps, down), (1, 1))
    columns = Blocked((j.size,), (warps,), (1,))
    matrix.register("x", dtype, whole)
    matrix.register("scale", dtype, columns)
    matrix.register("dot", dtype, columns)
    matrix.register("vector", dtype, matrix.rows)
    matrix.register("tail", dtype, ALONE)
    matrix.register("inverse", dtype, ALONE)
    matrix.shared("column", dtype, 2, i.size)
    matrix.shared("head", dtype, 2)
    matrix.shared("diagonal", dtype, j.size)
    bring = matrix.bring()
    both = j, i
    x = matrix.of("x", j, i)
    start = matrix.of("turned", i, j)
    scale = matrix.of("scale", j)
    facts = np.finfo(dtype.numpy)
    one = as_term(1.0, dtype)
    is_nothing = scale < float(facts.tiny)  # one by it is none
    largest = Accumulate("scale", (j,), (i,), "max", x.of("abs").expr, True, whole)
    scaled = x * (one / scale)
    k = Axis("k", j.size)
    steps = *find_vector(matrix, k, whole), *take_out(matrix, k, whole)
    matrix.steps += [
        bring,
        Barrier(),
        Assign("x", both, start.expr),
        largest,
        Assign("scale", (j,), is_nothing.where(one, scale).expr),
        Assign("x", both, scaled.expr),
        For(k, steps),
        Barrier(),
        *bring_back(matrix, whole),
    ]


def find_vector(matrix: Matrix, k: Axis, whole: Blocked) -> list[Step]:
    """Show a column, and find the vector that turns what is left of it: not yet of its length."""
    i, j = matrix.i, matrix.j
    both = j, i
    at = axis_index(k) % 2
    place = at, axis_index(i)
    is_column = same_place(j, k)
    is_head = same_place(i, k)
    x = matrix.of("x", j, i)
    is_below = position(k) < matrix.row
    below = is_below.where(x, 0.0)
    head = matrix.of("head", at)
    vector = matrix.of("vector", i)
    squares = vector * vector
    tail = matrix.of("tail")
    length = (head * head + tail).of("sqrt")
    is_negative = head < 0.0
    first = is_negative.where(head - length, head + length)
    factor = length * first.of("abs")
    facts = np.finfo(matrix.dtype.numpy)
    least = float(facts.tiny / facts.eps)  # squares below it have lost digits
    is_nothing = tail < least
    one = as_term(1.0, matrix.dtype)
    inverse = is_nothing.where(tail * 0.0, one / factor)
    is_first = matrix.row.is_at(position(k))
    return [
        Assign("column", both, below.expr, place, whole, (is_column,)),
        Assign("head", both, x.expr, (at,), whole, (is_column, is_head)),
        Barrier(),
        matrix.set_rows("vector", matrix.of("column", at, i)),
        matrix.over_rows("tail", "sum", squares),
        matrix.set_alone("inverse", inverse),
        matrix.set_rows("vector", is_first.where(first, vector)),
    ]


def take_out(matrix: Matrix, k: Axis, whole: Blocked) -> list[Step]:
    """Take multiples of the vector out of the columns from its own on, and keep it."""
    i, j = matrix.i, matrix.j
    x = matrix.of("x", j, i)
    vector = matrix.of("vector", i)
    dot = matrix.of("dot", j)
    inverse = matrix.of("inverse")
    part = vector * x
    is_left = position(k) <= matrix.column
    left = is_left.where(dot * inverse, 0.0)
    rest = x - vector * dot
    kept = vector * inverse.of("sqrt")
    row = axis_index(i)
    column = axis_index(k)
    is_below = row - column, 0, i.size
    place = row, column
    return [
        Accumulate("dot", (j,), (i,), "sum", part.expr, True, whole),
        Assign("dot", (j,), left.expr),
        Assign("x", (j, i), rest.expr),
        Assign("turned", (i,), kept.expr, place, matrix.rows, (is_below,)),
    ]


def bring_back(matrix: Matrix, whole: Blocked) -> list[Step]:
    """Let R lie above the vectors, and its diagonal behind all."""
    i, j = matrix.i, matrix.j
    both = j, i
    scale = matrix.of("scale", j)
    value = matrix.of("x", j, i) * scale
    row = axis_index(i)
    column = axis_index(j)
    place = row, column
    is_above = column - row, 1, j.size
    is_here = same_place(i, j)
    return [
        Assign("turned", both, value.expr, place, whole, (is_above,)),
        Assign("diagonal", both, value.expr, (column,), whole, (is_here,)),
    ]

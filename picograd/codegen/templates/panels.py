"""Panels template: few columns of matrices, of which each thread has whole rows, that turn.

grid: matrices    steps: read the matrix; for each column: it is the first of those that are left;
what it is divided by is taken out of the others, which move to the left; it goes behind them

So the registers that a step reads are the same in all steps, which are a loop of few instructions:
written out, they would be read from memory once each, for longer than they run. When all columns
had their turn they are in order again.

    "panel"              threads of a block have the rows, and find a pivot together
    "below", "cholesky"  threads have the rows of the factor, and as many below: often one warp
    "lower", "unit_lower"  a thread has whole columns of what is right of the triangle
"""

import math

from picograd.codegen.layout import Blocked
from picograd.codegen.templates import elimination, reflections
from picograd.codegen.templates.elimination import ALONE, Matrix, power_of_two, same_place
from picograd.codegen.templates.grid import merge_part
from picograd.codegen.terms import Term, as_term, position
from picograd.codegen.tile import Assign, Barrier, For, Step, TileKernel
from picograd.dtype import int32
from picograd.graph.elimination import SUBSTITUTIONS
from picograd.helpers import ceil_div
from picograd.schedule.index import Axis, Index, axis_index, constant
from picograd.schedule.loop import Elimination, Kernel
from picograd.target import Target

WARP, MOST_THREADS = 32, 512
MOST_COLUMNS = 32  # of a thread, in registers
MOST_BYTES = 512  # of rows that a thread has
SEEN_BYTES = 256  # of a row that each thread has beside its own
FIRST = constant(0)
SPARE = 1024  # elements beside the matrix, in shared memory
WIDEST = 16  # bytes that a thread reads at once
LEAST_RIGHT = 16  # columns right of a triangle, for a thread each


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write the elimination of columns for a GPU."""
    step = merge_part(kernel.parts[0]).along
    if isinstance(step, Elimination) and step.kind == "reflect":
        return reflections.build(kernel)
    if not isinstance(step, Elimination) or not turns(step):
        return elimination.build(kernel, target)
    threads = threads_of(step)
    matrix = Matrix(step, threads, threads, lanes_of(step, target))
    matrix.read()
    del matrix.tiles["column"]  # a column is known to those who need it
    if step.kind in SUBSTITUTIONS:
        substitute(matrix)
    elif step.kind == "panel":
        pivot(matrix)
    else:
        factor(matrix)
    return matrix.leave(kernel)


def turns(step: Elimination) -> bool:
    """Tell whether threads have whole rows, or columns, that turn."""
    if step.kind == "panel":
        return True
    if step.kind in ("below", "cholesky"):
        rows = ceil_div(step.axis.size, threads_of(step))
        return rows * step.count * step.body.dtype.itemsize <= MOST_BYTES
    if step.count > MOST_COLUMNS:
        return False
    right = step.column.size - step.count
    return step.kind in ("lower", "unit_lower") and right >= LEAST_RIGHT


def threads_of(step: Elimination) -> int:
    """Choose the threads of a block: one for a row, or a column; or a warp."""
    if step.kind in ("below", "cholesky"):
        return max(power_of_two(step.axis.size), WARP)
    is_triangle = step.kind in SUBSTITUTIONS
    count = step.column.size - step.count if is_triangle else step.axis.size
    return min(max(power_of_two(count), WARP), MOST_THREADS)


def lanes_of(step: Elimination, target: Target) -> int:
    """Count the elements that a thread reads at once: 16 bytes, if rows fall into as many.

    In shared memory rows are as much longer, so that they lie in banks of their own.
    """
    itemsize = step.body.dtype.itemsize
    lanes = WIDEST // itemsize
    columns = step.column.size
    is_even = columns % lanes == 0 and step.count % lanes == 0
    elements = step.axis.size * (columns + lanes) + step.count * step.count + SPARE
    has_room = elements * itemsize <= target.shared_bytes
    return lanes if is_even and has_room else 1


def turn(matrix: Matrix, rest: Term, last: Term) -> Assign:
    """Move columns to the left; `last` goes behind them."""
    end = position(matrix.j).is_at(matrix.j.size - 1)
    return matrix.set_each("a", end.where(last, rest))


def next_of(axis: Axis) -> Index:
    """Give the place that moves to this one; the last has none, and is not asked for."""
    return (axis_index(axis) + 1) % axis.size


def pivot(matrix: Matrix) -> None:
    """Eliminate by Gauss: as `Matrix.pivot`, but for a pivot that all threads look for."""
    i, j = matrix.i, matrix.j
    count = matrix.step.count
    matrix.register("best", matrix.dtype, ALONE)
    matrix.register("key", int32, ALONE)
    matrix.register("last", matrix.dtype, matrix.rows)
    matrix.shared("swap", int32, count)
    k = Axis("k", count)
    is_left = position(j) + position(k) < count
    shown = is_left.where(matrix.own, 0.0)
    where = FIRST, axis_index(j)
    chosen = matrix.of("key") % i.size
    is_row = same_place(i, chosen.index(i.size))
    body = (
        *matrix.find_pivot(k, first_of(matrix)),
        Assign("row", (i, j), shown.expr, where, matrix.whole, (is_row,)),
        *renumber(matrix, k, chosen),
        Barrier(),
        *take_out(matrix, k),
    )
    matrix.steps.append(For(k, body))
    matrix.steps.append(Barrier())
    place = matrix.place.index(i.size)
    matrix.bring_back(place, matrix.own)


def first_of(matrix: Matrix) -> Term:
    """Give the first element that a row has now."""
    return matrix.of("a", matrix.i, FIRST)


def renumber(matrix: Matrix, k: Axis, chosen: Term) -> list[Step]:
    """Say where rows would be if they had been swapped."""
    step = position(k)
    place = matrix.place
    swap = matrix.of("key") // matrix.i.size
    moved = place.is_at(step).where(swap, place)
    is_chosen = matrix.row.is_at(chosen)
    rows = matrix.set_rows("place", is_chosen.where(step, moved))
    return [rows, matrix.set_alone("swap", swap + 1, k)]


def take_out(matrix: Matrix, k: Axis) -> list[Step]:
    """Take multiples of the pivot's row out of the rows that are left, and turn all rows."""
    i, j = matrix.i, matrix.j
    first = first_of(matrix)
    head = matrix.of("row", FIRST, FIRST)
    is_nothing = head.is_at(0.0)
    factor = is_nothing.where(first, first / head)
    is_below = position(k) < matrix.place
    beside = matrix.of("a", i, next_of(j))
    row = matrix.of("row", FIRST, next_of(j))
    taken = matrix.multiple * row
    rest = is_below.where(beside - taken, beside)
    last = is_below.where(matrix.multiple, first)
    return [
        matrix.set_rows("factor", factor),
        matrix.set_rows("last", last),
        turn(matrix, rest, matrix.of("last", i)),
    ]


def factor(matrix: Matrix) -> None:
    """Factor L L^T: each row loses its multiple of the first column, which it keeps.

    A step begins with all that it reads of what others showed, so that threads wait for it once.
    What the next step reads is shown before the other columns are worked on. Columns are multiplied
    by the roots of their pivots at last, which are found at once: NaN from the first pivot on that
    has no root. Steps behind it take nothing out, so that what is done stays finite.
    """
    i, j, dtype = matrix.i, matrix.j, matrix.dtype
    tiles_of_factor(matrix)
    k = Axis("k", j.size)
    seen = shown(matrix, k)
    head = shown_at(matrix, k, constant(j.size - 1))
    failed = matrix.of("failed")
    last = matrix.of("last", i)
    zero = as_term(0.0, dtype)
    one = as_term(1.0, dtype)
    nothing = as_term(math.nan, dtype)
    is_good = zero < head
    is_below = position(k) < matrix.row
    body = (
        Barrier(),
        *seen,
        matrix.set_alone("failed", is_good.where(failed, nothing)),
        matrix.set_alone("pivot", head + failed, k),
        matrix.set_alone("inverse", is_good.where(one / head, zero)),
        matrix.set_rows("last", first_of(matrix) * matrix.of("inverse")),
        matrix.set_rows("factor", is_below.where(last, zero)),
        matrix.set_rows("next", behind(matrix, k, FIRST)),
        show_first(matrix, matrix.of("next", i), axis_index(k) + 1),
        turn(matrix, behind(matrix, k, axis_index(j)), last),
    )
    root = matrix.of("pivot", j).of("sqrt")
    matrix.steps += [
        matrix.set_alone("failed", zero),
        show_first(matrix, first_of(matrix), FIRST),
        For(k, body),
        Barrier(),
        Assign("root", (j,), root.expr, (axis_index(j),)),
        Barrier(),
    ]
    is_lower = matrix.column <= matrix.row
    found = matrix.own * matrix.of("root", j)
    matrix.bring_back(axis_index(i), is_lower.where(found, 0.0))


def tiles_of_factor(matrix: Matrix) -> None:
    """Make what steps of `factor` write."""
    dtype = matrix.dtype
    for name in ("pivot", "root"):
        matrix.shared(name, dtype, matrix.j.size)
    for name in ("failed", "inverse"):
        matrix.register(name, dtype, ALONE)
    for name in ("last", "next"):
        matrix.register(name, dtype, matrix.rows)


def shown(matrix: Matrix, k: Axis) -> list[Step]:
    """Bring what is shown of a column into registers, where there is room."""
    j, dtype = matrix.j, matrix.dtype
    if j.size * dtype.itemsize > SEEN_BYTES:
        return []
    value = shown_at(matrix, k, axis_index(j))
    matrix.register("seen", dtype, Blocked((j.size,), (1,), (1,)))
    return [Assign("seen", (j,), value.expr)]


def shown_at(matrix: Matrix, k: Axis, place: Index) -> Term:
    """Give what is shown of a column at a place."""
    if "seen" in matrix.tiles:
        return matrix.of("seen", place)
    return matrix.of("row", axis_index(k) % 2, place)


def behind(matrix: Matrix, k: Axis, place: Index) -> Term:
    """Take a multiple of the first column out of what lies behind a place: 0 where it is done."""
    beside = matrix.of("a", matrix.i, (place + 1) % matrix.j.size)
    return beside - matrix.multiple * shown_at(matrix, k, place)


def show_first(matrix: Matrix, value: Term, step: Index) -> Assign:
    """Show the first column of the corner before a step: its own element lies behind the others."""
    i, count = matrix.i, matrix.j.size
    is_left = position(step) <= matrix.row
    shown = is_left.where(value, 0.0)
    place = (axis_index(i) - step + (count - 1)) % count
    corner = axis_index(i), 0, count - 1
    return Assign("row", (i,), shown.expr, (step % 2, place), matrix.rows, (corner,))


def substitute(matrix: Matrix) -> None:
    """Solve a triangle: each thread by itself, for a column that it has."""
    i, count, dtype = matrix.i, matrix.step.count, matrix.dtype
    is_unit = matrix.step.kind == "unit_lower"
    right = Axis("c", matrix.j.size - count)
    whole = Blocked((right.size, count), (matrix.threads, 1), (1, 1))
    each = Blocked((right.size,), (matrix.threads,), (1,))
    matrix.register("x", dtype, whole)
    matrix.register("found", dtype, each)
    matrix.shared("below", dtype, count, count)
    behind = axis_index(right) + count
    start = matrix.of("turned", i, behind)
    k = Axis("k", count)
    row = Axis("r", count)
    under = axis_index(row) + axis_index(k) + 1
    is_below = position(row) + position(k) < count - 1
    below = matrix.of("turned", under % count, k)
    head = matrix.of("x", right, FIRST)
    if not is_unit:
        head = head / matrix.of("turned", k, k)
    found = matrix.of("found", right)
    beside = matrix.of("x", right, next_of(i))
    taken = matrix.of("below", k, i) * found
    rest = beside - taken
    end = position(i).is_at(count - 1)
    body = (
        Assign("found", (right,), head.expr),
        Assign("x", (right, i), end.where(found, rest).expr),
    )
    matrix.steps += [
        Assign("x", (right, i), start.expr),
        Assign(
            "below", (k, row), is_below.where(below, 0.0).expr, (axis_index(k), axis_index(row))
        ),
        Barrier(),
        For(k, body),
        Barrier(),
        Assign("turned", (right, i), matrix.of("x", right, i).expr, (axis_index(i), behind), whole),
    ]

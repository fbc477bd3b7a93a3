"""Elimination template: a block of threads for each small matrix, which they have in registers.

grid: matrices    steps: read the matrix; for each column: those who have it share it, and those who
have the row of its pivot share that; wait; every thread takes a multiple of the row out of its own;
bring the result into the order of memory, where it is stored

Neighbouring threads have neighbouring rows, so that a warp sees a whole column, and finds the pivot
by itself. Rows stay where they are: `place` says where each would be if they had been swapped. What
is shared lies in one of two places in turn, so that nobody waits for those who still read the last.

A pivot divides once for each row: `column / pivot` times what the row of the pivot has, which is
divided at last.
"""

import math
from dataclasses import replace

from picograd.codegen.layout import Blocked
from picograd.codegen.templates.grid import merge_part
from picograd.codegen.terms import Term, as_place, as_term, position, tile_at
from picograd.codegen.tile import (
    Accumulate,
    Assign,
    Barrier,
    For,
    Step,
    Store,
    Tile,
    TileKernel,
    TilePart,
)
from picograd.dtype import DType, int32
from picograd.errors import internal
from picograd.graph.elimination import SUBSTITUTIONS
from picograd.helpers import ceil_div, product
from picograd.schedule.index import Axis, Index, axis_index, constant, substitute
from picograd.schedule.loop import Condition, Elimination, Kernel, rewrite
from picograd.target import Target

WARP, MOST_THREADS = 32, 512
FEW, MANY = 32, 64  # elements of a thread: few where blocks are, so that a block takes less long
MANY_BLOCKS = 8  # on each multiprocessor
WHOLE = "lu", "panel", "cholesky", "below", "reflect"  # what is eliminated stays
UNDER_WAY = 32  # elements that a thread reads at once
ALONE = Blocked((), (), ())  # what all threads know


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write the elimination of columns for a GPU."""
    step = merge_part(kernel.parts[0]).along
    if not isinstance(step, Elimination) or not target.has_blocks:
        internal("an elimination kernel needs an elimination, and blocks", kernel)
    down = min(WARP, power_of_two(step.axis.size))
    matrix = Matrix(step, threads_of(step, target), down)
    matrix.read()
    if step.kind == "cholesky":
        matrix.factor()
    elif step.kind in SUBSTITUTIONS:
        matrix.substitute(*SUBSTITUTIONS[step.kind])
    else:
        matrix.pivot()
    if step.kind == "solve":
        matrix.substitute(True, False)
    return matrix.leave(kernel)


class Tiles:
    """This class collects the tiles and steps of what is done of one matrix."""

    def __init__(self, step: Elimination) -> None:
        self.step: Elimination = step
        self.dtype: DType = step.body.dtype
        self.tiles: dict[str, Tile] = {}
        self.steps: list[Step] = []

    def register(self, name: str, dtype: DType, layout: Blocked) -> None:
        """Make a tile in registers."""
        self.tiles[name] = Tile(name, layout.shape, dtype, "register", layout)

    def shared(self, name: str, dtype: DType, *shape: int) -> None:
        """Make a shared tile."""
        self.tiles[name] = Tile(name, shape, dtype, "shared")

    def of(self, name: str, *index: Index | Axis) -> Term:
        """Read a tile."""
        places = tuple(map(as_place, index))
        return tile_at(name, places, self.tiles[name].dtype)

    def store(
        self, place: Index, dims: tuple[Axis, ...], value: Term, layout: Blocked | None = None
    ) -> None:
        """Store at a place of the result."""
        target = substitute(self.step.target, {self.step.place: place})
        store = Store(self.step.slot, target, dims, value.expr, (), layout)
        self.steps.append(store)

    def made(self, kernel: Kernel, threads: int) -> TileKernel:
        """Make the kernel of all steps, with so many threads for each matrix."""
        tiles = tuple(self.tiles.values())
        steps = tuple(self.steps)
        part = TilePart(self.step.rows, tiles, steps)
        return TileKernel(kernel, (part,), threads)


class Matrix(Tiles):
    """This class writes the elimination of one matrix.

    Tiles: `a` the matrix, `place` where each row would be, `factor` what of the pivot's row is
    taken out of each row, all in registers; shared `column` and `row`, each twice; `turned`, in
    which the matrix lies as in memory, on its way in and out, and a triangle meanwhile.
    """

    def __init__(self, step: Elimination, count: int, down: int, lanes: int = 1) -> None:
        super().__init__(step)
        self.i: Axis = step.axis
        self.j: Axis = step.column
        self.threads: int = count
        rows = self.i.size
        columns = self.j.size
        self.lanes: int = lanes  # neighbours in memory that a thread reads and stores at once
        threads = down, self.threads // down
        self.whole = Blocked((rows, columns), threads, (1, 1), True)
        self.rows = Blocked((rows,), (down,), (1,), True)
        self.lying = self.across(rows, columns)
        self.row = position(self.i)
        self.column = position(self.j)

    def across(self, rows: int, columns: int) -> Blocked:
        """Spread rows and columns over threads as they lie in memory."""
        count = power_of_two(ceil_div(columns, self.lanes))
        count = min(self.threads, count)
        threads = self.threads // count, count
        return Blocked((rows, columns), threads, (1, self.lanes))

    @property
    def own(self) -> Term:
        """An element of the matrix."""
        return self.of("a", self.i, self.j)

    @property
    def place(self) -> Term:
        """Where a row would be if rows had been swapped."""
        return self.of("place", self.i)

    @property
    def multiple(self) -> Term:
        """What of the pivot's row is taken out of a row."""
        return self.of("factor", self.i)

    # -- tiles ------------------------------------------------------------------------------------

    def set_each(self, name: str, value: Term) -> Assign:
        """Write a tile in registers that has one element for each of the matrix."""
        both = self.i, self.j
        return Assign(name, both, value.expr)

    def set_rows(self, name: str, value: Term) -> Assign:
        """Write a tile in registers that has one element for each row."""
        return Assign(name, (self.i,), value.expr)

    def over_rows(self, name: str, monoid: str, value: Term) -> Accumulate:
        """Reduce a value over rows, for all threads."""
        return Accumulate(name, (), (self.i,), monoid, value.expr, True, self.rows)

    def set_alone(self, name: str, value: Term, *index: Axis) -> Assign:
        """Write one element."""
        where = tuple(map(as_place, index))
        return Assign(name, (), value.expr, where or None, ALONE)

    def share(self, name: str, at: Index, along: Axis, *conditions: Condition) -> Assign:
        """Let those who have a row or column of the matrix show it."""
        both = self.i, self.j
        where = at, axis_index(along)
        return Assign(name, both, self.own.expr, where, self.whole, conditions)

    def read(self) -> None:
        """Read the matrix, and make what steps share."""
        self.register("a", self.dtype, self.whole)
        self.register("place", int32, self.rows)
        self.register("factor", self.dtype, self.rows)
        self.shared("column", self.dtype, 2, self.i.size)
        self.shared("row", self.dtype, 2, self.j.size)
        both = self.i, self.j
        self.steps += [
            self.bring(),
            self.set_rows("place", self.row),
            Barrier(),
            self.set_each("a", self.of("turned", *both)),
        ]

    def bring(self) -> Step:
        """Read the matrix: some rows at a time, all of which are asked for before one is there."""
        size = self.i.size, self.j.size
        odd = (size[1] + 1) % 2  # neighbours of a column are in banks of their own
        more = odd if self.lanes == 1 else self.lanes
        self.tiles["turned"] = Tile("turned", size, self.dtype, "shared", row_padding=more)
        rows, columns = self.i.size, self.j.size
        least = ceil_div(self.lying.register_count, UNDER_WAY)
        counts = range(least, 2 * least + 1)
        parts = next((count for count in counts if rows % count == 0), 1)
        turn = Axis("turn", parts)
        row = Axis("r", rows // parts)
        first = axis_index(turn) * row.size
        here = first + axis_index(row)
        body = rewrite(self.step.body, {self.i: here})
        layout = replace(self.lying, shape=(row.size, columns))
        place = here, axis_index(self.j)
        own = Assign("turned", (row, self.j), body, place, layout)
        return For(turn, (own,))

    # -- elimination ------------------------------------------------------------------------------

    def pivot(self) -> None:
        """Eliminate by Gauss: the largest element of what is left of a column goes first.

        Of equal ones the first if rows had been swapped, as LAPACK does. A column of zeros has
        nothing to eliminate.
        """
        self.register("best", self.dtype, ALONE)
        self.register("key", int32, ALONE)
        self.register("failure", int32, ALONE)
        self.shared("swap", int32, self.step.count)
        k = Axis("k", self.step.count)
        start = as_term(0, int32)
        is_column = same_place(self.j, k)
        show = self.share("column", constant(0), self.i, is_column)
        is_below = position(k) < self.place
        row = self.of("row", constant(0), self.j)
        taken = self.take_out(k, row, self.multiple)
        left = is_below.where(taken, self.own)
        body = (
            show,
            Barrier(),
            *self.find_pivot(k, self.of("column", constant(0), self.i)),
            *self.use_pivot(k),
            Barrier(),
            self.set_each("a", left),
        )
        self.steps.append(self.set_alone("failure", start))
        self.steps.append(For(k, body))
        place = self.place.index(self.i.size)
        self.bring_back(place, self.own)

    def bring_back(self, row: Index, value: Term) -> None:
        """Let the matrix lie as in memory: each row where it would be if rows had been swapped."""
        both = self.i, self.j
        place = row, axis_index(self.j)
        turn = Assign("turned", both, value.expr, place, self.whole)
        self.steps.append(turn)
        self.steps.append(Barrier())

    def find_pivot(self, k: Axis, column: Term) -> list[Step]:
        """Find the largest element of a column: where its row would be, and is, in one number."""
        place = self.place
        height = column.of("abs")
        is_left = position(k) <= place
        is_best = ~(height < self.of("best"))  # NaN is, too
        size = self.i.size
        ranked = place * size + self.row
        highest = is_left.where(height, -1.0)
        is_first = is_left & is_best
        first = is_first.where(ranked, size * size - 1)
        best = self.over_rows("best", "max", highest)
        return [best, self.over_rows("key", "min", first)]

    def use_pivot(self, k: Axis) -> list[Step]:
        """Show the row of the pivot, say where it goes, and divide by the pivot."""
        size = self.i.size
        chosen = self.of("key") % size
        swap = self.of("key") // size
        row = chosen.index(size)
        own = self.row
        place = self.place
        value = self.of("column", constant(0), self.i)
        head = self.of("column", constant(0), row)
        is_nothing = head.is_at(0.0)
        moved = place.is_at(position(k)).where(swap, place)
        failure = self.of("failure")
        is_first = is_nothing & failure.is_at(0)
        number = position(k) + 1
        is_row = same_place(self.i, row)
        factor = is_nothing.where(value, value / head)
        place = own.is_at(chosen).where(position(k), moved)
        return [
            self.share("row", constant(0), self.j, is_row),
            self.set_rows("factor", factor),
            self.set_rows("place", place),
            self.set_alone("failure", is_first.where(number, failure)),
            self.set_alone("swap", swap + 1, k),
        ]

    def take_out(self, k: Axis, row: Term, here: Term) -> Term:
        """Take a multiple of a row out of what lies behind a column, which becomes `here`."""
        own = self.own
        column = self.column
        rest = own - self.multiple * row
        is_here = column.is_at(position(k))
        kept = is_here.where(here, own)
        is_behind = position(k) < column
        return is_behind.where(rest, kept)

    def factor(self) -> None:
        """Factor L L^T: a column divided by its pivot, times the column, leaves each step.

        Columns are divided by the roots of their pivots at last.
        """
        self.shared("pivot", self.dtype, self.step.count)
        k = Axis("k", self.step.count)
        at = axis_index(k) % 2
        head = self.of("column", at, k)
        none = as_term(math.nan, self.dtype)
        nothing = as_term(0.0, self.dtype)
        is_good = nothing < head
        pivot = is_good.where(head, none)
        factor = self.of("column", at, self.i) / pivot
        row = self.of("column", at, self.j)
        body = (
            self.share("column", at, self.i, same_place(self.j, k)),
            Barrier(),
            self.set_rows("factor", factor),
            self.set_alone("pivot", pivot, k),
            self.set_each("a", self.take_out(k, row, self.own)),
        )
        self.steps.append(For(k, body))
        self.steps.append(Barrier())
        root = self.of("pivot", self.j).of("sqrt")
        is_lower = self.column <= self.row
        factor = is_lower.where(self.own / root, 0.0)
        self.bring_back(axis_index(self.i), factor)

    def substitute(self, is_upper: bool, is_unit: bool) -> None:
        """Solve a triangle: each step takes an unknown out of the rows that are left.

        The triangle is read where it lies, in shared memory; threads have what is right of it.
        """
        i, count = self.i, self.step.count
        column = Axis("c", self.j.size - count)
        size = i.size, column.size
        right = Blocked(size, self.whole.threads, (1, 1), True)
        self.register("x", self.dtype, right)
        both = i, column
        behind = axis_index(column) + count
        start = self.of("turned", i, behind)
        self.steps.append(Assign("x", both, start.expr))
        step = Axis("t", count)
        k = axis_index(step)
        if is_upper:
            k = constant(count - 1) - k
        at = axis_index(step) % 2
        own = self.of("x", i, column)
        is_row = same_place(i, k)
        where = at, axis_index(column)
        show = Assign("row", both, own.expr, where, right, (is_row,))
        factor = self.of("turned", i, k)
        if not is_unit:
            factor = factor / self.of("turned", k, k)
        number = position(k)
        is_left = self.row < number if is_upper else number < self.row
        rest = own - self.multiple * self.of("row", at, column)
        left = is_left.where(rest, own)
        left_over = Assign("x", both, left.expr)
        body = (show, Barrier(), self.set_rows("factor", factor), left_over)
        self.steps.append(For(step, body))
        if not is_unit:
            own = own / self.of("turned", i, i)
        place = axis_index(i), behind
        self.steps.append(Assign("turned", both, own.expr, place, right))

    # -- results ----------------------------------------------------------------------------------

    def leave(self, kernel: Kernel) -> TileKernel:
        """Store what is left, row by row, and what stands behind it: all that the kernel does."""
        j = self.j
        count = self.step.count
        start = count if self.step.kind == "below" else 0
        i = Axis("r", self.i.size - start)
        is_whole = self.step.kind in WHOLE
        first = 0 if is_whole else count
        self.steps.append(Barrier())
        column = Axis("c", j.size - first)
        row = axis_index(i) + start
        behind = axis_index(column) + first
        value = self.of("turned", row, behind)
        here = axis_index(i) * column.size + axis_index(column)
        layout = self.across(i.size, column.size)
        self.store(here, (i, column), value, layout if self.lanes > 1 else None)
        behind = constant(i.size * column.size)
        if self.step.kind == "solve":
            told = self.of("failure").cast(self.dtype)
            self.store(behind, (), told, ALONE)
        k = Axis("k", count)
        place = behind + axis_index(k)
        if self.step.kind == "reflect":
            diagonal = self.of("diagonal", k)
            self.store(place, (k,), diagonal, None)
        if self.step.kind in ("lu", "panel"):
            swap = self.of("swap", k).cast(self.dtype)
            self.store(place, (k,), swap, None)
        if self.step.kind == "panel":
            own = self.place.index(i.size)
            place = behind + count + own
            number = self.row.cast(self.dtype)
            self.store(place, (self.i,), number, self.rows)
        return self.made(kernel, self.threads)


def same_place(axis: Axis, other: Index | Axis) -> Condition:
    """Tell where an axis is at a place."""
    apart = axis_index(axis) - as_place(other)
    return apart, 0, 0


def power_of_two(count: int) -> int:
    """Round up to a power of two."""
    return 1 << (count - 1).bit_length()


def threads_of(step: Elimination, target: Target) -> int:
    """Choose the threads of a matrix: a warp at least, and not more than have work."""
    blocks = product(axis.size for axis in step.rows)
    is_busy = blocks >= MANY_BLOCKS * target.multiprocessors
    elements = step.axis.size * step.column.size
    each = MANY if is_busy else FEW
    threads = power_of_two(ceil_div(elements, each))
    return min(max(threads, WARP), MOST_THREADS)

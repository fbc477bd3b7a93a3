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

from picograd.codegen.layout import Blocked
from picograd.codegen.templates.grid import merge_part, rebind
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
from picograd.dtype import DType, bool_, int32
from picograd.errors import internal
from picograd.graph.elimination import SUBSTITUTIONS
from picograd.helpers import ceil_div, product
from picograd.schedule.index import (
    Axis,
    Dynamic,
    Index,
    atom_index,
    axis_index,
    constant,
    substitute,
)
from picograd.schedule.loop import Condition, Elimination, Expr, Kernel, const
from picograd.target import Target

WARP, MOST_THREADS = 32, 512
FEW, MANY = 8, 32  # elements of a thread: few where blocks are, so that a block takes less long
MANY_BLOCKS = 8  # on each multiprocessor
ALONE = Blocked((), (), ())  # what all threads know


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write the elimination of columns for a GPU."""
    step = merge_part(kernel.parts[0]).along
    if not isinstance(step, Elimination) or not target.has_blocks:
        internal("an elimination kernel needs an elimination, and blocks", kernel)
    matrix = Matrix(step, target)
    matrix.read()
    if step.kind == "cholesky":
        matrix.factor()
    elif step.kind in SUBSTITUTIONS:
        matrix.substitute(*SUBSTITUTIONS[step.kind])
    else:
        matrix.pivot()
    if step.kind == "solve":
        matrix.substitute(True, False)
    matrix.leave()
    made = TilePart(step.rows, tuple(matrix.tiles.values()), tuple(matrix.steps))
    return TileKernel(kernel, (made,), matrix.threads)


def op(name: str, *args: Expr) -> Expr:
    """Write an operation on numbers of one dtype."""
    return Expr(name, args, None, args[-1].dtype)


def test(name: str, *args: Expr) -> Expr:
    """Write a comparison, or what joins two."""
    return Expr(name, args, None, bool_)


def number(index: Index | Axis | int) -> Expr:
    """Write a position as a value."""
    if isinstance(index, int):
        return const(index, int32)
    place = axis_index(index) if isinstance(index, Axis) else index
    return Expr("index", (), place, int32)


class Matrix:
    """This class collects the tiles and steps of the elimination of one matrix.

    Tiles: `a` the matrix, `place` where each row would be, `factor` what of the pivot's row is taken
    out of each row, all in registers; shared `column` and `row`, each twice, `pivot` and `chosen`,
    the row of each step; `turned`, in which the matrix lies as in memory, on its way in and out.
    """

    def __init__(self, step: Elimination, target: Target) -> None:
        self.step, self.dtype = step, step.body.dtype
        self.i, self.j = step.axis, step.column
        self.threads = threads_of(step, target)
        down = min(WARP, power_of_two(self.i.size))
        both = (self.i.size, self.j.size)
        self.whole = Blocked(both, (down, self.threads // down), (1, 1), True)
        self.rows = Blocked(both[:1], (down,), (1,), True)
        across = min(self.threads, power_of_two(self.j.size))
        self.lying = Blocked(both, (self.threads // across, across), (1, 1))
        self.tiles: dict[str, Tile] = {}
        self.steps: list[Step] = []

    # -- tiles ------------------------------------------------------------------------------------

    def register(self, name: str, dtype: DType, layout: Blocked) -> None:
        """Make a tile in registers."""
        self.tiles[name] = Tile(name, layout.shape, dtype, "register", layout)

    def shared(self, name: str, dtype: DType, *shape: int) -> None:
        """Make a shared tile."""
        self.tiles[name] = Tile(name, shape, dtype, "shared")

    def of(self, name: str, *index: Index | Axis) -> Expr:
        """Read a tile."""
        places = (axis_index(each) if isinstance(each, Axis) else each for each in index)
        return Expr("tile", (), (name, tuple(places)), self.tiles[name].dtype)

    def position(self, name: str, *index: Index | Axis) -> Index:
        """Read a row's number from a tile, as an index."""
        return atom_index(Dynamic(self.of(name, *index), 0, self.i.size - 1))

    def share(self, name: str, at: Index, along: Axis, *conditions: Condition) -> Assign:
        """Let those who have a row or column of the matrix show it."""
        where = at, axis_index(along)
        own = self.of("a", self.i, self.j)
        return Assign(name, (self.i, self.j), own, where, self.whole, conditions)

    def read(self) -> None:
        """Read the matrix, and make what steps share."""
        self.register("a", self.dtype, self.whole)
        self.register("place", int32, self.rows)
        self.register("factor", self.dtype, self.rows)
        self.shared("column", self.dtype, 2, self.i.size)
        self.shared("row", self.dtype, 2, self.j.size)
        self.shared("pivot", self.dtype, self.step.count)
        self.shared("chosen", int32, self.step.count)
        both, size = (self.i, self.j), (self.i.size, self.j.size)
        odd = (size[1] + 1) % 2  # neighbours of a column are in banks of their own
        self.tiles["turned"] = Tile("turned", size, self.dtype, "shared", row_padding=odd)
        here = tuple(map(axis_index, both))
        self.steps += [
            Assign("turned", both, self.step.body, here, self.lying),
            Assign("place", (self.i,), number(self.i)),
            Barrier(),
            Assign("a", both, self.of("turned", *both)),
        ]

    # -- elimination ------------------------------------------------------------------------------

    def pivot(self) -> None:
        """Eliminate by Gauss: the largest element of what is left of a column goes first.

        Of equal ones the first if rows had been swapped, as LAPACK does. A column of zeros has
        nothing to eliminate.
        """
        k = Axis("k", self.step.count)
        i, j, size = self.i, self.j, self.i.size
        for name, dtype in (("best", self.dtype), ("key", int32), ("failure", int32)):
            self.register(name, dtype, ALONE)
        self.shared("swap", int32, k.size)
        zero = constant(0)
        place = self.of("place", i)
        value = self.of("column", zero, i)
        height = op("abs", value)
        is_left = test("less_equal", number(k), place)
        best, key = self.of("best"), self.of("key")
        is_best = test("logical_not", test("less", height, best))
        ranked = op("add", op("mul", place, number(size)), number(i))
        none = const(size * size - 1, int32)
        first = op("where", test("logical_and", is_left, is_best), ranked, none)
        chosen = atom_index(Dynamic(op("mod", key, number(size)), 0, size - 1))
        swap = op("floordiv", key, number(size))
        head = self.of("column", zero, chosen)
        is_nothing = test("equal", head, const(0.0, self.dtype))
        factor = op("where", is_nothing, value, op("div", value, head))
        is_row = test("equal", number(i), number(chosen))
        moved = op("where", test("equal", place, number(k)), swap, place)
        failure = self.of("failure")
        is_first = test("logical_and", is_nothing, test("equal", failure, number(0)))
        least = const(-1.0, self.dtype)
        body: list[Step] = [
            self.share("column", zero, i, same_place(j, k)),
            Barrier(),
            Accumulate("best", (), (i,), "max", op("where", is_left, height, least), True, self.rows),
            Accumulate("key", (), (i,), "min", first, True, self.rows),
            self.share("row", zero, j, (axis_index(i) - chosen, 0, 0)),
            Assign("factor", (i,), factor),
            Assign("place", (i,), op("where", is_row, number(k), moved)),
            Assign("failure", (), op("where", is_first, number(axis_index(k) + 1), failure)),
            Assign("pivot", (), head, (axis_index(k),), ALONE),
            Assign("chosen", (), number(chosen), (axis_index(k),), ALONE),
            Assign("swap", (), op("add", swap, number(1)), (axis_index(k),), ALONE),
            Barrier(),
            self.take_out(k, test("less", number(k), place), zero),
        ]
        self.steps += [Assign("failure", (), number(0)), For(k, tuple(body)), Barrier()]

    def take_out(self, k: Axis, is_below: Expr, at: Index) -> Assign:
        """Take a multiple of the pivot's row out of those below, and keep the multiple there."""
        own, factor = self.of("a", self.i, self.j), self.of("factor", self.i)
        rest = op("sub", own, op("mul", factor, self.of("row", at, self.j)))
        is_here = test("equal", number(self.j), number(k))
        is_after = test("less", number(k), number(self.j))
        kept = op("where", is_after, rest, op("where", is_here, factor, own))
        return Assign("a", (self.i, self.j), op("where", is_below, kept, own))

    def factor(self) -> None:
        """Factor L L^T: a column divided by its pivot, times the column, leaves each step."""
        k = Axis("k", self.step.count)
        i, j, at = self.i, self.j, axis_index(k) % 2
        self.register("whole", self.dtype, self.rows)
        value, head = self.of("column", at, i), self.of("column", at, k)
        is_good = test("less", const(0.0, self.dtype), head)
        pivot = op("where", is_good, head, const(float("nan"), self.dtype))
        own, scaled = self.of("a", i, j), self.of("factor", i)
        rest = op("sub", own, op("mul", scaled, self.of("column", at, j)))
        is_here = test("equal", number(j), number(k))
        is_after = test("less", number(k), number(j))
        kept = op("where", is_here, self.of("whole", i), own)
        body: list[Step] = [
            self.share("column", at, i, same_place(j, k)),
            Barrier(),
            Assign("factor", (i,), op("div", value, pivot)),
            Assign("whole", (i,), op("div", value, op("sqrt", pivot))),
            Assign("a", (i, j), op("where", is_after, rest, kept)),
        ]
        self.steps.append(For(k, tuple(body)))

    def substitute(self, is_upper: bool, is_unit: bool) -> None:
        """Solve a triangle: each step takes an unknown out of the rows that are left."""
        step = Axis("t", self.step.count)
        i, j, at, last = self.i, self.j, axis_index(step) % 2, self.step.count - 1
        k = constant(last) - axis_index(step) if is_upper else axis_index(step)
        if self.step.kind != "solve":
            is_own = (axis_index(i) - axis_index(j), 0, 0)
            self.steps += [
                Assign("pivot", (i, j), self.of("a", i, j), (axis_index(i),), self.whole, (is_own,)),
                Assign("chosen", (i,), number(i), (axis_index(i),), self.rows),
                Barrier(),
            ]
        chosen, place = self.position("chosen", k), self.of("place", i)
        factor = self.of("column", at, i)
        if not is_unit:
            factor = op("div", factor, self.of("pivot", k))
        is_left = test("less", *((place, number(k)) if is_upper else (number(k), place)))
        is_right = test("less", number(last), number(j))
        own = self.of("a", i, j)
        rest = op("sub", own, op("mul", self.of("factor", i), self.of("row", at, j)))
        wanted = test("logical_and", is_left, is_right)
        right = (axis_index(j), self.step.count, self.j.size - 1)
        body: list[Step] = [
            self.share("column", at, i, (axis_index(j) - k, 0, 0)),
            self.share("row", at, j, (axis_index(i) - chosen, 0, 0), right),
            Barrier(),
            Assign("factor", (i,), factor),
            Assign("a", (i, j), op("where", wanted, rest, own)),
        ]
        self.steps.append(For(step, tuple(body)))
        if not is_unit:
            own = op("div", own, self.of("pivot", self.position("place", i)))
        self.result = own

    # -- results ----------------------------------------------------------------------------------

    def leave(self) -> None:
        """Store what is left, row by row, and what stands behind it."""
        i, j, count = self.i, self.j, self.step.count
        own, row = self.of("a", i, j), self.position("place", i)
        first = 0 if self.step.kind in ("lu", "cholesky") else count
        if self.step.kind == "cholesky":
            is_lower = test("less_equal", number(j), number(i))
            own = op("where", is_lower, own, const(0.0, self.dtype))
        elif first:
            own = self.result
        place = row, axis_index(j)
        self.steps += [Assign("turned", (i, j), own, place, self.whole), Barrier()]
        column = Axis("c", self.j.size - first)
        value = self.of("turned", i, axis_index(column) + first)
        self.store(axis_index(i) * column.size + axis_index(column), (i, column), value, None)
        behind = constant(i.size * column.size)
        if self.step.kind == "solve":
            told = Expr("cast", (self.of("failure"),), None, self.dtype)
            self.store(behind, (), told, ALONE)
        if self.step.kind == "lu":
            k = Axis("k", count)
            swap = Expr("cast", (self.of("swap", k),), None, self.dtype)
            self.store(behind + axis_index(k), (k,), swap, None)

    def store(
        self, place: Index, dims: tuple[Axis, ...], value: Expr, layout: Blocked | None
    ) -> None:
        """Store at a place of the result."""
        target = substitute(self.step.target, {self.step.place: place})
        self.steps.append(Store(self.step.slot, target, dims, value, (), layout))


def same_place(a: Axis, b: Axis) -> Condition:
    """Tell where two axes are at the same place."""
    return axis_index(a) - axis_index(b), 0, 0


def power_of_two(count: int) -> int:
    """Round up to a power of two."""
    return 1 << (count - 1).bit_length()


def threads_of(step: Elimination, target: Target) -> int:
    """Choose the threads of a matrix: a warp at least, and not more than have work."""
    blocks = product(axis.size for axis in step.rows)
    is_busy = blocks >= MANY_BLOCKS * target.multiprocessors
    elements = step.axis.size * step.column.size
    threads = power_of_two(ceil_div(elements, MANY if is_busy else FEW))
    return min(max(threads, WARP), MOST_THREADS)

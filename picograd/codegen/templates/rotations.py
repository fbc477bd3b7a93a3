"""Rotations template: eigenvalues and eigenvectors of small symmetric matrices, by Jacobi.

grid: matrices    steps: read the lower triangle; in each round, for pairs of rows and columns that
have none in common, find the rotation that makes their element 0; turn rows, columns and vectors;
at last bring what is on the diagonal in ascending order

A matrix of n rows, one of zeros more if n is odd, has n - 1 rounds in which every two meet: all but
the last player sit in a circle, and those whose numbers add up to 2 * round meet. What is turned
lies in one of two places in turn. A rotation is found by both that meet, each from its own side:

    t = sign(d) |2 a| / (|d| + sqrt(d^2 + 4 a^2))      d = a_jj - a_ii, a = a_ij; sin = t cos
    row i becomes cos * row i - sin * row j            (Golub and Van Loan, 8.5)
"""

import numpy as np

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
from picograd.schedule.index import Axis, Index, axis_index, constant, substitute
from picograd.schedule.loop import Condition, Elimination, Expr, Kernel, rewrite
from picograd.target import Target

ELEMENTS = 4  # of a thread, of the matrix and of its vectors
LEAST_THREADS, MOST_THREADS = 32, 512
# Sweeps of matrices of 8 rows, and how many more of those twice as large, by the bytes of an
# element: those after which graded matrices (1 to 1e-12) and random ones are diagonal.
SWEEPS = {4: (6, 2), 8: (7, 3)}


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write the eigenvalues and eigenvectors of small matrices for a GPU."""
    step = merge_part(kernel.parts[0]).along
    if not isinstance(step, Elimination) or not target.has_blocks:
        internal("rotations need a step over matrices, and blocks", kernel)
    turning = Turning(step)
    turning.read()
    turning.turn()
    turning.leave()
    made = TilePart(step.rows, turning.tiles, tuple(turning.steps))
    return TileKernel(kernel, (made,), turning.threads)


class Turning:
    """This class collects the steps of one matrix.

    Tiles: `a` the matrix and `v` the vectors, each twice; `cos` and `sin` for each row, and `rank`.
    """

    def __init__(self, step: Elimination) -> None:
        self.step: Elimination = step
        self.dtype: DType = step.body.dtype
        self.count: int = step.axis.size
        self.size: int = self.count + self.count % 2
        self.i: Axis = Axis("i", self.size)
        self.j: Axis = Axis("j", self.size)
        self.steps: list[Step] = []
        self.threads: int = LEAST_THREADS
        elements = self.size * self.size
        while self.threads < MOST_THREADS and self.threads * ELEMENTS < elements:
            self.threads *= 2
        both = 2, self.size, self.size
        self.tiles: tuple[Tile, ...] = (
            Tile("a", both, self.dtype, "shared", row_padding=1),
            Tile("v", both, self.dtype, "shared", row_padding=1),
            Tile("cos", both[1:2], self.dtype, "shared"),
            Tile("sin", both[1:2], self.dtype, "shared"),
            Tile("rank", both[1:2], int32, "shared"),
        )
        self.at: Index = constant(0)  # where the matrix lies at last
        self.one: Term = as_term(1.0, self.dtype)
        self.zero: Term = as_term(0.0, self.dtype)
        self.row: Term = position(self.i)
        self.column: Term = position(self.j)

    def of(self, name: str, *index: Index | Axis) -> Term:
        """Read a tile."""
        dtype = int32 if name == "rank" else self.dtype
        places = tuple(map(as_place, index))
        return tile_at(name, places, dtype)

    def put(
        self,
        name: str,
        value: Term,
        dims: tuple[Axis, ...],
        index: tuple[Index | Axis, ...],
        *conditions: Condition,
    ) -> None:
        """Write a tile."""
        where = tuple(map(as_place, index))
        made = Assign(name, dims, value.expr, where, None, conditions)
        self.steps.append(made)

    def read(self) -> None:
        """Read the lower triangle, mirror it, and begin with vectors along the axes."""
        i, j = self.i, self.j
        first = constant(0)
        last = self.count - 1
        row = axis_index(i)
        column = axis_index(j)
        at = {self.step.axis: row, self.step.column: column}
        is_lower = row - column, 0, last
        is_row = row, 0, last
        body = rewrite(self.step.body, at)
        value = self.inside(body, is_lower, is_row)
        both = i, j
        self.put("a", value, both, (first, i, j), is_lower, is_row)
        self.put("a", value, both, (first, j, i), is_lower, is_row)
        if self.size > self.count:
            edge = constant(last + 1)
            is_above = column, 0, last
            self.put("a", self.zero, (i,), (first, i, edge))
            self.put("a", self.zero, (j,), (first, edge, j), is_above)
        is_own = self.row.is_at(self.column)
        vector = is_own.where(self.one, self.zero)
        self.put("v", vector, both, (first, i, j))
        self.steps.append(Barrier())

    def inside(self, body: Expr, *conditions: Condition) -> Term:
        """Read an element where there is one."""
        args = body, self.zero.expr
        made = Expr("guard", args, conditions, self.dtype)
        return Term(made)

    # -- rounds -----------------------------------------------------------------------------------

    def partner(self, own: Axis, number: Axis) -> Index:
        """Find whom a row or column meets in a round."""
        last = self.size - 1
        here = position(own)
        turn = position(number)
        twice = axis_index(number) * 2
        opposite = (twice - axis_index(own) + last) % last
        is_last = here.is_at(last)
        is_alone = here.is_at(turn)
        found = is_alone.where(as_term(last, int32), position(opposite))
        found = is_last.where(turn, found)
        return found.index(self.size)

    def turn(self) -> None:
        """Turn all pairs, round after round, sweep after sweep."""
        begun = self.steps
        self.steps = []
        number = Axis("round", self.size - 1)
        sweep = Axis("sweep", sweeps_of(self.size, self.dtype))
        turn = axis_index(sweep) + axis_index(number)
        at = turn % 2  # there is an odd number of rounds
        other = constant(1) - at
        self.find(number, at)
        self.steps.append(Barrier())
        self.apply(number, at, other)
        self.steps.append(Barrier())
        rounds = For(number, tuple(self.steps))
        sweeps = For(sweep, (rounds,))
        self.steps = [*begun, sweeps]
        count = sweep.size * number.size
        self.at = constant(count % 2)

    def find(self, number: Axis, at: Index) -> None:
        """Find the rotation of each row."""
        i = self.i
        mate = self.partner(i, number)
        other = position(mate)
        is_first = self.row < other
        low = is_first.where(self.row, other)
        high = is_first.where(other, self.row)
        lower = high.index(self.size), low.index(self.size)
        twice = self.of("a", at, *lower) * 2.0
        own = self.of("a", at, i, i)
        theirs = self.of("a", at, mate, mate)
        slope = self.slope(twice, theirs - own, is_first)
        size = own.of("abs") + theirs.of("abs")
        is_nothing = twice.of("abs") <= size * least(self.dtype)
        slope = is_nothing.where(self.zero, slope)
        cos = self.one / root_of_one_and(slope)
        self.put("cos", cos, (i,), (i,))
        self.put("sin", slope * cos, (i,), (i,))

    def slope(self, twice: Term, apart: Term, is_first: Term) -> Term:
        """Find the tangent of a rotation: the smaller one, of which both sides choose the same."""
        is_even = apart.is_at(0.0)
        is_above = self.zero < apart
        side = is_first.where(self.one, -1.0)
        sign = is_above.where(self.one, -1.0)
        sign = is_even.where(side, sign)
        ratio = apart / twice
        height = ratio.of("abs")
        slope = self.one / (height + root_of_one_and(ratio))
        is_down = twice < self.zero
        slope = is_down.where(slope * -1.0, slope)
        return slope * sign

    def apply(self, number: Axis, at: Index, other: Index) -> None:
        """Turn rows and columns of the matrix, and the vectors."""
        i, j = self.i, self.j
        above = self.partner(i, number)
        beside = self.partner(j, number)
        own = self.turned("a", at, i, beside)
        theirs = self.turned("a", at, above, beside)
        kept = own * self.of("cos", i)
        value = kept - theirs * self.of("sin", i)
        vector = self.turned("v", at, i, beside)
        both = i, j
        self.put("a", value, both, (other, i, j))
        self.put("v", vector, both, (other, i, j))

    def turned(self, name: str, at: Index, row: Index | Axis, beside: Index) -> Term:
        """Turn the elements of a row."""
        own = self.of(name, at, row, self.j)
        theirs = self.of(name, at, row, beside)
        kept = own * self.of("cos", self.j)
        return kept - theirs * self.of("sin", self.j)

    # -- results ----------------------------------------------------------------------------------

    def leave(self) -> None:
        """Rank the eigenvalues, and store them and their vectors in order."""
        count = self.count
        at = self.at
        i = Axis("m", count)
        other = Axis("n", count)
        own = self.of("a", at, i, i)
        value = self.of("a", at, other, other)
        here = position(i)
        is_earlier = position(other) < here
        is_same = ~(own < value) & is_earlier  # or NaN
        is_less = value < own
        is_before = is_less.holds("logical_or", is_same)
        one = as_term(1, int32)
        self.rank(i, other, is_before.where(one, 0))
        rank = self.of("rank", i).index(count)
        self.store(rank, (i,), own)
        row = Axis("k", count)
        vector = self.of("v", at, row, i)
        first = axis_index(row) * count + count
        self.store(first + rank, (row, i), vector)

    def rank(self, i: Axis, other: Axis, before: Term) -> None:
        """Count what comes before each."""
        threads = self.threads // 4, 4
        size = i.size, other.size
        layout = Blocked(size, threads, (1, 1))
        rows = Blocked(size[:1], threads[:1], (1,))
        counted = Tile("count", (i.size,), int32, "register", rows)
        self.tiles = (*self.tiles, counted)
        found = tile_at("count", (axis_index(i),), int32)
        where = (axis_index(i),)
        over = (other,)
        dims = (i,)
        count = Accumulate("count", dims, over, "sum", before.expr, True, layout)
        self.steps.append(count)
        self.steps.append(Assign("rank", dims, found.expr, where, rows))
        self.steps.append(Barrier())

    def store(self, place: Index, dims: tuple[Axis, ...], value: Term) -> None:
        """Store at a place of the result."""
        target = substitute(self.step.target, {self.step.place: place})
        made = Store(self.step.slot, target, dims, value.expr)
        self.steps.append(made)


def sweeps_of(size: int, dtype: DType) -> int:
    """Count the sweeps that a matrix takes: some more where it is twice as large."""
    first, more = SWEEPS[dtype.itemsize]
    doublings = max((size - 1) // 8, 0).bit_length()
    return first + more * doublings


def root_of_one_and(value: Term) -> Term:
    """Compute sqrt(1 + x^2)."""
    square = value * value
    return (square + 1.0).of("sqrt")


def least(dtype: DType) -> float:
    """Find what share of the diagonal an element may be, and count as 0."""
    eps = np.finfo(dtype.numpy).eps
    return float(eps) / 4

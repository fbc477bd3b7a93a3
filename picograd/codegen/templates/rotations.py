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
        threads = LEAST_THREADS
        while threads < MOST_THREADS and threads * ELEMENTS < self.size**2:
            threads *= 2
        self.threads: int = threads
        both = 2, self.size, self.size
        self.tiles: tuple[Tile, ...] = (
            Tile("a", both, self.dtype, "shared", row_padding=1),
            Tile("v", both, self.dtype, "shared", row_padding=1),
            Tile("cos", both[1:2], self.dtype, "shared"),
            Tile("sin", both[1:2], self.dtype, "shared"),
            Tile("rank", both[1:2], int32, "shared"),
        )
        self.at = constant(0)

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
        zero = constant(0)
        last = self.count - 1
        at = {self.step.axis: axis_index(i), self.step.column: axis_index(j)}
        is_lower = (axis_index(i) - axis_index(j), 0, last)
        is_row = (axis_index(i), 0, last)
        value = self.inside(rewrite(self.step.body, at), is_lower, is_row)
        self.put("a", value, (i, j), (zero, i, j), is_lower, is_row)
        self.put("a", value, (i, j), (zero, j, i), is_lower, is_row)
        nothing = as_term(0.0, self.dtype)
        if self.size > self.count:
            edge = constant(last + 1)
            self.put("a", nothing, (i,), (zero, i, edge))
            self.put("a", nothing, (j,), (zero, edge, j), (axis_index(j), 0, last))
        is_own = position(i).is_at(position(j))
        one = as_term(1.0, self.dtype)
        self.put("v", is_own.where(one, 0.0), (i, j), (zero, i, j))
        self.steps.append(Barrier())

    def inside(self, body: Expr, *conditions: Condition) -> Term:
        """Read an element where there is one."""
        fill = as_term(0.0, self.dtype).expr
        return Term(Expr("guard", (body, fill), conditions, self.dtype))

    # -- rounds -----------------------------------------------------------------------------------

    def partner(self, own: Axis, number: Axis) -> Index:
        """Find whom a row or column meets in a round."""
        last = self.size - 1
        place = axis_index(own)
        opposite = (axis_index(number) * 2 - place + last) % last
        is_last = position(own).is_at(last)
        is_alone = position(own).is_at(position(number))
        found = is_alone.where(as_term(last, int32), position(opposite))
        found = is_last.where(position(number), found)
        return found.index(self.size)

    def turn(self) -> None:
        """Turn all pairs, round after round, sweep after sweep."""
        begun = self.steps
        self.steps = []
        number = Axis("round", self.size - 1)
        sweep = Axis("sweep", sweeps_of(self.size, self.dtype))
        at = (axis_index(sweep) + axis_index(number)) % 2  # there is an odd number of rounds
        other = constant(1) - at
        self.find(number, at)
        self.steps.append(Barrier())
        self.apply(number, at, other)
        self.steps.append(Barrier())
        rounds = For(number, tuple(self.steps))
        self.steps = [*begun, For(sweep, (rounds,))]
        self.at = constant((sweep.size * number.size) % 2)

    def find(self, number: Axis, at: Index) -> None:
        """Find the rotation of each row."""
        i = self.i
        mate = self.partner(i, number)
        is_first = position(i) < position(mate)
        low = is_first.where(position(i), position(mate)).index(self.size)
        high = is_first.where(position(mate), position(i)).index(self.size)
        twice = self.of("a", at, high, low) * 2.0
        apart = self.of("a", at, mate, mate) - self.of("a", at, i, i)
        is_even = apart.is_at(0.0)
        one = as_term(1.0, self.dtype)
        ahead = as_term(0.0, self.dtype) < apart
        sign = ahead.where(one, -1.0)
        own = is_first.where(one, -1.0)
        sign = is_even.where(own, sign)
        ratio = apart / twice  # twice / apart would be large where it has to be exact
        height = ratio.of("abs")
        slope = one / (height + (ratio * ratio + 1.0).of("sqrt"))
        down = twice < as_term(0.0, self.dtype)
        slope = down.where(slope * -1.0, slope) * sign
        size = self.of("a", at, mate, mate).of("abs") + self.of("a", at, i, i).of("abs")
        is_nothing = twice.of("abs") <= size * least(self.dtype)
        slope = is_nothing.where(as_term(0.0, self.dtype), slope)
        cos = one / (slope * slope + 1.0).of("sqrt")
        self.put("cos", cos, (i,), (i,))
        self.put("sin", slope * cos, (i,), (i,))

    def apply(self, number: Axis, at: Index, other: Index) -> None:
        """Turn rows and columns of the matrix, and the vectors."""
        i, j = self.i, self.j
        above, beside = self.partner(i, number), self.partner(j, number)
        cos, sin = self.of("cos", j), self.of("sin", j)
        own = self.of("a", at, i, j) * cos - self.of("a", at, i, beside) * sin
        next_to = self.of("a", at, above, j) * cos - self.of("a", at, above, beside) * sin
        value = own * self.of("cos", i) - next_to * self.of("sin", i)
        is_met = position(j).is_at(position(above))
        value = is_met.where(as_term(0.0, self.dtype), value)
        vector = self.of("v", at, i, j) * cos - self.of("v", at, i, beside) * sin
        self.put("a", value, (i, j), (other, i, j))
        self.put("v", vector, (i, j), (other, i, j))

    # -- results ----------------------------------------------------------------------------------

    def leave(self) -> None:
        """Rank the eigenvalues, and store them and their vectors in order."""
        count, at = self.count, self.at
        i = Axis("m", count)
        other = Axis("n", count)
        own = self.of("a", at, i, i)
        value = self.of("a", at, other, other)
        is_same = ~(own < value) & (position(other) < position(i))
        is_before = (value < own).holds("logical_or", is_same)
        one = as_term(1, int32)
        before = is_before.where(one, 0)
        self.rank(i, other, before)
        rank = self.of("rank", i).index(count)
        self.store(rank, (i,), own)
        row = Axis("k", count)
        vector = self.of("v", at, row, i)
        place = axis_index(row) * count + rank + count
        self.store(place, (row, i), vector)

    def rank(self, i: Axis, other: Axis, before: Term) -> None:
        """Count what comes before each."""
        threads = self.threads // 4, 4
        layout = Blocked((i.size, other.size), threads, (1, 1))
        rows = Blocked((i.size,), threads[:1], (1,))
        counted = Tile("count", (i.size,), int32, "register", rows)
        self.tiles = (*self.tiles, counted)
        found = tile_at("count", (axis_index(i),), int32)
        where = (axis_index(i),)
        self.steps += [
            Accumulate("count", (i,), (other,), "sum", before.expr, True, layout),
            Assign("rank", (i,), found.expr, where, rows),
            Barrier(),
        ]

    def store(self, place: Index, dims: tuple[Axis, ...], value: Term) -> None:
        """Store at a place of the result."""
        target = substitute(self.step.target, {self.step.place: place})
        self.steps.append(Store(self.step.slot, target, dims, value.expr))


def sweeps_of(size: int, dtype: DType) -> int:
    """Count the sweeps that a matrix takes: some more where it is twice as large."""
    first, more = SWEEPS[dtype.itemsize]
    doublings = max((size - 1) // 8, 0).bit_length()
    return first + more * doublings


def least(dtype: DType) -> float:
    """Find what share of the diagonal an element may be, and count as 0."""
    return float(np.finfo(dtype.numpy).eps) / 4

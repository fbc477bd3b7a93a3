"""Rotations template: columns of small matrices are turned until they are at right angles.

grid: matrices    steps: read the matrix, columns as rows of a shared tile, every other one into
registers; sweep after sweep, for neighbours, find the rotation that makes their product 0 and let
them change places; at last bring columns in the order of their lengths

Jacobi's method from one side (Hestenes). In each of as many rounds as there are columns, columns
(0, 1), (2, 3), ... or (1, 2), (3, 4), ... meet: those at odd places stay where they are, the others
come from shared memory and go there. Since they change places, every two meet once in a sweep,
which leaves all in reversed order (Luk and Park, 1989). Longer ones go first, in every other sweep
last: sorted columns need fewer sweeps. A matrix is done when a sweep has turned nothing.

    t = sign(d) |2 g| / (|d| + sqrt(d^2 + 4 g^2))    d = y.y - x.x, g = x.y
    x - sin * (y + r x), y + sin * (x - r y)         h = sqrt(1 + t^2), sin = t / h,
                                                     r = t / (1 + h)

which loses fewer digits than cos * x - sin * y does (Rutishauser, 1966).
"""

from dataclasses import replace

import numpy as np

from picograd.codegen.layout import Blocked
from picograd.codegen.templates.elimination import ALONE, WARP, Tiles, power_of_two
from picograd.codegen.templates.grid import merge_part
from picograd.codegen.terms import Term, as_term, position
from picograd.codegen.tile import Accumulate, Assign, Barrier, For, Step, Tile, TileKernel, When
from picograd.dtype import DType, int32
from picograd.errors import internal
from picograd.helpers import ceil_div
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Elimination, Kernel
from picograd.target import Target

MOST_THREADS = 512
# Threads of a pair, at least: what is found of it, each of them computes. Few matrices leave most
# of a GPU idle.
LANES = {"turn": 4, "sweep": 8}
MOST_BYTES = 256  # of a pair that a thread has, in registers
BANKS = 16  # half of them: columns of neighbouring pairs lie as many banks apart as have lanes
SWEEPS = {"turn": 30, "sweep": 1}  # at most: graded matrices of 64 rows in float64 take 18


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write the rotations of columns for a GPU."""
    step = merge_part(kernel.parts[0]).along
    if not isinstance(step, Elimination) or not target.has_blocks:
        internal("rotations need a step over matrices, and blocks", kernel)
    turning = Turning(step)
    turning.read()
    turning.sweep()
    turning.leave()
    return turning.made(kernel, turning.threads)


class Turning(Tiles):
    """This class writes the rotations of the columns of one matrix.

    Tiles: shared `x` the columns, `moves` what turned; in registers, for each pair, `guest` the
    column at an even place and `host` at an odd one, and what is known of them; `busy` whether
    there is anything left to turn.
    """

    def __init__(self, step: Elimination) -> None:
        super().__init__(step)
        self.count: int = step.column.size
        self.length: int = step.axis.size
        self.pair: Axis = Axis("p", ceil_div(self.count, 2))
        self.row: Axis = Axis("i", self.length)
        down = lanes_of(self.length, self.dtype, LANES[step.kind])
        pairs = min(MOST_THREADS // down, power_of_two(self.pair.size))
        pairs = max(pairs, WARP // down)
        self.threads: int = down * pairs
        eps = float(np.finfo(self.dtype.numpy).eps)
        self.least: float = eps * eps * step.count  # squares of products that are 0, to lengths
        self.whole = over((self.pair.size, pairs), (self.length, down))
        self.pairs = over((self.pair.size, pairs))
        every = over((self.pair.size, down))
        self.every = replace(every, is_first_fastest=True)
        shape = self.count, self.length
        more = (down // 2 - self.length) % BANKS
        self.tiles["x"] = Tile("x", shape, self.dtype, "shared", row_padding=more)
        self.shared("moves", int32, self.pair.size)
        self.register("busy", int32, ALONE)
        self.register("moved", int32, self.pairs)
        for name in ("guest", "host"):
            self.register(name, self.dtype, self.whole)
        for name in ("own", "theirs", "both", "slope", "root", "share", "sin", "ratio"):
            self.register(name, self.dtype, self.pairs)

    # -- tiles ------------------------------------------------------------------------------------

    def of_pair(self, name: str) -> Term:
        """Read what is known of a pair."""
        return self.of(name, self.pair)

    def set_pair(self, name: str, value: Term) -> Assign:
        """Write what is known of each pair."""
        return Assign(name, (self.pair,), value.expr)

    def set_column(self, name: str, value: Term) -> Assign:
        """Write a column of each pair."""
        return Assign(name, (self.pair, self.row), value.expr)

    def read(self) -> None:
        """Read the matrix: neighbours of a row are neighbours in memory."""
        i = self.step.axis
        j = self.step.column
        place = axis_index(j), axis_index(i)
        one = as_term(1, int32)
        self.steps += [
            Assign("x", (i, j), self.step.body, place),
            Assign("busy", (), one.expr),
            Barrier(),
        ]

    # -- sweeps -----------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Turn all pairs, sweep after sweep, as long as that changes anything."""
        sweep = Axis("sweep", SWEEPS[self.step.kind])
        turn = Axis("round", self.pair.size)
        place = axis_index(self.pair) * 2
        odd = place + 1
        above = self.meet(sweep, place, False)
        below = self.meet(sweep, place + 2, True)
        rounds = *above, *below
        body = (
            self.set_pair("moved", as_term(0, int32)),
            For(turn, rounds),
            self.put("moves", self.pair, self.of_pair("moved"), self.pairs),
            Barrier(),
            self.find_busy(),
        )
        is_busy = self.of("busy").index(2), 1, 1
        sweeps = For(sweep, (When((is_busy,), body),))
        host = self.of("x", odd % self.count, self.row)
        self.steps += [self.set_column("host", host), sweeps, self.put_back(odd), Barrier()]

    def put_back(self, odd: Index) -> Assign:
        """Write columns that stayed in registers into the shared tile."""
        dims = self.pair, self.row
        host = self.of("host", *dims)
        where = odd, axis_index(self.row)
        is_there = odd, 0, self.count - 1
        return Assign("x", dims, host.expr, where, self.whole, (is_there,))

    def put(self, name: str, axis: Axis, value: Term, layout: Blocked) -> Assign:
        """Write what is known of each place of an axis into a shared tile."""
        where = (axis_index(axis),)
        return Assign(name, (axis,), value.expr, where, layout)

    def find_busy(self) -> Accumulate:
        """Tell all threads whether any pair was turned."""
        moves = self.of_pair("moves")
        pairs = (self.pair,)
        return Accumulate("busy", (), pairs, "max", moves.expr, True, self.every)

    def meet(self, sweep: Axis, place: Index, is_below: bool) -> list[Step]:
        """Let columns meet those at odd places, above or below them, and turn both."""
        guest = self.of("x", place % self.count, self.row)
        x, y = self.columns(is_below)
        slope = self.of_pair("slope")
        one = as_term(1.0, self.dtype)
        root = (slope * slope + 1.0).of("sqrt")
        height = self.of_pair("root")
        more = height + 1.0
        share = one / (height * more)
        scaled = slope * self.of_pair("share")
        sin = scaled * more
        ratio = scaled * height
        is_pair = self.is_pair(is_below)
        is_turned = is_pair & ~slope.is_at(0.0)
        yes = as_term(1, int32)
        moved = is_turned.where(yes, self.of_pair("moved"))
        return [
            self.set_column("guest", guest),
            self.over_rows("own", x * x),
            self.over_rows("theirs", y * y),
            self.over_rows("both", x * y),
            self.set_pair("slope", self.slope()),
            self.set_pair("root", root),
            self.set_pair("share", share),
            self.set_pair("sin", sin),
            self.set_pair("ratio", ratio),
            self.set_pair("moved", moved),
            *self.turn(sweep, place, is_below),
            Barrier(),
        ]

    def is_pair(self, is_below: bool) -> Term:
        """Tell which pairs have two columns."""
        last = axis_index(self.pair) * 2 + 1 + is_below
        return position(last) < self.count

    def columns(self, is_below: bool) -> tuple[Term, Term]:
        """Read the columns of pairs, the upper one first."""
        dims = self.pair, self.row
        guest = self.of("guest", *dims)
        host = self.of("host", *dims)
        if is_below:
            return host, guest
        return guest, host

    def counted(self, value: Term, row: Axis) -> Term:
        """Leave out the rows that do not count."""
        count = self.step.count
        if count == self.length:
            return value
        is_counted = position(row) < count
        return is_counted.where(value, 0.0)

    def over_rows(self, name: str, value: Term) -> Accumulate:
        """Add up over the rows that count."""
        value = self.counted(value, self.row)
        dims = (self.pair,)
        rows = (self.row,)
        return Accumulate(name, dims, rows, "sum", value.expr, True, self.whole)

    def slope(self) -> Term:
        """Find the tangent of a rotation: the smaller one, or 0 where nothing is to be turned."""
        own = self.of_pair("own")
        theirs = self.of_pair("theirs")
        both = self.of_pair("both")
        twice = both * 2.0
        apart = theirs - own
        height = (apart * apart + twice * twice).of("sqrt")
        slope = twice / (apart.of("abs") + height)
        is_down = apart < 0.0
        slope = is_down.where(slope * -1.0, slope)
        is_nothing = both * both <= own * theirs * self.least
        return is_nothing.where(as_term(0.0, self.dtype), slope)

    def turn(self, sweep: Axis, place: Index, is_below: bool) -> list[Step]:
        """Turn two columns, of which the longer one goes up, in every other sweep down."""
        x, y = self.columns(is_below)
        sin = self.of_pair("sin")
        ratio = self.of_pair("ratio")
        turned_x = x - sin * (y + ratio * x)
        turned_y = y + sin * (x - ratio * y)
        is_shorter = self.of_pair("own") < self.of_pair("theirs")
        parity = axis_index(sweep) % 2
        is_up = position(parity).is_at(0)
        is_same = is_shorter.holds("equal", is_up)
        above = is_same.where(turned_y, turned_x)
        below = is_same.where(turned_x, turned_y)
        last = self.count - 2
        guest, host = above, below
        if is_below:
            last = self.count - 1
            guest, host = below, above
        dims = self.pair, self.row
        alone = self.of("host", *dims)
        is_pair = self.is_pair(is_below)
        host = is_pair.where(host, alone)
        where = place, axis_index(self.row)
        is_there = place, 0, last  # and no column that is left over
        return [
            Assign("x", dims, guest.expr, where, self.whole, (is_there,)),
            self.set_column("host", host),
        ]

    # -- results ----------------------------------------------------------------------------------

    def leave(self) -> None:
        """Rank columns by their squares, and store both in order."""
        i = Axis("m", self.count)
        other = Axis("n", self.count)
        row = Axis("k", self.length)
        self.measure(i, row)
        own = self.of("square", i)
        value = self.of("square", other)
        is_earlier = position(other) < position(i)
        is_same = ~(value < own) & is_earlier  # or NaN
        is_more = own < value
        is_before = is_more.holds("logical_or", is_same)
        one = as_term(1, int32)
        self.rank(i, other, is_before.where(one, 0))
        found = self.of("rank", i)
        rank = found.index(self.count)
        self.store(rank, (i,), own)
        first = axis_index(row) * self.count + self.count
        self.store(first + rank, (row, i), self.of("x", i, row))

    def measure(self, i: Axis, row: Axis) -> None:
        """Find the squares of the lengths of columns, in the order of their places."""
        down, across = self.whole.threads
        whole = over((i.size, down), (row.size, across))
        columns = over((i.size, down))
        self.register("length", self.dtype, columns)
        self.shared("square", self.dtype, i.size)
        x = self.of("x", i, row)
        square = self.counted(x * x, row)
        self.steps += [
            Accumulate("length", (i,), (row,), "sum", square.expr, True, whole),
            self.put("square", i, self.of("length", i), columns),
            Barrier(),
        ]

    def rank(self, i: Axis, other: Axis, before: Term) -> None:
        """Count what comes before each."""
        down = self.threads // 4
        whole = over((i.size, down), (other.size, 4))
        rows = over((i.size, down))
        self.register("before", int32, rows)
        self.shared("rank", int32, i.size)
        self.steps += [
            Accumulate("before", (i,), (other,), "sum", before.expr, True, whole),
            self.put("rank", i, self.of("before", i), rows),
            Barrier(),
        ]


def lanes_of(length: int, dtype: DType, least: int) -> int:
    """Choose the threads that share two columns."""
    lanes = min(least, power_of_two(length))
    while lanes < WARP and 2 * length * dtype.itemsize > MOST_BYTES * lanes:
        lanes *= 2
    return lanes


def over(*dims: tuple[int, int]) -> Blocked:
    """Spread axes over threads: (size, threads) of each."""
    shape, threads = zip(*dims, strict=True)
    ones = (1,) * len(dims)
    return Blocked(shape, threads, ones)

"""Sums over windows for a few taps each: the gradient of a depthwise weight, on a GPU.

    out[r, t, c] = sum[i, j] x[i + r, j + t, c] * y[i, j, c]

A thread has a vector of channels, one row of taps r, and all taps t of it. It walks over i and
patches of neighbouring j: what the taps of a patch share it reads once (templates/sliding.py).
Threads that have the same taps add up through shared memory, in order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from picograd.codegen.layout import Blocked
from picograd.codegen.templates.grid import rebind
from picograd.codegen.templates.sliding import is_plain, slid, slides_of
from picograd.codegen.tile import Accumulate, Assign, Barrier, For, Step, Store, Tile, TilePart
from picograd.dtype import DType
from picograd.helpers import ceil_div, divisors, product
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, unflatten
from picograd.schedule.loop import Compute, Condition, Expr, Part, const, rewrite
from picograd.schedule.loop import walk as every

PATCH, PLACES = 56, 7  # products of a patch for each tap, if nothing else is read; places if it is
VECTOR, CHANNELS = 16, 12  # bytes; the most such vectors of channels of a block
MOST_SUMS = 64  # of a thread: 7 taps of 8 channels
# A processor is to have registers for so many blocks; of threads with many sums for fewer ones
# (docs/records/0014-convolutions).
TOGETHER, MANY_SUMS, FEW_THREADS = 2, 40, 192


@dataclass(frozen=True, slots=True)
class Shares:
    """How a block shares its work: `count` threads have the same taps and vector of channels."""

    rows: Axis  # of taps: a thread has one
    taps: Axis  # of a row: a thread has all
    places: Axis  # that they slide along
    patch: int
    lane: Axis
    vectors: int  # of channels, of which a block has fewer
    channels: int
    chunk: Axis
    threads: int

    @property
    def count(self) -> int:
        """Threads with the same taps and channels."""
        return self.threads // (self.rows.size * self.channels)

    def channel(self, vector: Index) -> Index:
        """Find the channel of a lane of a vector of the block."""
        number = self.number(vector)
        return number * self.lane.size + self.near

    def number(self, vector: Index) -> Index:
        """Find which of all vectors one of the block is."""
        first = axis_index(self.chunk) * self.channels
        return first + vector

    def inside(self, vector: Index) -> tuple[Condition, ...]:
        """Test that there is such a vector: the last block may have fewer."""
        number = self.number(vector)
        return inside(number, self.vectors)

    @property
    def near(self) -> Index:
        """Which lane it is."""
        return axis_index(self.lane)


@dataclass(frozen=True, slots=True)
class Walk:
    """What a thread does: which it is, what it reads in a round, and where it has nothing to do."""

    step: Axis
    place: tuple[Index, Index, Index]  # among those with the same taps; row of taps; vector
    rounds: Axis
    values: Mapping[Axis, Index]
    idle: tuple[Condition, ...]
    ragged: tuple[Condition, ...]
    beyond: tuple[Condition, ...]  # of a patch


def build_columns(part: Part, lanes: int, threads: int) -> TilePart | None:
    """Write a sum over windows whose taps are columns; None if it is something else."""
    shares = shares_of(part, Axis("lane", lanes), threads)
    if shares is None:
        return None
    tiles: list[Tile] = []
    walked = walk(part.computes[0], shares, tiles)
    if walked is None:
        return None
    steps = *walked, Barrier(), *total(part, shares, tiles)
    own = shares.rows, shares.taps
    outer = [axis for axis in part.rows[:-1] if axis not in own]
    grid = *outer, shares.chunk
    together = TOGETHER if is_plain(part.computes) else 0
    return TilePart(grid, tuple(tiles), steps, together=together)


def threads_for(part: Part, lanes: int, threads: int) -> int:
    """Choose how many threads a block has, `threads` or fewer."""
    shares = shares_of(part, Axis("lane", lanes), threads)
    if shares is None or shares.taps.size * lanes <= MANY_SUMS:
        return threads
    is_built = build_columns(part, lanes, FEW_THREADS) is not None
    return FEW_THREADS if is_built else threads


def shares_of(part: Part, lane: Axis, threads: int) -> Shares | None:
    """Choose how a block shares the work, None if taps do not slide."""
    first, *others = part.computes
    is_sum = bool(first.reduce) and first.monoid == "sum"
    is_flat = all(each.axes == part.rows for each in part.computes)
    is_read_again = any(each.reduce for each in others)
    is_known = is_sum and is_flat and not is_read_again
    if not is_known or part.ends or lane.size == 1:
        return None
    *outer, nearest = part.rows
    *_, places = first.reduce
    slides = slides_of(first.body, outer, first.reduce)
    taps = [each.element for each in slides if each.tap is places]
    rows = [each.element for each in slides if each.tap is not places]
    if not taps or taps[0].size * lane.size > MOST_SUMS:
        return None
    row = rows[-1] if rows else Axis("one", 1)
    vectors = nearest.size // lane.size
    nbytes = lane.size * least_bytes(first.body)
    most = min(CHANNELS * VECTOR // nbytes, threads // row.size)
    chunks = ceil_div(vectors, max(most, 1))
    together = ceil_div(vectors, chunks)
    most = PLACES
    if is_plain(part.computes):
        most = min(PATCH // lane.size, 2 * PLACES)
    whole = divisors(places.size, most)
    if together * row.size > threads:
        return None
    patch = min(most, places.size)
    if len(whole) > 1:
        patch = whole[-1]
    chunk = Axis("chunk", chunks)
    return Shares(row, taps[0], places, patch, lane, vectors, together, chunk, threads)


def least_bytes(body: Expr) -> int:
    """Size of the smallest elements that are loaded."""
    loads = [expr for expr in every(body) if expr.op == "load"]
    return min(load.dtype.itemsize for load in loads)


def walk_of(first: Compute, shares: Shares, near: Axis) -> Walk:
    """Number what threads do in each round: rows, and patches of them."""
    step = Axis("step", shares.threads)
    kinds = shares.rows.size, shares.channels
    most = ceil_div(shares.threads, product(kinds))
    number, row, vector = unflatten(axis_index(step), (most, *kinds))
    patches = ceil_div(shares.places.size, shares.patch)
    sizes = *(axis.size for axis in first.reduce[:-1]), patches
    count = product(sizes)
    rounds = Axis("round", ceil_div(count, shares.count))
    item = axis_index(rounds) * shares.count + number
    *outer, patch = unflatten(item, sizes)
    values = dict(zip(first.reduce, outer))
    values[shares.places] = patch * shares.patch + axis_index(near)
    values[shares.rows] = row
    values[first.axes[-1]] = shares.channel(vector)
    return Walk(
        step,
        (number, row, vector),
        rounds,
        values,
        inside(number, shares.count) + shares.inside(vector),
        inside(item, count),
        inside(values[shares.places], shares.places.size),
    )


def inside(index: Index, size: int) -> tuple[Condition, ...]:
    """Test that an index is below a size, unless it always is."""
    if index.hi < size:
        return ()
    return ((index, 0, size - 1),)


def walk(first: Compute, shares: Shares, tiles: list[Tile]) -> list[Step] | None:
    """Write what each thread sums, and that it leaves it to the others."""
    near = Axis("near", shares.patch)
    made = walk_of(first, shares, near)
    dims = made.step, shares.taps, shares.lane
    layout = spread(dims, 2)
    body = rewrite(first.body, made.values)
    zero = const(0, first.dtype)
    if made.beyond:
        body = Expr("guard", (body, zero), made.beyond, body.dtype)
    wide = spread((*dims, near), 2)
    summed = Accumulate("acc", dims, (near,), "sum", body, False, wide)
    tiles.append(Tile("acc", layout.shape, first.dtype, "register", layout))
    conditions = *made.idle, *made.ragged, *made.beyond
    terms = slid(summed, tiles, conditions)
    if terms is None:
        return None
    width = shares.channels * shares.lane.size
    shape = shares.count, shares.rows.size, shares.taps.size, width
    tiles.append(Tile("parts", shape, first.dtype, "shared"))
    number, row, vector = made.place
    column = vector * shares.lane.size + shares.near
    where = number, row, axis_index(shares.taps), column
    own = read("acc", tuple(map(axis_index, dims)), first.dtype)
    return [
        Assign("acc", dims, zero),
        For(made.rounds, tuple(terms)),
        Assign("parts", dims, own, where, layout, made.idle),
    ]


def read(name: str, where: tuple[Index, ...], dtype: DType) -> Expr:
    """Read an element of a tile."""
    return Expr("tile", (), (name, where), dtype)


def spread(dims: Sequence[Axis], vector: int) -> Blocked:
    """Give a thread one step of the first dimension, and vectors of another one."""
    sizes = tuple(axis.size for axis in dims)
    threads = sizes[0], *(1 for _ in sizes[1:])
    lanes = [1] * len(sizes)
    lanes[vector] = sizes[vector]
    return Blocked(sizes, threads, tuple(lanes))


def total(part: Part, shares: Shares, tiles: list[Tile]) -> list[Step]:
    """Add what threads have of the same taps, and store it."""
    first, lane = part.computes[0], shares.lane
    kinds = shares.rows.size, shares.taps.size, shares.channels
    kind = Axis("kind", product(kinds))
    member = Axis("member", shares.count)
    row, tap, vector = unflatten(axis_index(kind), kinds)
    column = vector * lane.size + shares.near
    where = axis_index(member), row, tap, column
    dims = kind, lane
    layout = replace(spread(dims, 1), threads=(shares.threads, 1))
    wide = replace(spread((*dims, member), 1), threads=(shares.threads, 1, 1))
    each = read("parts", where, first.dtype)
    tiles.append(Tile("total", layout.shape, first.dtype, "register", layout))
    steps: list[Step] = []
    steps.append(Accumulate("total", dims, (member,), "sum", each, True, wide))
    values = {shares.rows: row, shares.taps: tap, part.rows[-1]: shares.channel(vector)}
    here = tuple(map(axis_index, dims))
    found = [read("total", here, first.dtype)]

    def made(expr: Expr) -> Expr | None:
        return found[expr.arg] if expr.op == "ref" else None

    for number, compute in enumerate(part.computes):
        if number:
            found.append(rewrite(compute.body, values, made))
        if compute.store:
            slot, index = compute.store
            place = rebind(index, values)
            guards = shares.inside(vector)
            store = Store(slot, place, dims, found[-1], guards, layout)
            steps.append(store)
    return steps

"""Few tiles of rows on Hopper: blocks share the places of a stream, the last one adds up.

So it is where rows are few, as in decoding, and where heads are, with gradients too.

    block (head, tile of rows, split): peak, sums and products of its places, to memory
    the last block of a tile, for each row and column:
      peak     = greatest of all splits
      result   = sum over splits of product * factor of its peak, over the same of the totals

Splits are dealt the blocks of a stream in turns, so that they are alike where a mask shows only a
part of it. They are added up in their order, whoever comes last.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from picograd.codegen.layout import Blocked, Layout, RowsOf
from picograd.codegen.operands import role, size_of
from picograd.codegen.stream_masks import emptied, scaled
from picograd.codegen.streams import Stream, left, read
from picograd.codegen.templates.attention_frame import ROWS, SPAN, WARPGROUP, Frame, Schedule
from picograd.codegen.templates.attention_leave import Leaving
from picograd.codegen.tile import Accumulate, Assign, For, LastBlock, Step, Store, Tile
from picograd.helpers import ceil_div, product, round_up
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Condition, Expr, binary
from picograd.target import Target

Factors = Mapping[int, Callable[[Expr, Expr], Expr]]  # by peak: of it and the greatest one
MOST_SPLITS = 64
FILLING, ADDING = 2, 2  # blocks of a stream that a tile, and adding up few rows, take as long as
WORDS = 48  # that a thread adds up while a block is worked on
SLACK = 1.03  # times the least time that fewer splits may take: each reads memory in one stretch
LANES = 4  # columns of a thread
AT_ONCE = 4  # lines of a thread, of many rows: more would want more registers than scores do
# Of a thread that copies, of one that multiplies, by warpgroups that do; 0: as many as it wants.
REGISTERS = {1: (0, 0), 2: (40, 232), 3: (32, 160)}
THREADS = (8, SPAN // LANES), (4, 2 * SPAN // LANES)  # along rows at once, and their columns


def shared_out(stream: Stream, schedule: Schedule, target: Target) -> Schedule:
    """Choose how blocks share a stream whose tiles of rows leave processors idle.

    Each takes a part of the places, or fewer rows, for which one warpgroup takes less time.
    """
    if size_of(stream.rows) <= ROWS:
        splits = split_count(stream, schedule, target)
        return replace(schedule, splits=splits)
    at_once = target.multiprocessors * schedule.blocks
    if tile_count(stream, schedule) > at_once:
        return schedule
    found = [schedule]
    for groups in range(1, schedule.groups + 1):
        alone = replace(schedule, groups=groups, registers=REGISTERS[groups], blocks=1)
        splits = split_count(stream, alone, target)
        found.append(replace(alone, splits=splits))
    return min(found, key=lambda each: time_of(stream, each, target))


def split_count(stream: Stream, schedule: Schedule, target: Target) -> int:
    """Choose in how few splits a stream takes about the least time.

    Those of many rows are split where all of their parts run at once.
    """
    blocks = ceil_div(size_of(stream.over), schedule.size)
    most = min(blocks, MOST_SPLITS)
    if size_of(stream.rows) > ROWS:
        at_once = target.multiprocessors // tile_count(stream, schedule)
        most = min(most, max(at_once, 1))
    counts = range(1, most + 1)
    schedules = [replace(schedule, splits=count) for count in counts]
    times = [time_of(stream, each, target) for each in schedules]
    least = SLACK * min(times)
    return next(count for count, time in zip(counts, times, strict=True) if time <= least)


def tile_count(stream: Stream, schedule: Schedule) -> int:
    """Count the tiles of rows of all heads."""
    heads = size_of(stream.batch)
    height = schedule.rows * schedule.groups
    return heads * ceil_div(size_of(stream.rows), height)


def time_of(stream: Stream, schedule: Schedule, target: Target) -> float:
    """Estimate how long a stream takes: a block of places takes one warpgroup 1.

    Each further one on its processor adds half (docs/records/0012-attention). A mask that is known
    hides about half, where long tiles come first and the others fill what is left.
    """
    splits = schedule.splits
    processors = target.multiprocessors
    points = tile_count(stream, schedule) * splits
    at_once = min(schedule.blocks, ceil_div(points, processors))
    work = (1 + schedule.groups * at_once) / 2
    blocks = ceil_div(size_of(stream.over), schedule.size)
    each = ceil_div(blocks, splits)
    longest = each + FILLING
    rounds = points / (processors * at_once)
    are_many = size_of(stream.rows) > ROWS
    if are_many and emptied(stream) and not stream.shown:
        half = each / 2 + FILLING
        spent = max(longest, rounds * half)
    else:
        spent = math.ceil(rounds) * longest
    if splits == 1:
        return spent * work
    width = sum(stream.widths)
    words = splits * ROWS * width / WARPGROUP  # that a thread adds up
    added = 1 + words / WORDS if are_many else ADDING
    return spent * work + added


class Splits:
    """This class leaves what a split found; the last one of a head adds up, and stores results."""

    def __init__(self, frame: Frame, factors: Factors) -> None:
        self.frame = frame
        self.stream = frame.stream
        self.factors = factors
        rows = frame.stream.rows
        few, columns = THREADS[1]
        widths = [frame.width(each) for each in self.stream.products]
        are_wide = all(width % (columns * LANES) == 0 for width in widths)
        lines, across = THREADS[are_wide and size_of(rows) <= few]
        lines *= frame.schedule.groups
        self.threads = lines, across
        height = min(size_of(rows), frame.height)
        count = round_up(height, lines)
        most = AT_ONCE * lines if frame.tile.size > 1 else count
        self.line = Axis("line", min(count, most))
        self.turn = Axis("turn", ceil_div(count, self.line.size))
        self.part = Axis("part", frame.split.size)
        self.of_rows = *frame.stream.reductions, *frame.stream.early
        first = axis_index(self.turn) * self.line.size
        self.here = first + axis_index(self.line)
        self.role = frame.in_batch(rows, frame.start + self.here)
        tiles = frame.tile.size
        self.number = frame.number * tiles + axis_index(frame.tile)
        heads = size_of(frame.stream.batch)
        self.tiles = heads * tiles

    def steps(self) -> list[Step]:
        """Write the steps."""
        frame = self.frame
        stream = self.stream
        steps: list[Step] = []
        rows = RowsOf(frame.scored)
        for number in self.of_rows:
            step = self.leave(number, (frame.row,), rows)
            steps.append(step)
        for each in stream.products:
            width = frame.width(each)
            dims = frame.row, Axis("column", width)
            layout = frame.fragment(width)
            step = self.leave(each.number, dims, layout)
            steps.append(step)
        body: list[Step] = []
        for number, compute in enumerate(stream.computes):
            if compute.store is not None and number not in stream.kept:
                body += self.store(number)
        if self.turn.size > 1:
            body = [For(self.turn, tuple(body))]
        counter = self.reserve(4 * self.tiles, True)
        last = LastBlock(counter, self.number, self.part.size, tuple(body))
        return [*steps, last]

    def reserve(self, size: int, is_zeroed: bool) -> int:
        """Reserve memory that all blocks share, and number it."""
        every = self.frame.workspaces
        every.append((size, is_zeroed))
        return len(every) - 1

    def leave(self, number: int, dims: tuple[Axis, ...], layout: Layout) -> Step:
        """Store a value of the rows that there are."""
        frame = self.frame
        dtype = frame.dtype
        columns = [axis.size for axis in dims[1:]]
        lines = self.turn.size * self.line.size
        shape = self.tiles, self.part.size, lines, *columns
        size = product(shape) * dtype.itemsize
        place = self.reserve(size, False)
        name = f"left{number}"
        frame.tiles[name] = Tile(name, shape, dtype, "workspace", workspace=place)
        index = tuple(map(axis_index, dims))
        value = read(f"value{number}", index, dtype)
        split = axis_index(frame.split)
        at = self.number, split, *index
        conditions = frame.rows.conditions
        return Assign(name, dims, value, at, layout, conditions)

    def found(self, number: int, *rest: Index) -> Expr:
        """Read what a split left; of lines behind the last row it is anything, and not stored."""
        part = axis_index(self.part)
        at = self.number, part, self.here, *rest
        return read(f"left{number}", at, self.frame.dtype)

    def store(self, number: int) -> list[Step]:
        """Add up whatever a result is made of, and store it."""
        compute = self.stream.computes[number]
        each = self.stream.product_like(compute)
        width = 1 if each is None else self.frame.width(each)
        column = Axis("column", width)
        dims = (self.line,) if each is None else (self.line, column)
        whole = Whole(self, number, dims)
        columns = () if each is None else each.columns
        beside = role(columns, axis_index(column))
        roles = self.role, beside
        slot, target, value = left(self.stream, number, roles, whole.held)
        conditions: tuple[Condition, ...] = (*self.role.conditions, *beside.conditions)
        store = Store(slot, target, whole.dims, value, conditions, whole.layout)
        return [*whole.steps, store]


class Whole:
    """This class adds up what a result is made of."""

    def __init__(self, splits: Splits, number: int, dims: tuple[Axis, ...]) -> None:
        self.splits = splits
        self.number = number
        self.dims = dims
        self.shape = tuple([axis.size for axis in dims])
        count = len(dims)
        threads = splits.threads[:count]
        lanes = (1, LANES)[:count]
        self.layout = Blocked(self.shape, threads, lanes)
        self.steps: list[Step] = []

    def held(self, source: int, ref: Expr) -> Expr:
        """Read the sum of what all splits left, of a peak the greatest."""
        splits = self.splits
        stream = splits.stream
        is_row = source in splits.of_rows
        rest = () if is_row else (axis_index(self.dims[1]),)
        value = splits.found(source, *rest)
        peak = stream.peak_under(source)
        if peak is not None:
            own = splits.found(peak)
            greatest = self.added(peak, own)
            repair = splits.factors[peak](own, greatest)
            value = binary("mul", value, repair)
        value = self.added(source, value)
        factor = splits.frame.factors.get(source, 1.0)
        return value if factor == 1 else scaled(value, factor)

    def added(self, source: int, value: Expr) -> Expr:
        """Add up, once."""
        frame = self.splits.frame
        tiles = frame.tiles
        dtype = frame.dtype
        name = f"whole{self.number}_{source}"
        if name not in tiles:
            tiles[name] = Tile(name, self.shape, dtype, "register", self.layout)
            part = self.splits.part
            layout = self.layout.with_alone((part.size,))
            compute = frame.stream.computes[source]
            is_same = source in frame.stream.early
            monoid = "max" if is_same else str(compute.monoid)
            step = Accumulate(name, self.dims, (part,), monoid, value, layout=layout)
            self.steps.append(step)
        index = tuple(map(axis_index, self.dims))
        return read(name, index, dtype)


def finish(leaving: Leaving, factors: Factors | None = None) -> list[Step]:
    """Write what a block does behind its stream."""
    frame = leaving.frame
    if frame.split.size == 1:
        steps = leaving.leave()
        return [*frame.behind, *steps]
    splits = Splits(frame, factors or {})
    return splits.steps()

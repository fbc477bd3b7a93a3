"""BinStep of rows -> Program of a CUDA block: a warp looks at keys, and reads what it has bins for.

    found    the lanes whose key is that of a bin put it, and where it is, behind what waits
    drained  whole warps of what waits are added, row by row: each lane has a number of a row, and
             bins of its own; some rows are under way together

So few lanes wait for what goes elsewhere. What a warp adds comes in the order in which it lies.
"""

from picograd.codegen.block_cuda import Block
from picograd.codegen.linearize_cuda_reduce import combine
from picograd.codegen.tile import BinStep
from picograd.codegen.value import Value
from picograd.dtype import int32, uint32
from picograd.graph.binning import QUEUED
from picograd.helpers import ceil_div
from picograd.schedule.index import Axis, Index, axis_index, constant, substitute
from picograd.schedule.loop import Condition

WARP = 32
EVERY = (1 << WARP) - 1  # lanes
LOOKED = 8  # keys of a lane that are under way
ROWS = 16  # of numbers that are
POSITIONS, KEYS = 0, 1  # in the queue


def bin_rows_cuda(block: Block, step: BinStep) -> None:
    """Write the loop over the keys of a warp; what waits is drained behind each turn of it."""
    turns = ceil_div(step.count, WARP)
    ahead = min(LOOKED, turns)
    inner = Axis("ahead", ahead)
    outer = Axis("turn", ceil_div(turns, ahead))
    rows = Rows(block, step, outer, inner)
    emitter = block.emitter
    emitter.put(rows.tail, rows.zero, rows.zero)
    with emitter.axis_loop(inner, True):
        rows.look(constant(0))
    with emitter.axis_loop(outer):
        with emitter.axis_loop(inner, True):
            rows.take()
        with emitter.axis_loop(inner, True):
            rows.look(axis_index(outer) + 1)
        with emitter.axis_loop(inner, True):
            rows.keep()
        rows.drain()


class Rows:
    """This class writes what a warp does with the keys that its lanes have looked at."""

    def __init__(self, block: Block, step: BinStep, outer: Axis, inner: Axis) -> None:
        self.block = block
        self.step = step
        self.outer: Axis = outer
        self.inner: Axis = inner
        emitter = block.emitter
        self.emitter = emitter
        _, self.rows, self.lanes = block.tiles[step.tile].shape
        self.count: int = self.rows - 1  # the last one is for padding
        thread = axis_index(block.thread)
        self.warp: Index = thread // WARP
        self.lane: Index = thread % WARP
        self.first: Index = substitute(step.first, {step.warp: self.warp})
        self.zero: int = emitter.integer(0)
        self.keys: int = emitter.add("array", int32, arg=inner.size)
        self.taken: int = emitter.add("array", int32, arg=inner.size)
        self.tail: int = emitter.add("array", emitter.index_dtype, arg=1)
        self.values: int = emitter.add("array", step.expr.dtype, arg=ROWS)

    def within(self, outer: Index) -> Index:
        """Find which key of those of the warp a lane looks at in a turn."""
        turn = outer * self.inner.size + axis_index(self.inner)
        return turn * WARP + self.lane

    def look(self, outer: Index) -> None:
        """Load a key of a turn; where there is none, it is no bin's."""
        emitter = self.emitter
        step = self.step
        within = self.within(outer)
        place = self.first + within
        left = step.stop - place
        is_own: Condition = within, 0, step.count - 1
        is_there: Condition = left, 1, max(left.hi, 1)
        mask = emitter.conditions([is_own, is_there])
        with emitter.scope({step.axis: emitter.index(place)}):
            emitter.scopes[-1].mask = mask
            key = emitter.cast(emitter.value(step.key), int32)
        if mask is not None:
            none = emitter.const(self.count, int32)
            key = emitter.apply("where", mask, key, none, dtype=int32)
        at = emitter.axis_value(self.inner)
        emitter.put(self.keys, at, key)

    def take(self) -> None:
        """Take what was looked at before, so that the next keys are under way."""
        emitter = self.emitter
        at = emitter.axis_value(self.inner)
        key = emitter.get(self.keys, at)
        emitter.put(self.taken, at, key)

    def queued(self, what: int, number: int) -> int:
        """Find a cell of the queue of the warp."""
        emitter = self.emitter
        own = self.warp * (2 * QUEUED)
        first = emitter.index(own + what * QUEUED)
        return emitter.arithmetic("add", first, number)

    def keep(self) -> None:
        """Put what has a bin behind what waits, in the order of lanes."""
        emitter = self.emitter
        at = emitter.axis_value(self.inner)
        key = emitter.get(self.taken, at)
        plain = emitter.cast(key, uint32)  # a negative number is large
        is_bin = Value(emitter, plain) < self.count
        wanted = is_bin.cast(uint32)
        alike = emitter.add("match_any", uint32, (wanted.position,), 1)
        same = Value(emitter, alike)
        every = same.constant(EVERY)
        bins = is_bin.where(same, every - same)
        is_any = bins.constant(0) < bins
        with emitter.when(is_any.position):
            self.put_behind(key, bins, is_bin.position)

    def put_behind(self, key: int, bins: Value, mask: int) -> None:
        """Put keys of the lanes whose bits are set behind what waits, and their positions."""
        emitter = self.emitter
        number = emitter.index(self.lane)
        lane = Value(emitter, number).cast(uint32)
        below = lane.constant(1).raw("shift_left", lane) - 1
        wide = emitter.index_dtype
        lower = bins & below
        before = lower.raw("popcount").cast(wide)
        there = bins.raw("popcount").cast(wide)
        tail = Value(emitter, emitter.get(self.tail, self.zero))
        place = (tail + before).position
        queue = self.block.places[self.step.queue]
        within = self.within(axis_index(self.outer))
        at = emitter.index(self.first + within)
        at = emitter.cast(at, int32)
        emitter.store(queue, self.queued(POSITIONS, place), at, mask)
        emitter.store(queue, self.queued(KEYS, place), key, mask)
        after = tail + there
        emitter.put(self.tail, self.zero, after.position)

    def drain(self) -> None:
        """Add whole warps of what waits, behind the last turn all; the rest comes first then."""
        emitter = self.emitter
        tail = Value(emitter, emitter.get(self.tail, self.zero))
        turn = Value(emitter, emitter.axis_value(self.outer))
        is_last = turn.is_equal(self.outer.size - 1)
        with emitter.when(is_last.position):
            self.pad(tail)
        more = tail.constant(WARP - 1)
        most = tail + is_last.where(more, 0)
        whole = most.raw("quotient", WARP)
        drained = whole * WARP
        is_any = drained.constant(0) < drained
        with emitter.when(is_any.position):
            emitter.add("warp_barrier", None)
            with emitter.loop(self.zero, drained.position, ROWS, None) as first:
                self.add(first)
            self.bring_rest(drained, tail)

    def pad(self, tail: Value) -> None:
        """Let something wait behind the last ones, for a bin that nobody reads."""
        emitter = self.emitter
        lane = Value(emitter, emitter.index(self.lane))
        place = (tail + lane).position
        queue = self.block.places[self.step.queue]
        first = emitter.const(0, int32)
        none = emitter.const(self.count, int32)
        emitter.store(queue, self.queued(POSITIONS, place), first)
        emitter.store(queue, self.queued(KEYS, place), none)

    def bring_rest(self, drained: Value, tail: Value) -> None:
        """Bring what still waits to the front."""
        emitter = self.emitter
        lane = Value(emitter, emitter.index(self.lane))
        here = lane.position
        there = drained + lane
        is_left = (there < tail).position
        queue = self.block.places[self.step.queue]
        emitter.add("warp_barrier", None)
        for what in (POSITIONS, KEYS):
            waits = emitter.load(queue, self.queued(what, there.position), is_left)
            emitter.store(queue, self.queued(what, here), waits, is_left)
        emitter.add("warp_barrier", None)
        left = tail - drained
        left = left.raw("maximum", 0)
        emitter.put(self.tail, self.zero, left.position)

    def add(self, first: int) -> None:
        """Add some rows to bins: all are asked for before one is there."""
        number = Axis("number", ROWS)
        with self.emitter.axis_loop(number, True):
            self.ask(first, number)
        self.emitter.add("warp_barrier", None)
        with self.emitter.axis_loop(number, True):
            self.add_one(first, number)

    def waiting(self, first: int, number: Axis, what: int) -> int:
        """Read one of what waits."""
        emitter = self.emitter
        queue = self.block.places[self.step.queue]
        own = emitter.axis_value(number)
        each = emitter.arithmetic("add", first, own)
        found = emitter.load(queue, self.queued(what, each))
        return emitter.cast(found, emitter.index_dtype)

    def ask(self, first: int, number: Axis) -> None:
        """Load a number of a row."""
        emitter = self.emitter
        step = self.step
        place = self.waiting(first, number, POSITIONS)
        lane = emitter.index(self.lane)
        with emitter.scope({step.axis: place, step.lane: lane}):
            value = emitter.value(step.expr)
        own = emitter.axis_value(number)
        emitter.put(self.values, own, value)

    def add_one(self, first: int, number: Axis) -> None:
        """Add it to the bin of its key."""
        emitter = self.emitter
        key = self.waiting(first, number, KEYS)
        tile = self.block.places[self.step.tile]
        before = emitter.index(self.warp * self.rows)
        row = emitter.arithmetic("add", before, key)
        lanes = emitter.integer(self.lanes)
        cell = emitter.arithmetic("mul", row, lanes)
        lane = emitter.index(self.lane)
        cell = emitter.arithmetic("add", cell, lane)
        own = emitter.axis_value(number)
        value = emitter.get(self.values, own)
        old = emitter.load(tile, cell)
        total = combine(emitter, "sum", old, value)
        emitter.store(tile, cell, total)

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
from picograd.schedule.index import Axis, Index, axis_index, substitute
from picograd.schedule.loop import Condition

WARP = 32
LOOKED = 8  # keys of a lane that are under way
ROWS = 8  # of numbers that are
POSITIONS, KEYS = 0, 1  # in the queue


def bin_rows_cuda(block: Block, step: BinStep, lane: Axis) -> None:
    """Write the loop over the keys of a warp; what waits is drained behind each turn of it."""
    turns = ceil_div(step.count, WARP)
    ahead = min(LOOKED, turns)
    outer, inner = Axis("turn", ceil_div(turns, ahead)), Axis("ahead", ahead)
    rows = Rows(block, step, lane, outer, inner)
    emitter = block.emitter
    emitter.put(rows.tail, rows.zero, rows.zero)
    with emitter.axis_loop(outer):
        with emitter.axis_loop(inner, True):
            rows.look()
        with emitter.axis_loop(inner, True):
            rows.keep()
        emitter.add("warp_barrier", None)
        rows.drain(outer)


class Rows:
    """This class writes what a warp does with the keys that its lanes have looked at."""

    def __init__(self, block: Block, step: BinStep, lane: Axis, outer: Axis, inner: Axis) -> None:
        self.block, self.step = block, step
        self.emitter = emitter = block.emitter
        _, self.count, self.lanes = block.tiles[step.tile].shape
        self.inner, self.own = inner, lane
        thread = axis_index(block.thread)
        self.warp: Index = thread // WARP
        self.lane: Index = thread % WARP
        turn = axis_index(outer) * inner.size + axis_index(inner)
        within = turn * WARP + self.lane
        self.place: Index = substitute(step.first, {step.warp: self.warp}) + within
        self.tests: list[Condition] = [
            (within, 0, step.count - 1),
            (step.stop - self.place, 1, step.axis.size),
        ]
        self.zero: int = emitter.integer(0)
        self.keys: int = emitter.add("array", int32, arg=inner.size)
        self.tail: int = emitter.add("array", emitter.index_dtype, arg=1)
        self.values: int = emitter.add("array", step.expr.dtype, arg=ROWS)

    def look(self) -> None:
        """Load a key; where there is none, it is no bin's."""
        emitter, step = self.emitter, self.step
        mask = emitter.conditions(self.tests)
        with emitter.scope({step.axis: emitter.index(self.place)}):
            emitter.scopes[-1].mask = mask
            key = emitter.cast(emitter.value(step.key), int32)
        if mask is not None:
            none = emitter.const(self.count, int32)
            key = emitter.apply("where", mask, key, none, dtype=int32)
        emitter.put(self.keys, emitter.axis_value(self.inner), key)

    def queued(self, what: int, number: int) -> int:
        """Find a cell of the queue of the warp."""
        emitter = self.emitter
        first = emitter.index(self.warp * (2 * QUEUED) + what * QUEUED)
        return emitter.arithmetic("add", first, number)

    def keep(self) -> None:
        """Put what has a bin behind what waits, in the order of lanes."""
        emitter = self.emitter
        key = emitter.get(self.keys, emitter.axis_value(self.inner))
        plain = Value(emitter, emitter.cast(key, uint32))  # a negative number is large
        is_bin = plain < self.count
        alike = emitter.add("match_any", uint32, (is_bin.cast(uint32).position,), 1)
        same = Value(emitter, alike)
        lane = Value(emitter, emitter.index(self.lane)).cast(uint32)
        below = lane.constant(1).raw("shift_left", lane) - 1
        wide = emitter.index_dtype
        before = (same & below).raw("popcount").cast(wide)
        there = same.raw("popcount").cast(wide)
        there = is_bin.where(there, there.constant(WARP) - there)
        tail = Value(emitter, emitter.get(self.tail, self.zero))
        place = (tail + before).position
        queue = self.block.places[self.step.queue]
        at = emitter.index(self.place)
        mask = is_bin.position
        emitter.store(queue, self.queued(POSITIONS, place), emitter.cast(at, int32), mask)
        emitter.store(queue, self.queued(KEYS, place), key, mask)
        emitter.put(self.tail, self.zero, (tail + there).position)

    def drain(self, outer: Axis) -> None:
        """Add whole warps of what waits, behind the last turn all; the rest comes first then."""
        emitter = self.emitter
        tail = Value(emitter, emitter.get(self.tail, self.zero))
        turn = Value(emitter, emitter.axis_value(outer))
        is_last = turn.is_equal(outer.size - 1)
        more = tail.constant(WARP - 1)
        whole = (tail + is_last.where(more, 0)).raw("quotient", WARP)
        drained = whole * WARP
        stop = drained.raw("minimum", tail)
        with emitter.loop(self.zero, drained.position, ROWS, None) as first:
            self.add(first, stop)
        emitter.add("warp_barrier", None)
        lane = Value(emitter, emitter.index(self.lane))
        here, there = lane.position, (drained + lane).position
        is_left = (drained + lane) < tail
        queue = self.block.places[self.step.queue]
        for what in (POSITIONS, KEYS):
            waits = emitter.load(queue, self.queued(what, there), is_left.position)
            emitter.add("warp_barrier", None)
            emitter.store(queue, self.queued(what, here), waits, is_left.position)
        emitter.put(self.tail, self.zero, (tail - stop).position)
        emitter.add("warp_barrier", None)

    def add(self, first: int, stop: Value) -> None:
        """Add some rows to bins: all are asked for before one is there."""
        emitter, step = self.emitter, self.step
        queue, tile = (self.block.places[name] for name in (step.queue, step.tile))
        number = Axis("number", ROWS)
        with emitter.axis_loop(number, True):
            each = emitter.arithmetic("add", first, emitter.axis_value(number))
            mask = (Value(emitter, each) < stop).position
            at = emitter.load(queue, self.queued(POSITIONS, each), mask)
            place = emitter.cast(at, emitter.index_dtype)
            with emitter.scope({step.axis: place, self.own: emitter.index(self.lane)}):
                emitter.scopes[-1].mask = mask
                value = emitter.value(step.expr)
            emitter.put(self.values, emitter.axis_value(number), value)
        with emitter.axis_loop(number, True):
            each = emitter.arithmetic("add", first, emitter.axis_value(number))
            mask = (Value(emitter, each) < stop).position
            key = emitter.load(queue, self.queued(KEYS, each), mask)
            key = emitter.cast(key, emitter.index_dtype)
            row = emitter.arithmetic("add", emitter.index(self.warp * self.count), key)
            cell = emitter.arithmetic("mul", row, emitter.integer(self.lanes))
            cell = emitter.arithmetic("add", cell, emitter.index(self.lane))
            value = emitter.get(self.values, emitter.axis_value(number))
            total = combine(emitter, "sum", emitter.load(tile, cell, mask), value)
            emitter.store(tile, cell, total, mask)

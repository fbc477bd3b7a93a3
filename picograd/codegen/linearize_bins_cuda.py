"""BinStep -> Program of a CUDA block: every warp adds values to its own bins, 32 at a time.

    alone   no two lanes have one number: all add at once; otherwise
    same    the lanes whose number is the same (`match_any`)
    rank    of those, how many lie before
    turns   lanes of rank 0 add, then those of rank 1, ...: no two of a turn have one bin

So a bin meets its values in the order in which they lie. Some are loaded ahead, so that the loads
are under way together.
"""

from picograd.codegen.block_cuda import Block
from picograd.codegen.linearize_bin_rows_cuda import bin_rows_cuda
from picograd.codegen.linearize_cuda_reduce import combine
from picograd.codegen.operands import expr_axes
from picograd.codegen.tile import BinStep, is_counting
from picograd.codegen.value import Value
from picograd.dtype import bool_, int32, uint32
from picograd.helpers import ceil_div
from picograd.schedule.index import Axis, Index, axis_index, substitute
from picograd.schedule.loop import Condition

WARP = 32
EVERY = (1 << WARP) - 1  # lanes
LEAST_APART = 512  # bins: among them two of five times no two lanes of a warp meet, if at random
AHEAD = 4  # values of a thread that are under way
MORE_AHEAD = 8  # where lanes have bins of their own, or count


def bins_cuda(block: Block, step: BinStep) -> None:
    """Write the loop over what a warp has."""
    if step.queue:
        bin_rows_cuda(block, step)
        return
    turns = ceil_div(step.count, WARP)
    is_quick = is_counting(step.expr) or block.tiles[step.tile].shape[-1] > 1
    ahead = min(MORE_AHEAD if is_quick else AHEAD, turns)
    outer, inner = Axis("turn", ceil_div(turns, ahead)), Axis("ahead", ahead)
    bins = Bins(block, step, outer, inner)
    emitter = block.emitter
    is_shared = step.warp in expr_axes(step.key)
    with emitter.axis_loop(outer):
        if is_shared:  # warps stay near one another, so that lines are still there
            emitter.add("barrier", None)
        with emitter.axis_loop(inner, True):
            bins.read()
        with emitter.axis_loop(inner, True):
            bins.add()


class Bins:
    """This class adds the values of a warp, which threads have in registers before."""

    def __init__(self, block: Block, step: BinStep, outer: Axis, inner: Axis) -> None:
        self.block = block
        self.emitter = block.emitter
        self.step = step
        self.copies, self.count, self.lanes = block.tiles[step.tile].shape
        self.inner: Axis = inner
        thread = axis_index(block.thread)
        self.warp: Index = thread // WARP
        self.lane: Index = thread % WARP
        turn = axis_index(outer) * inner.size + axis_index(inner)
        self.within: Index = turn * WARP + self.lane
        first = substitute(step.first, {step.warp: self.warp})
        place = first + self.within
        self.place: Index = place
        left = step.stop - place
        self.tests: list[Condition] = [
            (self.within, 0, step.count - 1),
            (left, 1, max(left.hi, 1)),
            (place, 0, step.axis.size - 1),
        ]
        self.keys: int = self.emitter.add("array", int32, arg=inner.size)
        self.values: int = self.emitter.add("array", step.expr.dtype, arg=inner.size)

    def read(self) -> None:
        """Load a number and its value; where there is none, the number is no bin's."""
        emitter, step = self.emitter, self.step
        at = emitter.axis_value(self.inner)
        mask = emitter.conditions(self.tests)
        here = {step.axis: emitter.index(self.place), step.warp: emitter.index(self.warp)}
        with emitter.scope(here):
            emitter.scopes[-1].mask = mask
            key = emitter.cast(emitter.value(step.key), int32)
            value = emitter.value(step.expr)
        if mask is not None:
            none = emitter.const(self.count, int32)
            key = emitter.apply("where", mask, key, none, dtype=int32)
        emitter.put(self.keys, at, key)
        emitter.put(self.values, at, value)

    def rank(self, number: int) -> int:
        """Count the lanes before this one whose number is the same."""
        emitter = self.emitter
        bits = self.count.bit_length()
        found = emitter.add("match_any", uint32, (number,), bits)
        same = Value(emitter, found)
        place = emitter.index(self.lane)
        lane = Value(emitter, place).cast(uint32)
        below = lane.constant(1).raw("shift_left", lane) - 1
        before = same & below
        return before.raw("popcount").cast(int32).position

    def add(self) -> None:
        """Add the values that the lanes hold: at once, if no two of them have one of many bins."""
        emitter = self.emitter
        at = emitter.axis_value(self.inner)
        key = emitter.get(self.keys, at)
        plain = Value(emitter, emitter.cast(key, uint32))  # a negative number is large
        most = plain.constant(self.count)
        is_bin = plain < most
        number = is_bin.where(plain, most)
        wide = emitter.index_dtype
        row = emitter.index(self.warp % self.copies * self.count)
        column = number.cast(wide)
        cell = emitter.arithmetic("add", row, column.position)
        value = emitter.get(self.values, at)
        if is_counting(self.step.expr) and self.lanes == 1:
            with emitter.when(is_bin.position):
                emitter.add("count", None, (self.block.places[self.step.tile], cell))
            return
        if self.lanes > 1:
            self.add_alone(cell, is_bin, value)
            return
        if self.count < LEAST_APART:
            self.add_in_turns(cell, is_bin, number, value)
            return
        is_alone = self.add_at_once(cell, is_bin, value)
        with emitter.when((~is_alone).position):
            self.add_in_turns(cell, is_bin, number, value)

    def add_alone(self, cell: int, is_bin: Value, value: int) -> None:
        """Add a value to a bin that the lane has for itself: lanes are in banks of their own."""
        emitter = self.emitter
        tile = self.block.places[self.step.tile]
        lanes = emitter.integer(self.lanes)
        lane = emitter.index(self.lane)
        first = emitter.arithmetic("mul", cell, lanes)
        place = emitter.arithmetic("add", first, lane)
        old = emitter.load(tile, place, is_bin.position)
        total = combine(emitter, "sum", old, value)
        emitter.store(tile, place, total, is_bin.position)

    def add_at_once(self, cell: int, is_bin: Value, value: int) -> Value:
        """Add a value to each bin, unless several lanes have one: then nothing is added.

        Each lane writes its number into its bin, and looks whether it is there afterwards.
        """
        emitter = self.emitter
        tile = self.block.places[self.step.tile]
        dtype = emitter.dtype(tile)
        old = emitter.load(tile, cell, is_bin.position)
        lane = Value(emitter, emitter.index(self.lane))
        lane = lane.cast(dtype)
        emitter.add("warp_barrier", None)
        emitter.store(tile, cell, lane.position, is_bin.position)
        emitter.add("warp_barrier", None)
        seen = Value(emitter, emitter.load(tile, cell, is_bin.position))
        emitter.add("warp_barrier", None)
        is_own = seen.is_equal(lane)
        is_lost = is_bin & ~is_own
        lost = is_lost.cast(uint32)
        found = emitter.add("match_any", uint32, (lost.position,), 1)
        same = Value(emitter, found)
        is_alone = same.is_equal(EVERY) & ~is_lost
        total = combine(emitter, "sum", old, value)
        before = Value(emitter, old)
        after = Value(emitter, total)
        kept = is_alone.where(after, before)
        emitter.store(tile, cell, kept.position, is_bin.position)
        emitter.add("warp_barrier", None)
        return is_alone

    def add_in_turns(self, cell: int, is_bin: Value, number: Value, value: int) -> None:
        """Add values, those of one bin one after the other."""
        emitter = self.emitter
        found = Value(emitter, self.rank(number.position))
        rank = is_bin.where(found, -1).position
        last = rank
        for mask in (1, 2, 4, 8, 16):
            other = emitter.add("shuffle_xor", int32, (last,), mask)
            last = combine(emitter, "max", last, other)
        tile = self.block.places[self.step.tile]
        last = emitter.cast(last, emitter.index_dtype)
        one = emitter.integer(1)
        stop = emitter.arithmetic("add", last, one)
        with emitter.loop(emitter.integer(0), stop, 1, None) as turn:
            turn = emitter.cast(turn, int32)
            is_mine = emitter.raw("equal", bool_, turn, rank)
            old = emitter.load(tile, cell, is_mine)
            total = combine(emitter, "sum", old, value)
            emitter.store(tile, cell, total, is_mine)
            emitter.add("warp_barrier", None)

"""RadixStep -> Program of a CUDA block: rank the elements of a tile among those of their digit.

Every warp walks a stretch of the tile, 32 neighbours at a time, in order:

    same     the lanes whose digit is the same (`match_any`)
    rank     elements of this digit that the warp met before, and lanes below in `same`
    counter  of the digit, in the warp's own row of shared memory, grows by the lanes in `same`

Then thread d adds up digit d over the warps. That is the tile's count; or, after a scan over the
digits, the place where each warp's elements begin in the sorted tile. The tile is sorted in shared
memory first: elements of one digit leave it side by side, so that the stores fill whole sectors.
Ranks follow the order of the elements, so the sort is stable, and nothing is left to chance.

SortStep -> Program of a CUDA block: a bitonic network over pairs (key, position).

    for size = 2, 4, ..., n: for stride = size/2, ..., 1:
        all pairs (i, i + stride): order them, upwards where i & size is 0, else downwards

Places past the end of the row hold the largest key and a position behind all others, so they stay
last. Positions differ, hence no two pairs are equal, and equal keys keep their order.
"""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from picograd.codegen.block_cuda import Block
from picograd.codegen.linearize_scan import across_block, across_warp
from picograd.codegen.tile import RadixStep, SortStep
from picograd.codegen.value import Value, goes_before
from picograd.dtype import bool_, int32, int64, uint32
from picograd.errors import check
from picograd.helpers import ceil_div
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import DIGITS

WARP = 32
ROW = DIGITS + 1  # counters of a warp: one a digit, and one for places past the end


@contextmanager
def dealt(block: Block, count: int, is_unrolled: bool = False) -> Iterator[Index]:
    """Open the loop in which places are dealt to the threads in turn; give the present one."""
    turn = Axis("turn", ceil_div(count, block.threads))
    with block.emitter.axis_loop(turn, is_unrolled):
        yield axis_index(turn) * block.threads + axis_index(block.thread)


def radix_cuda(block: Block, step: RadixStep) -> None:
    """Write one step of a radix sort."""
    is_fit = block.threads >= DIGITS and step.count % block.threads == 0
    check(is_fit, "a radix step takes a thread for each digit", step)
    RadixTile(block, step).write()


class RadixTile:
    """This class writes the program of one tile."""

    def __init__(self, block: Block, step: RadixStep) -> None:
        self.block, self.step, self.emitter = block, step, block.emitter
        self.memory: list[int] = [block.places[name] for name in step.tiles]
        self.counters: int = self.memory[0]
        self.warps: int = block.threads // WARP
        self.turns: int = step.count // block.threads
        self.thread: Index = axis_index(block.thread)
        self.held: int = self.emitter.add("array", step.expr.dtype, arg=self.turns)
        self.ranks: int = self.emitter.add("array", int32, arg=self.turns)

    def write(self) -> None:
        """Write ranking; then the counts, or the moves."""
        emitter = self.emitter
        self.clear()
        self.read()
        emitter.add("barrier", None)
        self.rank()
        emitter.add("barrier", None)
        own = emitter.conditions([(self.thread, 0, DIGITS - 1)])
        places = [self.thread + warp * ROW for warp in range(self.warps)]
        counts = [emitter.load(self.counters, emitter.index(place), own) for place in places]
        total = functools.reduce(partial(emitter.raw, "add", int32), counts)
        if self.step.start is None:
            self.store_count(total, own)
            return
        self.place_warps(counts, total, own)
        emitter.add("barrier", None)
        self.sort()
        emitter.add("barrier", None)
        self.store()

    def clear(self) -> None:
        """Set all counters to zero."""
        emitter, size = self.emitter, self.warps * ROW
        with dealt(self.block, size, True) as place:
            inside = emitter.conditions([(place, 0, size - 1)])
            zero = emitter.const(0, int32)
            emitter.store(self.counters, emitter.index(place), zero, inside)

    def element(self, turn: Axis) -> tuple[Index, int | None]:
        """Position in the row of a thread's element, and whether there is one.

        The elements of a warp lie together.
        """
        lane, warp = self.thread % WARP, self.thread // WARP
        within = (warp * self.turns + axis_index(turn)) * WARP + lane
        place = self.step.place * self.step.count + within
        last = self.step.axis.size - 1
        return place, self.emitter.conditions([(place, 0, last)])

    def read(self) -> None:
        """Load all elements of the thread, so that the loads are in flight together."""
        emitter, turn = self.emitter, Axis("turn", self.turns)
        with emitter.axis_loop(turn, True):
            place, mask = self.element(turn)
            with emitter.scope({self.step.axis: emitter.index(place)}):
                emitter.scopes[-1].mask = mask
                value = emitter.value(self.step.expr)
            emitter.add("set", None, (self.held, emitter.axis_value(turn), value))

    def digit(self, value: int) -> int:
        """Take the digit of a value."""
        shifted = Value(self.emitter, value).raw("shift_right", self.step.shift)
        return (shifted & (DIGITS - 1)).cast(uint32).position

    def cell(self, turn: Axis) -> tuple[int, int]:
        """Give the digit of a turn's element, and where the warp counts that digit."""
        emitter, at = self.emitter, self.emitter.axis_value(turn)
        value = emitter.add("get", self.step.expr.dtype, (self.held, at))
        digit, (_, mask) = self.digit(value), self.element(turn)
        if mask is not None:
            outside = emitter.const(DIGITS, uint32)
            digit = emitter.apply("where", mask, digit, outside, dtype=uint32)
        own = emitter.index(self.thread // WARP * ROW)
        return digit, emitter.arithmetic("add", own, emitter.cast(digit, emitter.index_dtype))

    def rank(self) -> None:
        """Rank every element among those of its digit that the warp has met."""
        emitter, turn = self.emitter, Axis("turn", self.turns)
        lane = Value(emitter, emitter.index(self.thread % WARP)).cast(uint32)
        below = lane.constant(1).raw("shift_left", lane) - 1
        with emitter.axis_loop(turn, True):
            digit, cell = self.cell(turn)
            bits = DIGITS.bit_length()  # one more than a digit has, for places past the end
            same = Value(emitter, emitter.add("match_any", uint32, (digit,), bits))
            before = (same & below).raw("popcount").cast(int32)
            met = Value(emitter, emitter.load(self.counters, cell))
            rank = (met + before).position
            emitter.add("set", None, (self.ranks, emitter.axis_value(turn), rank))
            count = same.raw("popcount").cast(int32)
            emitter.add("warp_barrier", None)
            is_first, total = before.is_equal(0), met + count
            emitter.store(self.counters, cell, total.position, is_first.position)
            emitter.add("warp_barrier", None)

    def store_count(self, total: int, own: int | None) -> None:
        """Store how often the thread's digit occurs in the tile."""
        emitter, step = self.emitter, self.step
        with emitter.scope({step.digit: emitter.axis_value(self.block.thread)}):
            place = emitter.index(step.target)
        emitter.store(emitter.slots[step.slot], place, total, own)

    def place_warps(self, counts: list[int], total: int, own: int | None) -> None:
        """Turn counters into places in the sorted tile; note how far a digit is from its start."""
        emitter, step, offsets = self.emitter, self.step, self.memory[1]
        in_warp, sum_of_warp = across_warp(self.block, "sum", total)
        before, _ = across_block(self.block, "sum", emitter.const(0, int32), sum_of_warp)
        place = emitter.raw("add", int32, before, in_warp)
        thread = emitter.axis_value(self.block.thread)
        with emitter.scope({step.digit: thread}):
            emitter.scopes[-1].mask = own
            start = emitter.cast(emitter.value(step.start), int32)  # type: ignore[arg-type]
        offset = emitter.raw("sub", int32, start, place)
        emitter.store(offsets, thread, offset, own)
        for warp, count in enumerate(counts):
            at = emitter.index(self.thread + warp * ROW)
            emitter.store(self.counters, at, place, own)
            place = emitter.raw("add", int32, place, count)

    def sort(self) -> None:
        """Put every element at its place in the sorted tile."""
        emitter, turn = self.emitter, Axis("turn", self.turns)
        with emitter.axis_loop(turn, True):
            at = emitter.axis_value(turn)
            _, cell = self.cell(turn)
            _, mask = self.element(turn)
            value = emitter.add("get", self.step.expr.dtype, (self.held, at))
            rank = emitter.add("get", int32, (self.ranks, at))
            first = emitter.load(self.counters, cell)
            place = emitter.cast(emitter.raw("add", int32, first, rank), emitter.index_dtype)
            emitter.store(self.memory[2], place, value, mask)

    def store(self) -> None:
        """Store the sorted tile: neighbours of one digit side by side."""
        emitter, step = self.emitter, self.step
        _, offsets, ordered = self.memory
        with dealt(self.block, step.count, True) as within:
            place = step.place * step.count + within
            mask = emitter.conditions([(place, 0, step.axis.size - 1)])
            at = emitter.index(within)
            value = emitter.load(ordered, at, mask)
            digit = emitter.cast(self.digit(value), emitter.index_dtype)
            offset = emitter.cast(emitter.load(offsets, digit), emitter.index_dtype)
            moved = emitter.raw("add", emitter.index_dtype, at, offset)
            with emitter.scope({step.axis: moved}):
                target = emitter.index(step.target)
            emitter.store(emitter.slots[step.slot], target, value, mask)


def sort_cuda(block: Block, step: SortStep) -> None:
    """Write a sort of one run."""
    check(step.method == "bitonic", f"CUDA has no {step.method} sort", step)
    BitonicSort(block, step).write()


class BitonicSort:
    """This class writes the network of one run."""

    def __init__(self, block: Block, step: SortStep) -> None:
        self.block, self.step, self.emitter = block, step, block.emitter
        self.keys, self.positions = (block.places[name] for name in step.tiles)
        self.size: int = block.tiles[step.tiles[0]].shape[0]

    def write(self) -> None:
        """Write reading, the network, and storing."""
        emitter = self.emitter
        self.read()
        levels, one = self.size.bit_length() - 1, emitter.integer(1)
        with emitter.loop(one, emitter.integer(levels + 1), 1, None) as level:
            size = emitter.raw("shift_left", emitter.index_dtype, one, level)
            with emitter.loop(emitter.integer(0), level, 1, None) as number:
                below = emitter.raw("add", emitter.index_dtype, number, one)
                shift = emitter.raw("sub", emitter.index_dtype, level, below)
                stride = emitter.raw("shift_left", emitter.index_dtype, one, shift)
                emitter.add("barrier", None)
                self.exchange(size, stride)
        emitter.add("barrier", None)
        self.store()

    def read(self) -> None:
        """Fill the shared tiles, past the end of the row too."""
        emitter, step, dtype = (self.emitter, self.step, self.step.expr.dtype)
        with dealt(self.block, self.size) as place:
            along = step.first + place
            tests = [(place, 0, step.count - 1), (along, 0, step.axis.size - 1)]
            mask = emitter.conditions(tests)
            with emitter.scope({step.axis: emitter.index(along)}):
                emitter.scopes[-1].mask = mask
                key = emitter.value(step.expr)
            if mask is not None:
                last = emitter.const((1 << dtype.bits) - 1, dtype)
                key = emitter.apply("where", mask, key, last, dtype=dtype)
            inside = emitter.conditions([(place, 0, self.size - 1)])
            at = emitter.index(place)
            emitter.store(self.keys, at, key, inside)
            emitter.store(self.positions, at, emitter.cast(at, int32), inside)

    def exchange(self, size: int, stride: int) -> None:
        """Order all pairs of one step of the network."""
        emitter, half = self.emitter, self.size // 2
        with dealt(self.block, half) as pair:
            inside = emitter.conditions([(pair, 0, half - 1)])
            with emitter.when(inside):
                at, step = Value(emitter, emitter.index(pair)), Value(emitter, stride)
                rest = at & (step - 1)
                low = at + at - rest
                high = low + step
                is_down = (low & Value(emitter, size)).raw("not_equal", 0, dtype=bool_)
                self.order(low.position, high.position, is_down.position)

    def order(self, low: int, high: int, is_down: int) -> None:
        """Exchange two places if they are not in order."""
        emitter, places = self.emitter, (low, high)
        keys = [Value(emitter, emitter.load(self.keys, place)) for place in places]
        positions = [Value(emitter, emitter.load(self.positions, place)) for place in places]
        is_ordered = goes_before(*keys, *positions)
        with emitter.when(is_ordered.is_equal(Value(emitter, is_down)).position):
            for place, other in ((low, 1), (high, 0)):
                emitter.store(self.keys, place, keys[other].position)
                emitter.store(self.positions, place, positions[other].position)

    def store(self) -> None:
        """Store the positions in order, counted from the start of the row."""
        emitter, step = self.emitter, self.step
        with dealt(self.block, step.count) as place:
            along = step.first + place
            tests = [(place, 0, step.count - 1), (along, 0, step.axis.size - 1)]
            mask = emitter.conditions(tests)
            at = emitter.load(self.positions, emitter.index(place), mask)
            first = emitter.cast(emitter.index(step.first), int64)
            value = emitter.raw("add", int64, emitter.cast(at, int64), first)
            with emitter.scope({step.axis: emitter.index(along)}):
                target = emitter.index(step.target)
            emitter.store(emitter.slots[step.slot], target, value, mask)

"""Radix -> Program of a CUDA block: rank the elements of a tile among those of their digit.

Every warp walks a stretch of the tile, 32 neighbours at a time, in order:

    same     the lanes whose digit is the same (`match_any`)
    rank     elements of this digit that the warp met before, and lanes below in `same`
    counter  of the digit, in the warp's own row of shared memory, grows by the lanes in `same`

Then thread d adds up digit d over the warps. That is the tile's count, for which nobody needs
ranks: elements are counted in any order. Or, after a scan over the digits, the place where each
warp's elements begin in the sorted tile. The tile is sorted in shared memory first: elements of one
digit leave it side by side, so that the stores fill whole sectors.
Ranks follow the order of the elements, so the sort is stable, and nothing is left to chance.

SortStep -> Program of a CUDA block that holds a run. "radix": for every digit of the keys ranks as
above; keys and positions move through shared memory, what follows the run is greater. "bitonic",
for few elements: a network over pairs (key, position).

    for size = 2, 4, ..., n: for stride = size/2, ..., 1:
        all pairs (i, i + stride): order them, upwards where i & size is 0, else downwards

Places past the end of the row hold the largest key and a position behind all others, so they stay
last. Positions differ, hence no two pairs are equal, and equal keys keep their order.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from picograd.codegen.block_cuda import Block
from picograd.codegen.linearize_scan import across_block, across_warp
from picograd.codegen.tile import SortStep
from picograd.codegen.value import Value, goes_before
from picograd.dtype import DType, bool_, int32, int64, uint32
from picograd.errors import check
from picograd.helpers import ceil_div
from picograd.schedule.index import Axis, Index, axis_index, constant
from picograd.schedule.loop import DIGITS, Radix, Sort

WARP = 32
ROW = DIGITS + 1  # counters of a warp: one a digit, and one for places past the end


@contextmanager
def dealt(block: Block, count: int, is_unrolled: bool = False) -> Iterator[Index]:
    """Open the loop in which places are dealt to the threads in turn; give the present one."""
    turn = Axis("turn", ceil_div(count, block.threads))
    with block.emitter.axis_loop(turn, is_unrolled):
        yield axis_index(turn) * block.threads + axis_index(block.thread)


def radix_cuda(block: Block, step: Radix) -> None:
    """Write one step of a radix sort."""
    is_fit = block.threads >= DIGITS and step.run % block.threads == 0
    check(is_fit, "a radix step takes a thread for each digit", step)
    RadixMove(block, step).write()


class RadixTile:
    """This class ranks elements that a block holds by a digit of them."""

    def __init__(self, block: Block, step: Radix | Sort) -> None:
        self.block, self.emitter = block, block.emitter
        self.memory: list[int] = [block.places[name] for name in block.tiles]
        self.counters: int = self.memory[0]
        self.warps: int = block.threads // WARP
        self.turns: int = ceil_div(step.run, block.threads)
        self.thread: Index = axis_index(block.thread)
        self.own: int | None = self.emitter.conditions([(self.thread, 0, DIGITS - 1)])
        self.dtype: DType = step.body.dtype
        self.shift: Value | int = 0
        self.held: int = self.emitter.add("array", self.dtype, arg=self.turns)
        self.ranks: int = self.emitter.add("array", int32, arg=self.turns)
        self.moved: list[tuple[int, int]] = []  # arrays that are sorted, each into a tile

    def clear(self) -> None:
        """Set all counters to zero."""
        emitter, size = self.emitter, self.warps * ROW
        with dealt(self.block, size, True) as place:
            inside = emitter.conditions([(place, 0, size - 1)])
            zero = emitter.const(0, int32)
            emitter.store(self.counters, emitter.index(place), zero, inside)

    def within(self, turn: Axis) -> Index:
        """Place in the tile of a thread's element; the elements of a warp lie together."""
        lane, warp = self.thread % WARP, self.thread // WARP
        return (warp * self.turns + axis_index(turn)) * WARP + lane

    def is_inside(self, turn: Axis) -> int | None:
        """Tell whether there is an element, unless there is one at every place."""

    def digit(self, value: int) -> int:
        """Take the digit of a value."""
        shifted = Value(self.emitter, value).raw("shift_right", self.shift)
        return (shifted & (DIGITS - 1)).cast(uint32).position

    def cell(self, turn: Axis) -> tuple[int, int]:
        """Give the digit of a turn's element, and where the warp counts that digit."""
        emitter, at = self.emitter, self.emitter.axis_value(turn)
        value = emitter.get(self.held, at)
        digit, mask = self.digit(value), self.is_inside(turn)
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
            bits -= self.is_inside(turn) is None
            same = Value(emitter, emitter.add("match_any", uint32, (digit,), bits))
            before = (same & below).raw("popcount").cast(int32)
            met = Value(emitter, emitter.load(self.counters, cell))
            rank = (met + before).position
            emitter.put(self.ranks, emitter.axis_value(turn), rank)
            count = same.raw("popcount").cast(int32)
            emitter.add("warp_barrier", None)
            is_first, total = before.is_equal(0), met + count
            emitter.store(self.counters, cell, total.position, is_first.position)
            emitter.add("warp_barrier", None)

    def tally(self) -> None:
        """Count the digits alone."""
        turn = Axis("turn", self.turns)
        with self.emitter.axis_loop(turn, True):
            _, cell = self.cell(turn)
            self.emitter.add("count", None, (self.counters, cell))

    def tallied(self, look: Callable[[], None]) -> tuple[list[int], int]:
        """Rank or tally the elements; count the thread's digit in every warp, and in all."""
        emitter = self.emitter
        emitter.add("barrier", None)
        look()
        emitter.add("barrier", None)
        places = [self.thread + warp * ROW for warp in range(self.warps)]
        counts = [emitter.load(self.counters, emitter.index(place), self.own) for place in places]
        return counts, functools.reduce(partial(emitter.raw, "add", int32), counts)

    def first_place(self, total: int) -> int:
        """Find where the thread's digit begins in the sorted tile."""
        in_warp, sum_of_warp = across_warp(self.block, "sum", total)
        zero = self.emitter.const(0, int32)
        before, _ = across_block(self.block, "sum", zero, sum_of_warp)
        return self.emitter.raw("add", int32, before, in_warp)

    def sort(self, place: int, counts: list[int]) -> None:
        """Put every element at its place in the sorted tile: after those of earlier warps."""
        emitter, turn = self.emitter, Axis("turn", self.turns)
        for warp, count in enumerate(counts):
            at = emitter.index(self.thread + warp * ROW)
            emitter.store(self.counters, at, place, self.own)
            place = emitter.raw("add", int32, place, count)
        emitter.add("barrier", None)
        with emitter.axis_loop(turn, True):
            at = emitter.axis_value(turn)
            _, cell = self.cell(turn)
            rank = emitter.get(self.ranks, at)
            first = emitter.load(self.counters, cell)
            moved = emitter.cast(emitter.raw("add", int32, first, rank), emitter.index_dtype)
            for array, tile in self.moved:
                value = emitter.get(array, at)
                emitter.store(tile, moved, value, self.is_inside(turn))
        emitter.add("barrier", None)


class RadixMove(RadixTile):
    """This class writes a step of the sort of a long row on one tile of it."""

    def __init__(self, block: Block, step: Radix) -> None:
        super().__init__(block, step)
        self.step: Radix = step
        self.last: Index = constant(step.tile.size - 1)
        self.shift: Value | int = step.shift

    def write(self) -> None:
        """Write ranking; then the counts, or the moves."""
        self.clear()
        self.read()
        if self.step.counted is None:
            self.store_count(self.tallied(self.tally)[1])
            return
        until, every = self.counted(axis_index(self.step.tile)), self.counted(self.last)
        counts, total = self.tallied(self.rank)
        place = self.first_place(total)
        lower = self.first_place(every)
        before = self.emitter.raw("sub", int32, until, total)
        start = self.emitter.raw("add", int32, lower, before)
        offset = self.emitter.raw("sub", int32, start, place)
        self.emitter.store(self.memory[1], self.emitter.index(self.thread), offset, self.own)
        self.moved = [(self.held, self.memory[2])]
        self.sort(place, counts)
        self.store()

    def place(self, within: Index) -> Index:
        """Find where in the row an element of the tile is."""
        return axis_index(self.step.tile) * self.step.run + within

    def is_inside(self, turn: Axis) -> int | None:
        """Tell whether the row has this element."""
        place = self.place(self.within(turn))
        return self.emitter.conditions([(place, 0, self.step.axis.size - 1)])

    def read(self) -> None:
        """Load all elements of the thread, so that the loads are in flight together.

        Past the end it is the last one: loads under conditions would wait for one another.
        """
        emitter, turn = self.emitter, Axis("turn", self.turns)
        with emitter.axis_loop(turn, True):
            place = emitter.index(self.place(self.within(turn)))
            if self.is_inside(turn) is not None:
                last = emitter.integer(self.step.axis.size - 1)
                place = emitter.raw("minimum", emitter.index_dtype, place, last)
            with emitter.scope({self.step.axis: place}):
                value = emitter.value(self.step.body)
            emitter.put(self.held, emitter.axis_value(turn), value)

    def store_count(self, total: int) -> None:
        """Store how often the thread's digit occurs in the tile."""
        emitter, step = self.emitter, self.step
        with emitter.scope({step.digit: emitter.axis_value(self.block.thread)}):
            place = emitter.index(step.target)
        emitter.store(emitter.slots[step.slot], place, total, self.own)

    def counted(self, tile: Index) -> int:
        """Read how many of the thread's digit there are up to a tile."""
        emitter, step = self.emitter, self.step
        thread = emitter.axis_value(self.block.thread)
        with emitter.scope({step.digit: thread, step.tile: emitter.index(tile)}):
            emitter.scopes[-1].mask = self.own
            return emitter.cast(emitter.value(step.counted), int32)  # type: ignore[arg-type]

    def store(self) -> None:
        """Store the sorted tile: neighbours of one digit side by side."""
        emitter, step = self.emitter, self.step
        _, offsets, ordered = self.memory
        with dealt(self.block, step.run, True) as within:
            mask = emitter.conditions([(self.place(within), 0, step.axis.size - 1)])
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
    check(step.method in ("bitonic", "radix"), f"CUDA has no {step.method} sort", step)
    (BitonicSort if step.method == "bitonic" else RadixSort)(block, step).write()


def key_of(block: Block, step: SortStep, place: Index) -> int:
    """Compute the key at a place of a run: past the end the largest one."""
    emitter, sort, along = block.emitter, step.sort, step.first + place
    dtype = sort.body.dtype
    mask = emitter.conditions([(place, 0, sort.run - 1), (along, 0, sort.axis.size - 1)])
    with emitter.scope({sort.axis: emitter.index(along)}):
        emitter.scopes[-1].mask = mask
        key = emitter.value(sort.body)
    if mask is None:
        return key
    last = emitter.const((1 << dtype.bits) - 1, dtype)
    return emitter.apply("where", mask, key, last, dtype=dtype)


def store_position(block: Block, step: SortStep, place: Index, position: int) -> None:
    """Store where the element at a place of the sorted run was, counted from the row's start."""
    emitter, sort, along = block.emitter, step.sort, step.first + place
    mask = emitter.conditions([(place, 0, sort.run - 1), (along, 0, sort.axis.size - 1)])
    first = emitter.cast(emitter.index(step.first), int64)
    value = emitter.raw("add", int64, emitter.cast(position, int64), first)
    with emitter.scope({sort.axis: emitter.index(along)}):
        target = emitter.index(sort.target)
    emitter.store(emitter.slots[sort.slot], target, value, mask)


class RadixSort(RadixTile):
    """This class writes the sort of a run, digit after digit, by the block that holds it."""

    def __init__(self, block: Block, step: SortStep) -> None:
        super().__init__(block, step.sort)
        self.step: SortStep = step
        self.positions: int = self.emitter.add("array", int32, arg=self.turns)
        arrays = (self.held, self.positions)
        self.moved = list(zip(arrays, self.memory[1:], strict=True))

    def write(self) -> None:
        """Write reading, a step for each digit, and storing."""
        emitter, turn = self.emitter, Axis("turn", self.turns)
        with emitter.axis_loop(turn, True):
            at, place = emitter.axis_value(turn), self.within(turn)
            emitter.put(self.held, at, key_of(self.block, self.step, place))
            position = emitter.cast(emitter.index(place), int32)
            emitter.put(self.positions, at, position)
        first, stop = emitter.integer(0), emitter.integer(self.dtype.bits)
        with emitter.loop(first, stop, DIGITS.bit_length() - 1, None) as shift:
            self.shift = Value(emitter, emitter.cast(shift, self.dtype))
            self.clear()
            counts, total = self.tallied(self.rank)
            self.sort(self.first_place(total), counts)
            with emitter.axis_loop(turn, True):
                at, here = emitter.axis_value(turn), emitter.index(self.within(turn))
                for array, tile in self.moved:
                    value = emitter.cast(emitter.load(tile, here), emitter.dtype(array))
                    emitter.put(array, at, value)
        with emitter.axis_loop(turn, True):
            position = emitter.get(self.positions, emitter.axis_value(turn))
            store_position(self.block, self.step, self.within(turn), position)


class BitonicSort:
    """This class writes the network of one run."""

    def __init__(self, block: Block, step: SortStep) -> None:
        self.block, self.step, self.emitter = block, step, block.emitter
        self.keys, self.positions = block.places["keys"], block.places["positions"]
        (self.size,) = block.tiles["keys"].shape

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
        emitter, step = self.emitter, self.step
        with dealt(self.block, self.size) as place:
            key = key_of(self.block, step, place)
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
        with dealt(self.block, step.sort.run) as place:
            position = emitter.load(self.positions, emitter.index(place))
            store_position(self.block, step, place, position)

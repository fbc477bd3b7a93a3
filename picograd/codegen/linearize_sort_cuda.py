"""SortStep -> Program of a CUDA block: a bitonic network over pairs (key, position).

    for size = 2, 4, ..., n: for stride = size/2, ..., 1:
        all pairs (i, i + stride): order them, upwards where i & size is 0, else downwards

Places past the end of the row hold the largest key and a position behind all others, so they stay
last. Positions differ, hence no two pairs are equal, and equal keys keep their order.
"""

from picograd.codegen.block_cuda import Block
from picograd.codegen.tile import SortStep
from picograd.dtype import bool_, int32, int64
from picograd.errors import check
from picograd.helpers import ceil_div
from picograd.schedule.index import Axis, axis_index


def sort_cuda(block: Block, step: SortStep) -> None:
    """Write a sort of one run."""
    check(step.method == "bitonic", f"CUDA has no {step.method} sort", step)
    BitonicSort(block, step).write()


class BitonicSort:
    """This class writes the network of one run."""

    block: Block
    step: SortStep
    keys: int
    positions: int

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
        turn = Axis("turn", ceil_div(self.size, self.block.threads))
        place = axis_index(turn) * self.block.threads + axis_index(self.block.thread)
        along = step.first + place
        with emitter.axis_loop(turn):
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
        emitter, half, threads = self.emitter, self.size // 2, self.block.threads
        turn = Axis("turn", ceil_div(half, threads))
        pair = axis_index(turn) * threads + axis_index(self.block.thread)
        dtype, zero = emitter.index_dtype, emitter.integer(0)
        with emitter.axis_loop(turn):
            inside = emitter.conditions([(pair, 0, half - 1)])
            with emitter.when(inside):
                at = emitter.index(pair)
                below = emitter.raw("sub", dtype, stride, emitter.integer(1))
                rest = emitter.raw("bitwise_and", dtype, at, below)
                twice = emitter.raw("add", dtype, at, at)
                low = emitter.raw("sub", dtype, twice, rest)
                high = emitter.raw("add", dtype, low, stride)
                side = emitter.raw("bitwise_and", dtype, low, size)
                is_down = emitter.raw("not_equal", bool_, side, zero)
                self.order(low, high, is_down)

    def order(self, low: int, high: int, is_down: int) -> None:
        """Exchange two places if they are not in order."""
        emitter, places = self.emitter, (low, high)
        keys = [emitter.load(self.keys, place) for place in places]
        positions = [emitter.load(self.positions, place) for place in places]
        is_less = emitter.raw("less", bool_, *keys)
        is_equal = emitter.raw("equal", bool_, *keys)
        is_earlier = emitter.raw("less", bool_, *positions)
        is_equal = emitter.raw("and", bool_, is_equal, is_earlier)
        is_ordered = emitter.raw("or", bool_, is_less, is_equal)
        is_wrong = emitter.raw("equal", bool_, is_ordered, is_down)
        with emitter.when(is_wrong):
            for place, other in ((low, 1), (high, 0)):
                emitter.store(self.keys, place, keys[other])
                emitter.store(self.positions, place, positions[other])

    def store(self) -> None:
        """Store the positions in order, counted from the start of the row."""
        emitter, step = self.emitter, self.step
        turn = Axis("turn", ceil_div(step.count, self.block.threads))
        place = axis_index(turn) * self.block.threads + axis_index(self.block.thread)
        along = step.first + place
        with emitter.axis_loop(turn):
            tests = [(place, 0, step.count - 1), (along, 0, step.axis.size - 1)]
            mask = emitter.conditions(tests)
            at = emitter.load(self.positions, emitter.index(place), mask)
            first = emitter.cast(emitter.index(step.first), int64)
            value = emitter.raw("add", int64, emitter.cast(at, int64), first)
            with emitter.scope({step.axis: emitter.index(along)}):
                target = emitter.index(step.target)
            emitter.store(emitter.slots[step.slot], target, value, mask)

"""Join on Hopper: blocks leave parts of a point in a workspace, in the order of their registers.

Every thread adds what the same thread of other blocks left, 16 bytes at a time, so that a part
needs no layout, and every warp waits for its own share of a part.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from picograd.codegen.block_cuda import Block
from picograd.codegen.boxes import Join
from picograd.codegen.deal_cuda import add
from picograd.codegen.layout import WgmmaAccumulator
from picograd.codegen.linearize_cuda_roles import first_lane
from picograd.codegen.tile import Step
from picograd.dtype import int32
from picograd.errors import internal
from picograd.helpers import product
from picograd.schedule.index import Axis, axis_index

WARP, LANES = 32, 4  # threads of a warp; numbers of a vector
Write = Callable[[Block, Sequence[Step]], None]


def join(block: Block, step: Join, write: Write) -> None:
    """Leave a part of a point, or add the parts of others and `write` what follows."""
    emitter = block.emitter
    number = block.first_workspace + step.flags
    flags = emitter.add("workspace", int32, arg=number)
    place, _, depth = step.last
    early = place, 0, depth - 1
    is_part = emitter.conditions([early])
    is_last = emitter.conditions([step.last])
    with emitter.when(is_part):
        leave(block, step, flags)
    with emitter.when(is_last):
        take(block, step, flags)
        write(block, step.body)


def flag(block: Block, other: Axis) -> int:
    """Find the flag of this warp's share of a block's part."""
    warps = block.threads // WARP
    warp = axis_index(block.thread) // WARP
    return block.emitter.index(axis_index(other) * warps + warp)


@contextmanager
def pieces(block: Block, step: Join, other: Axis) -> Iterator[tuple[int, list[int]]]:
    """Open a loop over vectors of a part: where they lie, and the registers' numbers."""
    emitter, tile = block.emitter, block.tiles[step.acc]
    if not isinstance(tile.layout, WgmmaAccumulator):
        internal("blocks share what wgmma multiplies", step)
    count = tile.layout.register_count
    thread = axis_index(block.thread)
    warp, lane = thread // WARP, thread % WARP
    first = warp * (WARP * count)
    share = first + lane * LANES
    start = axis_index(other) * product(tile.shape) + share
    piece = Axis("piece", count // LANES)
    number = axis_index(piece)
    with emitter.axis_loop(piece, True):
        vector = number * (WARP * LANES)
        place = emitter.index(start + vector)
        registers = [emitter.index(number * LANES + n) for n in range(LANES)]
        yield place, registers


def leave(block: Block, step: Join, flags: int) -> None:
    """Store a part, and say so."""
    emitter = block.emitter
    acc, partial = block.arrays[step.acc], block.places[step.partial]
    dtype = block.tiles[step.acc].dtype
    with pieces(block, step, step.block) as (place, registers):
        found = [emitter.add("get", dtype, (acc, number)) for number in registers]
        value = emitter.add("pack", dtype, found, lanes=LANES)
        emitter.store(partial, place, value)
    add(block, "warp_barrier")
    with emitter.when(first_lane(block)):
        own = flag(block, step.block)
        add(block, "flag_raise", (flags, own))


def take(block: Block, step: Join, flags: int) -> None:
    """Add the parts of other blocks, in order."""
    emitter = block.emitter
    acc, partial = block.arrays[step.acc], block.places[step.partial]
    dtype = block.tiles[step.acc].dtype
    other = Axis("other", step.block.size)
    first = emitter.index(step.first)
    last = emitter.axis_value(step.block)
    with emitter.loop(first, last, 1, None) as variable:
        emitter.bind(other, variable)
        with emitter.when(first_lane(block)):
            raised = flag(block, other)
            add(block, "flag_wait", (flags, raised))
        add(block, "warp_barrier")
        with pieces(block, step, other) as (place, registers):
            part = emitter.load(partial, place, None, LANES)
            for lane, number in enumerate(registers):
                value = emitter.add("extract", dtype, (part,), lane)
                before = emitter.add("get", dtype, (acc, number))
                total = emitter.raw("add", dtype, before, value)
                add(block, "set", (acc, number, total))

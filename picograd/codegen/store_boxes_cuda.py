"""Stores in boxes on Hopper: a fragment leaves by way of shared memory.

A warp gathers 16 rows and 128 bytes of columns at a time in a slot of its own, swizzled so that
its eight rows of four lanes hit different banks; one lane hands the slot over.
"""

from contextlib import ExitStack
from dataclasses import dataclass

from picograd.codegen.block_cuda import Block, before_widening, inside, lane_of
from picograd.codegen.layout import WgmmaAccumulator
from picograd.codegen.linearize_cuda_roles import first_lane
from picograd.codegen.products_cuda import add
from picograd.codegen.tile import Store, Tile
from picograd.errors import check, internal
from picograd.schedule.index import Axis, Index, axis_index, constant, substitute
from picograd.schedule.loop import rewrite

ROWS = 16  # of a warp in a fragment
CHUNK_BYTES = 16  # that the swizzle permutes


@dataclass(frozen=True, slots=True)
class Part:
    """What a warp stores at once: columns of one fragment, through a slot that begins at `slot`."""

    tile: Tile
    slot: int
    fragment: int
    number: int  # of the 128 bytes of columns

    @property
    def columns(self) -> int:
        """Columns of a part."""
        return self.tile.shape[-1]


def store_boxes(block: Block, step: Store) -> None:
    """Write a Store of a whole fragment in boxes."""
    layout, box = step.layout, step.box
    if not isinstance(layout, WgmmaAccumulator) or box is None:
        internal("only fragments leave in boxes", step)
    tile = block.tiles[box.tile]
    slices, tensor = layout.n // tile.shape[-1], block.tensor(box.tensor)
    name = block.emitter.add("tensor", None, arg=tensor)
    # A slot is free again when `stages` later ones have been handed over, in this step or the next.
    check(layout.stacked * slices % tile.stages == 0, "slots go round in every step", step)
    for turn in range(layout.stacked * slices):
        fragment, number = divmod(turn, slices)
        part = Part(tile, slot_place(block, tile, turn % tile.stages), fragment, number)
        with block.emitter.when(first_lane(block)):
            add(block, "store_box_wait", (), tile.stages - 1)
        add(block, "warp_barrier")
        gather(block, step, layout, part)
        add(block, "async_fence")
        add(block, "warp_barrier")
        places = [block.emitter.index(index) for index in corner(block, step, layout, part)]
        with block.emitter.when(first_lane(block)):
            add(block, "store_box", (name, block.places[tile.name], part.slot, *places))


def slot_place(block: Block, tile: Tile, slot: int) -> int:
    """Find where a slot of this warp begins."""
    size = tile.shape[-2] * tile.shape[-1]
    return block.emitter.index((axis_index(block.crew) * tile.stages + slot) * size)


def corner(block: Block, step: Store, layout: WgmmaAccumulator, part: Part) -> list[Index]:
    """Find where a part of this warp lies in the array."""
    warp = axis_index(block.crew) % (4 * layout.groups)
    row = (warp // 4 * layout.stacked + part.fragment) * 64 + warp % 4 * ROWS
    near, far, *batch = step.box.at  # type: ignore[union-attr]
    return [near + part.number * part.columns, far + row, *batch]


def gather(block: Block, step: Store, layout: WgmmaAccumulator, part: Part) -> None:
    """Compute one part of a fragment and leave it in a slot."""
    emitter = block.emitter
    found, values = block.walked(layout, step.dims, [step.expr], [step.index], step.conditions)
    named = {axis.name: axis for axis, _ in found.loops}
    piece = Axis("piece", part.columns // 8)
    first = {found.vector[0]: constant(0)} if found.vector else {}
    tests = [(substitute(substitute(i, values), first), lo, hi) for i, lo, hi in step.conditions]
    with ExitStack() as stack:
        stack.enter_context(emitter.axis_loop(piece, True))
        across = axis_index(piece) + part.number * piece.size
        emitter.bind(named["across"], emitter.index(across))
        if "stack" in named:
            emitter.bind(named["stack"], emitter.integer(part.fragment))
        for name in ("half", "pair"):
            if name in named:
                stack.enter_context(emitter.axis_loop(named[name], True))
        inside(block, stack, found, emitter.conditions([*found.conditions, *tests]))
        value = emitter.value(rewrite(step.expr, values))
        leave(block, part, value, piece, named)


def leave(block: Block, part: Part, value: int, piece: Axis, named: dict[str, Axis]) -> None:
    """Put two neighbours, or one, at their place in a slot."""
    emitter, dtype = block.emitter, part.tile.dtype
    lane, half = axis_index(block.thread) % 32, axis_index(named["half"])
    chunk, row = CHUNK_BYTES // dtype.itemsize, lane // 4
    column = axis_index(piece) * 8 + lane % 4 * 2
    number = emitter.index(column // chunk)
    permuted = emitter.raw("bitwise_xor", emitter.index_dtype, number, emitter.index(row))
    place = emitter.arithmetic("mul", permuted, emitter.integer(chunk))
    rest = (row + half * 8) * part.columns + column % chunk
    lanes = 2
    if "pair" in named:
        rest, lanes = rest + axis_index(named["pair"]), 1
    place = emitter.arithmetic("add", place, emitter.index(rest))
    place = emitter.arithmetic("add", part.slot, place)
    value = emitter.cast(before_widening(emitter, value, dtype), dtype)
    value = emitter.splat(value, 2) if lanes == 2 else lane_of(emitter, value, 0)
    args = (block.places[part.tile.name], place, value)
    emitter.add("store", dtype, args, lanes=lanes)

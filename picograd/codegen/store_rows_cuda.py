"""Stores in rows on Hopper: a fragment whose rows begin anywhere leaves by way of shared memory.

From its registers each lane would store two neighbours, of 2 bytes each, and a warp eight places
at once. From a slot of shared memory (codegen/store_boxes_cuda.py) a warp stores a row at a time.
"""

from dataclasses import replace

from picograd.codegen.block_cuda import Block, put, tests_of
from picograd.codegen.layout import WgmmaAccumulator
from picograd.codegen.products_cuda import add
from picograd.codegen.store_boxes_cuda import (
    CHUNK_BYTES,
    ROWS,
    WARP,
    Part,
    gather,
    given,
    rows_of,
    slot_place,
    swizzled,
)
from picograd.codegen.tile import Store
from picograd.codegen.tile_pipeline import RowStore, rounded_product
from picograd.errors import internal
from picograd.schedule.index import Axis, axis_index, constant, substitute
from picograd.schedule.loop import rewrite, walk

SHORT = 16  # nodes of a formula that is written out for every row


def store_rows(block: Block, step: Store) -> None:
    """Write a Store of a whole fragment in rows."""
    layout, box = step.layout, step.box
    if not isinstance(layout, WgmmaAccumulator) or not isinstance(box, RowStore):
        internal("only fragments leave in rows", step)
    tile = block.tiles[box.tile]
    slices = layout.n // tile.shape[-1]
    rounded = rounded_product(step.expr)
    expr = rounded or step.expr
    is_lone = not any(each.op == "load" for each in walk(expr))
    conditions = () if is_lone else step.conditions  # of what is loaded: slots have room
    place = axis_index(step.dims[1])
    held = replace(step, expr=expr, index=place, conditions=conditions)
    for turn in range(layout.stacked * slices):
        fragment, number = divmod(turn, slices)
        slot = slot_place(block, tile, turn % tile.stages)
        part = Part(tile, slot, fragment, number)
        add(block, "warp_barrier")
        gather(block, held, layout, part)
        add(block, "warp_barrier")
        leave_rows(block, step, layout, part, rounded is not None)


def leave_rows(
    block: Block, step: Store, layout: WgmmaAccumulator, part: Part, is_product: bool
) -> None:
    """Store the elements of a slot, or what is made of the product there; 32 lanes along a row."""
    emitter, tile = block.emitter, part.tile
    across = part.columns // WARP
    lane = axis_index(block.thread) % WARP
    line = Axis("line", ROWS * across)
    is_short = sum(1 for _ in walk(step.expr)) <= SHORT
    with emitter.axis_loop(line, True if is_short else None):
        row = axis_index(line) // across
        column = axis_index(line) % across * WARP + lane
        down, along = step.dims
        values = {
            down: rows_of(block, layout, constant(part.fragment)) + row,
            along: column + part.number * part.columns,
        }
        chunk = CHUNK_BYTES // tile.dtype.itemsize
        place = swizzled(block, column // chunk, row % 8, chunk)
        rest = emitter.index(row * part.columns + column % chunk)
        place = emitter.arithmetic("add", emitter.arithmetic("add", place, rest), part.slot)
        mask = emitter.conditions(tests_of(step, None, values))
        with emitter.scope({}, None):
            emitter.scopes[-1].mask = emitter.both(emitter.scopes[-1].mask, mask)
            block.given = emitter.load(block.places[tile.name], place, None, 1)
            value = block.given
            if is_product:
                value = emitter.value(rewrite(step.expr, values, given))
            index = substitute(step.index, values)
            put(block, emitter.slots[step.slot], index, value, emitter.scopes[-1].mask)

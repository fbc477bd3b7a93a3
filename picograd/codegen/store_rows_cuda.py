"""Stores in rows on Hopper: a fragment whose rows begin anywhere leaves by way of shared memory.

From its registers each lane would store two neighbours, of 2 bytes each, and a warp eight places
at once. From a slot of shared memory (codegen/store_boxes_cuda.py) a warp stores a row at a time.
"""

from collections.abc import Mapping
from dataclasses import replace

from picograd.codegen.block_cuda import Block, is_multiple, is_uniform, put, tests_of
from picograd.codegen.emit import is_unit
from picograd.codegen.layout import WgmmaAccumulator
from picograd.codegen.products_cuda import add
from picograd.codegen.store_boxes_cuda import (
    CHUNK_BYTES,
    ROWS,
    WARP,
    Part,
    gather,
    given,
    places_of,
    rows_of,
    slot_place,
    swizzled,
)
from picograd.codegen.tile import Store
from picograd.codegen.tile_pipeline import RowStore, rounded_product
from picograd.errors import internal
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, substitute
from picograd.schedule.loop import rewrite, walk

SHORT = 16  # nodes of a formula that is written out for every row


def store_rows(block: Block, step: Store) -> None:
    """Write a Store of a whole fragment in rows."""
    layout, box = step.layout, step.box
    if not isinstance(layout, WgmmaAccumulator) or not isinstance(box, RowStore):
        internal("only fragments leave in rows", step)
    tile = block.tiles[box.tile]
    rounded = rounded_product(step.expr)
    expr = rounded or step.expr
    is_lone = not any(each.op == "load" for each in walk(expr))
    conditions = () if is_lone else step.conditions  # of what is loaded: slots have room
    place = axis_index(step.dims[1])
    held = replace(step, expr=expr, index=place, conditions=conditions)
    for turn, (fragment, first) in enumerate(places_of(layout, tile)):
        slot = slot_place(block, tile, turn % tile.stages)
        part = Part(tile, slot, fragment, first, tile.shape[-1])
        add(block, "warp_barrier")
        gather(block, held, layout, part)
        add(block, "warp_barrier")
        leave_rows(block, step, layout, part, rounded is not None)


def leave_rows(
    block: Block, step: Store, layout: WgmmaAccumulator, part: Part, is_product: bool
) -> None:
    """Store the elements of a slot, or what is made of the product there, along its rows.

    A lane takes 16 bytes if all arrays allow it, else an element.
    """
    emitter, tile = block.emitter, part.tile
    chunk = CHUNK_BYTES // tile.dtype.itemsize
    neighbour = Axis("neighbour", chunk)
    lane, first_row = (
        axis_index(block.thread) % WARP,
        rows_of(block, layout, constant(part.fragment)),
    )
    for lanes in (chunk, 1):
        line = Axis("line", ROWS * part.columns // lanes // WARP)
        row, number = row_and_number(line, lane, part.columns // lanes)
        column = number * lanes
        if lanes > 1:
            column = column + axis_index(neighbour)
        down, along = step.dims
        values = {down: first_row + row, along: column + part.first}
        if lanes == 1 or is_whole(step, values, neighbour, is_product):
            break
    vector = (neighbour, lanes) if lanes > 1 else None
    is_short = lanes > 1 or sum(1 for _ in walk(step.expr)) <= SHORT
    with emitter.axis_loop(line, True if is_short else None):
        start = number * lanes
        place = swizzled(block, start // chunk, row % 8, chunk)
        rest = emitter.index(row * part.columns + start % chunk)
        place = emitter.arithmetic("add", emitter.arithmetic("add", place, rest), part.slot)
        with emitter.scope({neighbour: emitter.integer(0)} if vector else {}, vector):
            scope = emitter.scopes[-1]
            tests = tests_of(step, neighbour if vector else None, values)
            scope.mask = emitter.both(scope.mask, emitter.conditions(tests))
            block.given = emitter.load(block.places[tile.name], place, None, lanes)
            value = block.given
            if is_product:
                value = emitter.value(rewrite(step.expr, values, given))
            put(block, emitter.slots[step.slot], substitute(step.index, values), value, scope.mask)


def row_and_number(line: Axis, lane: Index, across: int) -> tuple[Index, Index]:
    """Find the row of a lane and its number along it: several lines a row, or rows a line."""
    if across >= WARP:
        lines = across // WARP
        return axis_index(line) // lines, axis_index(line) % lines * WARP + lane
    return axis_index(line) * (WARP // across) + lane // across, lane % across


def is_whole(step: Store, values: Mapping[Axis, Index], neighbour: Axis, is_product: bool) -> bool:
    """Tell whether what a lane reads and stores are vectors that are aligned, or not at all."""
    lanes = neighbour.size
    loads = [each.arg[1] for each in walk(step.expr) if each.op == "load"] if is_product else []
    for index in (step.index, *loads):
        moved = substitute(index, values)
        is_varying = neighbour in axes_of(moved)
        is_vector = is_unit(moved, neighbour) and is_multiple(moved, neighbour, lanes)
        if is_varying and not is_vector:
            return False
    tests = [(substitute(index, values), lo, hi) for index, lo, hi in step.conditions]
    return all(is_uniform(test, neighbour, lanes) for test in tests)

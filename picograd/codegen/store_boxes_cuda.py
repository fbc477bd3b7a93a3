"""Stores in boxes on Hopper: a fragment leaves by way of shared memory.

A warp gathers 16 rows and 128 bytes of columns at a time in a slot of its own, swizzled so that
its eight rows of four lanes hit different banks; one lane hands the slot over.

Every register has its own instructions, so that a long formula would not fit the cache of them. It
is computed in a second round, by a loop over the slots: each lane takes 16 bytes of a row, and
reads other arrays in such pieces too.

Stores in rows on Hopper: a fragment whose rows begin anywhere leaves by way of shared memory.

From its registers each lane would store two neighbours, of 2 bytes each, and a warp eight places
at once. From a slot of shared memory a warp stores a row at a time.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from picograd.codegen.block_cuda import (
    GIVEN,
    Block,
    before_widening,
    inside,
    is_multiple,
    is_uniform,
    lane_of,
    put,
    tests_of,
)
from picograd.codegen.boxes import BoxStore, RowStore, is_rounded_product, rounded_product
from picograd.codegen.deal_cuda import add
from picograd.codegen.lanes import is_unit
from picograd.codegen.layout import WgmmaAccumulator
from picograd.codegen.linearize_cuda_roles import first_lane
from picograd.codegen.tile import Store, Tile
from picograd.errors import check, internal
from picograd.helpers import ceil_div
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, substitute
from picograd.schedule.loop import Expr, rewrite, walk

ROWS = 16  # of a warp in a fragment
FRAGMENT_ROWS = 64  # of a warpgroup
CHUNK_BYTES = 16  # that the swizzle permutes
WARP = 32


@dataclass(frozen=True, slots=True)
class Part:
    """What a warp stores at once: columns of one fragment, through a slot that begins at `slot`.

    The last part of a fragment has columns of the part before too, if it has too few of its own. A
    fragment with fewer than 128 bytes of them is stored where the array has none behind.
    """

    tile: Tile
    slot: int
    fragment: int
    first: int  # column of the fragment
    width: int  # columns that the fragment has of 128 bytes

    @property
    def columns(self) -> int:
        """Columns of a part."""
        return self.tile.shape[-1]


def store_boxes(block: Block, step: Store) -> None:
    """Write a Store of a whole fragment in boxes."""
    layout, box = step.layout, step.box
    if not isinstance(layout, WgmmaAccumulator) or not isinstance(box, BoxStore):
        internal("only fragments leave in boxes", step)
    tile = block.tiles[box.tile]
    parts = places_of(layout, tile)
    name = block.emitter.add("tensor", None, arg=block.tensor(box.tensor))
    if box.is_rolled:
        store_rolled(block, step, layout, tile, name)
        return
    # A slot is free again when `stages` later ones have been handed over, in this step or the next.
    check(len(parts) % tile.stages == 0, "slots go round in every step", step)
    for turn, (fragment, first) in enumerate(parts):
        slot = slot_place(block, tile, turn % tile.stages)
        part = Part(tile, slot, fragment, first, min(tile.shape[-1], layout.n))
        await_slots(block, tile.stages - 1)
        gather(block, step, layout, part)
        start = corner(block, step, layout, constant(fragment), constant(first))
        hand_over(block, (name, block.places[tile.name], slot), start)


def places_of(layout: WgmmaAccumulator, tile: Tile) -> list[tuple[int, int]]:
    """List the parts of a fragment by their number of 64 rows, and first column."""
    width = min(tile.shape[-1], layout.n)
    firsts = [min(n * width, layout.n - width) for n in range(ceil_div(layout.n, width))]
    return [(fragment, first) for fragment in range(layout.stacked) for first in firsts]


def await_slots(block: Block, pending: int) -> None:
    """Wait until all but the last boxes of this warp have left their slots."""
    with block.emitter.when(first_lane(block)):
        add(block, "store_box_wait", (), pending)
    add(block, "warp_barrier")


def hand_over(block: Block, box: tuple[int, int, int], start: Sequence[Index]) -> None:
    """Let a box leave, once all lanes have written to its slot."""
    add(block, "async_fence")
    add(block, "warp_barrier")
    places = [block.emitter.index(index) for index in start]
    with block.emitter.when(first_lane(block)):
        add(block, "store_box", (*box, *places))


def store_rolled(
    block: Block, step: Store, layout: WgmmaAccumulator, tile: Tile, name: int
) -> None:
    """Leave the rounded product in the slots, then compute slot by slot and hand each over."""
    emitter, slices = block.emitter, layout.n // tile.shape[-1]
    parts = layout.stacked * slices
    slots = block.places[tile.name]
    check(parts == tile.stages, "every part has a slot", step)
    rounded = rounded_product(step.expr)
    if rounded is None:
        internal("what is rolled reads the product rounded, by one expression", step)
    await_slots(block, 0)
    for turn in range(parts):
        fragment, number = divmod(turn, slices)
        place = slot_place(block, tile, turn)
        part = Part(tile, place, fragment, number * tile.shape[-1], tile.shape[-1])
        gather(block, replace(step, expr=rounded), layout, part)
    add(block, "warp_barrier")
    turn_axis = Axis("turn", parts)
    with emitter.axis_loop(turn_axis, None):
        turn_index = axis_index(turn_axis)
        column = turn_index % slices * tile.shape[-1]
        slot = slot_place(block, tile, turn_index)
        fragment_index = turn_index // slices
        compute_slot(block, step, tile, slot, rows_of(block, layout, fragment_index), column)
        start = corner(block, step, layout, fragment_index, column)
        hand_over(block, (name, slots, slot), start)
    block.riders.clear()


def given(expr: Expr) -> Expr | None:
    """Exchange the rounded product for what a slot holds."""
    return Expr("tile", (), (GIVEN, ()), expr.dtype) if is_rounded_product(expr) else None


def compute_slot(
    block: Block, step: Store, tile: Tile, slot: int, first_row: Index, first_column: Index
) -> None:
    """Compute the elements of a slot in place, 16 bytes of a row a lane at a time.

    So are the riders, which are stored from there.
    """
    emitter, dtype, riders = block.emitter, tile.dtype, block.riders
    chunk = CHUNK_BYTES // dtype.itemsize
    across = tile.shape[-1] // chunk  # lanes along a row
    lane = axis_index(block.thread) % WARP
    lines = Axis("line", ROWS * across // WARP)
    neighbour = Axis("neighbour", chunk)
    with emitter.axis_loop(lines, True):  # so that loads of several rows are under way
        row = axis_index(lines) * (WARP // across) + lane // across
        number = lane % across
        column = number * chunk + axis_index(neighbour)
        down, along = step.dims
        values = {down: first_row + row, along: first_column + column}
        place = swizzled(block, number, row % 8, chunk)
        row_start = emitter.index(row * tile.shape[-1])
        place = emitter.arithmetic("add", slot, emitter.arithmetic("add", place, row_start))
        first = emitter.integer(0)
        with emitter.scope({neighbour: first}, (neighbour, chunk)):
            tests = tests_of(step, neighbour, values)
            scope = emitter.scopes[-1]
            scope.mask = emitter.both(scope.mask, emitter.conditions(tests))
            slots = block.places[tile.name]
            block.given = emitter.load(slots, place, None, chunk)
            value = emitter.value(rewrite(step.expr, values, given))
            value = emitter.cast(before_widening(emitter, value, dtype), dtype)
            # Before any store: what both read is loaded and computed once.
            riding = [emitter.value(rewrite(each.expr, values)) for each in riders]
            emitter.store(slots, place, emitter.splat(value, chunk))
            for each, found in zip(riders, riding, strict=True):
                pointer = emitter.slots[each.slot]
                put(block, pointer, substitute(each.index, values), found, scope.mask)


def swizzled(block: Block, number: Index, row: Index, chunk: int) -> int:
    """Find where 16 bytes of a row lie: rows permute them, so that they hit different banks."""
    emitter = block.emitter
    number_value = emitter.index(number)
    row_value = emitter.index(row)
    permuted = emitter.raw("bitwise_xor", emitter.index_dtype, number_value, row_value)
    return emitter.arithmetic("mul", permuted, emitter.integer(chunk))


def slot_place(block: Block, tile: Tile, slot: int | Index) -> int:
    """Find where a slot of this warp begins."""
    rows, columns = tile.shape[-2:]
    size = rows * columns
    before = axis_index(block.crew) * tile.stages + slot
    return block.emitter.index(before * size)


def corner(
    block: Block, step: Store, layout: WgmmaAccumulator, fragment: Index, column: Index
) -> list[Index]:
    """Find where a part of this warp lies in the array."""
    near, far, *batch = step.box.at  # type: ignore[union-attr]
    return [near + column, far + rows_of(block, layout, fragment), *batch]


def rows_of(block: Block, layout: WgmmaAccumulator, fragment: Index) -> Index:
    """Find the first row of this warp in a fragment."""
    warp = axis_index(block.crew) % (4 * layout.groups)
    group, quarter = warp // 4, warp % 4
    return (group * layout.stacked + fragment) * FRAGMENT_ROWS + quarter * ROWS


def gather(block: Block, step: Store, layout: WgmmaAccumulator, part: Part) -> None:
    """Compute one part of a fragment and leave it in a slot."""
    emitter = block.emitter
    exprs, places = [step.expr], [step.index]
    found, values = block.walked(layout, step.dims, exprs, places, step.conditions)
    named = {axis.name: axis for axis, _ in found.loops}
    piece = Axis("piece", part.width // 8)
    lanes = found.vector[0] if found.vector else None
    conditions = [*found.conditions, *tests_of(step, lanes, values)]
    with ExitStack() as stack:
        stack.enter_context(emitter.axis_loop(piece, True))
        across = emitter.index(axis_index(piece) + part.first // 8)
        emitter.bind(named["across"], across)
        if "stack" in named:
            emitter.bind(named["stack"], emitter.integer(part.fragment))
        for name in ("half", "pair"):
            if name in named:
                stack.enter_context(emitter.axis_loop(named[name], True))
        inside(block, stack, found, emitter.conditions(conditions))
        value = emitter.value(rewrite(step.expr, values))
        leave(block, part, value, piece, named)


def leave(block: Block, part: Part, value: int, piece: Axis, named: dict[str, Axis]) -> None:
    """Put two neighbours, or one, at their place in a slot."""
    emitter, dtype = block.emitter, part.tile.dtype
    lane = axis_index(block.thread) % 32
    half = axis_index(named["half"])
    row, pair = lane // 4, lane % 4
    chunk = CHUNK_BYTES // dtype.itemsize
    column = axis_index(piece) * 8 + pair * 2
    place = swizzled(block, column // chunk, row, chunk)
    row_start = (row + half * 8) * part.columns
    rest = row_start + column % chunk
    lanes = 2
    if "pair" in named:
        rest = rest + axis_index(named["pair"])
        lanes = 1
    place = emitter.arithmetic("add", place, emitter.index(rest))
    place = emitter.arithmetic("add", part.slot, place)
    value = emitter.cast(before_widening(emitter, value, dtype), dtype)
    value = emitter.splat(value, 2) if lanes == 2 else lane_of(emitter, value, 0)
    slots = block.places[part.tile.name]
    emitter.add("store", dtype, (slots, place, value), lanes=lanes)


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

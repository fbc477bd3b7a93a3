"""Contractions on Hopper whose operands the bulk copy engine can bring (codegen/boxes.py).

Blocks stay: as many as there are processors walk the tiles of the output. A warpgroup copies
stages of both operands ahead, teams of warpgroups multiply them; the epilogue is ordinary Tile IR
on the accumulator, and its stores leave in boxes where the output's rows allow it. Nothing is
guarded: what lies outside of an array is copied in as 0 and not copied out.

Order of the tiles of a product that blocks stay for: which run together, and what they share.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import gcd

from picograd.codegen.boxes import (
    ROW_BYTES,
    BoxStore,
    CopyBox,
    Depth,
    Join,
    Operand,
    Persistent,
    Pipeline,
    RowStore,
    Shares,
    Side,
    Teams,
    depths,
    fitting_box,
    rounded_product,
    side_of,
    view_of,
    whole_chunks,
)
from picograd.codegen.dot import Dot
from picograd.codegen.operands import (
    Contraction,
    has_units,
    role,
    size_of,
    step_of,
    stores,
    sums_in,
)
from picograd.codegen.templates.contract_schedules import (
    MOST_REGISTERS,
    MOST_REGISTERS_BUSY,
    SCHEDULES,
    WARP_ROWS,
    BoxSchedule,
    Sides,
    Work,
    beside,
    cost,
    may_share,
    rows_of_tiles,
    suits,
)
from picograd.codegen.templates.contract_steps import Reach, reach_of
from picograd.codegen.tile import Assign, Step, Store, Tile, TileKernel, TilePart
from picograd.dtype import DType, int64
from picograd.helpers import ceil_div, product, round_up
from picograd.late_methods import dataclass
from picograd.schedule.index import (
    Axis,
    Dynamic,
    Index,
    atom_index,
    axis_index,
    flatten,
    substitute,
    unflatten,
)
from picograd.schedule.loop import Condition, Expr, Kernel, const, walk
from picograd.target import Target

GROUP_ROWS = 8  # tiles of rows that run together, for the L2 cache


def order(
    position: Index, rows: int, columns: int, blocks: int, group: int = 0
) -> tuple[Index, Index]:
    """Number tiles so that those that run together share operands in the L2 cache.

    Rows of tiles that are left when all groups are full are a group of their own.
    """
    if not group:
        group = next(g for g in (GROUP_ROWS, 4, 2, 1) if rows % g == 0)
        if group < 4 and columns * GROUP_ROWS > blocks:  # else any group is soon done with
            group = min(GROUP_ROWS, rows)
    inside = position % (group * columns)
    first = position // (group * columns) * group
    row = first + inside % group
    column = inside // group
    rest = rows % group
    full = rows - rest
    if not rest:
        return row, column
    inside = position - full * columns
    is_full = position, 0, full * columns - 1
    row = either(is_full, row, inside % rest + full, rows)
    return row, either(is_full, column, inside // rest, columns)


def either(condition: Condition, index: Index, other: Index, size: int) -> Index:
    """Choose an index where a condition holds, else another, of 0 .. size - 1."""
    here = Expr("index", (), index, int64)
    there = Expr("index", (), other, int64)
    found = Expr("guard", (here, there), (condition,), int64)
    return atom_index(Dynamic(found, 0, size - 1))


def order_of_shares(position: Index, rows: int, columns: int, blocks: int) -> tuple[Index, Index]:
    """Number tiles that blocks share so that those at one place of K read few long operands.

    Tiles a `period` apart begin at the same place, and are neighbours along the shorter side.
    """
    count = gcd(rows * columns, blocks)
    period = rows * columns // count
    number = position % period * count + position // period
    if columns <= rows:
        return number // columns, number % columns
    return number % rows, number // rows


WARP = 32  # threads of a warp
WHOLE = 8  # columns of 16 bytes
LIGHT = {"cast", "add", "sub", "mul", "neg", "maximum", "minimum", "guard", "where"}
CACHED = 1 << 24  # bytes of an operand that stay there while others pass
MORE_WAVES = 8  # to so many one may come where processors are idle, so that blocks keep boxes
LEAST_WAVES = 4  # of tiles, for blocks to be divided among columns
LEAST_ROWS, MOST_ROWS = 128, 1.5  # of a tile; as many rows as there are that tiles may have
LEAST_AHEAD = 4  # stages that the copies of one operand are ahead where all of the other is kept


def build(
    kernel: Kernel,
    contraction: Contraction,
    dtype: DType,
    majors: tuple[bool, bool],
    target: Target,
    select: Callable[[BoxSchedule], bool],
) -> TileKernel | None:
    """Write a product of boxes, or None where the copy engine cannot bring its operands."""
    is_alone = len(kernel.parts) == 1 and not contraction.ends
    is_taken = dtype.is_float and has_units(dtype, target)
    if not target.copies_boxes or not is_alone or not is_taken or not suits(contraction, target):
        return None
    for form in forms_of(contraction):
        found = cheapest(form, dtype, majors, target, select)
        if found is not None:
            schedule, sides = found
            part = write_part(kernel, form, schedule, sides)
            return TileKernel(kernel, (part,), schedule.threads)
    return None


def forms_of(c: Contraction) -> Iterator[Contraction]:
    """List ways to see a product: rows that lie in several arrays are several products.

    Tiles of these end in rows that nobody stores, so that arrays have to fill the most of them.
    """
    yield c
    wide = [axis for axis in c.rows if axis.size > 1]
    if len(wide) > 1:
        first, *rest = wide
        count = size_of(tuple(rest))
        if round_up(count, LEAST_ROWS) <= MOST_ROWS * count:
            yield replace(c, batch=(*c.batch, first), rows=tuple(rest))


def candidates(c: Contraction, dtype: DType) -> list[BoxSchedule]:
    """List the schedules of a dtype whose accumulator leaves registers for what follows."""
    exprs = heavy(c)
    limit = MOST_REGISTERS
    fitting = [each for each in SCHEDULES if each.is_summed == (dtype.bits == 8)]
    if c.twin is not None:
        fitting = [each.with_twins() for each in fitting]
    if exprs or c.twin is not None:
        fitting = [each for each in fitting if 2 * each.results[1] % ROW_BYTES == 0]
    if exprs:
        limit = MOST_REGISTERS_BUSY
    found = [each for each in fitting if each.layout.register_count <= limit]
    of_product = [each for each in exprs if reads_product(each)]
    can_roll = [each.dtype.bits == 16 and rounded_product(each) is not None for each in of_product]
    return [each.with_slots() for each in found] if of_product and all(can_roll) else found


def heavy(c: Contraction) -> list[Expr]:
    """List what is stored of the accumulator that needs many instructions and registers."""
    exprs = [out.expr for out in stores(c, {}, sums_in(c, ()))]
    return [expr for expr in exprs if not is_light(expr)]


def reads_product(expr: Expr) -> bool:
    """Tell whether what is stored is made of the accumulator, and not of other arrays alone."""
    return any(node.op == "tile" for node in walk(expr))


def is_light(expr: Expr) -> bool:
    """Tell whether a formula needs few registers: no function of elements."""
    return all(not node.args or node.op in LIGHT for node in walk(expr))


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a block works: its tile of the output, and its step of K."""

    tile: Axis
    step: Axis
    corners: tuple[Index, Index]
    depth: Depth
    blocks: int  # that there is room for
    reach: Reach | None = None  # where tiles have not all steps
    kept_columns: int = 0  # of tiles, if a block has tiles of one and keeps its right operand

    @property
    def steps(self) -> float:
        """Positions of K that a tile multiplies, on average."""
        share = self.reach.share if self.reach else 1
        return self.depth.count * self.depth.size * share


def operands(
    c: Contraction, dtype: DType, majors: tuple[bool, bool], schedule: BoxSchedule, target: Target
) -> tuple[Frame, Sides] | None:
    """Describe both operands; None if one cannot be copied in boxes."""
    for depth in depths(c, dtype):
        frame = frame_of(c, schedule, depth, target)
        rows, columns = zip(
            (c.rows, c.columns), frame.corners, schedule.results, majors, strict=True
        )
        given = [("a", c.a, *rows)]
        given += [("b", expr, *columns) for expr in c.rights]
        found = []
        for operand in given:
            side = side_of(c, Operand(*operand), dtype, depth, axis_index(frame.step))
            if side is None:
                break
            if c.twin is None or not side.is_k_major:  # boxes of twins fill a stage
                side = fitting_box(side) if side.is_k_major else whole_chunks(side)
            found.append(side)
        has_windows = any(side.copy.tensor.windows for side in found)  # no block brings a part
        is_same = not has_windows and frame.reach is None  # in blocks that bring boxes together
        if len(found) == len(given) and (is_same or schedule.together == 1):
            return frame, tuple(found)
    return None


def cheapest(
    contraction: Contraction,
    dtype: DType,
    majors: tuple[bool, bool],
    target: Target,
    select: Callable[[BoxSchedule], bool],
) -> tuple[BoxSchedule, tuple[Frame, Sides]] | None:
    """Choose the schedule that takes the least time, of those whose boxes can be brought."""
    best: tuple[float, BoxSchedule, tuple[Frame, Sides]] | None = None
    is_dear = bool(heavy(contraction))
    for schedule in candidates(contraction, dtype):
        if schedule.is_shared and not may_share(contraction, schedule, target):
            continue
        found = operands(contraction, dtype, majors, schedule, target) if select(schedule) else None
        if found is not None:
            frame, sides = found
            empty = frame.reach.empty if frame.reach else 0
            work = Work(frame.steps, frame.blocks, frame.kept_columns, is_dear, empty)
            estimate = cost(contraction, schedule, sides, work)
            if best is None or estimate < best[0]:
                best = estimate, schedule, found
    return best and best[1:]


def frame_of(c: Contraction, schedule: BoxSchedule, depth: Depth, target: Target) -> Frame:
    """Number the tiles of the output, and the steps of K.

    Where blocks share tiles, those that begin at the same place of K are neighbours. Where tiles
    have different steps, those with the same ones are, so that all blocks have as many of each.
    Where blocks keep the right operand, tiles of the same rows are.
    """
    block_m, block_n = schedule.results
    _, m, n, _ = c.sizes
    rows, columns = rows_of_tiles(m, schedule), ceil_div(n, schedule.block[1])
    blocks = target.multiprocessors
    tile, step = Axis("tile", rows * columns), Axis("k_tile", depth.count)
    if schedule.is_shared:
        row, column = order_of_shares(axis_index(tile), rows, columns, blocks)
        return Frame(tile, step, (row * block_m, column * block_n), depth, blocks)
    corners = corners_of(tile, schedule, (rows, columns), target)
    frame = Frame(tile, step, corners, depth, blocks)
    if reach_of(c, depth, corners, schedule.results) is None:
        return kept(frame, c, schedule, columns)
    itemsize = ROW_BYTES // depth.size
    row_bytes = size_of(depth.inner) * itemsize
    group = group_of(rows, block_m * row_bytes, schedule.together)
    corners = corners_of(tile, schedule, (rows, columns), target, group)
    reached = reach_of(c, depth, corners, schedule.results)
    return replace(frame, corners=corners, reach=reached)


def group_of(rows: int, nbytes: int, together: int) -> int:
    """Count the rows of tiles of a group that the cache holds, whole clusters, about even groups.

    `nbytes` is what a row of tiles reads of the left operand.
    """
    held = max(CACHED // nbytes, GROUP_ROWS)
    return round_up(ceil_div(rows, ceil_div(rows, held)), together)


def corners_of(
    tile: Axis, schedule: BoxSchedule, counts: tuple[int, int], target: Target, group: int = 0
) -> tuple[Index, Index]:
    """Find the first row and column of each tile."""
    row, column = order(axis_index(tile), *counts, target.multiprocessors, group)
    rows, columns = schedule.results
    return row * rows, column * columns


# -- Tile IR --------------------------------------------------------------------------------------


def write_part(
    kernel: Kernel, c: Contraction, schedule: BoxSchedule, found: tuple[Frame, Sides]
) -> TilePart:
    """Write the program of a block: for each of its tiles the main loop, then the epilogue."""
    frame, (a, *right) = found
    block_m, block_n = schedule.block
    dims = Axis("m", block_m), Axis("n", block_n)
    acc = Tile("acc", schedule.block, c.dtype, "register", schedule.layout)
    is_kept = frame.kept_columns > 0
    points = (frame.tile, *c.batch) if is_kept else (*c.batch, frame.tile)
    block = Axis("block", blocks_of(points, schedule, frame.blocks))
    b, others = beside(right, schedule)
    if is_kept:
        b = replace(b, copy=of_block(b.copy, frame, c.batch, block))
    ahead = stages_ahead(schedule, frame.depth) if is_kept else schedule.stages
    stages = [stage_of("a", a, ahead)]
    stages.append(stage_of("b", b, frame.depth.count if is_kept else ahead))
    copies = a.copy, b.copy, *others
    multiply = Dot("acc", "a", "b", frame.depth.size, "wgmma", not a.is_k_major, b.is_k_major)
    clear = Assign("acc", dims, const(0, c.dtype))
    ends, boxes = epilogue(kernel, c, frame.corners, schedule)
    reach = (frame.reach.first, frame.reach.stop) if frame.reach else ()
    main = clear, Pipeline(frame.step, copies, (multiply,), *reach)
    if schedule.is_summed:
        stages.append(replace(acc, name="part", stages=schedule.places))
        multiply = replace(multiply, acc="part", is_first=True)
        added = add_part(dims, c.dtype)
        main = clear, Pipeline(frame.step, copies, (multiply, added), *reach)
    teams = Teams(schedule.teams, 128 * schedule.groups, schedule.registers)
    loop = Persistent(points, block, teams, (*main, *ends))
    tiles = acc, *stages, *boxes
    return shared(loop, tiles) if schedule.is_shared else TilePart((block,), tiles, (loop,))


def blocks_of(points: tuple[Axis, ...], schedule: BoxSchedule, blocks: int) -> int:
    """Count the blocks that stay for points: whole clusters."""
    if not schedule.is_shared:
        blocks = min(blocks, product(axis.size for axis in points))
    return blocks - blocks % schedule.together


def kept(frame: Frame, c: Contraction, schedule: BoxSchedule, columns: int) -> Frame:
    """Let each block have tiles of one column, of one product, so that it brings it once.

    Not where blocks have few tiles, memory has no room for that beside enough stages, or it takes
    many more waves, as there are as many blocks of each column.
    """
    turns = columns * size_of(c.batch)
    idle = frame.blocks % turns
    points = frame.tile.size * size_of(c.batch)
    waves = ceil_div(points, frame.blocks)
    more = ceil_div(points, frame.blocks - idle) - waves if idle < frame.blocks else waves
    is_alone = not (schedule.is_shared or schedule.is_summed) and schedule.together == 1
    is_alone &= c.twin is None
    has_room = stages_ahead(schedule, frame.depth) >= LEAST_AHEAD
    is_worth_it = turns == 1 or (waves >= LEAST_WAVES and MORE_WAVES * more <= waves)
    if not is_alone or not has_room or not is_worth_it:
        return frame
    row, column = axis_index(frame.tile) // columns, axis_index(frame.tile) % columns
    corners = row * schedule.block[0], column * schedule.block[1]
    return replace(frame, corners=corners, blocks=frame.blocks - idle, kept_columns=columns)


def of_block(copy: CopyBox, frame: Frame, batch: tuple[Axis, ...], block: Axis) -> CopyBox:
    """Bring what a block keeps: its number tells the column of tiles and the product."""
    sizes = frame.kept_columns, *(axis.size for axis in batch)
    places = unflatten(axis_index(block) % product(sizes), sizes)
    values = dict(zip((frame.tile, *batch), places, strict=True))
    at, offsets = ([substitute(i, values) for i in each] for each in (copy.at, copy.offsets))
    return replace(copy, at=tuple(at), offsets=tuple(offsets), is_kept=True)


def stages_ahead(schedule: BoxSchedule, depth: Depth) -> int:
    """Count the stages of the left operand beside all of the right one."""
    rows, columns = schedule.block
    return (schedule.stages * (rows + columns) - depth.count * columns) // rows


def stage_of(name: str, side: Side, stages: int) -> Tile:
    """Declare the ring of an operand."""
    dtype, layout = side.copy.tensor.dtype, side.layout
    return Tile(name, layout.shape, dtype, "shared", stages=stages, swizzle=layout)


def add_part(dims: tuple[Axis, Axis], dtype: DType) -> Assign:
    """Add the product of a stage to the accumulator."""
    where = tuple(map(axis_index, dims))
    acc = Expr("tile", (), ("acc", where), dtype)
    part = Expr("tile", (), ("part", where), dtype)
    total = Expr("add", (acc, part), None, dtype)
    return Assign("acc", dims, total)


def shared(loop: Persistent, tiles: tuple[Tile, ...]) -> TilePart:
    """Let blocks share the points of a loop over products: each leaves its part, one adds them."""
    clear, pipeline, *ends = loop.body
    acc, *_ = tiles
    depth, blocks = pipeline.axis.size, loop.block.size
    shares = Shares(depth, Axis("first", depth), Axis("stop", depth + 1))
    first, stop = axis_index(shares.first), axis_index(shares.stop)
    sizes = tuple(axis.size for axis in loop.points)
    point = flatten([axis_index(axis) for axis in loop.points], sizes)
    begin = shares.first_block(point, product(sizes), blocks)
    partial = Tile("partial", (blocks, *acc.shape), acc.dtype, "workspace", workspace=0)
    join = Join("acc", "partial", 1, loop.block, begin, (stop, depth, depth), tuple(ends))
    body = clear, replace(pipeline, first=first, stop=stop), join
    warps = blocks * loop.teams.threads // WARP
    spaces = (product(partial.shape) * acc.dtype.itemsize, False), (4 * warps, True)
    dealt = replace(loop, body=body, shares=shares)
    return TilePart((loop.block,), (*tiles, partial), (dealt,), spaces)


def epilogue(
    kernel: Kernel, c: Contraction, corners: tuple[Index, Index], schedule: BoxSchedule
) -> tuple[list[Step], list[Tile]]:
    """Write the stores: the epilogue's expressions over the accumulator registers."""
    block_m, block_n = schedule.results
    dims = Axis("m", block_m), Axis("n", block_n)
    rows = role(c.rows, corners[0] + axis_index(dims[0]))
    columns = role(c.columns, corners[1] + axis_index(dims[1]))
    where = tuple(map(axis_index, dims))
    value = sums_in(c, where, block_n)
    conditions = (*rows.conditions, *columns.conditions)
    steps: list[Store] = []
    tiles: list[Tile] = []  # outputs of one dtype leave through the same memory, the rest directly
    outputs = stores(c, {**rows.values, **columns.values}, value)
    indices = [each.index for each in stores(c, {}, value)]
    for out, index in zip(outputs, indices, strict=True):
        slot = out.slot
        dtype = kernel.slots[slot].dtype
        box = box_of(c, slot, index, dtype, corners)
        if box is not None and not tiles:
            warps = schedule.teams * schedule.groups * 4
            span = ROW_BYTES // dtype.itemsize
            shape = (warps, WARP_ROWS, span)
            slots = Tile(box.tile, shape, dtype, "shared", stages=schedule.slots)
            tiles.append(slots)
        if tiles and tiles[0].dtype is not dtype:
            box = None
        if isinstance(box, BoxStore) and dtype.bits == 16:
            box = replace(box, is_rolled=is_rolled(c, out.expr, schedule))
        store = Store(slot, out.index, dims, out.expr, conditions, schedule.stored, box)
        steps.append(store)
    return with_riders(steps, kernel), tiles


def with_riders(stores: list[Store], kernel: Kernel) -> list[Step]:
    """Let outputs that the product is not in be computed beside the first that is rolled."""
    boxed = [each.box for each in stores if isinstance(each.box, BoxStore)]
    rolled = [box for box in boxed if box.is_rolled]
    if not rolled:
        return [*stores]
    riders: list[Step] = []
    others: list[Step] = []
    for each in stores:
        is_half = kernel.slots[each.slot].dtype.bits == 16
        if is_half and not reads_product(each.expr):
            riders.append(replace(each, box=None, rides=True))
        else:
            others.append(each)
    return [*riders, *others]


def is_rolled(c: Contraction, expr: Expr, schedule: BoxSchedule) -> bool:
    """Tell whether an output is computed from what slots hold, in whole pieces of 16 bytes."""
    has_slots = schedule.slots == schedule.parts
    is_whole = c.sizes[2] % WHOLE == 0
    if is_light(expr) or not has_slots or not is_whole:
        return False
    return rounded_product(expr) is not None


def has_pieces(index: Index, columns: tuple[Axis, ...], span: int) -> bool:
    """Tell whether so many columns lie next to one another, wherever they begin in a tile."""
    outer = Axis("outer", ceil_div(size_of(columns), span))
    piece = Axis("piece", span)
    position = axis_index(outer) * span + axis_index(piece)
    moved = substitute(index, role(columns, position).values)
    return step_of(moved, piece) == 1


def box_of(
    c: Contraction, slot: int, index: Index, dtype: DType, corners: tuple[Index, Index]
) -> BoxStore | RowStore | None:
    """Describe how an output leaves in boxes, or else in rows; None if it cannot."""
    if not dtype.is_float or dtype.bits not in (16, 32):
        return None
    box_span = ROW_BYTES // dtype.itemsize
    view = view_of(index, c.columns, c.rows, c.batch, dtype.itemsize)
    wide = tuple([axis for axis in c.batch if axis.size > 1])
    if view is None or view.wide != wide:
        return RowStore("leaving") if has_pieces(index, c.columns, box_span) else None
    rest = view.places_of({})
    tensor = view.tensor(slot, dtype, (box_span, WARP_ROWS))
    return BoxStore(tensor, (corners[1], corners[0], *rest), "leaving")

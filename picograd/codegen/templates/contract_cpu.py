"""CPU contraction: packed panels and a register micro-kernel.

    task (batch, row blocks, column block):
      pack B once, if it fits the cache
      for row block: for depth block: pack A (and B); for panel, for row group: Dot
                     epilogue over the finished block

A is packed as rows `[m][k]`, or `[k][m]` where memory is contiguous along M. B is packed in panels
`[panel][k][lane]`. Packing evaluates the operand expressions, so a convolution's window, padding
and casts cost one pass over a panel. Rows and columns past the end hold garbage that is never read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from picograd.codegen.cuts import Piece, exist, inside, starts
from picograd.codegen.dot import Dot, Runs
from picograd.codegen.operands import (
    Contraction,
    analyse,
    bind,
    expr_axes,
    guarded,
    products_of,
    size_of,
    step_of,
    stores,
)
from picograd.codegen.templates import (
    contract_in_place,
    contract_phases,
    contract_shift,
    contract_taps,
    contract_taps_planes,
    contract_taps_sums,
    contract_thin,
    contract_tiles,
    patches_plan,
    patches_sums_plan,
)
from picograd.codegen.templates.contract_plan import Plan, alongside, choose, orient, reads_along
from picograd.codegen.templates.contract_sums import (
    Sums,
    add_block,
    begin,
    is_at_once,
    leave,
    sums_of,
)
from picograd.codegen.templates.contract_thin import (
    VECTOR,
    guarded_steps,
    loops,
    missing_depth,
    pack,
)
from picograd.codegen.templates.contract_windows import keep_rows, pool_block
from picograd.codegen.tile import (
    Accumulate,
    Assign,
    LastBlock,
    Step,
    Store,
    Tile,
    TileKernel,
    TilePart,
)
from picograd.helpers import product
from picograd.schedule.index import (
    Axis,
    Index,
    axes_of,
    axis_index,
    constant,
    position_over,
    substitute,
)
from picograd.schedule.loop import Condition, Expr, Kernel, Part, const, indices_of, walk
from picograd.target import Target


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write a contract or conv kernel for a CPU: tasks of each product in turn."""
    parts = [made for part in kernel.parts for made in build_parts(kernel, part, target)]
    return TileKernel(kernel, tuple(parts))


def build_parts(kernel: Kernel, part: Part, target: Target) -> Iterator[TilePart]:
    """Write a product: one of few columns tap by tap, unless a tile holds what they read.

    Of others each phase is a product; several have the same blocks.
    """
    if len(products_of(part.computes)) > 1:
        yield build_part(kernel, part, target)
        return
    first, phases = analyse(kernel, part), contract_phases.parts_of(part)
    is_tapped = contract_taps.is_tapped(first)
    is_tapped = is_tapped and (len(phases) == 1 or contract_taps.is_plain(first))
    if is_tapped and contract_shift.choose(first, target) is None:
        yield contract_taps.build_part(part, first)
        return
    for phase in phases:
        yield build_part(kernel, phase, target)


def build_part(kernel: Kernel, part: Part, target: Target) -> TilePart:
    """Write one product."""
    every = [analyse(kernel, part, number) for number in products_of(part.computes)]
    first, *others = sorted(every, key=has_constant)  # one without tells rows from columns
    beside = None if others else few_results(first, target)
    if beside is not None:
        return beside
    product = orient(first, target)
    if 0 in product.sizes[:3]:
        return TilePart((Axis("none", 0),), (), ())
    thin = contract_thin.build_part(product, target)
    if thin is not None:
        return thin
    plan = None if others else contract_tiles.choose(product, target) or apart(product, target)
    plan = plan or choose(product, target, len(every))
    more = [alongside(other, plan, number) for number, other in enumerate(others, 1)]
    return packed_part(plan, more)


def few_results(product: Contraction, target: Target) -> TilePart | None:
    """Write a product of few results a channel, along channels or along places."""
    along = contract_taps_sums.build_part(product, target)
    return along or contract_taps_planes.build_part(product, target)


def apart(product: Contraction, target: Target) -> Plan | None:
    """Plan a convolution that is not packed; None if it is none, or packing is better."""
    for planner in (patches_plan, patches_sums_plan, contract_shift):
        plan = planner.choose(product, target)
        if plan is not None:
            return plan
    return None


def has_constant(product: Contraction) -> bool:
    """Tell whether a factor is the same everywhere: it showed but zeros around an array."""
    return not (expr_axes(product.a) and expr_axes(product.b))


def packed_part(plan: Plan, more: Sequence[Plan] = ()) -> TilePart:
    """Write the task program of a packed contraction, or of several with the same blocks."""
    plan = plan if more else contract_in_place.with_places(plan)
    sums, every = None if more else sums_of(plan), (plan, *more)
    before: tuple[Step, ...] = ()
    if plan.packs_all and plan.depth.size and plan.b_place is None:
        before = tuple(s for p in every for s in loops(p.depth.outer, pack_columns(p)))
    content: list[Step] = [keep_rows(plan)] if plan.kept else []
    if plan.patches is not None:
        before = plan.patches.before
        content += plan.patches.steps
    else:
        content += [clear(each) for each in every if not each.is_first]
        for _, group in groupby(every, key=lambda each: (each.depth, each.reach[2])):
            content += multiply_deep(list(group))
    content += finish(plan, sums, more)
    if plan.rows.first is not None and plan.row_loop.size > 1:
        exists = needed(plan.rows.first, plan.rows.total)
        content = list(guarded_steps(exists, content))
    content = list(guarded_steps(exist(plan.reach[0]), content))
    walked = plan.patches.walked if plan.patches is not None else (plan.row_loop,)
    steps = (*before, *loops(walked, content))
    if sums is not None and not is_at_once(plan, sums):
        steps = (*begin(sums), *steps, *leave(sums))
    steps = guarded_steps(block_exists(plan), steps)
    extra, memory = (sums.tiles, sums.workspaces) if sums is not None else ((), ())
    if not plan.is_split:
        own = [tile for each in every for tile in tiles(each)]
        return TilePart(plan.cells, (*own, *extra), steps, memory)
    partial, cells = partial_tile(plan), size_of(plan.cells)
    size = product(partial.shape) * partial.dtype.itemsize
    workspaces = (size, False), (4 * cells, True), *memory
    grid = (*plan.cells, plan.part)
    return TilePart(grid, (*tiles(plan), partial, *extra), steps, workspaces)


def multiply_deep(plans: Sequence[Plan]) -> Sequence[Step]:
    """Pack and multiply, depth by depth, the products of one depth: rows are packed once."""
    first = plans[0]
    block: list[Step] = []
    if not first.depth.size:
        return ()
    for plan in plans:
        block += [] if plan.packs_all or plan.b_place else pack_columns(plan)
        block += [] if plan.shares_a or plan.a_place else pack_rows(plan)
        block += multiply(plan)
    deep = () if first.is_first else exist(first.reach[2])
    guarded_block = guarded_steps((*first.depth.guard, *deep), block)
    return loops(first.depth.outer, guarded_block)


def block_exists(plan: Plan) -> list[Condition]:
    """Say when a task has anything to do: its matrix and its columns begin before their ends."""
    ends = [end for end in plan.product.ends if axes_of(end[0]) <= set(plan.product.batch)]
    return [*ends, *exist(plan.reach[1])]


def finish(plan: Plan, sums: Sums | None, more: Sequence[Plan]) -> Sequence[Step]:
    """Store the finished block, after adding the parts of K if there are several."""
    stored = epilogue(plan, more)
    if sums is not None:
        stored += add_block(sums)
        if is_at_once(plan, sums):
            stored = [*begin(sums), *stored, *leave(sums)]
    return combine(plan, stored) if plan.is_split else stored


def partial_tile(plan: Plan) -> Tile:
    """Where every part of K leaves its block of sums."""
    rows, width = plan.rows_padded, plan.width
    shape = size_of(plan.cells), plan.part.size, rows, width
    return Tile("partial", shape, plan.product.dtype, "workspace", workspace=0)


def combine(plan: Plan, stored: Sequence[Step]) -> tuple[Step, ...]:
    """Leave this part's sums; the task that is last adds all parts, in order, and finishes."""
    tile, dtype = partial_tile(plan), plan.product.dtype
    dims = Axis("row", tile.shape[2]), Axis("column", tile.shape[3])
    here = tuple(map(axis_index, dims))
    cell = position_over(plan.cells)
    other = Axis("other", plan.part.size)
    mine = Expr("tile", (), ("c", here), dtype)
    leave = Assign("partial", dims, mine, (cell, axis_index(plan.part), *here))
    read = Expr("tile", (), ("partial", (cell, axis_index(other), *here)), dtype)
    add = Accumulate("c", dims, (other,), "sum", read)
    return leave, LastBlock(1, cell, plan.part.size, (add, *stored))


def tiles(plan: Plan) -> tuple[Tile, ...]:
    """List the packed blocks and the block of results, all in the worker's scratch."""
    if plan.is_paired:
        return contract_tiles.tiles(plan)
    dtype, depth, lanes = (plan.product.dtype, plan.depth.size, plan.columns.lanes)
    rows, width = plan.rows_padded, plan.width
    # Rows one cache line apart from a power of two do not all fall in one cache set.
    pad = 64 // dtype.itemsize
    a_shape = (depth, rows) if plan.is_km else (rows, depth)
    blocks = plan.depth.count if plan.packs_all else 1
    a = Tile(plan.a, a_shape, dtype, "shared", row_padding=pad)
    b_shape = plan.image.shape if plan.image else (blocks, plan.panels, depth, lanes)
    b = Tile(plan.b, b_shape, dtype, "shared")
    c = Tile(plan.c, (plan.kept + rows, width), dtype, "shared", row_padding=pad)
    if plan.patches is not None:
        return *plan.patches.tiles, c
    operands = [a] if not (plan.shares_a or plan.a_place) else []
    operands += [b] if plan.b_place is None else []
    return (*operands, c) if depth else (c,)


def pack_rows(plan: Plan) -> list[Step]:
    """Evaluate the block of A into its tile."""
    found: list[Step] = []
    for row in plan.rows.pieces:
        for deep in plan.depth.pieces:
            expr = bind(plan.product.a, {**row.values, **deep.values})
            deep, expr = as_one(deep, expr)
            wanted = inside(plan.reach[0], plan.rows, row, plan.is_km)
            expr = guarded(expr, (*row.guards, *wanted))
            dims = (*deep.dims, *row.dims) if plan.is_km else (*row.dims, *deep.dims)
            index = row.position, deep.position
            step = pack(plan.a, dims, expr, index[::-1] if plan.is_km else index)
            found += guarded_steps((*row.when, *deep.when), [step])
    rows = Axis("row", plan.rows_padded)
    for when, (axis, position) in missing_depth(plan.depth):
        index = (position, axis_index(rows)) if plan.is_km else (axis_index(rows), position)
        step = pack(plan.a, (rows, axis), const(0, plan.product.dtype), index)
        found += guarded_steps(when, [step])
    return found


def pack_columns(plan: Plan) -> tuple[Step, ...]:
    """Evaluate the block of B into its panels."""
    if plan.image is not None:
        return plan.image.steps
    found: list[Step] = []
    columns = plan.columns
    block = plan.depth.block if plan.packs_all else constant(0)
    for whole in columns.packs:
        piece, stretch = in_stretches(whole, plan)
        at = piece.position // columns.lanes, piece.position % columns.lanes
        for deep in plan.depth.pieces:
            deep, expr = as_one(deep, bind(plan.product.b, {**piece.values, **deep.values}))
            short = with_short_runs(deep)
            expr, deep = bind(expr, short.values), short
            inner = tuple(axis for axis in piece.dims if axis is not stretch)
            dims = pack_order(expr, deep.dims, inner)
            index = (block, at[0], deep.position, at[1])
            step = pack(plan.b, dims, expr, index)
            if plan.is_paired:
                step = pack(contract_tiles.PANEL, dims, expr, index[2:])
            steps = guarded_steps(wanted_stretch(plan, stretch), [step])
            steps = loops((stretch,), steps) if stretch is not None else steps
            found += guarded_steps((*piece.when, *deep.when), steps)
    for when, (axis, position) in missing_depth(plan.depth):
        lane = Axis("lane", columns.lanes)
        zero = const(0, plan.product.dtype)
        panels = (columns.panel,) if not columns.is_looped else ()
        index = (block, axis_index(columns.panel), position, axis_index(lane))
        step = pack(plan.b, (*panels, axis, lane), zero, index)
        if plan.is_paired:
            step = pack(contract_tiles.PANEL, (axis, lane), zero, index[2:])
        found += guarded_steps(when, [step])
    found += [contract_tiles.pair(plan, block)] if plan.is_paired else []
    if not columns.is_looped:
        return tuple(found)
    lanes = columns.lanes
    wanted = starts(plan.reach[1], axis_index(columns.panel) * lanes, lanes)
    return loops((columns.panel,), guarded_steps(wanted, found))


def in_stretches(piece: Piece, plan: Plan) -> tuple[Piece, Axis | None]:
    """Split the columns of a panel where they may end inside it; gives the axis of the pieces."""
    axis = piece.dims[0] if len(piece.dims) == 1 else None
    ends = starts(plan.reach[1], constant(0), VECTOR)
    if axis is None or not ends or not plan.columns.is_looped or axis.size % VECTOR:
        return piece, None
    stretch, lane = Axis("stretch", axis.size // VECTOR), Axis("lane", VECTOR)
    moved = {axis: axis_index(stretch) * VECTOR + axis_index(lane)}
    return moved_piece(piece, moved, (stretch, lane)), stretch


def wanted_stretch(plan: Plan, stretch: Axis | None) -> tuple[Condition, ...]:
    """Say that a stretch of a panel holds columns that anybody sees."""
    if stretch is None:
        return ()
    panel = axis_index(plan.columns.panel) * plan.columns.lanes
    return starts(plan.reach[1], panel + axis_index(stretch) * VECTOR, VECTOR)


def moved_piece(piece: Piece, moved: dict[Axis, Index], dims: tuple[Axis, ...]) -> Piece:
    """Walk a piece along other dims."""
    values = {x: substitute(v, moved) for x, v in piece.values.items()} | moved
    return replace(piece, dims=dims, values=values, position=substitute(piece.position, moved))


def as_one(piece: Piece, expr: Expr) -> tuple[Piece, Expr]:
    """Walk a piece and what is read there along one axis, if memory goes on from dim to dim."""
    dims = tuple(dim for dim in piece.dims if dim.size > 1)
    indices = [index for node in walk(expr) for index in indices_of(node)]
    for index in indices:
        steps = [step_of(index, dim) for dim in dims]
        after = [None if n is None else n * dim.size for n, dim in zip(steps, dims, strict=True)]
        if None in steps or steps[:-1] != after[1:]:
            return piece, expr
    if len(dims) < 2:
        return piece, expr
    whole = Axis("whole", size_of(dims))
    moved = {**dict.fromkeys(dims[:-1], constant(0)), dims[-1]: axis_index(whole)}
    return moved_piece(piece, moved, (whole,)), bind(expr, moved)


def with_short_runs(piece: Piece) -> Piece:
    """Split the last dim so that transposing reads one cache line of each column at a time."""
    axis = piece.dims[-1] if piece.dims else None
    if axis is None or axis.size % VECTOR or axis.size == VECTOR:
        return piece
    run = (Axis(f"{axis.name}s", axis.size // VECTOR), Axis(f"{axis.name}r", VECTOR))
    moved = {axis: axis_index(run[0]) * VECTOR + axis_index(run[1])}
    return moved_piece(piece, moved, (*piece.dims[:-1], *run))


def pack_order(expr: Expr, deep: tuple[Axis, ...], lanes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Order the loops that pack a panel: reads contiguous along K stay in the inner loop."""
    return (*deep, *lanes) if reads_along(expr, lanes, deep) else (*deep[:-1], *lanes, deep[-1])


def clear(plan: Plan) -> Step:
    """Set the block of results to zero."""
    dims = (Axis("row", plan.rows_padded), Axis("column", plan.width))
    row, column = map(axis_index, dims)
    return pack(plan.c, dims, const(0, plan.product.dtype), (row + plan.kept, column))


def multiply(plan: Plan) -> tuple[Step, ...]:
    """Run the micro-kernel over all register blocks of the packed blocks."""
    group = Axis("group", plan.rows_padded // plan.height)
    panel, lanes = plan.columns.panel, plan.columns.lanes
    row, column = axis_index(group) * plan.height, axis_index(panel) * lanes
    zero = constant(0)
    block = plan.depth.block if plan.packs_all else zero
    b_origin, image = (block, axis_index(panel), zero, zero), plan.image
    stops = [each.limit for each in plan.reach[2] if each.limit is not None]
    dot = Dot(
        plan.c, plan.a, plan.b, plan.depth.size,
        "tiles" if plan.is_paired else "fma",
        a_is_km=plan.is_km,
        a_origin=(zero, row) if plan.is_km else (row, zero),
        b_origin=(zero, image.place) if image else b_origin,
        acc_origin=(row + plan.kept, image.column if image else column),
        block=(plan.height, lanes),
        is_first=plan.is_first,
        stop=stops[0] if stops else None,
        taps=image.taps if image else (),
        runs=image.runs if image else Runs(),
        a_place=plan.a_place and plan.a_place.at(row * plan.a_place.step),
        b_place=plan.b_place and plan.b_place.at(column),
    )  # fmt: skip
    inner: tuple[Step, ...] = (dot,)
    if plan.rows.first is not None:
        inner = guarded_steps(needed(plan.rows.first + row, plan.rows.total), inner)
    inner = guarded_steps(starts(plan.reach[0], row, plan.height), inner)
    inner = loops((group,), inner)
    first = plan.columns.cut.first
    if first is not None:
        start = first + axis_index(panel) * lanes
        inner = guarded_steps(needed(start, plan.columns.cut.total), inner)
    inner = guarded_steps(starts(plan.reach[1], axis_index(panel) * lanes, lanes), inner)
    return loops((panel,), inner)


def needed(position: Index, total: int) -> tuple[Condition, ...]:
    """Condition that a block starting at `position` is not wholly past the end."""
    return () if position.hi < total else ((position, 0, total - 1),)


def epilogue(plan: Plan, more: Sequence[Plan]) -> list[Step]:
    """Store the finished block through the fused computes, which may read more products."""
    found: list[Step] = []
    for row in plan.rows.pieces:
        for column in plan.columns.cut.pieces:
            index = row.position + plan.kept, column.position
            sums = {
                each.product.number: Expr("tile", (), (each.c, index), each.product.dtype)
                for each in (plan, *more)
            }
            dims = (*row.dims, *column.dims)
            outputs = stores(plan.product, {**row.values, **column.values}, sums)
            wanted = inside(plan.reach[0], plan.rows, row, not column.dims)
            wanted += inside(plan.reach[1], plan.columns.cut, column, True)
            steps: list[Step] = [
                Store(o.slot, o.index, dims, o.expr, (*row.guards, *wanted)) for o in outputs
            ]
            if plan.product.windows:
                steps += pool_block(plan, row, column)
            found += guarded_steps((*row.when, *column.when), steps)
    return found

"""Contractions and convolutions on CUDA: one block computes one tile of the output.

The product is seen as acc[m, n] = sum over k of a[m, k] * b[k, n], where m, n and k are flat
positions over the axes of each role; reading an operand through its index expression makes a
convolution an implicit matrix product. 16-bit floats go to the tensor cores, float32 too where TF32
is allowed, everything else to `SimtSchedule`.

When the output has too few tiles for the GPU and K is long (a weight gradient), K is split over
blocks: each writes its partial tile to a workspace, the last one adds them up in order; in TF32 all
blocks do, a few rows each, when all are done.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeGuard, Union

from picograd.codegen import tensor_core_tf32
from picograd.codegen.cuts import below, limits_of, stops_of
from picograd.codegen.layout import Blocked, Layout
from picograd.codegen.mainloop_operands import Schedule, operands_of, plain_load
from picograd.codegen.operands import (
    Contraction,
    Role,
    analyse,
    arrange,
    bind_roles,
    guarded,
    narrow,
    role,
    stores,
    sums_in,
    with_twin,
)
from picograd.codegen.templates import (
    contract_direct,
    contract_direct_sums,
    contract_steps,
    contract_tma,
)
from picograd.codegen.templates.contract_block_sums import reductions, sums_of, write_sums
from picograd.codegen.templates.contract_windows import split_windows, store_windows, windows_last
from picograd.codegen.tensor_core import MmaSchedule, SimtSchedule, WgmmaSchedule
from picograd.codegen.tensor_core_tf32 import LEAST_TF32, SMALL, Float64Schedule, Tf32Schedule
from picograd.codegen.tile import (
    Accumulate,
    Assign,
    For,
    LastBlock,
    MainLoop,
    Step,
    Store,
    Tile,
    TileKernel,
    TilePart,
    When,
)
from picograd.dtype import DType, float16, float32, float64
from picograd.errors import check
from picograd.helpers import ceil_div, product, round_up
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axes_of, axis_index, position_over
from picograd.schedule.loop import Condition, Expr, Kernel, cast, const
from picograd.target import Target

MOST_SPLITS = 64
NARROW = 64, 64, 64  # the least tile of tensor cores
LONG = 32  # steps of K of a block from which a processor has two
WARP = 32
DIRECT = contract_direct, contract_direct_sums  # forms without tiles

Apart = Union[SimtSchedule, MmaSchedule, Tf32Schedule]  # whose parts all blocks may add
Arranged = tuple[Contraction, DType, tuple[bool, bool]]  # with operands' dtype and majors


@dataclass(frozen=True, slots=True)
class Grid:
    """Which tile a block computes, and which part of K."""

    batch: tuple[Axis, ...]
    tile: Axis
    split: Axis
    row: Index  # number of the tile along M
    column: Index  # along N
    tiles: int  # of depth `block[2]`, per split


def build(
    kernel: Kernel, target: Target, select: Callable[[Any], bool] = lambda schedule: True
) -> TileKernel:
    """Write a contract or conv kernel as Tile IR for CUDA; `select` narrows the schedules.

    Its products are tiles of one grid, one after the other: all have as many threads.
    """
    products = [arranged(with_twin(analyse(kernel, part)), target) for part in kernel.parts]
    boxes = contract_tma.build(kernel, *products[0], target, select)
    if boxes is not None:
        return boxes
    products = [(c, without_boxes(c, dtype), majors) for c, dtype, majors in products]
    shares = shared_among([c for c, *_ in products], target)
    options = [choices(*each, s, select) for each, s in zip(products, shares, strict=True)]
    options = alike([c for c, *_ in products], options, shares)
    counts = [{schedule.threads for schedule in each} for each in options]
    common = set.intersection(*counts)
    check(common, "products of one kernel have as many threads", kernel)
    parts = []
    for each, schedules, share in zip(products, options, shares, strict=True):
        fitting = [schedule for schedule in schedules if schedule.threads in common]
        schedule, threads, part = choose(kernel, each, fitting, share)
        common = {threads}
        if isinstance(schedule, SimtSchedule) and schedule.is_bound:
            part = replace(part, together=part.together or schedule.resident)
        parts.append(part)
    return TileKernel(kernel, tuple(parts), threads)


def without_boxes(c: Contraction, dtype: DType) -> DType:
    """Choose the dtype of operands that no boxes bring: twins are multiplied without tensor cores,
    8-bit floats as wider ones."""
    return c.dtype if c.twin is not None else float16 if dtype.kind == "float8" else dtype


def alike(
    products: list[Contraction], options: list[list[Schedule]], shares: list[Target]
) -> list[list[Schedule]]:
    """Narrow the schedules of several products to those of as many threads, and resident blocks.

    All have the registers of so many blocks: more would be resident of some alone, and with fewer
    registers than they want the sums of others would be in local memory. A product that is
    computed directly has as many threads as its form.
    """
    threads = [[s for s in each if isinstance(s, SimtSchedule)] for each in options]
    if len(products) == 1 or not all(threads):
        return options
    kinds = {(s.threads, s.resident) for each in threads for s in each}
    if any(map(is_direct, products, threads, shares)):
        kinds = {kind for kind in kinds if kind[0] == contract_direct.THREADS}
    found = [
        [narrowed(*each, *kind) for each in zip(products, threads, shares, strict=True)]
        for kind in sorted(kinds)
    ]
    fitting = [parts for parts in found if all(parts)]
    check(fitting, "products of one kernel have tiles alike", products)
    best = min(fitting, key=lambda parts: sum(each[0][0] for each in parts))
    return [[schedule for _, schedule in each] for each in best]


def is_direct(c: Contraction, schedules: list[SimtSchedule], target: Target) -> bool:
    """Tell whether a product takes less time without tiles than in its best ones."""
    return c.twin is None and any(
        form.build_part(c, schedules[0], target) is not None for form in DIRECT
    )


def narrowed(
    c: Contraction, schedules: list[SimtSchedule], share: Target, threads: int, resident: int
) -> list[tuple[float, SimtSchedule]]:
    """List the schedules of which so many blocks may be resident, behind their times, best first.

    The smallest tiles want few registers, and come first where they may be chosen.
    """
    found = []
    for schedule in schedules:
        is_small = schedule.block == SMALL
        if schedule.threads == threads and (is_small or schedule.resident >= resident):
            bound = contract_steps.bound_to(c, schedule, resident)
            found.append((contract_steps.time_of(c, bound, share), bound))
    return sorted(found, key=lambda each: (each[1].block != SMALL, each[0]))


def shared_among(products: list[Contraction], target: Target) -> list[Target]:
    """Give each product of matrices as many processors as it has work, of all."""
    if not all(map(contract_steps.is_plain, products)):
        return [target] * len(products)
    works = [product(c.sizes) for c in products]
    counts = [target.multiprocessors * work // max(sum(works), 1) for work in works]
    return [replace(target, multiprocessors=max(count, 1)) for count in counts]


def arranged(c: Contraction, target: Target) -> Arranged:
    """Choose sides and axis orders, with the elements of each window next to one another."""
    found, dtype, majors = arrange(split_windows(c), target)
    return windows_last(found), dtype, majors


def choose(
    kernel: Kernel, arranged: Arranged, schedules: Sequence[Schedule], target: Target
) -> tuple[Schedule, int, TilePart]:
    """Write a product with the first schedule that can run well, or else the last; its threads.

    A direct form takes the place of tiles that would take longer, if a schedule has its threads.
    """
    contraction, dtype, _ = arranged
    is_open = contraction.twin is None and contract_direct.THREADS in {s.threads for s in schedules}
    direct = DIRECT if is_open else ()
    for schedule in schedules:
        for form in direct:
            part = form.build_part(contraction, schedule, target)
            if part is not None:
                return schedule, contract_direct.THREADS, part
        grid = make_grid(contraction, schedule, target)
        part = write_part(contraction, schedule, grid, dtype, target)
        if suits(kernel, schedule, part):
            break
    return schedule, schedule.threads, part


def suits(kernel: Kernel, schedule: Schedule, part: TilePart) -> bool:
    """Tell whether a schedule can run well: wgmma wants operands that cp.async can copy.

    Staging registers beside its accumulator make ptxas serialise the multiplications.
    """
    main = part.steps[0]
    main = main.body[0] if isinstance(main, When) else main
    if not isinstance(schedule, WgmmaSchedule) or not isinstance(main, MainLoop):
        return True
    return all(plain_load(kernel, operand) is not None for operand in operands_of(main))


def choices(
    c: Contraction,
    dtype: DType,
    majors: tuple[bool, bool],
    target: Target,
    select: Callable[[Schedule], bool],
) -> list[Schedule]:
    """List block tiles, best first: those that keep the GPU busy, then the smallest."""
    is_half = dtype.is_float and dtype.bits == 16
    options: list[Schedule] = [*mma_options(majors)]
    if is_half and target.arch == "sm_90a":
        options = wgmma_options(majors) + options
    _, m, n, k = c.sizes
    is_small = max(m, n) <= SMALL[0] and k >= 16 * SMALL[2] and dtype.itemsize < 8
    if target.tf32 and dtype is float32:
        options = [*tensor_core_tf32.tf32_options(m, n, majors)]
    elif not is_half:
        options = [*contract_steps.sorted_options(c, dtype, majors, target)]
        if is_small:
            options.insert(0, SimtSchedule(SMALL, contract_steps.THREADS, 2, 2, *majors))
        if dtype is float64 and target.arch == "sm_90a" and c.twin is None and not reductions(c):
            options = [*tensor_core_tf32.float64_options(majors), *options]
    options = [schedule for schedule in options if select(schedule)]
    return [*(s for s in options if fits(s, c, target)), options[-1]]


def wgmma_options(majors: tuple[bool, bool]) -> list[Schedule]:
    """List Hopper schedules: a warpgroup for every 64 rows."""
    return [
        WgmmaSchedule((128, 256, 64), 4, *majors),
        WgmmaSchedule((128, 128, 64), 4, *majors),
        WgmmaSchedule((64, 128, 64), 4, *majors),
    ]


def mma_options(majors: tuple[bool, bool]) -> list[Schedule]:
    """List tensor-core schedules, best first for large problems.

    128 x 256 x 64 with warps of 64 x 64 was the fastest of the prototypes on an H200; three stages
    of it fit the shared memory of an A100.
    """
    return [
        MmaSchedule((128, 256, 64), (2, 4), 4, *majors),
        MmaSchedule((128, 256, 64), (2, 4), 3, *majors),
        MmaSchedule((128, 128, 64), (2, 2), 3, *majors),
        MmaSchedule(NARROW, (2, 2), 4, *majors),
    ]


def fits(s: Schedule, c: Contraction, target: Target) -> bool:
    """Tell whether a schedule has shared memory, little waste, and work for every processor."""
    if isinstance(s, SimtSchedule) or s.block == SMALL:
        return True  # sorted by their time, and nothing is smaller
    if s.shared_bytes > target.shared_bytes:
        return False
    batch, m, n, k = c.sizes
    if m <= s.block[0] // 2 or n <= s.block[1] // 2:
        return False
    tiles = batch * ceil_div(m, s.block[0]) * ceil_div(n, s.block[1])
    if isinstance(s, Float64Schedule):
        return tensor_core_tf32.keeps_busy(s, tiles, k, target.multiprocessors)
    if isinstance(s, Tf32Schedule):
        wave = s.resident * target.multiprocessors
        points = tiles * max(1, wave // tiles)
        is_even = 4 * points >= 3 * round_up(points, wave)
        return is_even and k * tiles >= 2 * LEAST_TF32 * target.multiprocessors
    # Three quarters of a wave of large tiles beat a whole wave of small ones; so much of K for each
    # processor is enough for splitting K to hide the sum over the parts.
    blocks = target.multiprocessors
    return 4 * tiles >= 3 * blocks or k * tiles >= 2048 * blocks


def make_grid(c: Contraction, schedule: Schedule, target: Target) -> Grid:
    """Number the tiles, grouped so that blocks running together share operands in the L2 cache."""
    batch, m, n, k = c.sizes
    rows, columns = ceil_div(m, schedule.block[0]), ceil_div(n, schedule.block[1])
    depth = ceil_div(k, schedule.block[2])
    if c.twin is not None or reductions(c):
        splits = 1
    elif isinstance(schedule, SimtSchedule) and schedule.block != SMALL:
        splits = contract_steps.split_count(c, schedule, target)
    else:
        splits = split_count(batch * rows * columns, depth, schedule, target)
    tiles = ceil_div(depth, splits)
    group = next(g for g in (8, 4, 2, 1) if rows % g == 0)
    tile, split = Axis("tile", rows * columns), Axis("split", ceil_div(depth, tiles))
    position = axis_index(tile)
    inside = position % (group * columns)
    row = position // (group * columns) * group + inside % group
    return Grid(c.batch, tile, split, row, inside // group, tiles)


def split_count(tiles: int, depth: int, schedule: Schedule, target: Target) -> int:
    """Count the blocks that share one tile: enough for one wave, each with at least 4 steps."""
    blocks, is_small = target.multiprocessors, schedule.block == SMALL
    if isinstance(schedule, MmaSchedule) and schedule.block == NARROW:
        blocks *= max(target.shared_bytes // schedule.shared_bytes, 1)  # loads wait beside others
    if isinstance(schedule, Tf32Schedule) and not is_small:
        least = LEAST_TF32 // schedule.block[2]
        return max(1, min(schedule.resident * blocks // tiles, depth // least, MOST_SPLITS))
    if is_small and depth >= 2 * LONG * blocks:
        blocks *= 2
    most = blocks if is_small else MOST_SPLITS
    return max(1, min(blocks // max(tiles, 1), depth // 4, most))


def write_part(
    c: Contraction, schedule: Schedule, grid: Grid, dtype: DType, target: Target
) -> TilePart:
    """Write the block program: main loop, then the epilogue, behind the sum over splits."""
    block_m, block_n = schedule.layout.shape
    m, n = Axis("m", block_m), Axis("n", block_n)
    k = Axis("k", grid.tiles * schedule.block[2])
    rows = role(c.rows, grid.row * block_m + axis_index(m))
    columns = role(c.columns, grid.column * block_n + axis_index(n))
    depth = role(c.depth, axis_index(grid.split) * k.size + axis_index(k))
    sides = [(c.a, rows), *((expr, columns) for expr in c.rights)]
    a, b, *twin = (operand(expr, dtype, side, depth) for expr, side in sides)
    stops = stops_of(c.a, c.b, c.depth, axis_index(grid.split) * k.size)
    main = MainLoop("acc", (m, n, k), a, b, schedule, stops)
    acc = Tile("acc", (block_m, block_n), c.dtype, "register", schedule.layout)
    tiles = [acc]
    for other in twin:
        main = replace(main, twins=(("beside", other),))
        tiles.append(replace(acc, name="beside"))
    ends = epilogue(c, (m, n), rows, columns, schedule.layout)
    windows: tuple[Step, ...] = ()
    spaces: tuple[tuple[int, bool], ...] = ()
    if isinstance(schedule, SimtSchedule):
        places = grid.row, grid.column
        windows = tuple(store_windows(c, schedule, places))
        if reductions(c):
            sums = sums_of(c, schedule, (m, n), places, (rows, columns))
            windows += tuple(write_sums(sums, sums_in(c, (axis_index(m), axis_index(n)))))
            tiles += sums.tiles
            spaces = sums.workspaces
    ends += windows
    axes = (*grid.batch, grid.tile, grid.split)
    if grid.split.size == 1:
        part = TilePart(axes, tuple(tiles), (main, *ends), spaces)
    elif target.has_waiting_blocks and is_summed_apart(schedule, grid.split.size) and not windows:
        return apart_part(c, grid, acc, schedule, main)
    else:
        part = split_part(c, grid, acc, (m, n), main, ends)
    wanted = wanted_of(c, grid, schedule)
    return replace(part, steps=(When(wanted, part.steps),)) if wanted else part


def operand(expr: Expr, dtype: DType, side: Role, depth: Role) -> Expr:
    """Read an operand at a place of a tile and of K, in the dtype that is multiplied."""
    plain = narrow(expr, 8) if dtype.bits == 16 else expr
    conditions = *side.conditions, *depth.conditions
    return guarded(bind_roles(cast(plain, dtype), side, depth), conditions)


def is_summed_apart(schedule: Schedule, splits: int) -> TypeGuard[Apart]:
    """Tell whether all blocks add the parts of a tile, not the last one alone."""
    if schedule.block == SMALL:
        return False
    if isinstance(schedule, SimtSchedule | MmaSchedule):
        return contract_steps.is_long_sum(schedule, splits)
    return isinstance(schedule, Tf32Schedule)


def wanted_of(c: Contraction, grid: Grid, schedule: Schedule) -> tuple[Condition, ...]:
    """Say when a tile holds anything wanted: it begins before the ends of its outermost axes."""
    found = [end for end in c.ends if axes_of(end[0]) <= set(c.batch)]
    roles = (c.rows, grid.row), (c.columns, grid.column)
    for number, (axes, place) in enumerate(roles):
        first = place * schedule.block[number]
        found += [below(first - limit) for limit in limits_of(axes, c.ends)]
    return tuple(found)


def epilogue(
    c: Contraction,
    dims: tuple[Axis, Axis],
    rows: Role,
    columns: Role,
    layout: Layout,
    name: str = "",
) -> tuple[Step, ...]:
    """Write the stores: the epilogue's expressions over the accumulator registers, or a sum of
    them."""
    where = tuple(axis_index(axis) for axis in dims)
    sums = sums_in(c, where)
    if name:
        sums[c.number] = Expr("tile", (), (name, where), c.dtype)
    values = {**rows.values, **columns.values}
    conditions = (*rows.conditions, *columns.conditions)
    return tuple(
        Store(out.slot, out.index, dims, out.expr, conditions, layout)
        for out in stores(c, values, sums)
    )


def split_part(
    c: Contraction,
    grid: Grid,
    acc: Tile,
    dims: tuple[Axis, Axis],
    main: Step,
    ends: tuple[Step, ...],
) -> TilePart:
    """Write the sum over splits: partial tiles in a workspace, added in order by the last block."""
    layout = acc.layout
    outputs = (*grid.batch, grid.tile)
    cell = position_over(outputs)
    cells = product(axis.size for axis in outputs)
    shape = (cells, grid.split.size, *acc.shape)
    partial = Tile("partial", shape, c.dtype, "workspace", workspace=0)
    where = [axis_index(axis) for axis in dims]
    here = (cell, axis_index(grid.split), *where)
    current = Expr("tile", (), ("acc", tuple(where)), c.dtype)
    number = Axis("number", grid.split.size)
    other = Expr("tile", (), ("partial", (cell, axis_index(number), *where)), c.dtype)
    add = Assign("acc", dims, Expr("add", (current, other), None, c.dtype))
    clear = Assign("acc", dims, const(0, c.dtype))
    last = LastBlock(1, cell, grid.split.size, (clear, For(number, (add,)), *ends))
    keep = Assign("partial", dims, current, here, layout)
    workspaces = ((product(shape) * c.dtype.itemsize, False), (cells * 4, True))
    axes = (*grid.batch, grid.tile, grid.split)
    return TilePart(axes, (acc, partial), (main, keep, last), workspaces)


@dataclass(frozen=True, slots=True)
class Piece:
    """What a block adds at once of a tile: elements of `layout` at `place`, over the parts.

    There are `count` pieces; `turn` counts those of a block, one after the other.
    """

    dims: tuple[Axis, Axis]
    layout: Blocked
    every: Blocked  # with the parts
    place: tuple[Index, Index]  # row and column in the tile
    number: Index
    count: int
    turn: Axis


def piece_of_rows(shape: tuple[int, int], block: Axis, threads: int) -> Piece:
    """Add a few rows, each thread all parts of some elements: where parts are few."""
    warps = threads // WARP
    most = shape[0] // warps
    count = max(n for n in range(1, min(block.size, most) + 1) if most % n == 0)
    m, n = Axis("m", shape[0] // count), Axis("n", shape[1])
    lanes = next(lanes for lanes in (4, 2, 1) if n.size % (lanes * WARP) == 0)
    layout = Blocked((m.size, n.size), (warps, WARP), (1, lanes))
    every = layout.with_alone((block.size,))
    place = axis_index(block) * m.size + axis_index(m), axis_index(n)
    return Piece((m, n), layout, every, place, axis_index(block), count, Axis("turn", 1))


def piece_of_columns(shape: tuple[int, int], block: Axis, threads: int) -> Piece:
    """Add a stretch of a row, or a few short rows, each warp some of the parts."""
    count = shape[0] * shape[1] // WARP
    turn = Axis("turn", ceil_div(count, block.size))
    n, m = Axis("n", WARP), Axis("m", 1)
    layout = Blocked((WARP, 1), (WARP, 1), (1, 1), True)
    every = Blocked((WARP, 1, block.size), (WARP, 1, threads // WARP), (1, 1, 1), True)
    number = axis_index(block) * turn.size + axis_index(turn)
    if shape[1] < WARP:
        place = number * (WARP // shape[1]) + axis_index(n) // shape[1], axis_index(n) % shape[1]
    else:
        stretches = shape[1] // WARP
        place = number // stretches, number % stretches * WARP + axis_index(n)
    return Piece((n, m), layout, every, place, number, count, turn)


def apart_part(c: Contraction, grid: Grid, acc: Tile, schedule: Apart, main: MainLoop) -> TilePart:
    """Write the sum over splits, of pieces by each block, after all blocks left their tiles."""
    block_m, block_n = acc.shape
    splits, outputs = grid.split.size, (*grid.batch, grid.tile)
    cells, cell = product(axis.size for axis in outputs), position_over(outputs)
    block = Axis("piece", splits)  # as many sum as multiply: all are there at once
    is_many = not isinstance(schedule, Tf32Schedule) and splits >= contract_steps.MANY
    sums = piece_of_columns if is_many else piece_of_rows
    piece = sums((block_m, block_n), block, schedule.threads)
    shape = (cells, splits, block_m, block_n)
    partial = Tile("partial", shape, c.dtype, "workspace", workspace=0)
    own = Expr("tile", (), ("acc", tuple(map(axis_index, main.dims[:2]))), c.dtype)
    here = (cell, axis_index(grid.split), *map(axis_index, main.dims[:2]))
    keep = Assign("partial", main.dims[:2], own, here, acc.layout)
    number, (row, column) = Axis("number", splits), piece.place
    left = "partial", (cell, axis_index(number), row, column)
    added = Expr("tile", (), left, c.dtype)
    total = Tile("total", piece.layout.shape, c.dtype, "register", piece.layout)
    rows = role(c.rows, grid.row * block_m + row)
    columns = role(c.columns, grid.column * block_n + column)
    steps: tuple[Step, ...] = (
        Accumulate("total", piece.dims, (number,), "sum", added, True, piece.every),
        *epilogue(c, piece.dims, rows, columns, piece.layout, total.name),
    )
    wanted = wanted_of(c, grid, schedule)
    steps = (When((*wanted, (piece.number, 0, piece.count - 1)), steps),)
    begun = (When(wanted, (main, keep)),) if wanted else (main, keep)
    ahead = TilePart((*outputs, grid.split), (acc,), begun)
    body = (For(piece.turn, steps),) if piece.turn.size > 1 else steps
    spaces = ((product(shape) * c.dtype.itemsize, False),)
    found = TilePart((*outputs, block), (total, partial), body, spaces, ahead=(ahead,))
    return (
        found if isinstance(schedule, MmaSchedule) else replace(found, together=schedule.resident)
    )

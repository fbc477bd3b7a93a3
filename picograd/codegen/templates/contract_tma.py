"""Contractions on Hopper whose operands the bulk copy engine can bring: see tile_pipeline.py.

Blocks stay: as many as there are processors walk the tiles of the output. A warpgroup copies
stages of both operands ahead, teams of warpgroups multiply them; the epilogue is ordinary Tile IR
on the accumulator, and its stores leave in boxes where the output's rows allow it. Nothing is
guarded: what lies outside of an array is copied in as 0 and not copied out.
"""

from collections.abc import Callable
from dataclasses import dataclass

from picograd.code import TensorMap
from picograd.codegen.layout import Swizzled, WgmmaAccumulator
from picograd.codegen.operands import Contraction, narrow, role, size_of, step_of, stores
from picograd.codegen.tile import Assign, Dot, Step, Store, Tile, TileKernel, TilePart
from picograd.codegen.tile_pipeline import BoxStore, CopyBox, Persistent, Pipeline, Teams
from picograd.dtype import DType
from picograd.helpers import ceil_div, product
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Expr, Kernel, const, walk
from picograd.target import Target

ROW_BYTES = 128  # of a slab
WARP_ROWS = 16  # that a warp stores at once
MOST_DIMENSIONS, LONGEST, FARTHEST = 5, 1 << 32, 1 << 40  # of a tensor map (CUDA driver API)
ALIGNMENT = 16  # bytes, of where an array begins and of its strides
MOST_REGISTERS, MOST_REGISTERS_BUSY = 192, 128  # of an accumulator: beyond, values spill
LIGHT = {"cast", "add", "sub", "mul", "neg", "maximum", "minimum", "guard", "where"}
DEPTH = 64  # of a stage: 128 bytes of a 16-bit row
LEAST = 16  # rows or columns of a product; fewer are read faster without boxes
DEEP = 6400  # K from which blocks that share a tile beat one that multiplies it alone
# Estimates measured on an H200 (docs/records/0011-products). To store a tile while nobody
# multiplies: as so much of K. To bring an element of a row, where rows begin at lines of the cache
# and elsewhere: as so many products of two elements.
ALONE = 128
ALIGNED, MISALIGNED = 54, 135
GROUP_ROWS = 8  # tiles of rows that run together, for the L2 cache


@dataclass(frozen=True, slots=True)
class BoxSchedule:
    """How blocks multiply: `teams` take tiles of `block` (m, n) in turn, `stages` are ahead.

    A team is `groups` warpgroups. `slots` hold what a warp is storing. `rate`: how fast a
    processor multiplies tiles of this size, compared with others.
    """

    block: tuple[int, int]
    teams: int
    groups: int
    stages: int
    slots: int
    rate: float

    @property
    def layout(self) -> WgmmaAccumulator:
        """Layout of the accumulator of a team."""
        return WgmmaAccumulator(self.block[1], self.groups, self.block[0] // 64 // self.groups)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 128 * (1 + self.teams * self.groups)

    @property
    def registers(self) -> tuple[int, int]:
        """Registers of a thread that copies and of one that multiplies: 65,536 in all."""
        return (40, 232) if self.teams * self.groups == 2 else (0, 0)


@dataclass(frozen=True, slots=True)
class Side:
    """One operand: its tensor map, the batch axes that it has, and the layout of a stage."""

    tensor: TensorMap
    batch: tuple[Axis, ...]
    layout: Swizzled
    is_k_major: bool


Sides = tuple[Side, Side]

# Rates of long runs on an H200, where the power limit slows the clock.
SCHEDULES = (
    BoxSchedule((128, 192), 2, 1, 4, 3, 1.0),
    BoxSchedule((128, 128), 2, 1, 6, 2, 0.985),
    BoxSchedule((64, 128), 1, 1, 8, 2, 0.8),
    BoxSchedule((128, 256), 1, 2, 4, 2, 0.8),
    BoxSchedule((128, 64), 2, 1, 8, 2, 0.6),
)


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
    is_half = dtype.is_float and dtype.bits == 16
    if target.arch != "sm_90a" or not is_alone or not is_half or not suits(contraction, target):
        return None
    best: tuple[float, BoxSchedule, Sides] | None = None
    for schedule in candidates(contraction):
        sides = operands(contraction, dtype, majors, schedule) if select(schedule) else None
        if sides is not None:
            estimate = cost(contraction, schedule, sides, target)
            if best is None or estimate < best[0]:
                best = estimate, schedule, sides
    if best is None:
        return None
    _, schedule, sides = best
    part = write_part(kernel, contraction, schedule, dtype, sides, target)
    return TileKernel(kernel, (part,), schedule.threads)


def candidates(c: Contraction) -> list[BoxSchedule]:
    """List the schedules whose accumulator leaves registers for what follows the product."""
    limit = MOST_REGISTERS if is_light(c) else MOST_REGISTERS_BUSY
    return [each for each in SCHEDULES if each.layout.register_count <= limit]


def suits(c: Contraction, target: Target) -> bool:
    """Tell whether boxes are full enough, and of tiles for enough processors.

    Where they are few, K is better split over blocks.
    """
    _, m, n, k = c.sizes
    tiles = max(tile_count(c, schedule) for schedule in SCHEDULES)
    return min(m, n) >= LEAST and (4 * tiles >= target.multiprocessors or k <= DEEP)


def is_light(c: Contraction) -> bool:
    """Tell whether what follows the product needs few registers: no function of elements."""
    bodies = [compute.body for compute in c.computes if not compute.reduce]
    return all(not node.args or node.op in LIGHT for body in bodies for node in walk(body))


def tile_count(c: Contraction, schedule: BoxSchedule) -> int:
    """Count the tiles of the output."""
    batch, m, n, _ = c.sizes
    return batch * ceil_div(m, schedule.block[0]) * ceil_div(n, schedule.block[1])


def cost(c: Contraction, schedule: BoxSchedule, sides: Sides, target: Target) -> float:
    """Estimate the time: what the tensor cores, or the cache, take for one step of K, times K.

    The unit is one product of two elements, where tiles of 128 x 192 are multiplied.
    """
    points = tile_count(c, schedule)
    waves = ceil_div(points, target.multiprocessors)
    multiplied = waves * product(schedule.block) / schedule.rate
    lines = [ALIGNED if is_aligned(side) else MISALIGNED for side in sides]
    brought = sum(size * line for size, line in zip(schedule.block, lines, strict=True))
    moved = points / target.multiprocessors * brought
    depth = ceil_div(c.sizes[3], DEPTH) * DEPTH
    waves_alone = waves if schedule.teams == 1 else 1
    alone = waves_alone * product(schedule.block) * ALONE
    return max(multiplied, moved) * depth + alone


def is_aligned(side: Side) -> bool:
    """Tell whether the rows of boxes begin where lines of the cache do."""
    tensor = side.tensor
    places = tensor.offset, *tensor.strides
    return all(place * tensor.dtype.itemsize % ROW_BYTES == 0 for place in places)


# -- tensor maps ----------------------------------------------------------------------------------


def operands(
    c: Contraction, dtype: DType, majors: tuple[bool, bool], schedule: BoxSchedule
) -> Sides | None:
    """Describe both operands; None if one cannot be copied in boxes."""
    rows, columns = schedule.block
    a = side_of(c, c.a, c.rows, dtype, majors[0], rows)
    b = side_of(c, c.b, c.columns, dtype, majors[1], columns)
    return None if a is None or b is None else (a, b)


def side_of(
    c: Contraction, expr: Expr, outer: tuple[Axis, ...], dtype: DType, is_k_major: bool, size: int
) -> Side | None:
    """Describe one operand; None if it is no load whose rows boxes can have."""
    plain = narrow(expr)
    if plain.op != "load" or plain.dtype is not dtype:
        return None
    slot, index = plain.arg
    near, far = (c.depth, outer) if is_k_major else (outer, c.depth)
    view = view_of(index, near, far, c.batch, dtype.itemsize)
    if view is None:
        return None
    span = ROW_BYTES // dtype.itemsize
    shape = (size, DEPTH) if is_k_major else (DEPTH, size)
    box = (span, shape[0], *(1 for _ in view.batch))
    tensor = TensorMap(slot, dtype, view.offset, view.sizes, view.strides, box)
    layout = Swizzled(shape, dtype.itemsize)
    return Side(tensor, view.batch, layout, is_k_major)


@dataclass(frozen=True, slots=True)
class View:
    """An array seen as (nearest, next, ...batch) dimensions; see `TensorMap`."""

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    batch: tuple[Axis, ...]


def view_of(
    index: Index,
    near: tuple[Axis, ...],
    far: tuple[Axis, ...],
    batch: tuple[Axis, ...],
    itemsize: int,
) -> View | None:
    """See an index as dimensions that a tensor map can have; None if it has others."""
    if any(not isinstance(atom, Axis) for atom, _ in index.terms):
        return None
    near_step = chain(index, near)
    far_step = chain(index, far)
    if near_step is None or far_step is None:
        return None
    wide = tuple(axis for axis in batch if axis.size > 1 and step_of(index, axis))
    sizes = size_of(near), size_of(far), *(axis.size for axis in wide)
    is_repeated = (near_step == 0 and sizes[0] > 1) or (far_step == 0 and sizes[1] > 1)
    if near_step > 1 or is_repeated:
        return None
    # A dimension of one position may have any stride.
    strides = [far_step or ALIGNMENT]
    strides += [step_of(index, axis) or ALIGNMENT for axis in wide]
    view = View(index.const, sizes, tuple(strides), wide)
    return view if is_possible(view, itemsize) else None


def is_possible(view: View, itemsize: int) -> bool:
    """Tell whether a tensor map can have these dimensions."""
    if len(view.sizes) > MOST_DIMENSIONS or max(view.sizes) >= LONGEST:
        return False
    for number in (view.offset, *view.strides):
        if number < 0 or number * itemsize % ALIGNMENT:
            return False
    return max(view.strides) * itemsize < FARTHEST


def chain(index: Index, axes: tuple[Axis, ...]) -> int | None:
    """Find the stride of flat positions over axes; 0 for one position, None if there is none."""
    stride = 0
    count = 1
    for axis in reversed([axis for axis in axes if axis.size > 1]):
        step = step_of(index, axis)
        if step is None or (stride and step != stride * count):
            return None
        stride = stride or step
        count *= axis.size
        if not stride:
            return None
    return stride


# -- Tile IR --------------------------------------------------------------------------------------


def write_part(
    kernel: Kernel,
    c: Contraction,
    schedule: BoxSchedule,
    dtype: DType,
    sides: Sides,
    target: Target,
) -> TilePart:
    """Write the program of a block: for each of its tiles the main loop, then the epilogue."""
    block_m, block_n = schedule.block
    _, m, n, k = c.sizes
    rows = ceil_div(m, block_m)
    columns = ceil_div(n, block_n)
    tile = Axis("tile", rows * columns)
    row, column = order(axis_index(tile), rows, columns)
    corners = row * block_m, column * block_n
    depth = Axis("k_tile", ceil_div(k, DEPTH))
    dims = Axis("m", block_m), Axis("n", block_n)
    layout = schedule.layout
    acc = Tile("acc", schedule.block, c.dtype, "register", layout)
    stages = [
        Tile(name, side.layout.shape, dtype, "shared", stages=schedule.stages, swizzle=side.layout)
        for name, side in zip("ab", sides, strict=True)
    ]
    copies = [
        copy(stage, side, corner, axis_index(depth))
        for stage, side, corner in zip(stages, sides, corners, strict=True)
    ]
    a, b = sides
    multiply = Dot("acc", "a", "b", DEPTH, "wgmma", not a.is_k_major, b.is_k_major)
    clear = Assign("acc", dims, const(0, c.dtype))
    ends, boxes = epilogue(kernel, c, dims, corners, schedule)
    main = clear, Pipeline(depth, tuple(copies), (multiply,))
    points = (*c.batch, tile)
    count = min(product(axis.size for axis in points), target.multiprocessors)
    block = Axis("block", count)
    teams = Teams(schedule.teams, 128 * schedule.groups, schedule.registers)
    loop = Persistent(points, block, teams, (*main, *ends))
    return TilePart((block,), (acc, *stages, *boxes), (loop,))


def order(position: Index, rows: int, columns: int) -> tuple[Index, Index]:
    """Number tiles so that those that run together share operands in the L2 cache."""
    group = next(g for g in (GROUP_ROWS, 4, 2, 1) if rows % g == 0)
    inside = position % (group * columns)
    return position // (group * columns) * group + inside % group, inside // group


def copy(stage: Tile, side: Side, corner: Index, k_tile: Index) -> CopyBox:
    """Copy one stage of an operand."""
    k = k_tile * DEPTH
    near, far = (k, corner) if side.is_k_major else (corner, k)
    return CopyBox(stage.name, side.tensor, (near, far, *map(axis_index, side.batch)))


def epilogue(
    kernel: Kernel,
    c: Contraction,
    dims: tuple[Axis, Axis],
    corners: tuple[Index, Index],
    schedule: BoxSchedule,
) -> tuple[list[Step], list[Tile]]:
    """Write the stores: the epilogue's expressions over the accumulator registers."""
    rows = role(c.rows, corners[0] + axis_index(dims[0]))
    columns = role(c.columns, corners[1] + axis_index(dims[1]))
    value = {c.number: Expr("tile", (), ("acc", tuple(map(axis_index, dims))), c.dtype)}
    conditions = (*rows.conditions, *columns.conditions)
    steps: list[Step] = []
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
            tiles.append(Tile(box.tile, shape, dtype, "shared", stages=schedule.slots))
        if tiles and tiles[0].dtype is not dtype:
            box = None
        steps.append(Store(slot, out.index, dims, out.expr, conditions, schedule.layout, box))
    return steps, tiles


def box_of(
    c: Contraction, slot: int, index: Index, dtype: DType, corners: tuple[Index, Index]
) -> BoxStore | None:
    """Describe how an output leaves in boxes; None if it cannot."""
    if not dtype.is_float or dtype.bits not in (16, 32):
        return None
    view = view_of(index, c.columns, c.rows, c.batch, dtype.itemsize)
    wide = tuple([axis for axis in c.batch if axis.size > 1])
    if view is None or view.batch != wide:
        return None
    box = (ROW_BYTES // dtype.itemsize, WARP_ROWS, *(1 for _ in view.batch))
    tensor = TensorMap(slot, dtype, view.offset, view.sizes, view.strides, box)
    return BoxStore(tensor, (corners[1], corners[0], *map(axis_index, view.batch)), "leaving")

"""Gradients of convolutions' weights of few rows on a GPU without tensor cores.

    acc[row, tap, other] += g[row, near] * h[tap + near, other]      for a thread's positions

A block has all taps of one channel, for as many rows as its registers hold. Its threads have
neighbouring positions of images; each walks over some, a patch of them one below the other a step,
whose windows share what they read. Then the threads add up what they have, and blocks of the same
channel as well: the last one does.
"""

from collections.abc import Sequence
from dataclasses import replace

from picograd.codegen.layout import Blocked
from picograd.codegen.mainloop_operands import Schedule
from picograd.codegen.operands import (
    Contraction,
    bind_roles,
    expr_axes,
    role,
    size_of,
    stores,
    strides,
)
from picograd.codegen.templates import contract_steps
from picograd.codegen.templates.contract_block_sums import reductions
from picograd.codegen.templates.contract_direct import (
    BUSY,
    FARTHEST,
    READ,
    RESIDENT,
    THREADS,
    alone,
    element,
    is_plain,
    shared_by,
    time_of_tiles,
)
from picograd.codegen.templates.grid import Cut, balanced
from picograd.codegen.templates.sliding import Patches, Slide, cut_patches, read_places, within
from picograd.codegen.tile import Accumulate, Assign, For, LastBlock, Step, Store, Tile, TilePart
from picograd.dtype import float32
from picograd.helpers import ceil_div, product
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, position_over, substitute
from picograd.schedule.loop import Condition, Expr, const, rewrite
from picograd.target import Target

FEW_ROWS = 16  # of the gradient: with more, tiles are full
MOST_SUMS, PATCH = 72, 4  # of a thread, and positions that it reads at once
BLOCKS = 4  # for each processor, if there is work


@dataclass(frozen=True, slots=True)
class Plan:
    """How a gradient is cut: `rows` of a block, `taps` that registers hold, positions in patches.

    Windows share what lies along the axis `near` if there is a `slide`.
    """

    c: Contraction
    rows: int
    taps: tuple[Axis, ...]
    channels: tuple[Axis, ...]
    near: Axis
    patch: int
    slide: Slide | None

    @property
    def positions(self) -> int:
        """Count the blocks of threads that have a patch each."""
        patches = ceil_div(self.near.size, self.patch)
        others = [axis for axis in self.c.depth if axis is not self.near]
        return ceil_div(patches * size_of(others), THREADS)

    @property
    def tiles(self) -> int:
        """Count the results that blocks share."""
        batch, rows, *_ = self.c.sizes
        chunks = ceil_div(rows, self.rows)
        return batch * chunks * size_of(self.channels)

    def splits(self, target: Target) -> int:
        """Choose how many blocks share a result."""
        wanted = ceil_div(BLOCKS * target.multiprocessors, self.tiles)
        steps = ceil_div(self.positions, min(wanted, self.positions, THREADS))
        return ceil_div(self.positions, steps)

    def time(self, target: Target) -> float:
        """Estimate the time in products, as `contract_steps.cost` does."""
        taps = size_of(self.taps)
        work = self.rows * taps * self.patch
        read = taps * self.patch
        if self.slide:
            across = taps // self.slide.element.size
            read = across * reach(self.slide, self.patch)
        read += self.rows * self.patch
        rate = work / (BUSY * work + READ * read)
        splits = self.splits(target)
        each = THREADS * work * ceil_div(self.positions, splits) / rate
        return contract_steps.time_of_waves(self.tiles * splits, each, RESIDENT, target)


def reach(slide: Slide, patch: int) -> int:
    """Count the elements that the windows of a patch reach along its axis."""
    taps = (slide.element.size - 1) * slide.step
    elements = (patch - 1) * slide.gap
    return taps + elements + 1


def build_part(c: Contraction, schedule: Schedule, target: Target) -> TilePart | None:
    """Write a gradient; None if tiles of a schedule are sooner ready, or it is another product."""
    is_sum = is_plain(c, schedule, target) and not reductions(c)
    plan = plan_of(c) if is_sum else None
    if plan is None:
        return None
    blocks = plan.tiles * plan.splits(target)
    if 4 * blocks < 3 * target.multiprocessors:
        return None
    is_sooner = plan.time(target) < time_of_tiles(c, schedule, target)
    return write_part(plan, target) if is_sooner else None


def plan_of(c: Contraction) -> Plan | None:
    """Choose how to sum a gradient; None if it is none of few rows, or of channels last."""
    last = c.depth[-1]
    steps = [strides(each, (last,))[last] for each in (c.a, c.b)]
    is_near = all(1 <= step <= FARTHEST for step in steps)
    if not is_near or len(c.depth) < 2:
        return None
    slides = shared_by(c.b, c.columns, c.depth)
    moved = [each.element for each in slides]
    taps = tuple(axis for axis in c.columns if axis in moved)
    if c.sizes[1] > FEW_ROWS or not taps or expr_axes(c.a) & {*c.columns}:
        return None
    if size_of(taps) > MOST_SUMS:
        return None
    most = max(MOST_SUMS // size_of(taps), 1)
    rows = balanced(c.sizes[1], most)
    slide = next((each for each in slides if each.tap is not last), None)
    near = slide.tap if slide else max(c.depth[:-1], key=lambda axis: axis.size)
    channels = tuple(axis for axis in c.columns if axis not in taps)
    patch = balanced(near.size, min(PATCH, near.size))
    return Plan(c, rows, taps, channels, near, patch, slide)


def write_part(plan: Plan, target: Target) -> TilePart:
    """Write a gradient."""
    c, splits = plan.c, plan.splits(target)
    space = cut_patches(c.depth, Patches({plan.near: plan.patch}), THREADS, 1)
    chunk = Axis("rows", ceil_div(c.sizes[1], plan.rows))
    row = Axis("row", plan.rows)
    split = Axis("split", splits)
    step = Axis("turn", ceil_div(plan.positions, splits))
    first = axis_index(chunk) * plan.rows
    rows = role(c.rows, first + axis_index(row))
    begin = axis_index(split) * step.size
    turn = begin + axis_index(step)
    space = turned(space, {space.grid[0]: turn}, plan.positions)
    thread = space.dims[0]
    sums = row, *plan.taps
    acc, total = alone("acc", (thread, *sums)), kept("total", sums)
    tiles = [acc, total]
    values = bind_roles(c.a, rows), c.b
    body = multiply(plan, space, values, rows.conditions, row, tiles)
    here = tuple(map(axis_index, sums))
    own = element("acc", (axis_index(thread), *here))
    layout = shared(total, thread.size)
    added = Accumulate("total", sums, (thread,), "sum", own, True, layout)
    steps: list[Step] = [Assign("acc", (thread, *sums), const(0, float32))]
    steps += [For(step, tuple(body)), added]
    found = stores(c, rows.values, {c.number: element("total", here)})
    ends = [
        Store(out.slot, out.index, sums, out.expr, rows.conditions, total.layout) for out in found
    ]
    cells = (*c.batch, *plan.channels, chunk)
    if splits == 1:
        return TilePart((*cells, split), tuple(tiles), (*steps, *ends), together=RESIDENT)
    return over_blocks(cells, split, sums, tiles, steps, ends)


def over_blocks(
    cells: Sequence[Axis],
    split: Axis,
    sums: Sequence[Axis],
    tiles: list[Tile],
    steps: Sequence[Step],
    ends: Sequence[Step],
) -> TilePart:
    """Let blocks leave their sums, and the last one of a result add them up."""
    total = tiles[1]
    cell, count = position_over(tuple(cells)), size_of(cells)
    shape = (count, split.size, *total.shape)
    partial = Tile("partial", shape, float32, "workspace", workspace=0)
    here = tuple(map(axis_index, sums))
    place = cell, axis_index(split), *here
    left = Assign("partial", tuple(sums), element("total", here), place, total.layout)
    number = Axis("number", split.size)
    there = cell, axis_index(number), *here
    other = element("partial", there)
    layout = shared(total, number.size)
    add = Accumulate("total", tuple(sums), (number,), "sum", other, True, layout)
    last = LastBlock(1, cell, split.size, (add, *ends))
    size = product(shape) * float32.itemsize
    tickets = count * 4
    spaces = ((size, False), (tickets, True))
    grid = (*cells, split)
    every = (*tiles, partial)
    return TilePart(grid, every, (*steps, left, last), spaces, together=RESIDENT)


def turned(space: Cut, values: dict[Axis, Index], count: int) -> Cut:
    """Let a block take several places of a grid in turn, and leave out those behind its end."""
    (place,) = values.values()
    axes = {axis: substitute(index, values) for axis, index in space.axes.items()}
    tests = [(substitute(index, values), low, high) for index, low, high in space.conditions]
    if place.hi >= count:
        tests.append((place, 0, count - 1))
    return Cut((), space.dims, axes, tuple(tests))


def multiply(
    plan: Plan,
    space: Cut,
    operands: tuple[Expr, Expr],
    ends: Sequence[Condition],
    row: Axis,
    tiles: list[Tile],
) -> list[Step]:
    """Write what reads the gradients and the windows of a patch, and multiplies them."""
    thread, near = space.dims
    given, seen = (rewrite(each, space.axes) for each in operands)
    every = thread, row, near
    rows = Assign("g", every, within(given, (*space.conditions, *ends)))
    dims = (thread, *plan.taps)
    if plan.slide:
        place = Axis("place", reach(plan.slide, near.size))
        slide = replace(plan.slide, tap=near, places=place)
        places, read = read_places("h", seen, dims, (slide,), space.conditions)
    else:
        places = Assign("h", (*dims, near), within(seen, space.conditions))
        read = element("h", map(axis_index, (*dims, near)))
    tiles.append(alone("g", every))
    tiles.append(alone("h", places.dims))
    weight = element("g", map(axis_index, every))
    term = Expr("mul", (weight, read), None, float32)
    sums = thread, row, *plan.taps
    layout = alone("acc", (*sums, near)).layout
    add = Accumulate("acc", sums, (near,), "sum", term, False, layout)
    return [rows, places, add]


def kept(name: str, dims: Sequence[Axis]) -> Tile:
    """Declare registers of which all threads have the same."""
    shape = tuple(axis.size for axis in dims)
    ones = (1,) * len(shape)
    layout = Blocked(shape, ones, ones)
    return Tile(name, shape, float32, "register", layout)


def shared(total: Tile, count: int) -> Blocked:
    """Lay out so many terms of each sum over the threads of a block."""
    ones = (1,) * len(total.shape)
    return Blocked((*total.shape, count), (*ones, THREADS), (*ones, 1))

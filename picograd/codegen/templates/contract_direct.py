"""Convolutions of few results a place on a GPU without tensor cores: no tile of them would be full.

    acc[row, near] += h[step * near + gap * tap] * w[tap, row]      for all channels and other taps

A thread computes all rows, up to `MOST_ROWS` of them, for places that lie one below the other: the
windows of these share elements, which are read once, into registers `h`. Neighbouring threads have
neighbouring places, so that reads are whole lines. Weights wait in shared memory, where a thread
reads four rows at once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf

from picograd.codegen.layout import Blocked
from picograd.codegen.mainloop_operands import Schedule
from picograd.codegen.operands import (
    Contraction,
    Role,
    bind_roles,
    expr_axes,
    output_strides,
    role,
    size_of,
    stores,
    strides,
    swap,
)
from picograd.codegen.templates import contract_steps
from picograd.codegen.templates.contract_block_sums import (
    Blocks,
    Sums,
    is_kept,
    reductions,
    write_sums,
)
from picograd.codegen.templates.grid import Cut, balanced
from picograd.codegen.templates.sliding import (
    Patches,
    Slide,
    cut_patches,
    read_places,
    slides_of,
    within,
)
from picograd.codegen.tensor_core import SimtSchedule
from picograd.codegen.tile import Accumulate, Assign, Barrier, For, Step, Store, Tile, TilePart
from picograd.dtype import float32
from picograd.helpers import ceil_div, divisors, product, round_up
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, position_over, substitute, unflatten
from picograd.schedule.loop import Expr, const, indices_of, rewrite, walk
from picograd.target import Target

THREADS = 256
MOST_ROWS = 16  # that a thread computes
MOST_NEAR = 4  # places of a thread
SHORTEST = 8  # places that lie side by side in memory
SHARED = 16384  # bytes of weights that a block has at once
UNROLLED = 1024  # multiplications without a loop
LANES = 4  # rows that a thread reads at once
FARTHEST = 2  # elements between what neighbouring threads read
RESIDENT = 2  # blocks of a processor
# Of a multiplication, and of a read, beside a quarter of the time that a read takes at best.
BUSY, READ = 1.2, 2
SCATTERED = 3.6  # products that it takes to store an element apart from those of other threads
PLAIN = {"load", "guard", "const", "cast"}


@dataclass(frozen=True, slots=True)
class Plan:
    """How a product is cut: rows in chunks, places in patches along an axis, channels in pieces.

    Windows along that axis share elements if there is a `slide`.
    """

    c: Contraction
    rows: int
    near: Axis
    patch: int
    slide: Slide | None
    serial: tuple[Axis, ...]  # of the depth: all that are loops

    @property
    def taps(self) -> int:
        """Count the taps that a step multiplies."""
        return self.slide.tap.size if self.slide else 1

    @property
    def reach(self) -> int:
        """Count the elements of a channel that the windows of a patch reach."""
        if self.slide is None:
            return self.patch
        elements = (self.patch - 1) * self.slide.step
        taps = (self.taps - 1) * self.slide.gap
        return elements + taps + 1

    @property
    def blocks(self) -> int:
        """Count the blocks."""
        batch, rows, *_ = self.c.sizes
        patches = ceil_div(self.near.size, self.patch)
        others = [axis for axis in self.c.columns if axis is not self.near]
        places = patches * size_of(others)
        chunks = ceil_div(rows, self.rows)
        return batch * chunks * ceil_div(places, THREADS)

    def time(self, target: Target) -> float:
        """Estimate the time in products, as `contract_steps.cost` does."""
        work = self.rows * self.patch * self.taps
        vectors = ceil_div(self.rows, LANES)
        read = self.reach + self.taps * vectors
        rate = work / (BUSY * work + READ * read)
        depth = self.c.sizes[3]
        each = THREADS * self.rows * self.patch * depth / rate
        time = contract_steps.time_of_waves(self.blocks, each, RESIDENT, target)
        return time + SCATTERED * self.scattered

    @property
    def scattered(self) -> int:
        """Count the elements that are stored apart: lines of memory are not whole."""
        last = self.c.columns[-1]
        batch, rows, columns, _ = self.c.sizes
        stores = sum(compute.store is not None for compute in self.c.computes)
        is_apart = output_strides(self.c, (last,))[last] > LANES
        return stores * batch * rows * columns if is_apart else 0


def build_part(c: Contraction, schedule: Schedule, target: Target) -> TilePart | None:
    """Write a product directly; None if tiles of a schedule are sooner ready, or it is another."""
    plan = plan_of(c, target) if is_plain(c, schedule, target) else None
    if plan is None or 3 * plan.blocks < target.multiprocessors:
        return None
    is_sooner = plan.time(target) < time_of_tiles(c, schedule, target)
    return write_part(plan) if is_sooner else None


def is_plain(c: Contraction, schedule: Schedule, target: Target) -> bool:
    """Tell whether a product of two arrays would be computed in tiles without tensor cores."""
    if not isinstance(schedule, SimtSchedule) or c.dtype is not float32:
        return False
    if c.ends or c.windows or c.number or c.twin or not c.depth:
        return False
    summed = {number for number, _ in reductions(c)}
    if any(each.reduce and n not in summed for n, each in enumerate(c.computes) if n):
        return False  # windows
    exprs = *walk(c.a), *walk(c.b)
    return all(expr.op in PLAIN for expr in exprs)


def time_of_tiles(c: Contraction, schedule: Schedule, target: Target) -> float:
    """Estimate the time of a product in tiles."""
    if not isinstance(schedule, SimtSchedule):
        return inf
    splits = contract_steps.split_count(c, schedule, target)
    return contract_steps.cost(c, schedule, splits, target)


def plan_of(c: Contraction, target: Target) -> Plan | None:
    """Choose how to compute a product directly; None if lines of places are too short for it."""
    side = c if c.sizes[1] <= c.sizes[2] else swap(c)
    if len(side.columns) < 2 or (reductions(c) and not is_kept(c, side.rows)):
        return None
    *others, last = side.columns
    if last.size < SHORTEST:
        return None
    step = strides(side.b, (last,))[last]
    is_near = 1 <= step <= FARTHEST
    if not is_near or expr_axes(side.a) & {*side.columns}:
        return None
    count = balanced(side.sizes[1], MOST_ROWS)
    slide = next(iter(shared_by(side.b, others, side.depth)), None)
    near = slide.element if slide else max(others, key=lambda axis: axis.size)
    tap = slide.tap if slide else None
    serial = tuple(axis for axis in side.depth if axis is not tap)
    if not serial:
        return None
    most = min(MOST_NEAR, near.size), min(MOST_NEAR // 2, near.size)
    sizes = [balanced(near.size, each) for each in most]
    found = [Plan(side, count, near, size, slide, serial) for size in sizes]
    return min(found, key=lambda plan: plan.time(target))


def shared_by(expr: Expr, elements: Sequence[Axis], taps: Sequence[Axis]) -> list[Slide]:
    """List the windows that slide through an operand, its guards among what they move."""
    indices = [index for each in walk(expr) for index in indices_of(each)]
    # by itself each tap, lest one that guards leave out is in the way of another
    found = [slide for tap in taps for slide in slides_of(expr, elements, (tap,))]
    moving = [slide for slide in found if all(map(slide.makes, indices))]
    distinct = {slide.element for slide in moving}
    return moving if len(distinct) == len(moving) else []


def write_part(plan: Plan) -> TilePart:
    """Write a product."""
    c = plan.c
    space = cut_patches(c.columns, Patches({plan.near: plan.patch}), THREADS, 1)
    chunk = Axis("rows", ceil_div(c.sizes[1], plan.rows))
    row = Axis("row", plan.rows)
    first = axis_index(chunk) * plan.rows
    number = first + axis_index(row)
    rows = role(c.rows, number)
    thread, near = space.dims
    dims = thread, row, near
    acc = alone("acc", dims)
    tiles = [acc]
    steps: list[Step] = [Assign("acc", dims, const(0, c.dtype))]
    steps += each_piece(plan, space, rows, row, tiles)
    here = map(axis_index, dims)
    total = element("acc", here)
    conditions = (*space.conditions, *rows.conditions)
    values = {**rows.values, **space.axes}
    sums = {c.number: total}
    for out in stores(c, values, sums):
        leave = Store(out.slot, out.index, dims, out.expr, conditions, acc.layout)
        steps.append(leave)
    grid = (*c.batch, chunk, *space.grid)
    if not reductions(c):
        return TilePart(grid, tuple(tiles), tuple(steps), together=RESIDENT)
    blocks = Blocks(
        axis_index(chunk),
        chunk.size,
        position_over(space.grid),
        product(axis.size for axis in space.grid),
        THREADS,
    )
    shape = row.size, *(axis.size for axis in space.dims)
    layout = Blocked(shape, (1, THREADS, 1), (1, 1, 1))
    every = Role(values, conditions)
    summed = Sums(c, row, space.dims, rows, every, layout, blocks, True)
    steps += write_sums(summed, sums)
    tiles += summed.tiles
    return TilePart(grid, tuple(tiles), tuple(steps), summed.workspaces, together=RESIDENT)


def each_piece(plan: Plan, space: Cut, rows: Role, row: Axis, tiles: list[Tile]) -> list[Step]:
    """Write the loop over pieces of the weights that shared memory holds."""
    c, (first, *others) = plan.c, plan.serial
    taps = (plan.slide.tap,) if plan.slide else ()
    wide = round_up(plan.rows, LANES)
    inner = size_of((*others, *taps))
    row_bytes = c.dtype.itemsize * wide * inner
    most = max(SHARED // row_bytes, 1)
    size = divisors(first.size, most)[-1]
    piece = Axis("piece", first.size // size)
    own = Axis(f"{first.name}_in", size)
    place = {first: axis_index(piece) * size + axis_index(own)}
    depth = (own, *others, *taps)
    shape = *(axis.size for axis in depth), wide
    tiles.append(Tile("weights", shape, c.dtype, "shared"))
    weights, seen = rewrite(c.a, place), rewrite(c.b, place)
    filling = fill(weights, rows, (row, *depth))
    body = multiply(plan, space, seen, depth, row, tiles)
    for axis in reversed((own, *others)):
        is_last = axis is not own and axis is others[-1]
        is_unrolled = is_last and is_short(plan, axis)
        body = [For(axis, tuple(body), is_unrolled)]
    both = [filling, Barrier(), *body]
    if piece.size == 1:
        return both
    again = (*both, Barrier())
    return [For(piece, again)]


def is_short(plan: Plan, axis: Axis) -> bool:
    """Tell whether a loop over taps is better written out."""
    count = axis.size * plan.taps
    return count * plan.rows * plan.patch <= UNROLLED


def fill(expr: Expr, rows: Role, axes: Sequence[Axis]) -> Assign:
    """Bring weights to shared memory, in the order in which they lie in memory."""
    sizes = tuple(axis.size for axis in axes)
    flat = Axis("flat", size_of(axes))
    position = axis_index(flat)
    places = unflatten(position, sizes)
    values = dict(zip(axes, places, strict=True))
    row, *depth = axes
    index = *(values[axis] for axis in depth), values[row]
    tests = [(substitute(at, values), low, high) for at, low, high in rows.conditions]
    body = rewrite(bind_roles(expr, rows), values)
    shape = (flat.size,)
    layout = Blocked(shape, (THREADS,), (1,))
    tail = ((position, 0, flat.size - 1),) if flat.size % THREADS else ()
    inside = tuple(tests)
    body = within(body, inside)
    return Assign("weights", (flat,), body, index, layout, tail)


def multiply(
    plan: Plan, space: Cut, expr: Expr, depth: Sequence[Axis], row: Axis, tiles: list[Tile]
) -> list[Step]:
    """Write what reads the elements of a patch and the weights of a step, and multiplies them."""
    thread, near = space.dims
    body = rewrite(expr, space.axes)
    name = "h"
    if plan.slide:
        place = Axis("place", plan.reach)
        slide = replace(plan.slide, element=near, places=place)
        places, read = read_places(name, body, space.dims, (slide,), space.conditions)
        taps: tuple[Axis, ...] = (slide.tap,)
    else:
        places = Assign(name, space.dims, within(body, space.conditions))
        read = element(name, map(axis_index, space.dims))
        taps = ()
    wide = Axis("wide", round_up(row.size, LANES))
    every = thread, *taps, wide
    where = map(axis_index, (*depth, wide))
    weights = Assign("w", every, element("weights", where))
    shape = tuple(axis.size for axis in every)
    ones = (1,) * (len(shape) - 1)
    layout = Blocked(shape, (THREADS, *ones), (*ones, LANES))
    tiles.append(alone(name, places.dims))
    tiles.append(Tile("w", shape, float32, "register", layout))
    own = map(axis_index, (thread, *taps, row))
    weight = element("w", own)
    term = Expr("mul", (read, weight), None, float32)
    dims = thread, row, near
    over = alone("acc", (*dims, *taps)).layout
    add = Accumulate("acc", dims, taps, "sum", term, False, over)
    return [places, weights, add]


def alone(name: str, dims: Sequence[Axis]) -> Tile:
    """Declare registers, of which a thread has all but along the first dimension."""
    shape = tuple(axis.size for axis in dims)
    ones = (1,) * (len(shape) - 1)
    layout = Blocked(shape, (THREADS, *ones), (1, *ones))
    return Tile(name, shape, float32, "register", layout)


def element(name: str, where: Iterable[Index]) -> Expr:
    """Read an element of a tile."""
    return Expr("tile", (), (name, tuple(where)), float32)

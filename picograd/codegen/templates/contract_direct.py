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
    role,
    size_of,
    stores,
    strides,
    swap,
)
from picograd.codegen.templates import contract_steps
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
from picograd.helpers import ceil_div, divisors, round_up
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, substitute, unflatten
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
        step, gap = self.slide.step, self.slide.gap
        return (self.patch - 1) * step + (self.taps - 1) * gap + 1

    @property
    def blocks(self) -> int:
        """Count the blocks."""
        batch, rows, *_ = self.c.sizes
        counts = [ceil_div(a.size, self.patch if a is self.near else 1) for a in self.c.columns]
        places = 1
        for count in counts:
            places *= count
        return batch * ceil_div(rows, self.rows) * ceil_div(places, THREADS)

    def time(self, target: Target) -> float:
        """Estimate the time in products, as `contract_steps.cost` does."""
        work = self.rows * self.patch * self.taps
        read = self.reach + self.taps * ceil_div(self.rows, LANES)
        rate = work / (BUSY * work + READ * read)
        each = THREADS * self.rows * self.patch * self.c.sizes[3] / rate
        return contract_steps.time_of_waves(self.blocks, each, RESIDENT, target)


def build_part(c: Contraction, schedule: Schedule, target: Target) -> TilePart | None:
    """Write a product directly; None if tiles of a schedule are sooner ready, or it is another."""
    plan = plan_of(c, target) if is_plain(c, schedule, target) else None
    if plan is None or 4 * plan.blocks < 3 * target.multiprocessors:
        return None
    return write_part(plan) if plan.time(target) < time_of_tiles(c, schedule, target) else None


def is_plain(c: Contraction, schedule: Schedule, target: Target) -> bool:
    """Tell whether a product of two arrays would be computed in tiles without tensor cores."""
    if not isinstance(schedule, SimtSchedule) or schedule.threads != THREADS:
        return False
    if c.dtype is not float32 or c.ends or c.windows or not c.depth or c.number:
        return False
    is_alone = not any(compute.reduce for compute in c.computes[1:])
    return is_alone and all(expr.op in PLAIN for each in (c.a, c.b) for expr in walk(each))


def time_of_tiles(c: Contraction, schedule: Schedule, target: Target) -> float:
    """Estimate the time of a product in tiles."""
    if not isinstance(schedule, SimtSchedule):
        return inf
    splits = contract_steps.split_count(c, schedule, target)
    return contract_steps.cost(c, schedule, splits, target)


def plan_of(c: Contraction, target: Target) -> Plan | None:
    """Choose how to compute a product directly; None if lines of places are too short for it."""
    side = c if c.sizes[1] <= c.sizes[2] else swap(c)
    if len(side.columns) < 2 or side.columns[-1].size < SHORTEST:
        return None
    last = side.columns[-1]
    if not 1 <= strides(side.b, (last,))[last] <= FARTHEST or expr_axes(side.a) & {*side.columns}:
        return None
    count = balanced(side.sizes[1], MOST_ROWS)
    slide = next(iter(shared_by(side.b, side.columns[:-1], side.depth)), None)
    near = slide.element if slide else max(side.columns[:-1], key=lambda axis: axis.size)
    serial = tuple(axis for axis in side.depth if slide is None or axis is not slide.tap)
    if not serial:
        return None
    sizes = [balanced(near.size, min(size, near.size)) for size in (MOST_NEAR, MOST_NEAR // 2)]
    found = [Plan(side, count, near, size, slide, serial) for size in sizes]
    return min(found, key=lambda plan: plan.time(target))


def shared_by(expr: Expr, elements: Sequence[Axis], taps: Sequence[Axis]) -> list[Slide]:
    """List the windows that slide through an operand, its guards among what they move."""
    indices = [index for each in walk(expr) for index in indices_of(each)]
    found = slides_of(expr, elements, taps)
    return [slide for slide in found if all(map(slide.makes, indices))]


def write_part(plan: Plan) -> TilePart:
    """Write a product."""
    c = plan.c
    space = cut_patches(c.columns, Patches({plan.near: plan.patch}), THREADS, 1)
    chunk, row = Axis("rows", ceil_div(c.sizes[1], plan.rows)), Axis("row", plan.rows)
    rows = role(c.rows, axis_index(chunk) * plan.rows + axis_index(row))
    dims = space.dims[0], row, space.dims[1]
    acc = alone("acc", dims)
    tiles = [acc]
    steps: list[Step] = [Assign("acc", dims, const(0, c.dtype))]
    steps += each_piece(plan, space, rows, row, tiles)
    total = element("acc", map(axis_index, dims))
    conditions = (*space.conditions, *rows.conditions)
    values = {**rows.values, **space.axes}
    for out in stores(c, values, {c.number: total}):
        steps.append(Store(out.slot, out.index, dims, out.expr, conditions, acc.layout))
    grid = (*c.batch, chunk, *space.grid)
    return TilePart(grid, tuple(tiles), tuple(steps), together=RESIDENT)


def each_piece(plan: Plan, space: Cut, rows: Role, row: Axis, tiles: list[Tile]) -> list[Step]:
    """Write the loop over pieces of the weights that shared memory holds."""
    c, (first, *others) = plan.c, plan.serial
    taps = (plan.slide.tap,) if plan.slide else ()
    wide = round_up(plan.rows, LANES)
    inner = size_of((*others, *taps))
    most = max(SHARED // (4 * wide * inner), 1)
    size = divisors(first.size, most)[-1]
    piece, own = Axis("piece", first.size // size), Axis(f"{first.name}_in", size)
    place = {first: axis_index(piece) * size + axis_index(own)}
    depth = (own, *others, *taps)
    shape = *(axis.size for axis in depth), wide
    tiles.append(Tile("weights", shape, c.dtype, "shared"))
    filling = fill(rewrite(c.a, place), rows, (row, *depth))
    body = multiply(plan, space, rewrite(c.b, place), depth, row, tiles)
    for axis in reversed((own, *others)):
        is_unrolled = axis is not own and axis is others[-1] and is_short(plan, axis)
        body = [For(axis, tuple(body), is_unrolled)]
    both = [filling, Barrier(), *body]
    return [For(piece, (*both, Barrier()))] if piece.size > 1 else both


def is_short(plan: Plan, axis: Axis) -> bool:
    """Tell whether a loop over taps is better written out."""
    return axis.size * plan.taps * plan.rows * plan.patch <= UNROLLED


def fill(expr: Expr, rows: Role, axes: Sequence[Axis]) -> Assign:
    """Bring weights to shared memory, in the order in which they lie in memory."""
    sizes = tuple(axis.size for axis in axes)
    flat = Axis("flat", size_of(axes))
    values = dict(zip(axes, unflatten(axis_index(flat), sizes), strict=True))
    row, *depth = axes
    index = *(values[axis] for axis in depth), values[row]
    inside = tuple([(substitute(index, values), low, high) for index, low, high in rows.conditions])
    body = rewrite(bind_roles(expr, rows), values)
    layout = Blocked((flat.size,), (THREADS,), (1,))
    tail = ((axis_index(flat), 0, flat.size - 1),) if flat.size % THREADS else ()
    return Assign("weights", (flat,), within(body, inside), index, layout, tail)


def multiply(
    plan: Plan, space: Cut, expr: Expr, depth: Sequence[Axis], row: Axis, tiles: list[Tile]
) -> list[Step]:
    """Write what reads the elements of a patch and the weights of a step, and multiplies them."""
    thread, near = space.dims
    body = rewrite(expr, space.axes)
    name = "h"
    if plan.slide:
        slide = replace(plan.slide, element=near, places=Axis("place", plan.reach))
        places, read = read_places(name, body, space.dims, (slide,), space.conditions)
        taps: tuple[Axis, ...] = (slide.tap,)
    else:
        places = Assign(name, space.dims, within(body, space.conditions))
        read, taps = element(name, map(axis_index, space.dims)), ()
    wide = Axis("wide", round_up(row.size, LANES))
    every = thread, *taps, wide
    where = *map(axis_index, depth), axis_index(wide)
    weights = Assign("w", every, element("weights", where))
    shape = tuple(axis.size for axis in every)
    ones = (1,) * (len(shape) - 1)
    layout = Blocked(shape, (THREADS, *ones), (*ones, LANES))
    tiles += [alone(name, places.dims), Tile("w", shape, float32, "register", layout)]
    weight = element("w", map(axis_index, (thread, *taps, row)))
    term = Expr("mul", (read, weight), None, float32)
    dims = thread, row, near
    over = alone("acc", (*dims, *taps)).layout
    return [places, weights, Accumulate("acc", dims, taps, "sum", term, False, over)]


def alone(name: str, dims: Sequence[Axis]) -> Tile:
    """Declare registers, of which a thread has all but along the first dimension."""
    shape = tuple(axis.size for axis in dims)
    ones = (1,) * (len(shape) - 1)
    return Tile(name, shape, float32, "register", Blocked(shape, (THREADS, *ones), (1, *ones)))


def element(name: str, where: Iterable[Index]) -> Expr:
    """Read an element of a tile."""
    return Expr("tile", (), (name, tuple(where)), float32)

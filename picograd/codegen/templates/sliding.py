"""Windows that slide: what the windows of neighbours share is read once, into registers.

    acc[p] = sum[t] x[s * p + d * t] * w[t]
    h[j] = x[j];  v[t] = w[t];  acc[p] = sum[t] h[s * p + d * t] * v[t]

A thread computes a patch of neighbouring elements along the axes that windows slide along. Every
element of the input that they read is loaded, widened and computed once: a patch of 4 under 3 taps
has 6 of them, not 12. What all elements of a patch multiply is read once, too.

Patches: how a map with windows is cut on a GPU, so that neighbours share what they read.

grid: chunks of the row-major space of patches    dims: (thread, elements of a patch, lanes)

The first axis of taps is a loop, whose step reads one row of the patch. Few taps of windows that
are apart, or of 32 bits, are read at once, for two rows of elements.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import gcd

from picograd.codegen.layout import Blocked, Layout
from picograd.codegen.operands import step_of
from picograd.codegen.templates.grid import Cut, balanced, cut_flat
from picograd.codegen.tile import Accumulate, Assign, For, Step, Tile, TilePart
from picograd.graph.ops import OPS
from picograd.helpers import ceil_div
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, substitute
from picograd.schedule.loop import Compute, Condition, Expr, Part, const, indices_of, rewrite, walk
from picograd.schedule.monoid import identity


@dataclass(frozen=True, slots=True)
class Slide:
    """Windows that move `step` places for an element, and whose taps are `gap` places apart.

    All windows of a patch reach so many `places`.
    """

    element: Axis
    tap: Axis
    step: int
    gap: int
    places: Axis

    def makes(self, index: Index) -> bool:
        """Tell whether an index moves with element and tap as places do, or with neither."""
        along = step_of(index, self.element)
        across = step_of(index, self.tap)
        if along is None or across is None:
            return False
        return along * self.gap == across * self.step


def slides_of(body: Expr, elements: Sequence[Axis], taps: Sequence[Axis]) -> tuple[Slide, ...]:
    """Find which element axis the windows slide along for each axis of taps, if there is one."""
    indices = [each.arg[1] for each in walk(body) if each.op == "load"]
    found: dict[Axis, Slide] = {}
    for index, tap, element in product(indices, taps, elements):
        slide = slide_of(index, element, tap)
        if slide is None:
            continue
        known = found.get(tap)
        if known is None or slide.step * slide.gap < known.step * known.gap:
            found[tap] = slide
    distinct = {slide.element for slide in found.values()}
    if len(distinct) != len(found):
        return ()
    return tuple(found.values())


def slide_of(index: Index, element: Axis, tap: Axis) -> Slide | None:
    """Read off an index how windows slide along an axis, if they do."""
    step = step_of(index, element) or 0
    gap = step_of(index, tap) or 0
    unit = gcd(step, gap)
    least = min(step, gap)
    if tap.size == 1 or least <= 0 or least != unit:
        return None
    step //= unit
    gap //= unit
    steps = (element.size - 1) * step
    gaps = (tap.size - 1) * gap
    count = steps + gaps + 1
    if count >= element.size * tap.size:
        return None  # no two windows share a place
    return Slide(element, tap, step, gap, Axis(f"{element.name}_place", count))


def slid(
    step: Accumulate, tiles: list[Tile], conditions: Sequence[Condition] = ()
) -> list[Step] | None:
    """Let a reduction over windows read what they share from registers; None if they share none.

    Where the `conditions` fail nothing is loaded, and all that is read is 0.
    """
    patch = [axis for axis in step.dims[1:-1] if axis.size > 1]
    slides = slides_of(step.expr, patch, step.over)
    taps = {slide.tap for slide in slides}
    places = largest(step.expr, partial(makes_places, slides), conditions)
    over = set(step.over)
    moving = [(each, axes_in(each) & over) for each in places]
    # what other taps move is another place for each of them
    shared = [each for each, own in moving if own and own <= taps]
    if not slides or not shared:
        return None
    found: list[Step] = []
    reads: dict[Expr, Expr] = {}
    for expr in shared:
        name = f"{step.tile}h{len(found)}"
        made, reads[expr] = read_places(name, expr, step.dims, slides, conditions)
        found.append(made)
        tiles.append(register_tile(made, step))
    body = rewrite(step.expr, {}, reads.get)
    reads = {}
    for expr in largest(body, partial(is_free_of, patch), conditions):
        name = f"{step.tile}h{len(found)}"
        made, reads[expr] = read_taps(name, expr, step, conditions)
        found.append(made)
        tiles.append(register_tile(made, step))
    body = rewrite(body, {}, reads.get)
    return [*found, replace(step, expr=body)]


def is_plain(computes: Sequence[Compute]) -> bool:
    """Tell whether computes read two arrays alone: registers hold nothing but windows and taps."""
    exprs = [expr for each in computes for expr in walk(each.body)]
    arrays = {expr.arg[0] for expr in exprs if expr.op == "load"}
    return len(arrays) <= 2


def makes_places(slides: Sequence[Slide], index: Index) -> bool:
    """Tell whether elements and taps move an index only as places do."""
    return all(slide.makes(index) for slide in slides)


def is_free_of(axes: Sequence[Axis], index: Index) -> bool:
    """Tell whether no axis moves an index."""
    return not axes_of(index) & set(axes)


def axes_in(root: Expr) -> set[Axis]:
    """List the axes of an expression."""
    found: set[Axis] = set()
    for expr in walk(root):
        found = found.union(*map(axes_of, indices_of(expr)))
    return found


def largest(
    body: Expr, fits: Callable[[Index], bool], conditions: Sequence[Condition]
) -> list[Expr]:
    """Find the largest expressions with loads whose indices all fit.

    What other guards than those of the `conditions` allow alone is no place of its own: elsewhere
    it lies outside of the memory.
    """
    hidden: set[Expr] = set()
    for expr in reversed(list(walk(body))):
        if expr in hidden:
            hidden.update(expr.args)
        elif expr.op == "guard":
            own = [each[0] for each in expr.arg if each not in conditions]
            if not all(map(fits, own)):
                hidden.add(expr.args[0])
    good: dict[Expr, bool] = {}
    loads: dict[Expr, bool] = {}
    found: list[Expr] = []
    for expr in walk(body):
        args = expr.args
        is_good = all(map(fits, indices_of(expr)))
        good[expr] = is_good and all(good[each] for each in args)
        has_load = any(loads[each] for each in args)
        loads[expr] = has_load or expr.op == "load"
        if not good[expr]:
            found += [each for each in args if good[each]]
    if good[body]:
        found.append(body)
    return [each for each in dict.fromkeys(found) if loads[each] and each not in hidden]


def register_tile(made: Assign, step: Accumulate) -> Tile:
    """Declare the registers that a step fills: each thread has all for its own elements."""
    shape = tuple(axis.size for axis in made.dims)
    first, *_, last = shape
    ones = (1,) * (len(shape) - 1)
    if isinstance(step.layout, Blocked):
        first = step.layout.threads[0]
    layout = Blocked(shape, (first, *ones), (*ones, last))
    return Tile(made.tile, shape, made.expr.dtype, "register", layout)


def read_places(
    name: str,
    expr: Expr,
    dims: Sequence[Axis],
    slides: Sequence[Slide],
    conditions: Sequence[Condition],
) -> tuple[Assign, Expr]:
    """Write what reads a shared expression at all places, and what reads that for a tap."""
    moved: dict[Axis, Index] = {}
    walked = list(dims)
    where = list(map(axis_index, dims))
    for slide in slides:
        place = axis_index(slide.places)
        zero = constant(0)
        pair = (zero, place) if slide.step > 1 else (place, zero)
        moved |= {slide.element: pair[0], slide.tap: pair[1]}
        number = dims.index(slide.element)
        walked[number] = slide.places
        where[number] *= slide.step
        where[number] += axis_index(slide.tap) * slide.gap
    tests = tuple(condition_on_places(each, slides) for each in conditions)
    body = within(rewrite(expr, moved), tests)
    read = Expr("tile", (), (name, tuple(where)), expr.dtype)
    return Assign(name, tuple(walked), body), read


def condition_on_places(condition: Condition, slides: Sequence[Slide]) -> Condition:
    """Turn a condition on an element or a tap into one on the places that it reaches."""
    index, low, high = condition
    for slide in slides:
        ways = (slide.element, slide.step, slide.tap, slide.gap)
        turned = (slide.tap, slide.gap, slide.element, slide.step)
        for axis, far, other, near in (ways, turned):
            if axis in axes_of(index):
                first = substitute(index, {axis: constant(0)})
                index = first * far + axis_index(slide.places)
                high = high * far + (other.size - 1) * near
    return index, low, high


def read_taps(
    name: str, expr: Expr, step: Accumulate, conditions: Sequence[Condition]
) -> tuple[Assign, Expr]:
    """Write what reads an expression for all taps, and what reads that for one."""
    first, *patch, last = step.dims
    used = axes_in(expr)
    dims = first, *(axis for axis in step.over if axis in used), last
    own = tuple(each for each in conditions if is_free_of(patch, each[0]))
    read = Expr("tile", (), (name, tuple(map(axis_index, dims))), expr.dtype)
    return Assign(name, dims, within(expr, own)), read


def within(expr: Expr, tests: tuple[Condition, ...]) -> Expr:
    """Let an expression be 0 where tests fail: a load is only skipped, not chosen from."""
    if not tests:
        return expr
    row = OPS.get(expr.op)
    if row is not None and row.keeps_value:
        args = (within(expr.args[0], tests),)
        return Expr(expr.op, args, expr.arg, expr.dtype)
    zero = const(0, expr.dtype)
    if expr.op == "guard" and expr.args[1] == zero:
        both = *tests, *expr.arg
        return Expr("guard", expr.args, both, expr.dtype)
    return Expr("guard", (expr, zero), tests, expr.dtype)


THREADS = 256  # of a block
# Elements of a patch along the last axis that windows slide along, for vectors of so many elements:
# more take registers that other threads would have (docs/records/0014-convolutions).
NEAR = {8: 7, 4: 4}
# Blocks that a processor is to have registers for, of sums of products of such vectors alone.
TOGETHER = {8: 2, 4: 3}
SMALL = 2  # along both axes, where few taps are read at once, or windows share little
FEW_TAPS = 9

Made = tuple[list[Tile], list[Step]]


@dataclass(frozen=True, slots=True)
class Patches:
    """Elements of a patch along axes, and the axis of taps that is a loop."""

    sizes: dict[Axis, int]
    serial: Axis | None = None

    def size(self, axis: Axis) -> int:
        """Count the elements along an axis."""
        return self.sizes.get(axis, 1)


def build_patches(
    part: Part, axes: Sequence[Axis], lanes: int, make: Callable[[Cut], Made]
) -> TilePart | None:
    """Write a part with windows in patches that share what they read; None if they share none.

    `make` writes the steps of a map in a cut space.
    """
    patches = patches_of(part, axes, lanes)
    if patches is None or part.ends:
        return None
    space = cut_patches(axes, patches, THREADS, lanes)
    tiles, steps = make(space)
    found: list[Step] = []
    for step in steps:
        if not isinstance(step, Accumulate):
            found.append(step)
            continue
        made = slid_by_rows(step, tiles, patches.serial, space)
        if made is None:
            return None
        found += made
    is_product = any(compute.reduce and compute.body.op == "mul" for compute in part.computes)
    together = TOGETHER.get(lanes, 0) if is_product and is_plain(part.computes) else 0
    return TilePart(space.grid, tuple(tiles), tuple(found), together=together)


def patches_of(part: Part, axes: Sequence[Axis], lanes: int) -> Patches | None:
    """Choose how many neighbours along which axes a thread computes, and which taps are a loop."""
    windows = [compute for compute in part.computes if compute.reduce]
    if len(windows) != 1:
        return None
    (window,) = windows
    slides = slides_of(window.body, axes[:-1], window.reduce)
    if not slides:
        return None
    *outer, last = slides
    taps = math.prod(slide.tap.size for slide in slides)
    is_apart = last.step > 1
    is_whole = taps <= FEW_TAPS and (is_apart or lanes < max(NEAR))
    most = SMALL if is_whole or is_apart else NEAR.get(lanes, SMALL)
    sizes = {last.element: patch_size(last, most)}
    if not outer:
        return Patches(sizes)
    far = outer[-1]
    if not is_whole:
        return Patches(sizes, far.tap)
    return Patches({far.element: patch_size(far, SMALL), **sizes})


def patch_size(slide: Slide, most: int) -> int:
    """Choose the size of a patch: even parts of the axis, whole ones if there are."""
    size = slide.element.size
    return balanced(size, min(most, size))


def cut_patches(axes: Sequence[Axis], patches: Patches, chunk: int, lanes: int) -> Cut:
    """Cut a space by the row-major position of its patches."""
    counts = [ceil_div(axis.size, patches.size(axis)) for axis in axes]
    groups = [Axis(f"{axis.name}_group", n) for axis, n in zip(axes, counts, strict=True)]
    space = cut_flat(groups, chunk, lanes)
    step, *lane = space.dims
    near = []
    values = {}
    conditions = list(space.conditions)
    for axis, group in zip(axes, groups, strict=True):
        size = patches.size(axis)
        values[axis] = space.axes[group] * size
        if axis in patches.sizes:
            near.append(Axis(f"{axis.name}_near", size))
            values[axis] += axis_index(near[-1])
        if axis.size % size:
            conditions.append((values[axis], 0, axis.size - 1))
    return Cut(space.grid, (step, *near, *lane), values, tuple(conditions))


def slid_by_rows(
    step: Accumulate, tiles: list[Tile], serial: Axis | None, space: Cut
) -> list[Step] | None:
    """Let a reduction over windows read what they share from registers, or a row at a time."""
    if space.conditions:
        step = replace(step, expr=step.expr.args[0])  # what the guard leaves out nobody sees
    if serial is None:
        return slid(step, tiles, space.conditions)
    (tile,) = (tile for tile in tiles if tile.name == step.tile)
    over = tuple(axis for axis in step.over if axis is not serial)
    row = replace(step, over=over, is_first=False, layout=over_layout(tile.layout, over))
    made = slid(row, tiles, space.conditions)
    if made is None:
        return None
    first = const(identity(step.monoid, tile.dtype), tile.dtype)
    return [Assign(step.tile, step.dims, first), For(serial, tuple(made))]


def over_layout(layout: Layout | None, over: Sequence[Axis]) -> Layout | None:
    """Extend a layout by axes that each thread walks alone."""
    if not isinstance(layout, Blocked):
        return layout
    return layout.with_alone(tuple(axis.size for axis in over))

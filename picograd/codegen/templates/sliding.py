"""Windows that slide: what the windows of neighbours share is read once, into registers.

    acc[p] = sum[t] x[s * p + d * t] * w[t]
    h[j] = x[j];  v[t] = w[t];  acc[p] = sum[t] h[s * p + d * t] * v[t]

A thread computes a patch of neighbouring elements along the axes that windows slide along. Every
element of the input that they read is loaded, widened and computed once: a patch of 4 under 3 taps
has 6 of them, not 12. What all elements of a patch multiply is read once, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import gcd

from picograd.codegen.layout import Blocked
from picograd.codegen.operands import step_of
from picograd.codegen.tile import Accumulate, Assign, Step, Tile
from picograd.graph.ops import OPS
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, substitute
from picograd.schedule.loop import Compute, Condition, Expr, const, indices_of, rewrite, walk


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
    places = Axis(f"{element.name}_place", count)
    return Slide(element, tap, step, gap, places)


def slid(
    step: Accumulate, tiles: list[Tile], conditions: Sequence[Condition] = ()
) -> list[Step] | None:
    """Let a reduction over windows read what they share from registers; None if they share none.

    Where the `conditions` fail nothing is loaded, and all that is read is 0.
    """
    patch = [axis for axis in step.dims[1:-1] if axis.size > 1]
    slides = slides_of(step.expr, patch, step.over)
    taps = {slide.tap for slide in slides}
    places = largest(step.expr, partial(makes_places, slides))
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
    for expr in largest(body, partial(is_free_of, patch)):
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


def largest(body: Expr, fits: Callable[[Index], bool]) -> list[Expr]:
    """Find the largest expressions with loads whose indices all fit."""
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
    return [each for each in dict.fromkeys(found) if loads[each]]


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
    here = tuple(map(axis_index, dims))
    read = Expr("tile", (), (name, here), expr.dtype)
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

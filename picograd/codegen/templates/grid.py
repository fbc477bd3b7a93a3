"""Grid: merging loop axes and cutting an iteration space into tasks, shared by the templates."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from picograd.codegen.cuts import compares_counts
from picograd.codegen.tile import Store
from picograd.helpers import ceil_div, product
from picograd.late_methods import dataclass
from picograd.schedule.cost import OPERATION_LIMIT
from picograd.schedule.index import (
    Axes,
    Axis,
    Div,
    Index,
    Mod,
    axes_of,
    axis_index,
    substitute,
    unflatten,
)
from picograd.schedule.loop import (
    Along,
    Bins,
    Compute,
    Condition,
    Conditions,
    Expr,
    Part,
    Radix,
    Runs,
    Scan,
    const,
    count_operations,
    dynamics_of,
    indices_of,
    rewrite,
    walk,
)

Stepping = TypeVar("Stepping", bound=Along)


@dataclass(frozen=True, slots=True)
class Cut:
    """A space cut into grid points and, within each, dims.

    `axes` gives every original axis as an index over the new ones. `conditions` say which points
    are inside the space: the last chunk may stick out.
    """

    grid: Axes
    dims: Axes
    axes: dict[Axis, Index]
    conditions: Conditions

    def with_grid(self, outer: Sequence[Axis]) -> "Cut":
        """Put more grid axes in front."""
        return replace(self, grid=(*outer, *self.grid))


def cut(axes: Sequence[Axis], points: int, lanes: int = 1) -> Cut:
    """Cut a space so that a grid point owns about `points` neighbouring points, row-major.

    Trailing axes stay whole; the next one is cut into chunks, of whole vectors if there are
    several `lanes`; the rest become grid axes.
    """
    inner = 1
    place = len(axes)
    while place and inner * axes[place - 1].size <= points:
        place -= 1
        inner *= axes[place].size
    if not place:
        return Cut((), tuple(axes), {}, ())
    split = axes[place - 1]
    most = max(1, points // inner)
    chunk = whole_vectors(split.size, most, lanes) if lanes > 1 else balanced(split.size, most)
    chunks = Axis(f"{split.name}_chunk", ceil_div(split.size, chunk))
    within = Axis(f"{split.name}_in", chunk)
    index = axis_index(chunks) * chunk + axis_index(within)
    conditions = ((index, 0, split.size - 1),) if split.size % chunk else ()
    grid = (*axes[: place - 1], chunks)
    return Cut(grid, (within, *axes[place:]), {split: index}, conditions)


def in_pieces(space: Cut, points: int) -> tuple[Cut, Axes]:
    """Cut the dims of a space once more: into dims of about `points` points, and axes of pieces."""
    inner = cut(space.dims, points)
    axes = dict(inner.axes)
    for each, index in space.axes.items():
        axes[each] = substitute(index, inner.axes)
    moved = tuple((substitute(index, inner.axes), lo, hi) for index, lo, hi in space.conditions)
    conditions = (*moved, *inner.conditions)
    return Cut(space.grid, inner.dims, axes, conditions), inner.grid


def ended(space: Cut, part: Part, lanes: int = 1) -> Cut:
    """Leave out the points of a cut space beyond the ends of its part, whole vectors of them."""
    if not part.ends:
        return space
    rounded = dict(space.axes)
    if lanes > 1:
        last = space.dims[-1]
        first = axis_index(last) // lanes * lanes
        start = {last: first}
        rounded = {axis: substitute(index, start) for axis, index in space.axes.items()}
        rounded.setdefault(last, first)
    ends = tuple((rebind(index, rounded), lo, hi) for index, lo, hi in part.ends)
    conditions = (*space.conditions, *ends)
    return replace(space, conditions=conditions)


def cut_square(axes: Sequence[Axis], other: Axis, side: int) -> Cut:
    """Cut the last axis and one other into square tiles; the rest become grid axes."""
    pairs: dict[Axis, Index] = {}
    conditions: list[Condition] = []
    grid = [axis for axis in axes[:-1] if axis is not other]
    dims: list[Axis] = []
    for axis in (other, axes[-1]):
        chunk = min(side, axis.size)
        tiles = Axis(f"{axis.name}_tile", ceil_div(axis.size, chunk))
        within = Axis("in", chunk)
        pairs[axis] = axis_index(tiles) * chunk + axis_index(within)
        grid.append(tiles)
        dims.append(within)
        if axis.size % chunk:
            conditions.append((pairs[axis], 0, axis.size - 1))
    return Cut(tuple(grid), tuple(dims), pairs, tuple(conditions))


def guarded(expr: Expr, space: Cut) -> Expr:
    """Guard an expression so that nothing is loaded outside the space."""
    if not space.conditions:
        return expr
    nothing = const(0, expr.dtype)
    return Expr("guard", (expr, nothing), space.conditions, expr.dtype)


def guard(expr: Expr, fill: object, tests: Sequence[Condition]) -> Expr:
    """Guard an expression by tests, if there are any: else it is `fill`."""
    if not tests:
        return expr
    if compares_counts(expr) and expr.args[1] == const(fill, expr.dtype):
        tests, expr = (*tests, *expr.arg), expr.args[0]
    return Expr("guard", (expr, const(fill, expr.dtype)), tuple(tests), expr.dtype)


def is_static(expr: Expr) -> bool:
    """Tell whether no index of an expression is read from memory."""
    return not any(any(dynamics_of(index)) for each in walk(expr) for index in indices_of(each))


def loads_guarded(expr: Expr, axes: set[Axis], tests: Sequence[Condition]) -> Expr:
    """Guard what is loaded along some axes alone: what all their points share is loaded anyway."""

    def alone(each: Expr) -> Expr | None:
        if each.op not in ("load", "tile"):
            return None
        along = set[Axis]()
        for index in indices_of(each):
            along |= axes_of(index)
        return None if along.isdisjoint(axes) else guard(each, 0, tests)

    return rewrite(expr, {}, alone) if tests else expr


def loads_apart(expr: Expr, tests: Conditions) -> tuple[Expr, Conditions]:
    """Guard what is loaded along the axes of tests by itself; the tests that are left."""
    if not is_static(expr):
        return expr, tests
    axes = {axis for index, *_ in tests for axis in axes_of(index)}
    return loads_guarded(expr, axes, tests), ()


def balanced(size: int, chunk: int) -> int:
    """Shrink a chunk so that all chunks are about equal; prefer one that divides the size."""
    chunk = ceil_div(size, ceil_div(size, chunk))
    for candidate in range(chunk, chunk // 2, -1):
        if size % candidate == 0:
            return candidate
        if chunk - candidate > 64:
            break
    return chunk


def whole_vectors(size: int, most: int, lanes: int) -> int:
    """Shrink a chunk of whole vectors so that all chunks are about equal."""
    vectors = ceil_div(size, lanes)
    count = ceil_div(vectors, max(most // lanes, 1))
    return ceil_div(vectors, count) * lanes


def cut_flat(axes: Sequence[Axis], chunk: int, lanes: int = 1) -> Cut:
    """Cut a space by its row-major position: `chunk` steps of `lanes` neighbours a grid point.

    The last axis must be a multiple of lanes; dims are (step, lane) or (step,) for one lane.
    """
    shape = [axis.size for axis in axes] or [1]
    shape[-1] //= lanes
    total = product(shape)
    chunk = min(chunk, total)
    block = Axis("block", ceil_div(total, chunk))
    step = Axis("step", chunk)
    flat = axis_index(block) * chunk + axis_index(step)
    conditions = ((flat, 0, total - 1),) if total % chunk else ()
    indices = list(unflatten(flat, tuple(shape)))
    dims: Axes = (step,)
    if lanes > 1:
        lane = Axis("lane", lanes)
        indices[-1] = indices[-1] * lanes + axis_index(lane)
        dims = (step, lane)
    values = dict(zip(axes, indices))
    return Cut((block,), dims, values, conditions)


def spread_lanes(part: Part, axes: Sequence[Axis], lanes: int, threads: int) -> int:
    """Narrow vectors of few elements of which much is computed, until so many threads have work.

    A step of a recurrent network waits for its gates: four neighbours take nearly four times as
    long as one.
    """
    expressions: dict[int, Expr] = {}
    for compute in part.computes:
        expressions |= {id(each): each for each in walk(compute.body)}
    work = count_operations(expressions.values())
    points = product(axis.size for axis in axes)
    while lanes > 1 and work > OPERATION_LIMIT and points < lanes * threads:
        lanes //= 2
    return lanes


def part_indices(part: Part) -> Iterator[Index]:
    """Yield every index a part uses, those inside Dynamic atoms included."""
    own: list[Index] = [c.store[1] for c in part.computes if c.store]
    own += [index for c in part.computes for index, _, _ in c.seen]
    own += [index for index, _, _ in part.ends]
    roots: list[Expr] = [compute.body for compute in part.computes]
    if part.scatter:
        roots.append(part.scatter.body)
        own += [part.scatter.target, *(c[0] for c in part.scatter.conditions)]
    if isinstance(part.along, Scan):
        own += [part.along.target, *(c[0] for c in part.along.conditions)]
        roots += [e for e in (part.along.body, part.along.start) if e is not None]
    elif part.along:
        own.append(part.along.target)
        roots += exprs_along(part.along)
    yield from own
    roots += [d.expr for index in own for d in dynamics_of(index)]
    seen: set[int] = set()
    for root in roots:
        for expr in walk(root):
            if id(expr) not in seen:
                seen.add(id(expr))
                yield from indices_of(expr)


def exprs_along(step: Along) -> list[Expr]:
    """List the expressions of a sort, a radix step or a reduction of runs."""
    found = [step.body]
    if isinstance(step, Radix) and step.counted is not None:
        found.append(step.counted)
    if isinstance(step, Bins):
        found.append(step.key)
    if isinstance(step, Runs):
        stops = [step.stop] if step.stop else []
        found += [step.key, step.first, *stops, *(expr for _, expr in step.levels)]
    return found


def axis_lists(part: Part) -> list[Axes]:
    """List the axis tuples of a part whose members might be merged."""
    lists = [part.rows]
    for compute in part.computes:
        lists += [without(compute.axes, part.rows), without(compute.reduce, part.rows)]
    if part.scatter:
        lists += [part.scatter.serial, part.scatter.inner]
    if isinstance(part.along, Scan):
        lists += [part.along.outer, part.along.inner]
    elif part.along:
        lists.append(part.along.rows)
    return list(dict.fromkeys(lists))


def without(axes: Sequence[Axis], removed: Sequence[Axis]) -> Axes:
    """Drop some axes."""
    return tuple(axis for axis in axes if axis not in removed)


def merge_part(part: Part) -> Part:
    """Merge neighbouring axes that every index steps through as one, and drop axes of size 1."""
    lists = [tuple(a for a in axes if a.size != 1) for axes in axis_lists(part)]
    indices = list(dict.fromkeys(part_indices(part)))
    follows: dict[Axis, Axis | None] = {}
    for axes in lists:
        for first, second in zip(axes, (*axes[1:], None)):
            known = follows.setdefault(first, second)
            follows[first] = second if known is second else None
    leads: dict[Axis, int] = {}
    for axes in lists:
        for number, axis in enumerate(axes):
            leads[axis] = leads.get(axis, 0) | (number == 0)
    merged: dict[Axis, Axes] = {}
    new: dict[Axis, Index] = {}
    for axes in lists:
        group: list[Axis] = []
        for axis in axes:
            last = group[-1] if group else None
            joins = last and follows[last] is axis and not leads[axis]
            if last is not None and joins and all(is_joint(i, last, axis) for i in indices):
                group.append(axis)
                continue
            close_group(group, merged, new)
            group = [axis]
        close_group(group, merged, new)
    return substitute_part(part, new, merged)


def close_group(group: list[Axis], merged: dict[Axis, Axes], new: dict[Axis, Index]) -> None:
    """Replace the axes of a group by one axis."""
    if len(group) < 2 or group[0] in merged:
        return
    shape = tuple(axis.size for axis in group)
    axis = Axis("".join(a.name for a in group), product(shape))
    new.update(zip(group, unflatten(axis_index(axis), shape)))
    merged[group[0]] = (axis,)
    merged.update(dict.fromkeys(group[1:], ()))


def is_joint(index: Index, a: Axis, b: Axis) -> bool:
    """Tell whether an index uses a and b only as a * size(b) + b."""
    factor_a = factor_b = 0
    for atom, factor in index.terms:
        if atom is a:
            factor_a = factor
        elif atom is b:
            factor_b = factor
        elif isinstance(atom, Div | Mod) and not is_joint(atom.index, a, b):
            return False
    return factor_a == factor_b * b.size


def substitute_part(part: Part, new: Mapping[Axis, Index], merged: Mapping[Axis, Axes]) -> Part:
    """Rewrite a part for new axes; `merged` says which axes stand in for an old one."""

    def axes(old: Sequence[Axis]) -> Axes:
        return tuple(n for a in old for n in merged.get(a, (a,)) if n.size != 1)

    def index(old: Index) -> Index:
        return substitute(old, new, lambda expr: rewrite(expr, new)) if new else old

    def body(old: Expr) -> Expr:
        return rewrite(old, new) if new else old

    computes = tuple(
        Compute(
            axes(c.axes),
            axes(c.reduce),
            c.monoid,
            body(c.body),
            c.dtype,
            (c.store[0], index(c.store[1])) if c.store else None,
            tuple((index(i), lo, hi) for i, lo, hi in c.seen),
        )
        for c in part.computes
    )
    scatter = part.scatter
    if scatter:
        scatter = replace(
            scatter,
            serial=axes(scatter.serial),
            inner=axes(scatter.inner),
            body=body(scatter.body),
            target=index(scatter.target),
            conditions=tuple((index(i), lo, hi) for i, lo, hi in scatter.conditions),
        )
    along = part.along
    if along:
        along = substitute_along(along, axes, index, body)
    ends = tuple((index(i), lo, hi) for i, lo, hi in part.ends)
    return Part(axes(part.rows), computes, scatter, along, ends)


def substitute_along(
    along: Stepping,
    axes: Callable[[Sequence[Axis]], Axes],
    index: Callable[[Index], Index],
    body: Callable[[Expr], Expr],
) -> Stepping:
    """Rewrite a step along an axis for new axes."""
    made, target = body(along.body), index(along.target)
    if isinstance(along, Scan):
        return replace(
            along,
            outer=axes(along.outer),
            inner=axes(along.inner),
            body=made,
            start=along.start and body(along.start),
            target=target,
            conditions=tuple((index(i), lo, hi) for i, lo, hi in along.conditions),
        )
    rows = axes(along.rows)
    if isinstance(along, Radix):
        counted = along.counted and body(along.counted)
        return replace(along, rows=rows, body=made, counted=counted, target=target)
    if isinstance(along, Bins):
        along = replace(along, key=body(along.key))
    if isinstance(along, Runs):
        key, first = body(along.key), body(along.first)
        levels = tuple((axis, body(expr)) for axis, expr in along.levels)
        stop = along.stop and body(along.stop)
        along = replace(along, key=key, first=first, levels=levels, stop=stop)
    return replace(along, rows=rows, body=made, target=target)


def rebind(index: Index, axes: Mapping[Axis, Index]) -> Index:
    """Substitute axes in an index, inside Dynamic atoms too."""
    return substitute(index, axes, lambda expr: rewrite(expr, axes))


def in_piece(store: Store, axis: Axis, within: Axis, index: Index, ragged: Conditions) -> Store:
    """Store the elements of one piece of an axis: `axis` is `index`, which runs along `within`."""
    moved = {axis: index}
    conditions = tuple((rebind(test, moved), lo, hi) for test, lo, hi in store.conditions)
    dims = tuple(within if each is axis else each for each in store.dims)
    expr = rewrite(store.expr, moved)
    place = rebind(store.index, moved)
    return Store(store.slot, place, dims, expr, (*conditions, *ragged), store.layout)

"""normalize: choose axes so that indices are affine where they can be, and axes few.

    split    for a in 12: s0[5 * (a // 4) + a % 4]  ->  for b in 3: for c in 4: s0[5*b + c]
    order    the axes with the largest strides come first, so that the innermost is contiguous
    merge    for b in 3: for c in 4: s0[4*b + c]    ->  for d in 12: s0[d]

Two axes merge where every index of the part treats them as one, and every compute binds them
together in the same way. A division that no split removes stays as it is, and so do the axes along
which windows of a product's result lie.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, pairwise

from picograd.helpers import product, reached
from picograd.schedule.draws import is_word_drawn, written_out
from picograd.schedule.index import (
    Axis,
    Div,
    Dynamic,
    Index,
    Mod,
    axes_of,
    axis_index,
    constant,
    position_over,
    substitute,
)
from picograd.schedule.loop import (
    DRAWN,
    INDEXED,
    Compute,
    Condition,
    Expr,
    Part,
    indices_of,
    rewrite_all,
    walk,
    walk_all,
)

LARGEST_WINDOW = 16  # elements that a map commonly reduces where it stores the result

Form = dict[Axis, int]  # coefficients of one linear form
Bodies = list[list[Expr]]  # of each compute of a part, those listed once that several share


def normalize_part(part: Part) -> Part:
    """Split, order and merge the axes of a part (a scatter, scan or sort keeps its axes)."""
    if part.scatter or part.along:
        return part
    bodies = walk_bodies(part)
    whole, part = part, split_axes(part, bodies)
    if part is not whole:
        bodies = walk_bodies(part)
    part = merge_axes(order_axes(part, bodies), bodies)
    is_drawing = any(expr.op == DRAWN for body in bodies for expr in body)
    return write_out(part) if is_drawing else part


def write_out(part: Part) -> Part:
    """Write out the random bits of some computes, once all axes are known."""
    computes = [
        replace(compute, body=written_out(compute.body))
        if any(map(is_word_drawn, walk(compute.body)))
        else compute
        for compute in part.computes
    ]
    return replace(part, computes=tuple(computes))


def walk_bodies(part: Part) -> Bodies:
    """List the expressions of each compute of a part that none before it has."""
    first, *rest = part.computes
    bodies = [walk(first.body)]  # which `rewrite_all` asks for again
    seen = set(map(id, bodies[0]))
    return bodies + [walk_all([compute.body], seen) for compute in rest]


def part_indices(part: Part, bodies: Bodies) -> Iterable[Index]:
    """List the distinct indices of a part."""
    found: dict[Index, None] = {}
    for compute, body in zip(part.computes, bodies, strict=True):
        for expr in body:
            if expr.op in INDEXED:
                found.update(dict.fromkeys(indices_of(expr)))
        if compute.store:
            found[compute.store[1]] = None
    return found


def end_indices(part: Part) -> Iterator[Index]:
    """Yield the indices of the ends of a part."""
    yield from (index for index, _, _ in part.ends)


def replace_axes(part: Part, axes: Mapping[Axis, Index], order: Mapping[Axis, list[Axis]]) -> Part:
    """Substitute axes by indices over the axes that `order` lists in their place."""

    def listed(old: Iterable[Axis]) -> tuple[Axis, ...]:
        return tuple(new for axis in old for new in order.get(axis, [axis]))

    computes = []
    moved: dict[Index, Index] = {}  # the computes of a part read and write at few places
    made = rewrite_all([c.body for c in part.computes], axes, moved=moved)
    for c, body in zip(part.computes, made, strict=True):
        store = c.store
        if store is not None:
            place = moved.get(store[1])
            store = store[0], substitute(store[1], axes) if place is None else place
        computes.append(Compute(listed(c.axes), listed(c.reduce), c.monoid, body, c.dtype, store))
    ends = [(substitute(index, axes), lo, hi) for index, lo, hi in part.ends]
    return replace(part, rows=listed(part.rows), computes=tuple(computes), ends=tuple(ends))


def split_axes(part: Part, bodies: Bodies) -> Part:
    """Split axes at the divisors of their div and mod terms, where these divide one another."""
    cuts: dict[Axis, set[int]] = {}
    for index in chain(part_indices(part, bodies), end_indices(part)):
        collect_cuts(index, cuts)
    for axis in placed_axes(bodies):
        cuts.pop(axis, None)
    axes: dict[Axis, Index] = {}
    order: dict[Axis, list[Axis]] = {}
    for axis, found in cuts.items():
        pieces = split(axis, found)
        if len(pieces) > 1:
            order[axis] = pieces
            axes[axis] = position_over(pieces)
    return replace_axes(part, axes, order) if axes else part


def placed_axes(bodies: Bodies) -> set[Axis]:
    """Find the axes along which windows lie, those that count windows, and those inside them."""
    found: set[Axis] = set()
    for expr in chain.from_iterable(bodies):
        if expr.op == "element":
            for axis, index in expr.arg[1]:
                found |= {axis, *axes_of(index)}
    return found


def collect_cuts(index: Index, cuts: dict[Axis, set[int]]) -> None:
    """Note the divisors of div and mod terms over a single axis."""
    for atom, _ in index.terms:
        if isinstance(atom, (Div, Mod)):
            axis = single_axis(atom.index)
            if axis is not None:
                cuts.setdefault(axis, set()).add(atom.n * cut_scale(atom.index))
            collect_cuts(atom.index, cuts)


def single_axis(index: Index) -> Axis | None:
    """The axis of an index that is one axis, or div and mod of it."""
    if len(index.terms) != 1 or index.terms[0][1] != 1 or index.const:
        return None
    atom = index.terms[0][0]
    if isinstance(atom, Axis):
        return atom
    return None if isinstance(atom, Dynamic) else single_axis(atom.index)


def cut_scale(index: Index) -> int:
    """Elements of the axis that one step of `index` stands for."""
    atom = index.terms[0][0]
    if isinstance(atom, Div):
        return atom.n * cut_scale(atom.index)
    return cut_scale(atom.index) if isinstance(atom, Mod) else 1


def split(axis: Axis, cuts: Iterable[int]) -> list[Axis]:
    """Axes, outermost first, that together count like `axis`, with a boundary at each cut."""
    bounds = [1]
    for cut in sorted(cuts):
        if cut % bounds[-1] == 0 and axis.size % cut == 0 and bounds[-1] < cut < axis.size:
            bounds.append(cut)
    sizes = [high // low for low, high in zip(bounds, [*bounds[1:], axis.size], strict=True)]
    return [Axis(f"{axis.name}_{n}", size) for n, size in enumerate(reversed(sizes))]


def order_axes(part: Part, bodies: Bodies) -> Part:
    """Order parallel axes by the strides of the store, reduced ones by those of the main load."""
    rank = order_key(part, bodies)

    def ordered(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(sorted(axes, key=lambda axis: rank.get(axis, 0)))

    computes = []
    for c in part.computes:
        parts = ordered(c.axes), ordered(c.reduce)
        is_new = parts != (c.axes, c.reduce)
        computes.append(Compute(*parts, c.monoid, c.body, c.dtype, c.store) if is_new else c)
    return replace(part, rows=ordered(part.rows), computes=tuple(computes))


def order_key(part: Part, bodies: Bodies) -> dict[Axis, int]:
    """A position for each axis of the part: rows, then the axes inside rows, then windows."""
    stores = [(len(c.axes), c.store[1]) for c in part.computes if c.store]
    loads = [load for c, body in zip(part.computes, bodies) for load in main_loads(c, body)]
    best = max(stores, key=lambda s: s[0])[1] if stores else None
    written = [best] if best is not None else []
    references = loads + written if reads_more(part) else written + loads
    every = [a for c in part.computes for a in (*c.axes, *c.reduce)]
    rows, outer = list(part.rows), set(part.rows)
    inner = [a for a in dict.fromkeys(every) if a not in outer]
    ordered = sorted_by_stride(rows, references) + sorted_by_stride(inner, loads)
    return {axis: number for number, axis in enumerate(ordered)}


def reads_more(part: Part) -> bool:
    """Tell whether a part reads rows of many elements and stores one of each: no products."""
    hero, rows = part.computes[0], set(part.rows)
    is_product = sums_products(hero) and rows.isdisjoint(hero.reduce)
    is_row = all(set(c.axes) <= rows for c in part.computes)
    is_long = product(axis.size for axis in hero.reduce) > LARGEST_WINDOW
    return (is_long or hero.monoid == "sum") and is_row and not is_product


def sums_products(compute: Compute) -> bool:
    """Tell whether a reduction multiplies what it reads."""
    return compute.body.op == "mul" and bool(compute.reduce)


def main_loads(compute: Compute, body: list[Expr]) -> list[Index]:
    """Indices of the loads of a compute: over most axes first, but a contraction's in order."""
    loads = [expr.arg[1] for expr in body if expr.op == "load"]
    return loads if sums_products(compute) else sorted(loads, key=lambda index: -len(index.terms))


def sorted_by_stride(axes: list[Axis], references: list[Index]) -> list[Axis]:
    """Sort by the stride in the first reference that mentions the axis; largest first."""
    strides: dict[Axis, int] = {}
    for index in references:
        for axis, c in index.terms:
            if isinstance(axis, Axis) and axis not in strides:
                strides[axis] = abs(c)
        if all(axis in strides for axis in axes):
            break
    return sorted(axes, key=lambda axis: -strides.get(axis, 1 << 62))


def merge_axes(part: Part, bodies: Bodies) -> Part:
    """Merge neighbouring axes that every index and every compute treat as one."""
    forms, ends = linear_forms(part, bodies), list(map(plain_form, end_indices(part)))
    roles = axis_roles(part)
    for axis in placed_axes(bodies):
        roles[axis] = (*roles.get(axis, ()), -axis.number)
    axes: dict[Axis, Index] = {}
    order: dict[Axis, list[Axis]] = {}
    for run in runs(part):
        for group in merged_runs(run, forms, roles, ends):
            if len(group) == 1:
                continue
            ended = [over_group(end, group) for end in part.ends]
            part = replace(part, ends=tuple(ended))
            whole = Axis(group[0].name, product(axis.size for axis in group))
            for axis in group:
                axes[axis], order[axis] = constant(0), []
            axes[group[-1]], order[group[-1]] = axis_index(whole), [whole]
    return replace_axes(part, axes, order) if axes else part


def runs(part: Part) -> list[tuple[Axis, ...]]:
    """Lists of axes within which neighbours may merge, no axis in two of them."""
    found: list[tuple[Axis, ...]] = [part.rows]
    seen = set(part.rows)
    for compute in part.computes:
        for axes in (compute.axes, compute.reduce):
            rest = tuple(axis for axis in axes if axis not in seen)
            seen.update(rest)
            found.append(rest)
    return [run for run in found if len(run) > 1]


def axis_roles(part: Part) -> dict[Axis, tuple[int, ...]]:
    """How each compute binds each axis: signed compute numbers, negative for `reduce`."""
    roles: dict[Axis, list[int]] = {axis: [0] for axis in part.rows}
    for number, compute in enumerate(part.computes, start=1):
        for axis in compute.axes:
            roles.setdefault(axis, []).append(number)
        for axis in compute.reduce:
            roles.setdefault(axis, []).append(-number)
    return {axis: tuple(found) for axis, found in roles.items()}


def linear_forms(part: Part, bodies: Bodies) -> list[Form]:
    """The distinct linear forms in the indices of a part, those inside div and mod included."""
    forms: dict[frozenset[tuple[Axis, int]], Form] = {}
    stack = list(part_indices(part, bodies))
    for index in reached(stack):
        plain = plain_form(index)
        forms.setdefault(frozenset(plain.items()), plain)
        stack += [atom.index for atom, _ in index.terms if isinstance(atom, (Div, Mod))]
    return list(forms.values())


def plain_form(index: Index) -> Form:
    """The linear form of an index: the factors of its axes."""
    return {atom: c for atom, c in index.terms if isinstance(atom, Axis)}


def over_group(end: Condition, group: list[Axis]) -> Condition:
    """Write an end for axes that merge: x <= -1 is x * n + rest <= -1 for every rest < n."""
    index, _, hi = end
    free = [axis for axis in group if axis not in plain_form(index)]
    if not free or len(free) == len(group):
        return end
    index = index * product(axis.size for axis in free) + position_over(free)
    return index, index.lo, hi


def merged_runs(
    run: tuple[Axis, ...],
    forms: list[Form],
    roles: Mapping[Axis, tuple[int, ...]],
    ends: list[Form],
) -> list[list[Axis]]:
    """Cut a run into maximal stretches that merge; an axis that ends is the first of its own."""
    groups = [[run[0]]]
    for outer, inner in pairwise(run):
        together = roles[outer] == roles[inner]
        together = together and all(
            inner not in f or f.get(outer, 0) == f[inner] * inner.size for f in ends
        )
        if together and all(f.get(outer, 0) == f.get(inner, 0) * inner.size for f in forms):
            groups[-1].append(inner)
        else:
            groups.append([inner])
    return groups

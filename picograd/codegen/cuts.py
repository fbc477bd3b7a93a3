"""Cuts: how one role of a contraction (M, N or K) is divided into blocks.

    axes of the role  ->  outer axes (grid or loops) + one block of `size` positions

A block is walked piece by piece. Every piece has its own local `dims`, the `values` of the role's
axes there, the flat `position` inside the block, the conditions (`when`) on the outer axes under
which it exists, and `guards` that single points must fulfil. Where the blocks do not divide the
role evenly there is a piece for full blocks and one for the last: inner loops stay free of tests.

Reach: how far into the blocks of a role (M, N, K) the elements go that anybody sees.

An end of a kernel (schedule/assemble.py) is `axis < count`. Where the blocks of a `Cut` divide that
axis, a block that begins at `count` or beyond is left out, and of one that begins before it only
the first `limit` positions are wanted. An axis that is not the slowest of its block comes back to
0 again and again (`cycle`): stretches of the block are left out that lie beyond it as a whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from picograd.codegen.operands import size_of
from picograd.helpers import ceil_div, product
from picograd.late_methods import dataclass
from picograd.schedule.index import (
    Axes,
    Axis,
    Index,
    axes_of,
    axis_index,
    constant,
    position_over,
    substitute,
    unflatten,
)
from picograd.schedule.loop import Condition, Conditions, Expr, Part, dynamics_of, walk

NO_STEPS: Mapping[Axis, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a block: `position` runs over `dims`."""

    when: Conditions
    guards: Conditions
    dims: Axes
    values: Mapping[Axis, Index]
    position: Index


@dataclass(frozen=True, slots=True)
class Cut:
    """One role divided into blocks of `size` positions; see the module docstring."""

    outer: Axes
    pieces: tuple[Piece, ...]
    size: int
    first: Index | None = None  # role position of the block's start, where blocks are plain ranges
    total: int = 0  # positions of the role, where blocks are plain ranges
    guard: Conditions = ()  # where the block exists at all

    @property
    def block(self) -> Index:
        """Number of the block, row-major over the outer axes."""
        return position_over(self.outer)

    @property
    def count(self) -> int:
        """Number of blocks."""
        return product(axis.size for axis in self.outer)


def split_size(size: int, most: int) -> int:
    """Choose a block of at most `most`: a divisor of size if a large one exists, else balanced."""
    for part in range(most, (most * 3) // 8, -1):
        if size % part == 0:
            return part
    return ceil_div(size, ceil_div(size, most))


def nested_cut(axes: Axes, limit: int, steps: Mapping[Axis, int] = NO_STEPS) -> Cut:
    """Divide along whole axes: the block is the last axes and a part of the one before them.

    No division is needed to find the axes' values; block positions count the last axis fastest.
    An axis is cut at multiples of its step, if it has one.
    """
    dims: list[Axis] = []
    size, rest = 1, list(axes)
    while rest and size * rest[-1].size <= limit:
        dims.insert(0, rest.pop())
        size *= dims[0].size
    part = cut_of(rest[-1], limit // size, steps) if rest else 1
    if part == 1:
        outer, inner = tuple(rest), tuple(dims)
        return Cut(outer, (Piece((), (), inner, {}, position_over(inner)),), size)
    axis = rest.pop()
    chunk = Axis(f"{axis.name}o", ceil_div(axis.size, part))
    pieces = ragged_pieces(axis, chunk, part, tuple(dims))
    return Cut((*rest, chunk), pieces, size * part)


def cut_of(axis: Axis, most: int, steps: Mapping[Axis, int]) -> int:
    """Choose how many elements of an axis a block has, of at most so many."""
    step = steps.get(axis, 1)
    return step * split_size(ceil_div(axis.size, step), max(most // step, 1))


def split_outer(cut: Cut, parts: int) -> tuple[Cut, Axis]:
    """Share the first outer axis among `parts` tasks; the new outer axis counts inside one part.

    Returns the cut, whose blocks past the end must be skipped (by `guard`), and the axis.
    """
    axis = cut.outer[0]
    each = ceil_div(axis.size, parts)
    part, inside = Axis("part", ceil_div(axis.size, each)), Axis(axis.name, each)
    moved = {axis: axis_index(part) * each + axis_index(inside)}
    pieces = []
    for piece in cut.pieces:
        values = {x: substitute(v, moved) for x, v in piece.values.items()} | moved
        when = tuple((substitute(index, moved), lo, hi) for index, lo, hi in piece.when)
        pieces.append(replace(piece, when=when, values=values))
    guard = ((moved[axis], 0, axis.size - 1),) if each * part.size > axis.size else ()
    return replace(cut, outer=(inside, *cut.outer[1:]), pieces=tuple(pieces), guard=guard), part


def ragged_pieces(axis: Axis, chunk: Axis, part: int, inner: Axes) -> tuple[Piece, ...]:
    """Pieces of an axis cut into chunks of `part`: full chunks, and the last one if shorter."""
    start = axis_index(chunk) * part
    full, rest = divmod(axis.size, part)
    pieces = []
    for width, lo, hi in ((part, 0, full - 1), (rest, full, full)):
        if not width or hi < lo:
            continue
        local = Axis(f"{axis.name}i", width)
        when = () if not rest else ((axis_index(chunk), lo, hi),)
        dims = (local, *inner)
        values = {axis: start + axis_index(local)}
        pieces.append(Piece(when, (), dims, values, position_over(dims)))
    return tuple(pieces)


def first_of(piece: Piece, axis: Axis, dim: Axis) -> Index:
    """Find where an axis begins in a piece that walks it by a dim, which may have one element."""
    place = piece.values.get(axis, axis_index(axis))
    return substitute(place, {dim: constant(0)})


def range_cut(axes: Axes, block: int, outer: Axes, is_guarded: bool = False) -> Cut:
    """Divide the flat positions of a role into ranges; axes are found by division.

    `is_guarded`: one piece whose points past the end are guarded, instead of a shorter last piece.
    """
    axes = tuple(axis for axis in axes if axis.size != 1)
    sizes = tuple(axis.size for axis in axes)
    total = product(sizes)
    number = position_over(outer)
    first = number * block
    full, rest = divmod(total, block)
    last = first.hi + block - 1 >= total  # does some block reach past the end?
    cases = [(block, 0, full - 1), (rest, full, full)] if not is_guarded else [(block, 0, full)]
    pieces = []
    for width, lo, hi in cases:
        if not width or hi < lo:
            continue
        local = Axis("p", min(width, total))
        flat = first + axis_index(local)
        values = dict(zip(axes, unflatten(flat, sizes), strict=True)) if axes else {}
        guards = ((flat, 0, total - 1),) if is_guarded and last else ()
        when = ((number, lo, hi),) if last and not is_guarded else ()
        pieces.append(Piece(when, guards, (local,), values, axis_index(local)))
    return Cut(outer, tuple(pieces), block, first, total)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far one end lets the blocks of a role go: `axis` is less than `count`."""

    axis: Axis
    count: Index
    when: Conditions = ()  # the block holds something wanted
    limit: Index | None = None  # of the positions of a block
    cycle: tuple[Index, int] | None = None  # axis = (first + position) // step % size


def below(index: Index) -> Condition:
    """Say that an index is negative."""
    return index, index.lo, -1


def single_axis(end: Condition) -> Axis | None:
    """Find the axis of an end that is one axis and a count."""
    axes = axes_of(end[0])
    if len(axes) != 1:
        return None
    (axis,) = axes
    return axis if (axis, 1) in end[0].terms else None


def reaches(cut: Cut, role: Sequence[Axis], ends: Sequence[Condition]) -> list[Reach]:
    """Say how far the ends along the axes of a role let its blocks go."""
    found = []
    for end in ends:
        axis = single_axis(end)
        if axis is not None and axis in role and cut.pieces:
            count = axis_index(axis) - end[0]
            is_range = cut.first is not None
            found.append((reach_range if is_range else reach_nested)(cut, role, axis, count))
    return found


def reach_range(cut: Cut, role: Sequence[Axis], axis: Axis, count: Index) -> Reach:
    """Say how far one end goes where blocks are ranges of the flat positions of a role."""
    first = cut.first or constant(0)
    wide = [each for each in role if each.size != 1]
    step = size_of(wide[wide.index(axis) + 1 :])
    if wide[0] is not axis:
        return Reach(axis, count, cycle=(first, step))
    limit = count * step - first
    return Reach(axis, count, (below(limit * -1),), limit)


def reach_nested(cut: Cut, role: Sequence[Axis], axis: Axis, count: Index) -> Reach:
    """Say how far one end goes where a block is the last axes and a part of the one before."""
    piece = cut.pieces[0]
    place, dims = piece.values.get(axis, axis_index(axis)), piece.dims
    start = substitute(place, dict.fromkeys(dims, constant(0)))
    exists = (below(start - count),)
    if dims and (dims[0], 1) in place.terms:
        return Reach(axis, count, exists, (count - start) * size_of(dims[1:]))
    if axis in dims:
        step = size_of(dims[dims.index(axis) + 1 :])
        return Reach(axis, count, exists, cycle=(constant(0), step))
    return Reach(axis, count, exists)


def inside(reaches: Sequence[Reach], cut: Cut, piece: Piece, is_inner: bool) -> Conditions:
    """Say which points of a piece are wanted; of the innermost loop only what bounds it."""
    found = []
    for each in reaches:
        if each.limit is not None and cut.first is not None:
            found.append(below(piece.position - each.limit))
        elif each.limit is not None or (each.cycle and not is_inner):
            place = piece.values.get(each.axis, axis_index(each.axis))
            found.append(below(place - each.count))
    return tuple(found)


def starts(reaches: Sequence[Reach], position: Index, length: int) -> Conditions:
    """Say that something may be wanted among `length` positions of a block.

    Of a cycle the last of them is looked at: its place less the places gone through on the way is
    that of the first one, or negative where the axis came back to 0.
    """
    found = []
    for each in reaches:
        if each.limit is not None:
            found.append(below(position - each.limit))
        elif each.cycle:
            first, step = each.cycle
            last = (first + position + (length - 1)) // step % each.axis.size
            found.append(below(last - ceil_div(length - 1, step) - each.count))
    return tuple(found)


def exist(reaches: Sequence[Reach]) -> Conditions:
    """Say that a block holds something wanted."""
    return tuple([test for each in reaches for test in each.when])


def guards_of(expr: Expr) -> Conditions:
    """List the conditions with counts in them under which an operand is not 0."""
    found: Conditions = ()
    while expr.op in ("guard", "cast"):
        if expr.op == "guard":
            if expr.args[1].op != "const" or expr.args[1].arg != 0:
                break
            found += tuple([test for test in expr.arg if is_count(test[0])])
        expr = expr.args[0]
    return found


def is_count(index: Index) -> bool:
    """Tell whether an index compares with a runtime scalar."""
    scalars = [atom.expr.op == "scalar" for atom in dynamics_of(index)]
    return bool(scalars) and all(scalars)


def ends_of(part: Part) -> list[Condition]:
    """List the conditions of a part that compare places with counts."""
    bodies = [compute.body for compute in part.computes]
    guards = [test for b in bodies for e in walk(b) if e.op == "guard" for test in e.arg]
    return [test for test in (*part.ends, *guards) if is_count(test[0])]


def compares_counts(expr: Expr) -> bool:
    """Tell whether an expression is a guard that compares positions with counts."""
    return expr.op == "guard" and any(is_count(test[0]) for test in expr.arg)


def depth_ends(a: Expr, b: Expr, depth: Sequence[Axis]) -> Conditions:
    """List the ends that both operands have along the axes that are summed over."""
    both, axes = set(guards_of(b)), set(depth)
    return tuple([end for end in guards_of(a) if end in both and axes_of(end[0]) <= axes])


def stops_of(a: Expr, b: Expr, depth: tuple[Axis, ...], first: Index) -> tuple[Index, ...]:
    """List where the sum of a product stops, counted from position `first` of K."""
    ends = depth_ends(a, b, depth)
    return tuple(limit - first for limit in limits_of(depth, ends))


def limits_of(axes: tuple[Axis, ...], ends: Iterable[Condition]) -> list[Index]:
    """List the flat positions of a role at which the slowest of its axes ends."""
    wide = [axis for axis in axes if axis.size > 1]
    inner = size_of(wide[1:])
    slowest = [end for end in ends if wide and single_axis(end) is wide[0]]
    return [(axis_index(wide[0]) - end[0]) * inner for end in slowest]

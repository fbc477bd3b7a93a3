"""Reach: how far into the blocks of a role (M, N, K) the elements go that anybody sees.

An end of a kernel (schedule/ends.py) is `axis < count`. Where the blocks of a `Cut` divide that
axis, a block that begins at `count` or beyond is left out, and of one that begins before it only
the first `limit` positions are wanted. An axis that is not the slowest of its block comes back to
0 again and again (`cycle`): stretches of the block are left out that lie beyond it as a whole.
"""

from collections.abc import Sequence

from picograd.codegen.cuts import Cut, Piece
from picograd.codegen.operands import size_of
from picograd.helpers import ceil_div
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, substitute
from picograd.schedule.loop import Condition, Expr, dynamics_of


@dataclass(frozen=True, slots=True)
class Reach:
    """How far one end lets the blocks of a role go: `axis` is less than `count`."""

    axis: Axis
    count: Index
    when: tuple[Condition, ...] = ()  # the block holds something wanted
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


def inside(
    reaches: Sequence[Reach], cut: Cut, piece: Piece, is_inner: bool
) -> tuple[Condition, ...]:
    """Say which points of a piece are wanted; of the innermost loop only what bounds it."""
    found = []
    for each in reaches:
        if each.limit is not None and cut.first is not None:
            found.append(below(piece.position - each.limit))
        elif each.limit is not None or (each.cycle and not is_inner):
            place = piece.values.get(each.axis, axis_index(each.axis))
            found.append(below(place - each.count))
    return tuple(found)


def starts(reaches: Sequence[Reach], position: Index, length: int) -> tuple[Condition, ...]:
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


def exist(reaches: Sequence[Reach]) -> tuple[Condition, ...]:
    """Say that a block holds something wanted."""
    return tuple([test for each in reaches for test in each.when])


def guards_of(expr: Expr) -> tuple[Condition, ...]:
    """List the conditions with counts in them under which an operand is not 0."""
    found: tuple[Condition, ...] = ()
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


def compares_counts(expr: Expr) -> bool:
    """Tell whether an expression is a guard that compares positions with counts."""
    return expr.op == "guard" and any(is_count(test[0]) for test in expr.arg)


def depth_ends(a: Expr, b: Expr, depth: Sequence[Axis]) -> tuple[Condition, ...]:
    """List the ends that both operands have along the axes that are summed over."""
    both, axes = set(guards_of(b)), set(depth)
    return tuple([end for end in guards_of(a) if end in both and axes_of(end[0]) <= axes])

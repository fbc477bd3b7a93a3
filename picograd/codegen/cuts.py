"""Cuts: how one role of a contraction (M, N or K) is divided into blocks.

    axes of the role  ->  outer axes (grid or loops) + one block of `size` positions

A block is walked piece by piece. Every piece has its own local `dims`, the `values` of the role's
axes there, the flat `position` inside the block, the conditions (`when`) on the outer axes under
which it exists, and `guards` that single points must fulfil. Where the blocks do not divide the
role evenly there is a piece for full blocks and one for the last: inner loops stay free of tests.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from picograd.helpers import ceil_div, product
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, position_over, substitute, unflatten
from picograd.schedule.loop import Condition

NO_STEPS: Mapping[Axis, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a block: `position` runs over `dims`."""

    when: tuple[Condition, ...]
    guards: tuple[Condition, ...]
    dims: tuple[Axis, ...]
    values: Mapping[Axis, Index]
    position: Index


@dataclass(frozen=True, slots=True)
class Cut:
    """One role divided into blocks of `size` positions; see the module docstring."""

    outer: tuple[Axis, ...]
    pieces: tuple[Piece, ...]
    size: int
    first: Index | None = None  # role position of the block's start, where blocks are plain ranges
    total: int = 0  # positions of the role, where blocks are plain ranges
    guard: tuple[Condition, ...] = ()  # where the block exists at all

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


def nested_cut(axes: tuple[Axis, ...], limit: int, steps: Mapping[Axis, int] = NO_STEPS) -> Cut:
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


def ragged_pieces(axis: Axis, chunk: Axis, part: int, inner: tuple[Axis, ...]) -> tuple[Piece, ...]:
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


def range_cut(
    axes: tuple[Axis, ...], block: int, outer: tuple[Axis, ...], is_guarded: bool = False
) -> Cut:
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

"""block_cuts: maps in turn are cut so that a block reads what it stored itself, and nothing else.

    rows        a share is so many rows            t[block * 8 + r, i]
    columns     so many neighbours of each row     t[r, column * 16 + i]     or r = block, r'

The first axes of a part are `block` and `column`. Rows are cut where all parts walk them first. The
columns of an array that a part reads say which columns its own result has: a step of a Fourier
transform leaves the points that lie between those that it transforms side by side.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import gcd, isqrt

from picograd.helpers import ceil_div
from picograd.late_methods import dataclass
from picograd.schedule.folding import piece_of
from picograd.schedule.index import (
    Axis,
    Index,
    Mod,
    axes_of,
    axis_index,
    split_multiples,
    substitute,
)
from picograd.schedule.loop import Kernel, Part, Slot, rewrite, walk

LINE = 16  # neighbours of 4 bytes: half of a line of the cache, which memory moves at once
Place = tuple[int, Index]  # of a slot


@dataclass(frozen=True, slots=True)
class Walk:
    """A part, the axes that it is walked along, its own over them, and what it shares there."""

    part: Part
    slots: tuple[Slot, ...]
    axes: tuple[Axis, ...]
    own: dict[Axis, Index]
    places: tuple[Place, ...]

    def moved(self, axis: Axis, place: Index, axes: Sequence[Axis]) -> "Walk":
        """Walk along other axes, over which one of these is at that place."""
        there = {axis: place}
        own, places = dict(self.own), []
        for each, index in own.items():
            own[each] = substitute(index, there)
        for slot, index in self.places:
            found = substitute(index, there, lambda expr: rewrite(expr, there))
            places.append((slot, found))
        return replace(self, axes=tuple(axes), own=own, places=tuple(places))

    def in_blocks(self, count: int) -> "Walk":
        """Cut the first axis into blocks, of one column as yet."""
        first, *rest = self.axes
        block = Axis("block", count)
        left = Axis(first.name, first.size // count)
        place = axis_index(block) * left.size + axis_index(left)
        return self.moved(first, place, (block, Axis("column", 1), left, *rest))

    def in_columns(self, axis: Axis, count: int, width: int) -> "Walk":
        """Cut an axis into so many columns, which repeat along it."""
        column = Axis("column", count)
        repeat = Axis(axis.name, axis.size // count // width)
        left = Axis(axis.name, width)
        place = axis_index(repeat) * count + axis_index(column)
        place = place * width + axis_index(left)
        axes = [self.axes[0], column]
        for each in self.axes[2:]:
            axes += [repeat, left] if each is axis else [each]
        return self.moved(axis, place, axes)

    def in_pairs(self) -> "Walk":
        """Cut the last axis into pairs of neighbours, which a thread may have."""
        *axes, last = self.axes
        if last.size % 2 or last.size == 2:
            return self
        half = Axis(last.name, last.size // 2)
        pair = Axis(last.name, 2)
        place = axis_index(half) * 2 + axis_index(pair)
        return self.moved(last, place, (*axes, half, pair))

    def made(self) -> Part:
        """Make the part."""
        walk = self.in_pairs()
        inner = [axis for axis in walk.axes[2:] if axis.size > 1]
        axes = (*walk.axes[:2], *(inner or walk.axes[2:3]))
        computes = piece_of(walk.part, axes, walk.own, {}, 0)
        return replace(walk.part, rows=axes, computes=tuple(computes))

    def widths(self) -> dict[int, int]:
        """Find how many neighbours a block has of each slot that is shared; none if of others."""
        found: dict[int, int] = {}
        for slot, index in self.places:
            inside = place_in_block(index, self.axes[:2], self.slots[slot])
            if inside is None or found.setdefault(slot, inside[1]) != inside[1]:
                return {}
        return found


def blocks_of(kernel: Kernel, least: int, most: int) -> tuple[Part, ...] | None:
    """Cut the parts of a chain into least to most blocks, as many as can be; None: into none."""
    walks = [walk_of(part, kernel.slots) for part in kernel.parts]
    firsts = [walk.axes[0].size for walk in walks]
    rows = gcd(*firsts)
    for count in divisors(rows):
        if least <= count <= most:
            cut = [walk.in_blocks(count) for walk in walks]
            if all(walk.widths() for walk in cut):
                return tuple([walk.made() for walk in cut])
    for count in sorted({rows, 1}, reverse=True):
        cut = [walk.in_blocks(count) for walk in walks]
        found = in_columns(cut, ceil_div(least, count), most // count)
        if found:
            return tuple([walk.made() for walk in found])
    return None


def walk_of(part: Part, slots: tuple[Slot, ...]) -> Walk:
    """Walk a part as it is."""
    found: dict[Place, None] = {}
    for compute in part.computes:
        for expr in walk(compute.body):
            if expr.op == "load":
                found[expr.arg] = None
        if compute.store:
            found[compute.store] = None
    places = [place for place in found if slots[place[0]].role == "shared"]
    own = {axis: axis_index(axis) for axis in part.rows}
    return Walk(part, slots, part.rows, own, tuple(places))


@lru_cache(maxsize=1024)
def divisors(number: int) -> list[int]:
    """List what divides a number, the largest first."""
    most = isqrt(number)
    small = [n for n in range(1, most + 1) if number % n == 0]
    large = {number // n for n in small}
    return sorted(large.union(small), reverse=True)


def in_columns(walks: Sequence[Walk], least: int, most: int) -> list[Walk]:
    """Cut an axis of the first into least to most columns, and the others as they read it.

    As many as leave neighbours together that memory moves at once; none are found if none can.
    """
    first, *others = walks
    index = first.places[0][1]
    for axis in first.axes[2:]:
        step = step_along(index, axis)
        for span in divisors(axis.size) if step else ():
            lines = span * step // LINE
            limit = max(min(most, lines), 1)
            count = next(each for each in divisors(span) if each <= limit)
            if count > 1 and count >= least:
                found = [first.in_columns(axis, count, span // count)]
                for each in others:
                    found += read_by(each, found[-1], count)
                if len(found) == len(walks):
                    return found
    return []


def read_by(walk: Walk, before: Walk, count: int) -> list[Walk]:
    """Cut a part into the columns of what it reads; nothing if it reads that otherwise."""
    widths = before.widths()
    read = [place for place in walk.places if place[0] in widths]
    for slot, index in read[:1]:
        for axis in walk.axes[2:]:
            step = step_along(index, axis)
            width = widths[slot] // max(step, 1)
            is_whole = step * width == widths[slot]
            if is_whole and axis.size % (count * width) == 0:
                cut = walk.in_columns(axis, count, width)
                own = cut.widths()
                if own and all(own[slot] == widths[slot] for slot, _ in read):
                    return [cut]
    return []


def step_along(index: Index, axis: Axis) -> int:
    """Find the least step that an index takes along an axis; 0 if it takes none."""
    steps = []
    for atom, factor in index.terms:
        if atom is axis:
            steps.append(abs(factor))
        elif isinstance(atom, Mod):
            steps.append(abs(factor) * step_along(atom.index, axis))
    return min((step for step in steps if step), default=0)


def place_in_block(index: Index, blocks: Sequence[Axis], slot: Slot) -> tuple[Index, int] | None:
    """Find the place in a block's share of a slot, and how many neighbours that has.

    None if it may be in the share of another block.
    """
    block, column = blocks
    width = slot.size // block.size
    inner = index - axis_index(block) * width
    if column.size > 1:
        width = dict(inner.terms).get(column, 0)
        inner -= axis_index(column) * width
    if width <= 0:
        return None
    repeats, rest = split_multiples(inner, width * column.size)
    place = repeats * width + rest
    is_inside = rest.lo >= 0 and rest.hi < width and axes_of(place).isdisjoint(blocks)
    return (place, width) if is_inside and repeats.lo >= 0 else None

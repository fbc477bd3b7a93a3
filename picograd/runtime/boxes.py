"""Boxes: what two row-major layouts of one array have both, with as few axes as can be.

    (3, 37, 8) in (3, 64, 8)   ->   3 runs of 37 * 8 elements, 37 * 8 and 64 * 8 elements apart

An axis merges with the one before it where both layouts have all of it. The last axis of a box has
stride 1 in both.
"""

from collections.abc import Iterator, Sequence
from itertools import product as points
from math import gcd

from picograd.errors import check
from picograd.helpers import product
from picograd.late_methods import dataclass

LARGEST_UNIT = 16  # bytes that a thread of a GPU moves at once


@dataclass(frozen=True, slots=True)
class Along:
    """One axis of a box: how many steps, and their lengths where it goes to and comes from."""

    count: int
    to: int
    source: int


Box = tuple[Along, ...]
Piece = tuple[int, int, Box]  # where it begins, there and here


def common_box(to: Sequence[int], source: Sequence[int]) -> Box:
    """Find the first elements of every axis that both layouts have; () if there are none."""
    check(len(to) == len(source), f"{to} and {source} are not of one array")
    found = [Along(1, 1, 1)]
    there, here, is_whole = 1, 1, True
    for size, other in zip(reversed(to), reversed(source)):
        count = min(size, other)
        if not count:
            return ()
        inner = found[-1]
        if is_whole:
            count *= inner.count
            found[-1] = Along(count, inner.to, inner.source)
        elif count > 1:
            found.append(Along(count, there, here))
        if is_whole or count > 1:
            is_whole = size == other
        there *= size
        here *= other
    return tuple(reversed(found))


def in_units(box: Box, itemsize: int, *places: int) -> tuple[int, Box]:
    """Count a box in the largest units that divide all of it; gives the bytes of one."""
    *outer, inner = box
    parts = [inner.count, *(axis.to for axis in outer)]
    parts += [axis.source for axis in outer]
    unit = gcd(LARGEST_UNIT, *places, *(part * itemsize for part in parts))
    run = Along(inner.count * itemsize // unit, 1, 1)
    counted = [
        Along(axis.count, axis.to * itemsize // unit, axis.source * itemsize // unit)
        for axis in outer
    ]
    return unit, (*counted, run)


def pieces(box: Box, rank: int, most: int) -> Iterator[Piece]:
    """Cut a box into some of at most `rank` axes, and of `most` elements or one axis."""
    cut = max(len(box) - rank, 0)
    while cut < len(box) - 1 and size_of(box[cut:]) > most:
        cut += 1
    outer, inner = box[:cut], box[cut:]
    for place in points(*(range(axis.count) for axis in outer)):
        there = here = 0
        for number, axis in zip(place, outer):
            there += number * axis.to
            here += number * axis.source
        yield from short(there, here, inner, most)


def size_of(box: Box) -> int:
    """Count the elements of a box."""
    return product(axis.count for axis in box)


def short(there: int, here: int, box: Box, most: int) -> Iterator[Piece]:
    """Cut a run that is too long."""
    first, left = 0, box[-1].count
    if size_of(box) <= most:
        yield there, here, box
        return
    while left:
        run = Along(min(left, most), 1, 1)
        yield there + first, here + first, (run,)
        first += run.count
        left -= run.count

"""Boxes: what two row-major layouts of one array have both, and kernels in CUDA C that copy it.

    (3, 37, 8) in (3, 64, 8)   ->   3 runs of 37 * 8 elements, 37 * 8 and 64 * 8 elements apart

An axis merges with the one before it where both layouts have all of it. The last axis of a box has
stride 1 in both. A kernel copies units of 1 to 16 bytes, one thread a unit. The grid is of one
size, whatever the box, so that a kernel is loaded once: threads go on to the next units.
"""

from collections.abc import Iterator, Sequence
from itertools import product as points
from math import gcd

from picograd.code import Code
from picograd.dtype import int64, uint32
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


RANK = 4
MOST_UNITS = 1 << 30  # of one launch: counted in 32 bits, which divide much faster
BLOCKS, THREADS = 8, 256  # blocks for each multiprocessor: all it can hold
UNITS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "uint2", 16: "uint4"}
Launch = tuple[tuple[int, int], tuple[int, ...]]  # addresses and scalars

TEXT = """\
extern "C" __global__ void copy_box_{unit}({type}* to, const {type}* from, unsigned int total,
    unsigned int n1, unsigned int n2, unsigned int n3, long long t0, long long t1, long long t2,
    long long f0, long long f1, long long f2) {{
  for (unsigned int i = blockIdx.x * {threads}u + threadIdx.x; i < total; i += {step}u) {{
    unsigned int rest = i / n3, x3 = i - rest * n3, row = rest / n2, x2 = rest - row * n2;
    unsigned int x0 = row / n1, x1 = row - x0 * n1;
    to[x0 * t0 + x1 * t1 + x2 * t2 + x3] = from[x0 * f0 + x1 * f1 + x2 * f2 + x3];
  }}
}}
"""
SCALARS = (uint32,) * 4 + (int64,) * 6


def kernel(unit: int, multiprocessors: int) -> Code:
    """Write the kernel for units of so many bytes."""
    blocks = BLOCKS * multiprocessors
    name = f"copy_box_{unit}"
    text = TEXT.format(unit=unit, type=UNITS[unit], threads=THREADS, step=blocks * THREADS)
    return Code(name, "cuda", name, text, blocks, THREADS, scalars=SCALARS)


def launches(box: Box, itemsize: int, to: int, source: int) -> tuple[int, Iterator[Launch]]:
    """List the launches that copy a box between two addresses: the unit, and what each one gets."""
    unit, counted = in_units(box, itemsize, to, source)
    cut = pieces(counted, RANK, MOST_UNITS)
    return unit, (
        ((to + unit * there, source + unit * here), scalars(part)) for there, here, part in cut
    )


def scalars(box: Box) -> tuple[int, ...]:
    """List the scalars of one launch."""
    missing = RANK - len(box)
    full = (Along(1, 0, 0),) * missing + box
    return (
        size_of(full),
        *(axis.count for axis in full[1:]),
        *(axis.to for axis in full[:-1]),
        *(axis.source for axis in full[:-1]),
    )

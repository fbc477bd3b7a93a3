"""Kernels in CUDA C that copy a box: one for every unit from 1 to 16 bytes, one thread a unit.

The grid is of one size, whatever the box, so that a kernel is loaded once: threads go on to the
next units until all are copied.
"""

from collections.abc import Iterator

from picograd.code import Code
from picograd.dtype import int64, uint32
from picograd.runtime.boxes import Along, Box, in_units, pieces, size_of

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

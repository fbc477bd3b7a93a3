"""Sums at few places: each block of threads of a GPU has a copy of all of them in shared memory.

    bin_sums(values, numbers)    arg = (bins, parts): of each row (R, N) the values whose number is
                                 b, of each of so many parts of the row: (R, parts, bins)

What has a number that is no bin's is left out. Values are added in the order in which they lie, in
parts of a part that warps have: the order of additions depends on the shape only.
"""

from typing import Any

import numpy as np

from picograd.dtype import int32
from picograd.graph.batch_rules import refused
from picograd.graph.node import Node
from picograd.graph.row import NUMBER, Op, Role, table
from picograd.helpers import ceil_div
from picograd.target import Target

Array = Any
MOST_BYTES = 64 << 10  # of all bins of a block: three of them on a multiprocessor
MOST_WARPS = 16
LANES = 32
LANE_BYTES = 32 << 10  # of the bins of a warp, if each of its lanes has some
SPARSE = 4  # bins a value, where clearing and reading them takes as long as adding
LEAST = 256  # values that a warp adds
WAVES = 6  # blocks for each multiprocessor


def lanes_of(bins: int, itemsize: int, target: Target) -> int:
    """Count the lanes of a warp that have bins of their own: all of them, or one for all."""
    most = min(LANE_BYTES, target.shared_bytes)
    return LANES if bins * itemsize * LANES <= most else 1


def warps_of(bins: int, itemsize: int, target: Target) -> int:
    """Count the warps of a block: each has bins of its own; none if there is no room for them."""
    most = min(MOST_BYTES, target.shared_bytes)
    lanes = lanes_of(bins, itemsize, target)
    room = most // (bins * itemsize * lanes)
    return 1 << min(room, MOST_WARPS).bit_length() >> 1


def may_bin(values: Node, rows: int, bins: int, target: Target) -> bool:
    """Tell whether rows of values have few enough bins, and values enough."""
    is_dense = values.size * SPARSE >= rows * bins
    return is_dense and warps_of(bins, values.dtype.itemsize, target) > 0


def summed_in_bins(values: Node, numbers: Node, bins: int, target: Target) -> Node:
    """Add up the values (R, N) of each number below `bins`: (R, bins)."""
    rows, count = values.shape
    each = warps_of(bins, values.dtype.itemsize, target) * LEAST
    parts = ceil_div(WAVES * target.multiprocessors, rows)
    parts = max(1, min(parts, count // each))
    shape = rows, parts, bins
    inputs = values, numbers.cast(int32)
    found = Node("bin_sums", inputs, (bins, parts), shape, values.dtype, values.device)
    return found.reduce("sum", (1,)) if parts > 1 else found.reshape((rows, bins))


def bin_sums(node: Node, values: Array, numbers: Array) -> Array:
    """Add up values by their numbers."""
    return binned(node.arg, values, numbers)


def binned(arg: tuple[int, int], values: Array, numbers: Array) -> Array:
    """Add up rows of values by their numbers, part by part."""
    bins, parts = arg
    rows, count = values.shape
    found: Array = np.zeros((rows, parts, bins), values.dtype)
    is_bin = (numbers >= 0) & (numbers < bins)
    row, place = np.nonzero(is_bin)
    each = ceil_div(count, parts)
    where: Any = row, place // each, numbers[row, place]
    np.add.at(found, where, values[row, place])
    return found


BINNING_ROWS = table(
    Op(
        "bin_sums",
        Role.BINS,
        2,
        NUMBER,
        bin_sums,
        hero="bins",
        shape=lambda arg, x, _: (x[0], arg[1], arg[0]),
        data=(0, 1),
        batch=refused("it is what a scatter becomes on CUDA"),
    )
)

"""Sums at few places: each block of threads of a GPU has a copy of all of them in shared memory.

    bin_sums(values, numbers)    arg = (bins, parts, lanes, form): of each row (R, N) the sum of the
                                 values whose number is b: (R, bins) if the form is "rows",
                                 (bins, R) if "turned"; (R, parts, bins) if "parts" stay apart.
                                 "beside" is "turned" where all rows have one number at a place

What has a number that is no bin's is left out. Blocks have parts of a row, and warps parts of
these, in which values are added in the order in which they lie, by so many lanes in bins of their
own; the last block of a row adds up its parts, unless there is more than it has time for: the order
of additions depends on the shape only. Sums of rows are rounded once.

Rows beside one another, an index for all of them, go to lanes of a warp, each of which has bins of
its own. So blocks have some of the bins, look at all numbers, and read what goes there: nothing is
added up by another kernel.
"""

from typing import Any

import numpy as np

from picograd.dtype import DType, int32
from picograd.graph.batch_rules import refused
from picograd.graph.node import Node
from picograd.graph.row import NUMBER, NUMBERS, SHOWING, Op, Role, table
from picograd.graph.shape import Shape
from picograd.helpers import ceil_div
from picograd.target import Target

Array = Any
MOST_BYTES = 64 << 10  # of all bins of a block: three of them on a multiprocessor
RESIDENT = 3  # blocks of a multiprocessor
MOST_WARPS = 16
LANES = 32
LANE_BYTES = 32 << 10  # of the bins of a warp, if each of its lanes has some
COPIED_BYTES = 16 << 10  # of all copies of counters, if there are several
SPARSE = 4  # bins a value, where clearing and reading them takes as long as adding
LEAST = 64  # values that a warp adds
CLEARED = 4  # cells that a warp clears for each value, at most
FULL = 64  # warps that shall have as many values as bins, if each of their lanes has some
MOST_READ = 64  # sums of parts that a thread of a last block adds up
WAVES = 6  # blocks for each multiprocessor
MOST_BESIDE = 1 << 15  # numbers, as one block adds up all that have one place: 0.3 ms
MOST_LOOKED = 1 << 25  # numbers that all blocks look at together: 25 us
BESIDE_WARPS = 16, 12, 10, 8  # that have bins of their own, if all lanes have
LEAST_BESIDE = 8  # rows, for the lanes of a warp
QUEUED = 10 * LANES  # what a warp has found and not read: of eight turns, before, and padding


def only_number(values: Node) -> Node | None:
    """Find the number that all values are."""
    while values.realized is None and values.op in SHOWING:
        values = values.inputs[0]
    return values if values.realized is None and values.op in NUMBERS else None


def is_counted(values: Node) -> bool:
    """Tell whether sums are counts: whole numbers of 32 bits, which come in any order."""
    number = only_number(values)
    return number is not None and number.arg == 1 and values.dtype is int32


def copies_of(bins: int) -> int:
    """Count the copies of the counters of a block: more of few, so that warps rarely meet."""
    room = COPIED_BYTES // (bins * int32.itemsize)
    return min(MOST_WARPS, 1 << room.bit_length() >> 1) or 1


def counting_parts(bins: int, rows: int, count: int, target: Target) -> int:
    """Count the parts of a row whose numbers are counted, by a block each."""
    room = target.shared_bytes // (copies_of(bins) * bins * int32.itemsize)
    blocks = min(RESIDENT, room) * target.multiprocessors
    least = max(LEAST * MOST_WARPS, bins // 2)
    return max(1, min(ceil_div(blocks, rows), count // least))


def lanes_of(bins: int, itemsize: int, rows: int, count: int, target: Target) -> int:
    """Count the lanes of a warp that have bins of their own: all of them, or one for all.

    Bins are cleared, and added up, for each of `rows` of `count` values: these should be more.
    """
    has_room = bins * itemsize * LANES <= min(LANE_BYTES, target.shared_bytes)
    cells = bins * LANES
    return LANES if has_room and count >= cells and rows * count >= FULL * cells else 1


def warps_of(bins: int, itemsize: int, lanes: int, target: Target) -> int:
    """Count the warps of a block: each has bins of its own; none if there is no room for them."""
    most = min(MOST_BYTES, target.shared_bytes)
    room = most // (bins * itemsize * lanes)
    return 1 << min(room, MOST_WARPS).bit_length() >> 1


def may_bin(values: Node, rows: int, bins: int, target: Target) -> bool:
    """Tell whether rows of values have few enough bins, and values enough."""
    if is_counted(values) and bins * int32.itemsize <= target.shared_bytes:
        parts = rows * counting_parts(bins, rows, values.size // rows, target)
        if parts >= target.multiprocessors:
            return True
    is_dense = values.size * SPARSE >= rows * bins
    return is_dense and warps_of(bins, values.dtype.itemsize, 1, target) > 0


def beside_of(
    bins: int, rows: int, count: int, itemsize: int, target: Target
) -> tuple[int, int] | None:
    """Choose how many bins a block has for rows beside one another, and warps.

    None if there are too few rows, or all blocks look at too many numbers.
    """
    if count > MOST_BESIDE or rows < LEAST_BESIDE:
        return None
    groups = ceil_div(rows, LANES)
    enough = ceil_div(bins, max(1, target.multiprocessors // groups))
    best = None
    most = MOST_LOOKED // max(count, 1)
    for warps in BESIDE_WARPS:
        room = target.shared_bytes // warps - QUEUED * 2 * int32.itemsize
        each = min(enough, room // (LANES * itemsize) - 1)  # one is for padding
        blocks = groups * ceil_div(bins, each) if each > 0 else most + 1
        if blocks <= most:
            best = each, warps
            waves = ceil_div(blocks, target.multiprocessors)
            most = (waves - 1) * target.multiprocessors  # fewer warps, if there are fewer waves
    return best


def summed_in_bins(
    values: Node, numbers: Node, bins: int, target: Target, dtype: DType, is_turned: bool = False
) -> Node:
    """Add up the values (R, N) of each number below `bins`: (R, bins), or (bins, R) if turned."""
    rows, count = values.shape
    itemsize = values.dtype.itemsize
    lanes = lanes_of(bins, itemsize, rows, count, target)
    warps = warps_of(bins, itemsize, lanes, target) or 1
    parts = ceil_div(WAVES * target.multiprocessors, rows)
    if lanes == 1:  # warps of a block may have a row each
        parts = max(parts, RESIDENT * target.multiprocessors * warps // rows)
    least = max(LEAST, bins * lanes // CLEARED)
    if lanes == 1 and rows * (count // (warps * least)) < target.multiprocessors:
        parts = ceil_div(target.multiprocessors, rows)
        least = LEAST
    parts = max(1, min(parts, count // (warps * least)))
    if is_counted(values):
        lanes, warps = 1, MOST_WARPS
        parts = counting_parts(bins, rows, count, target)
    inputs = values, numbers.cast(int32)
    if parts > 1 and parts * bins > MOST_READ * LANES * warps:
        arg, shape = (bins, parts, lanes, "parts"), (rows, parts, bins)
        found = Node("bin_sums", inputs, arg, shape, values.dtype, values.device)
        found = found.reduce("sum", (1,))
        return (found.permute((1, 0)) if is_turned else found).cast(dtype)
    form = "turned" if is_turned else "rows"
    whole = (bins, rows) if is_turned else (rows, bins)
    return Node("bin_sums", inputs, (bins, parts, lanes, form), whole, dtype, values.device)


def summed_beside(values: Node, numbers: Node, bins: int, dtype: DType) -> Node:
    """Add up the values (R, N) of each number below `bins`, one for all rows: (bins, R)."""
    arg = bins, 1, LANES, "beside"
    inputs = values, numbers.cast(int32)
    shape = shape_of(arg, values.shape)
    return Node("bin_sums", inputs, arg, shape, dtype, values.device)


def bin_sums(node: Node, values: Array, numbers: Array) -> Array:
    """Add up values by their numbers."""
    bins, parts, _, form = node.arg
    if form == "parts":
        return binned(bins, parts, values, numbers)
    found = binned(bins, 1, values, numbers)[:, 0]
    return found if form == "rows" else found.T


def binned(bins: int, parts: int, values: Array, numbers: Array) -> Array:
    """Add up rows of values by their numbers, part by part."""
    rows, count = values.shape
    found: Array = np.zeros((rows, parts, bins), values.dtype)
    is_bin = (numbers >= 0) & (numbers < bins)
    row, place = np.nonzero(is_bin)
    each = ceil_div(count, parts)
    where: Any = row, place // each, numbers[row, place]
    np.add.at(found, where, values[row, place])
    return found


def shape_of(arg: tuple[int, int, int, str], values: Shape) -> Shape:
    """Give the shape of sums."""
    bins, parts, _, form = arg
    rows = values[0]
    forms = {"rows": (rows, bins), "parts": (rows, parts, bins)}
    return forms.get(form, (bins, rows))


BINNING_ROWS = table(
    Op(
        "bin_sums",
        Role.BINS,
        2,
        NUMBER,
        bin_sums,
        hero="bins",
        shape=lambda arg, x, _: shape_of(arg, x),
        data=(0, 1),
        batch=refused("it is what a scatter becomes on CUDA"),
    )
)

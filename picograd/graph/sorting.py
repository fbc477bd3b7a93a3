"""The rows of sorting: `sort` gives the stable permutation that orders an axis, as int64.

`sort` (arg = axis, is_descending) is the op a user records; the sorted values are a gather. It
expands to `sort_keys` (arg = axis, run): the permutation of unsigned integers within runs of an
axis. Elements become keys by their bits: -inf < numbers < inf < NaN (the greatest, as PyTorch), and
-0 equals 0; a descending sort negates the bits, which keeps it stable.

On CUDA a row longer than a block can hold is sorted in runs, which `merge_runs` (arg = axis, run;
inputs: the keys in the present order, and that order) joins in pairs until one is left.
"""

from typing import Any

import numpy as np

from picograd.dtype import DType, int64, to_dtype, uint8
from picograd.graph.node import Node
from picograd.graph.row import ANY, BITS, Op, table

Array = Any
BLOCK_RUN = 4096  # elements a CUDA block sorts in shared memory: 48 KiB with 64-bit keys


def sort(node: Node, axis: int, is_descending: bool = False) -> Node:
    """Find the stable permutation that orders an axis (not negative)."""
    arg = (axis, is_descending)
    return Node("sort", (node,), arg, node.shape, int64, node.device)


def along(node: Node, index: Node, axis: int) -> Node:
    """Read out[i][j] = node[i][index[i][j]] (axis 1); all other sizes are equal."""
    indices = tuple(
        index if d == axis else index.iota(d, index.dtype)
        for d in range(node.rank)
    )
    return node.gather(indices, tuple(range(node.rank)))


def bitcast(node: Node, dtype: DType) -> Node:
    """Read the same bits as another dtype."""
    return Node("bitcast", (node,), dtype, node.shape, dtype, node.device)


def ordered_keys(x: Node, is_descending: bool) -> Node:
    """Map elements to unsigned integers of the same order.

    The bits of a float order like integers if those of a negative number are all negated, and only
    the sign of a positive one: bits ^ (bits >> 31 | sign) for 32 bits.
    """
    if x.dtype.kind == "bool":
        x = x.cast(uint8)
    keys, bits = x, x.dtype.bits
    if x.dtype.kind != "uint":
        sign = -(1 << (bits - 1))
        if x.dtype.is_float:
            plain = x.binary("equal", 0).where(0, x)
            whole = bitcast(plain, to_dtype(f"int{bits}"))
            spread = whole.binary("shift_right", bits - 1)
            whole = whole.binary(
                "bitwise_xor", spread.binary("bitwise_or", sign)
            )
        else:
            whole = x.binary("bitwise_xor", sign)
        keys = bitcast(whole, to_dtype(f"uint{bits}"))
    if x.dtype.is_float:
        keys = x.unary("isnan").where((1 << bits) - 1, keys)
    return keys.unary("bitwise_not") if is_descending else keys


def expand_sort(node: Node) -> Node:
    """Sort keys in one step, or in runs that are merged."""
    x, (axis, is_descending) = node.inputs[0], node.arg
    if node.size == 0 or x.shape[axis] == 1:
        return x.iota(axis)
    keys, size = ordered_keys(x, is_descending), x.shape[axis]
    is_long = node.device.startswith("cuda") and size > BLOCK_RUN
    run = BLOCK_RUN if is_long else size
    order = Node(
        "sort_keys", (keys,), (axis, run), node.shape, int64, node.device
    )
    while run < size:
        order, run = merged(keys, order, axis, run), 2 * run
    return order


def merged(keys: Node, order: Node, axis: int, run: int) -> Node:
    """Merge neighbouring runs of a permutation in pairs, stably."""
    held = along(keys, order, axis)
    return Node(
        "merge_runs",
        (held, order),
        (axis, run),
        order.shape,
        int64,
        order.device,
    )


def merge_runs(node: Node, keys: Array, order: Array) -> Array:
    """Sort the pairs of runs of `order` by `keys`."""
    axis, run = node.arg
    places = sort_keys(
        Node("sort_keys", (), (axis, 2 * run), node.shape, int64, ""), keys
    )
    return np.take_along_axis(order, places, axis)


def sort_keys(node: Node, keys: Array) -> Array:
    """Sort every run by itself."""
    axis, run = node.arg
    out: Array = np.empty(node.shape, np.int64)
    turned, rows = np.moveaxis(out, axis, 0), np.moveaxis(keys, axis, 0)
    for first in range(0, len(rows), run):
        order = np.argsort(rows[first : first + run], axis=0, kind="stable")
        turned[first : first + run] = order + first
    return out


SORT_ROWS = table(
    Op("sort", "composite", 1, ANY, None, None, expand_sort),
    Op("sort_keys", "sort", 1, BITS, sort_keys),
    Op("merge_runs", "sort", 2, BITS, merge_runs),
)

"""Sorting on nodes, and what is made of it: topk, median, quantile, unique, searchsorted.

All of it follows the stable permutation of `graph/sorting.py`: NaN is the greatest element. Values
are gathered by the permutation, so gradients scatter back. A zero-dim tensor counts as one element.
"""

import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from picograd.dtype import float32, float64, int32, int64, promote, uint8, uint16, uint32
from picograd.engine.backends import get_device
from picograd.engine.tracing import check_not_tracing, is_tracing
from picograd.errors import AxisError, ShapeError, ValueRangeError, check_known
from picograd.graph import build_composite as composite
from picograd.graph import sorting as graph_sorting
from picograd.graph.node import Node, constant
from picograd.number import given, once_varied
from picograd.target import Target
from picograd.tensor.core.demands import demand_number
from picograd.tensor.core.function import recorded
from picograd.tensor.core.known_values import known_values
from picograd.tensor.core.operands import (
    as_axis,
    as_sizes,
    check_ordered,
    need_float,
    need_integer,
    nothing_of,
    read_scalar,
)
from picograd.tensor.core.repeated import recorded_once, repeated
from picograd.tensor.indexing.selecting import computed_values
from picograd.tensor.reductions import equal_runs
from picograd.tensor.reductions.cumulative import Ordered
from picograd.tensor.reductions.reduce import shared_by_equals
from picograd.tensor.shaping import movement

# topk finds few elements of long rows one after the other, and sorts for more: (how many, from how
# many elements in all on: before that recording and launching them costs more than sorting)
SELECTED, SELECTED_IN_BLOCKS = (16, 1 << 11), (16, 1 << 22)
COMPARED = 15_000  # elements of a row that are compared while a CPU sorts the shortest rows
SELECT_FROM = 65  # elements of a row: a CPU sorts shorter ones by counting
SELECT_SHORT = 8, 1 << 14  # of shorter rows, and of all: so many are counted more slowly
# of rows, and of all: a GPU selects so many in a quarter to nine tenths of a sort's time
SELECT_IN_BLOCKS = 1024, 1 << 15
SEARCHED = (256, 1 << 14)  # elements of a row, and of all, where a CPU finds one of them bit by bit
# as many times more elements than are wanted: few of them are sorted
FOREMOST, FOREMOST_IN_BLOCKS = 16, 64
INTERPOLATIONS = ("linear", "lower", "higher", "nearest", "midpoint")


@recorded()
def argsort(x: Node, dim: int = -1, descending: bool = False, stable: bool | None = True) -> Node:
    """Compute the indices that sort an axis.

    >>> Tensor([3.0, 1.0, 2.0]).argsort().tolist()
    [1, 2, 0]
    """
    return order("argsort", x, dim, descending)


@recorded(returns=Ordered)
def sort(
    x: Node, dim: int = -1, descending: bool = False, stable: bool | None = True
) -> tuple[Node, Node]:
    """Sort along an axis: values and indices. Always stable; NaN is the greatest.

    >>> values, indices = Tensor([3.0, 1.0, 2.0]).sort()
    >>> values.tolist(), indices.tolist()
    ([1.0, 2.0, 3.0], [1, 2, 0])
    """
    indices = order("sort", x, dim, descending)
    return picked(x, indices, dim), indices


@recorded()
def msort(x: Node) -> Node:
    """Sort along the first axis.

    >>> Tensor([3.0, 1.0, 2.0]).msort().tolist()
    [1.0, 2.0, 3.0]
    """
    return picked(x, order("msort", x, 0), 0)


@recorded_once(returns=Ordered)
def topk(
    x: Node, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Node, Node]:
    """Find the k largest (or smallest) elements along an axis, best first.

    NaN is the greatest, and of equal elements the first comes first.

    >>> values, indices = Tensor([3.0, 1.0, 2.0]).topk(2)
    >>> values.tolist(), indices.tolist()
    ([3.0, 2.0], [0, 2])
    """
    indices = top_indices(x, k, dim, largest)
    return picked(x, indices, dim), indices


@recorded(returns=Ordered)
def kthvalue(x: Node, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Node, Node]:
    """Find the k-th smallest element along an axis, counted from 1.

    >>> value, index = Tensor([3.0, 1.0, 2.0]).kthvalue(2)
    >>> value.item(), index.item()
    (2.0, 2)
    """
    return chosen_one(x, kth_index(x, k, dim), dim, keepdim)


@overload
def median(x: Node, dim: int, keepdim: bool = False) -> tuple[Node, Node]: ...


@overload
def median(x: Node, dim: None = None, keepdim: bool = False) -> Node: ...


@recorded(returns=Ordered)
def median(x: Node, dim: int | None = None, keepdim: bool = False) -> Node | tuple[Node, Node]:
    """Compute the lower median of all elements; along an axis (values, indices).

    >>> Tensor([3.0, 1.0, 2.0]).median().item()
    2.0
    """
    if dim is None:
        return median_of_all(x)
    return chosen_one(x, median_index(x, dim), dim, keepdim)


def axis_of(op: str, node: Node, axis: Any) -> int:
    """Read an axis; a zero-dim tensor has axis 0."""
    return as_axis(axis, max(node.rank, 1), op)


def order(op: str, node: Node, axis: Any, is_descending: bool = False) -> Node:
    """Compute the stable permutation that sorts an axis."""
    position = axis_of(op, node, axis)
    check_ordered(op, node.dtype)
    if not node.rank:
        return node.const_like(0).cast(int64)
    if not node.size:
        return node.cast(int64)
    return graph_sorting.sort(node, position, bool(is_descending))


def picked(node: Node, index: Node, axis: Any) -> Node:
    """Gather values along an axis by indices that are in range."""
    if not node.rank:
        return node
    if not index.size:
        return nothing_of(node, index.shape)
    return graph_sorting.along(node, index, axis % node.rank)


def part(node: Node, axis: int, first: int, count: int) -> Node:
    """Cut a stretch out of an axis."""
    if not node.rank:
        return node
    axis %= node.rank
    ranges = [(0, size, 1) for size in node.shape]
    ranges[axis] = (first, first + count, 1)
    return node.slice(tuple(ranges))


def without_axis(node: Node, axis: int, keepdim: bool) -> Node:
    """Drop an axis of size 1, unless it is kept."""
    if keepdim or not node.rank:
        return node
    axis %= node.rank
    return node.reshape((*node.shape[:axis], *node.shape[axis + 1 :]))


def chosen_one(x: Node, index: Node, axis: int, keepdim: bool) -> tuple[Node, Node]:
    """Gather one element along an axis, whose index is there with size 1."""
    value = picked(x, index, axis)
    return without_axis(value, axis, keepdim), without_axis(index, axis, keepdim)


def size_along(node: Node, axis: int) -> int:
    """Count the elements along an axis."""
    return node.shape[axis] if node.rank else 1


def need_elements(op: str, node: Node, position: int) -> int:
    """Count the elements along an axis; AxisError for none."""
    size = size_along(node, position)
    if not size:
        raise AxisError(op, f"an axis of {node.shape} is empty", "check .numel() first")
    return size


def top_indices(node: Node, k: int, axis: Any, is_largest: bool) -> Node:
    """Compute the indices of the k largest or smallest elements, best first."""
    position = axis_of("topk", node, axis)
    size = size_along(node, position)
    (k,) = as_sizes((k,), "topk")
    if not 0 <= k <= size:
        raise ValueRangeError("topk", f"k={k} does not fit size {size}", f"use 0 to {size}")
    target = get_device(node.device).target
    limit, least = SELECTED_IN_BLOCKS if target.has_blocks else SELECTED
    is_many = size >= SELECT_SHORT[0] and node.size >= SELECT_SHORT[1]
    if target.has_blocks:
        is_many = type(size) is int and size <= SELECT_IN_BLOCKS[0]
        least = SELECT_IN_BLOCKS[1] if is_many else least
    is_fit = size >= SELECT_FROM or is_many
    is_fit &= size < 1 << 32
    if node.dtype.bits > 32:  # two reductions each, and none on a GPU
        limit = 0 if target.has_blocks else limit // 3
    is_short = target.has_blocks or (k - 2) * size < COMPARED
    if is_fit and 0 < k <= limit and is_short and node.size >= least:
        return selected(node, position, k, bool(is_largest))
    times = FOREMOST_IN_BLOCKS if target.has_blocks else FOREMOST
    is_few = type(size) is int and 0 < k <= size // times
    is_long = size > graph_sorting.BLOCK_RUN if target.has_blocks else node.size >= least
    if is_few and is_long:
        return foremost(node, position, k, bool(is_largest), target.has_blocks)
    return part(order("topk", node, position, is_largest), position, 0, k)


selected, foremost = repeated(graph_sorting.selected), repeated(graph_sorting.foremost)


def kth_index(node: Node, k: int, axis: Any) -> Node:
    """Compute the index of the k-th smallest element, counted from 1; the axis keeps size 1."""
    position = axis_of("kthvalue", node, axis)
    size = need_elements("kthvalue", node, position)
    if not 1 <= k <= size:
        raise ValueRangeError("kthvalue", f"k={k} does not fit size {size}", f"use 1 to {size}")
    first = once_varied(k - 1, "kthvalue", size) if size > 1 else 0
    return nth("kthvalue", node, position, first)


def nth(op: str, node: Node, position: int, first: int) -> Node:
    """Compute the index of the element that `first` others come before; the axis keeps size 1."""
    size, is_gpu = size_along(node, position), get_device(node.device).target.has_blocks
    is_small = type(size) is not int or size < SEARCHED[0] or node.size < SEARCHED[1]
    if is_gpu or is_small:
        return part(order(op, node, position), position, first, 1)
    check_ordered(op, node.dtype)
    return graph_sorting.nth(node, position, first)


def median_index(node: Node, axis: Any) -> Node:
    """Compute the index of the lower median, or of a NaN if there is one; the axis keeps size 1."""
    position = axis_of("median", node, axis)
    size = need_elements("median", node, position)
    middle = nth("median", node, position, (size - 1) // 2)
    if not node.dtype.is_float or not node.rank:
        return middle
    first = composite.argmax(node, position, True)  # a NaN counts as the largest
    return picked(node, first, position).unary("isnan").where(first, middle)


def flat(node: Node) -> Node:
    """Make one axis of all."""
    return node.reshape((node.size,))


def median_of_all(node: Node) -> Node:
    """Compute the lower median of all elements; NaN for none."""
    if not node.size:
        need_float("median", node)
        return constant(float("nan"), (), node.dtype, node.device)
    row = flat(node)
    value = picked(row, median_index(row, 0), 0).reshape(())
    return shared_by_equals(value, row) if node.dtype.is_float else value


def quantile(node: Node, q: Any, axis: Any, keepdim: bool, interpolation: str) -> Node:
    """Compute quantiles along an axis (None: of all); several q lead the result's shape."""
    need_float("quantile", node)
    check_known("quantile", "interpolation", interpolation, INTERPOLATIONS)
    listed = q if isinstance(q, Sequence) else [q]
    wanted = [float(read_scalar("quantile", each)) for each in listed]
    if any(not 0 <= each <= 1 for each in wanted):
        raise ValueRangeError("quantile", f"q={q} is not in 0..1", "use fractions")
    shape = (1,) * node.rank
    row, position = (flat(node), 0) if axis is None else (node, axis_of("quantile", node, axis))
    need_elements("quantile", row, position)
    values = picked(row, order("quantile", row, position), position)
    found = [one_quantile(values, position, each, interpolation) for each in wanted or (0.0,)]
    found = [without_axis(each, position, keepdim) for each in found]
    if axis is None and keepdim:
        found = [each.reshape(shape) for each in found]
    if not isinstance(q, Sequence):
        return found[0]
    return movement.cut(movement.stack(found), 0, 0, len(wanted))


def one_quantile(values: Node, axis: int, q: float, interpolation: str) -> Node:
    """Interpolate between two sorted values; the axis keeps size 1. A NaN in the row gives NaN."""
    size = size_along(values, axis)
    place = q * (size - 1)
    low = min(int(place), size - 1)
    high, share = min(low + 1, size - 1), place - low
    if interpolation == "nearest":
        share = float(round(place) - low)
    fixed = {"lower": 0.0, "higher": float(share > 0), "midpoint": 0.5 * (share > 0)}
    share = fixed.get(interpolation, share)
    near, rest = (low, share) if share < 0.5 else (high, share - 1)  # a node of its own: one plan
    places = [once_varied(at, "quantile", size) for at in (low, high, near)]
    first, second, start = (part(values, axis, place, 1) for place in places)
    between = start + (second - first) * given(rest)
    result = first if share == 0 else second if share == 1 else between
    last = part(values, axis, size - 1, 1)
    return last.unary("isnan").where(last, result)


@repeated
def search(ordered: Node, values: Node, is_right: bool) -> Node:
    """Find where values belong in a sorted last axis, by bisection: O(log n) a value.

    `ordered` has one axis, or the same leading axes as `values`.
    """
    op, rank = "searchsorted", ordered.rank
    if not rank or (rank > 1 and ordered.shape[:-1] != values.shape[:-1]):
        text = f"sorted {ordered.shape} and values {values.shape} differ in leading axes"
        raise ShapeError(op, text, "give one sorted axis, or equal leading axes")
    dtype = promote(ordered.dtype, values.dtype)
    ordered, values = ordered.cast(dtype), values.cast(dtype)
    size = ordered.shape[-1]
    place = values.const_like(0).cast(int32 if size < 1 << 30 else int64)
    if not size or not values.size:
        return place.cast(int64)
    left = size  # how many elements may still come before the place, which is place..place+left
    while left:
        half = max(left // 2, 1)
        probe = place + (half - 1)
        found = ordered.gather((probe,), (0,)) if rank == 1 else along_last(ordered, probe)
        is_found = values.binary("less" if is_right else "less_equal", found)
        goes_on = is_found.unary("logical_not")  # a NaN goes to the end
        place = goes_on.where(place + half, place)
        left -= half
    return place.cast(int64)


def is_listed(values: Node, ordered: Node) -> Node:
    """Tell which values are among the sorted elements of one axis, of which there are some."""
    place = search(ordered, values, False).binary("minimum", ordered.size - 1)
    return ordered.gather((place,), (0,)).binary("equal", values)


def along_last(node: Node, index: Node) -> Node:
    """Gather along the last axis; the index may be longer or shorter."""
    indices = tuple(index if d == node.rank - 1 else index.iota(d) for d in range(node.rank))
    return node.gather(indices, tuple(range(node.rank)))


def distinct(node: Node, has_inverse: bool = True, has_counts: bool = True) -> list[Node]:
    """Compute the sorted distinct elements, where each element is among them, and their counts.

    The last two are wanted or not. How many there are is known behind it: there is room for all
    elements, so that one plan serves whatever they are. Every NaN is distinct.
    """
    row = flat(node)
    if not row.size:
        return [row, *[node.cast(int64)] * has_inverse, *[row.cast(int64)] * has_counts]
    check_not_tracing("unique")
    values, found = sorted_row(row, get_device(row.device).target)
    kinds, *others = equal_runs.elements_grouped(values, found, has_inverse, has_counts)
    if has_inverse:
        others[0] = others[0].reshape(node.shape)
    return [kinds, *others]


def sorted_row(row: Node, target: Target) -> tuple[Node, Node]:
    """Sort one axis: the values, and where they were. Computes.

    Where a GPU sorts digit by digit, whole numbers of 64 bits that lie near one another have fewer
    digits: the host looks how far they reach, which takes as long as two of the eight.
    """
    is_long = target.has_blocks and row.size > graph_sorting.BLOCK_RUN
    if is_long and row.dtype.is_integer and row.dtype.bits == 64:
        ends = movement.stack([row.reduce(m, (0,)) for m in ("min", "max")])
        low, high = map(int, computed_values(ends))
        kinds = [kind for kind in (uint8, uint16, uint32) if (high - low) >> kind.bits == 0]
        if kinds:
            least = part(ends, 0, 0, 1).expand(row.shape)
            keys = (row - least).cast(kinds[0])
            found = order("unique", keys, 0)
            return picked(keys, found, 0).cast(row.dtype) + least, found
    found = order("unique", row, 0)
    return picked(row, found, 0), found


@recorded()
def bincount(x: Node, weights: Node | None = None, minlength: int = 0) -> Node:
    """Count how often each number 0, 1, ... occurs, or sum the weights of its occurrences.

    In a trace, where numbers are not known, there are `minlength` counts: a number beyond raises.

    >>> Tensor([0, 2, 2]).bincount().tolist()
    [1, 0, 2]
    """
    need_integer("bincount", x, "input")
    if x.rank != 1:
        raise ShapeError("bincount", f"takes one axis, not shape {x.shape}", "flatten it")
    if weights is not None and weights.shape != x.shape:
        text = f"weights {weights.shape} and input {x.shape} differ"
        raise ShapeError("bincount", text, "give one weight an element")
    index, count = x.cast(int64), minlength
    if is_tracing() and known_values(x) is None:
        if not minlength:
            check_not_tracing("bincount() without minlength")
        demand_number("bincount", x, minlength, "counts: those of minlength, in a trace")
    elif x.size:
        ends = computed_values(movement.stack([index.reduce(m, (0,)) for m in ("min", "max")]))
        if int(ends[0]) < 0:
            raise ValueRangeError("bincount", "a number is negative", "use numbers >= 0")
        count = max(int(ends[1]) + 1, minlength)
    ones = index.const_like(1)
    if weights is not None:
        ones = weights.cast(float32 if weights.dtype is float32 else float64)
    zeros = constant(0, (count,), ones.dtype, x.device)
    return zeros.scatter(ones, (index,), (0,), "sum") if x.size and count else zeros


def check_finite(op: str, node: Node) -> None:
    """Raise ValueRangeError where extremes that bins go between are known to be no numbers."""
    values = known_values(node)
    if values is not None and not np.isfinite(values).all():
        raise ValueRangeError(op, "a value is infinite, or NaN", "give the range")


@recorded()
def histc(x: Node, bins: int = 100, min: float = 0, max: float = 0) -> Node:
    """Count elements in equal bins between min and max; both 0: between the extremes.

    >>> Tensor([1.0, 2.0, 2.5]).histc(bins=3, min=0, max=3).tolist()
    [0.0, 1.0, 2.0]
    """
    need_float("histc", x)
    if bins < 1 or not -math.inf < min <= max < math.inf:
        text = f"bins={bins} from {min} to {max}"
        raise ValueRangeError("histc", text, "use bins >= 1 and finite min <= max")
    row = flat(x)
    zeros = constant(0, (bins,), x.dtype, x.device)
    if not row.size:
        return zeros
    first, last = row.const_like(float(min)), row.const_like(float(max))
    if min == max:
        check_finite("histc", row)
        first, last = (row.reduce(each, (0,), True).expand(row.shape) for each in ("min", "max"))
        is_flat = first.binary("equal", last)
        first, last = (is_flat.where(first - 1.0, first), is_flat.where(last + 1.0, last))
    place = ((row - first) * float(bins) / (last - first)).unary("floor")
    inside = first.binary("less_equal", row).binary("logical_and", row.binary("less_equal", last))
    place = inside.where(place.binary("minimum", bins - 1), 0).cast(int64)
    return zeros.scatter(inside.cast(x.dtype), (place,), (0,), "sum")

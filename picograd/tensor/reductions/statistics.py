"""Statistics: medians and quantiles beside NaN, modes, histograms, integrals and derivatives.

Functions of tensors made of their methods. Where a count decides a shape (`unique`), it is
computed at once and cannot be used inside `jit`.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from picograd.dtype import bool_
from picograd.engine import pending
from picograd.engine.tracing import is_tracing
from picograd.errors import AxisError, DTypeError, ShapeError, ValueRangeError, check_known
from picograd.graph.node import Node
from picograd.graph.segments import reduced_segments
from picograd.helpers import lying_along
from picograd.tensor.core.annotations import Axis, Tensor, TensorLike
from picograd.tensor.core.arguments import (
    along,
    as_float,
    from_host,
    is_tensor,
    need_tensor,
    positions,
    promoted,
)
from picograd.tensor.core.autocast import listed
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.demands import any_of, report
from picograd.tensor.core.function import composed, within
from picograd.tensor.core.known_values import known_values
from picograd.tensor.core.operands import as_axis
from picograd.tensor.core.recording import Recorded, apply, as_tensor, read, wrap
from picograd.tensor.core.together import together
from picograd.tensor.indexing import indexing, selecting
from picograd.tensor.reductions import equal_runs, sorting
from picograd.tensor.reductions.cumulative import Ordered
from picograd.tensor.reductions.reduce import shared_by_equals


class Histogram(NamedTuple):
    """This class holds the counts (bins) of a histogram and the edges (bins + 1) of its cells."""

    hist: Tensor
    bin_edges: Tensor


class HistogramDD(NamedTuple):
    """This class holds the counts of a histogram over several axes, and the edges of each."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def axis_of(op: str, x: Tensor, dim: Any, is_empty_error: bool = True) -> int:
    """Read an axis, which must have elements; a zero-dim tensor has axis 0."""
    axis = as_axis(dim, max(x.ndim, 1), op)
    if is_empty_error and x.ndim and not x.shape[axis]:
        raise AxisError(op, f"axis {axis} of {tuple(x.shape)} is empty", "check .numel() first")
    return axis


# order statistics


@composed()
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Ordered:
    """Find the most frequent value along an axis, the least of several, and its last position.

    >>> [part.tolist() for part in picograd.mode(picograd.Tensor([3, 1, 3, 1, 2]))]
    [1, 3]
    """
    axis = axis_of("mode", input, dim)
    if not input.ndim:
        place = Recorded.kind.zeros((), dtype="int64", device=input.device)
        return Ordered(input.clone(), place)
    x = input.detach()
    ordered, order = x.sort(axis)
    size = x.shape[axis]
    number = positions(size, x, axis)
    if size > 1:
        differs = ordered.narrow(axis, 1, size - 1) != ordered.narrow(axis, 0, size - 1)
        starts = Recorded.kind.cat([differs.narrow(axis, 0, 1).logical_or(True), differs], axis)
    else:
        starts = (number == 0).expand(*x.shape)
    run = number - starts.where(number, 0).cummax(axis).values
    indices = order.take_along_dim(run.argmax(axis, True), axis)
    return chosen(input, indices, axis, keepdim)


def chosen(x: Tensor, indices: Tensor, axis: int, keepdim: bool) -> Ordered:
    """Gather one element along an axis by its index there, of size 1."""
    values = x.take_along_dim(indices, axis)
    if keepdim:
        return Ordered(values, indices)
    return Ordered(values.squeeze(axis), indices.squeeze(axis))


@composed()
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Compute the lower median of what is not NaN; along an axis (values, indices).

    >>> picograd.nanmedian(picograd.Tensor([3.0, float("nan"), 1.0])).item()
    1.0
    """
    if dim is None:
        if not input.numel():
            return input.sum() * float("nan")
        flat = input.reshape(input.numel())
        if not input.dtype.is_float:
            return nanmedian(flat, 0).values
        return apply(shared_by_equals, nanmedian(flat.detach(), 0).values, flat)
    axis = axis_of("nanmedian", input, dim)
    if not input.ndim or not input.dtype.is_float:
        return input.median(dim, keepdim)
    order = input.argsort(axis)
    count = input.isnan().logical_not().sum(axis, True)
    place = ((count - 1) // 2).clamp(0, max(input.shape[axis] - 1, 0))
    return chosen(input, order.take_along_dim(place, axis), axis, keepdim)


@composed()
@listed
def nanquantile(
    input: Tensor,
    q: TensorLike,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Compute quantiles (fractions 0..1) of what is not NaN; NaN where nothing is.

    Several q lead the shape of the result.

    >>> picograd.nanquantile(picograd.Tensor([3.0, float("nan"), 1.0]), 0.5).item()
    2.0
    """
    op = "nanquantile"
    if not input.dtype.is_float:
        raise DTypeError(op, f"needs a float dtype, got {input.dtype.name}", "call .float() first")
    check_known(op, "interpolation", interpolation, sorting.INTERPOLATIONS)
    known = known_fractions(op, q)
    if isinstance(known, (list, tuple)) or (is_tensor(known) and known.ndim):
        parts: Any = q if isinstance(q, Recorded) else known
        each = [nanquantile(input, x, dim, keepdim, interpolation=interpolation) for x in parts]
        return Recorded.kind.stack(each)
    if not is_tensor(known) and not 0 <= known <= 1:
        raise ValueRangeError(op, f"q={known} is not in 0..1", "use fractions")
    if dim is None:
        flat = nanquantile(input.reshape(input.numel()), q, 0, interpolation=interpolation)
        return flat.reshape(*(1,) * input.ndim) if keepdim else flat
    axis = axis_of(op, input, dim)
    if not input.ndim:
        return input.clone()
    ordered, _ = input.sort(axis)
    last = input.isnan().logical_not().sum(axis, True) - 1
    share = q if is_tensor(q) else float(known)
    result = between(ordered, axis, last, share, interpolation)
    return result if keepdim else result.squeeze(axis)


def known_fractions(op: str, q: Any) -> Any:
    """Give q as numbers; one that a trace does not know stays, checked where the trace runs."""
    if not is_tensor(q) or not is_tracing() or known_values(q._node) is not None:
        return q.tolist() if is_tensor(q) else q
    wrong = ((q >= 0) & (q <= 1)).logical_not().any()
    report(wrong._node, ValueRangeError(op, "q is not in 0..1", "use fractions"), q._node)
    return q


def between(ordered: Tensor, axis: int, last: Tensor, q: Any, interpolation: str) -> Tensor:
    """Interpolate at the place q * last of each sorted row."""
    place = last.clamp(0, None).cast(ordered.dtype) * q
    if interpolation == "nearest":
        place = place.round()
    low, high = place.floor(), place.ceil()
    share = place - low
    fixed = {"lower": share * 0, "higher": (share > 0).cast(share.dtype),
             "midpoint": (share > 0).cast(share.dtype) * 0.5}  # fmt: skip
    share = fixed.get(interpolation, share)
    most = max(ordered.shape[axis] - 1, 0)
    places = (each.long().clamp(0, most) for each in (low, high))
    first, second = (ordered.take_along_dim(each, axis) for each in places)
    is_far = share >= 0.5
    start = is_far.where(second, first)
    rest = is_far.where(share - 1, share)
    gap = second - first
    is_there = (rest == 0).logical_and(gap.isfinite().logical_not())  # beside an infinity
    return (last < 0).where(float("nan"), start + is_there.where(0.0, gap * rest))


# sets


@composed()
def quantile(
    input: Tensor, q: TensorLike, dim: int | None = None, keepdim: bool = False, *,
    interpolation: str = "linear",
) -> Tensor:  # fmt: skip
    """Compute quantiles (fractions 0..1) along an axis, or of all elements.

    >>> Tensor([3.0, 1.0, 2.0]).quantile(0.5).item()
    2.0
    """
    given: Any = q
    is_learned = is_tensor(given) and given.requires_grad and MODE.enabled
    wanted = given if is_learned else known_fractions("quantile", given)
    if is_tensor(wanted):
        found = nanquantile(input, wanted, dim, keepdim, interpolation=interpolation)
        has_hole = input.isnan().any(dim, keepdim)
        return has_hole.where(float("nan"), found)
    return apply(sorting.quantile, input, wanted, dim, keepdim, interpolation)


@composed()
@pending.locked
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Find the distinct elements, or slices of an axis, sorted; how many is computed now.

    >>> Tensor([2.0, 1.0, 2.0]).unique().tolist()
    [1.0, 2.0]
    """
    node = read(input)
    asked = return_inverse, return_counts
    if dim is None:
        listed = sorting.distinct(node, *asked)
    else:
        listed = equal_runs.unique_slices(node, dim, *asked)
    found, *others = (wrap(each, False) for each in listed)
    if dim is not None:  # found are the positions of slices
        found = apply(indexing.index_select, input, dim, found)  # nobody need look at them
    return (found, *others) if others else found


@composed(also=(("sorted_sequence", "input"), ("input", "values")))
def searchsorted(
    ordered: Tensor,
    values: TensorLike,
    right: bool = False,
    *,
    side: str | None = None,
    out_int32: bool = False,
    sorter: Tensor | None = None,
) -> Tensor:
    """Find where values belong in this sorted tensor (its last axis).

    With `sorter`, what `argsort` gives, this tensor need not be sorted.

    >>> Tensor([1.0, 3.0, 5.0]).searchsorted(Tensor([0.0, 3.0, 9.0])).tolist()
    [0, 1, 3]
    """
    check_known("searchsorted", "side", side, (None, "left", "right"))
    if right and side == "left":
        raise ValueRangeError("searchsorted", "right=True and side='left'", "pass one of them")
    is_right = right or side == "right"
    if sorter is not None:
        ordered = apply(selecting.read_along, "searchsorted", ordered, -1, sorter)
    found: Tensor = apply(sorting.search, ordered, as_tensor(values, ordered), is_right)
    return found.int() if out_int32 else found


@composed(method=False)
@together
def isin(
    elements: TensorLike,
    test_elements: TensorLike,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Tell which elements are among others, by bisection; NaN never is.

    >>> picograd.isin(picograd.Tensor([1, 2, 3]), picograd.Tensor([2, 5])).tolist()
    [False, True, False]
    """
    like: Any = elements if is_tensor(elements) else test_elements
    need_tensor("isin", like)
    x = elements if is_tensor(elements) else from_host(np.asarray(elements), like)
    others = (
        test_elements if is_tensor(test_elements) else from_host(np.asarray(test_elements), like)
    )
    if not others.numel() or not x.numel():
        return (x != x).logical_or(invert) if not others.numel() else x == x
    dtype = promoted("isin", x.reshape(-1)[:1], others.reshape(-1)[:1])[0].dtype
    dtype = dtype if dtype is not bool_ else others.int().dtype
    x, ordered = x.cast(dtype), others.reshape(others.numel()).cast(dtype).sort().values
    found: Tensor = apply(sorting.is_listed, x, ordered)
    return found.logical_not() if invert else found


@composed()
@pending.locked
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Keep the first of each run of equal elements, or of equal slices along an axis.

    How many there are is computed now. The inverse names the run of each element.

    >>> picograd.unique_consecutive(picograd.Tensor([1, 1, 2, 1])).tolist()
    [1, 2, 1]
    """
    axis, nodes = 0 if dim is None else dim, None
    if dim is None and not input.requires_grad:  # no view, which would live on beside the plan
        row = read(input).reshape((input.numel(),))
        nodes = equal_runs.consecutive_elements(row, return_inverse, return_counts)
    is_found = nodes is not None
    x = input if is_found or dim is not None else input.reshape(input.numel())
    if nodes is None:
        nodes = equal_runs.consecutive_slices(read(x), axis, return_inverse, return_counts)
    places, *others = (wrap(node, False) for node in nodes)
    if return_inverse and dim is None:
        others[0] = others[0].reshape(*input.shape)
    found = places if is_found else apply(indexing.index_select, x, axis, places)
    return (found, *others) if others else found


# histograms


@composed(method=False)
@together
def bucketize(
    input: TensorLike, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Find the bucket of each element between sorted boundaries, by bisection.

    >>> picograd.bucketize(picograd.Tensor([1, 4]), picograd.Tensor([2, 4, 6])).tolist()
    [0, 1]
    """
    if boundaries.ndim != 1:
        text = f"boundaries {tuple(boundaries.shape)} have {boundaries.ndim} axes"
        raise ShapeError("bucketize", text, "pass a vector")
    x = input if is_tensor(input) else from_host(np.asarray(input), boundaries)
    first, second = promoted("bucketize", boundaries[:1].reshape(-1), x.reshape(-1)[:1])
    dtype = first.dtype if first.dtype is second.dtype else boundaries.dtype
    found = boundaries.cast(dtype).searchsorted(x.cast(dtype), right)
    return found.int() if out_int32 else found


@composed()
def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """Count elements between edges: `bins` equal cells, or those between given edges.

    `range` is (low, high), the extremes unless given; `weight` counts an element as that much;
    `density` makes the integral 1. The last cell includes its upper edge.

    >>> [x.tolist() for x in picograd.histogram(picograd.Tensor([0.0, 1.0, 2.0]), 2)]
    [[1.0, 2.0], [0.0, 1.0, 2.0]]
    """
    op = "histogram"
    if not input.dtype.is_float:
        raise DTypeError(op, f"needs a float dtype, got {input.dtype.name}", "call .float() first")
    flat = input.detach().reshape(input.numel())
    edges: Tensor = bins if is_tensor(bins) else equal_edges(op, flat, bins, range)
    return Histogram(counted([flat], [edges], [not is_tensor(bins)], weight, density), edges)


@composed(method=False)
def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> HistogramDD:
    """Count points (..., D) between edges of D axes: `bins` cells of each, or given edges.

    `range` is low and high of each axis in turn; the rest is as for `histogram`.

    >>> points = picograd.Tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0]])
    >>> picograd.histogramdd(points, 2).hist.tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """
    op = "histogramdd"
    if not input.dtype.is_float:
        raise DTypeError(op, f"needs a float dtype, got {input.dtype.name}", "call .float() first")
    axes = input.shape[-1] if input.ndim > 1 else 0
    each_bins = [bins] * axes if isinstance(bins, int) else bins
    if not axes or len(each_bins) != axes or len(range or ()) not in (0, 2 * axes):
        problem = f"input {tuple(input.shape)} for bins={bins!r} and range={range!r}"
        fix = "pass points (N, D), bins for D axes and 2 D limits"
        raise ShapeError(op, problem, fix)
    columns = input.detach().reshape(-1, axes).unbind(1)
    limits = list(zip(range[::2], range[1::2], strict=True)) if range else [None] * axes
    edges = tuple(
        own if is_tensor(own) else equal_edges(op, column, own, limit)
        for column, own, limit in zip(columns, each_bins, limits, strict=True)
    )
    are_even = [not is_tensor(own) for own in each_bins]
    return HistogramDD(counted(columns, edges, are_even, weight, density), edges)


def counted(
    columns: Any, edges: Any, are_even: list[bool], weight: Tensor | None, density: bool
) -> Tensor:
    """Count points, a vector for each of their coordinates, in cells between edges."""
    place: Any = 0
    inside: Any = True
    sizes = [ends.numel() - 1 for ends in edges]
    for column, ends, is_even, size in zip(columns, edges, are_even, sizes, strict=True):
        is_in = (ends[:1] <= column).logical_and(column <= ends[-1:])
        place = cell_of(column, ends, is_in, is_even) + place * size
        inside = is_in.logical_and(inside)
    total = math.prod(sizes)
    place = inside.where(place, total).long()  # one more, which is left out
    like: Any = {"dtype": columns[0].dtype, "device": columns[0].device}
    counts = Recorded.kind.zeros(total + 1, **like)
    if weight is None:
        values = Recorded.kind.ones(place.shape, **like)
    else:
        values = weight.detach().reshape(place.shape).to(columns[0].dtype)
    if place.numel():
        counts = counts.scatter_add(0, place, values)
    counts = counts[:total].reshape(*sizes)
    if density:
        counts = counts / counts.sum()
        for axis, ends in enumerate(edges):
            counts = counts / ends.diff().reshape(-1, *[1] * (len(edges) - axis - 1))
    return counts


def cell_of(column: Any, ends: Any, is_in: Any, is_even: bool) -> Any:
    """Find the cell of each number between edges: any one for what is outside."""
    count = ends.numel() - 1
    if not is_even:
        return (ends.searchsorted(column.contiguous(), True) - 1).clamp(0, count - 1)
    place = is_in.where((column - ends[:1]) / (ends[-1:] - ends[:1]) * count, 0).int()
    place = place.clamp(0, count - 1)  # as nearly as it is rounded
    place = place - (column < ends[place]).int() + (ends[place + 1] <= column).int()
    return place.clamp(0, count - 1)


def equal_edges(op: str, flat: Tensor, bins: Any, limits: Any) -> Tensor:
    """Space the edges of equal cells between limits, or between the extremes."""
    if not isinstance(bins, int) or bins < 1:
        raise ValueRangeError(op, f"bins={bins!r}", "use a number >= 1, or a tensor of edges")
    if limits is None and not flat.numel():
        limits = (0.0, 1.0)
    if limits is None:
        sorting.check_finite(op, flat._node)
        wide = flat.double()  # edges near 0 keep their digits
        low, high = wide.amin(), wide.amax()
        is_flat = low == high
        low, high = is_flat.where(low - 0.5, low), is_flat.where(high + 0.5, high)
        share = along(np.arange(bins + 1) / bins, 0, wide)
        return (share == 1).where(high, low + (high - low) * share).to(flat.dtype)
    first, last = (float(each) for each in limits)
    if not -math.inf < first <= last < math.inf:
        raise ValueRangeError(op, f"range={limits}", "use finite low <= high")
    first, last = (first - 0.5, last + 0.5) if first == last else (first, last)
    return along(np.linspace(first, last, bins + 1), 0, flat)


# segments


SEGMENTS = {  # of `segment_reduce`: how elements are combined, and what an empty segment gives
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "prod": ("prod", 1.0),
    "max": ("max", -math.inf),
    "min": ("min", math.inf),
}


@composed(method=False)
def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None,
    offsets: Tensor | None = None, axis: int = 0, unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:  # fmt: skip
    """Reduce runs of an axis, (..., S) long each or between (..., S + 1) offsets, to S elements.

    `reduce`: sum, mean, prod, max, min; `initial` takes part in each. The axis is the last one of
    the lengths. Without elements and `initial` a mean is NaN. Raises ShapeError for lengths that
    do not add up to the axis (`unsafe` does not look), ValueRangeError for negative ones,
    DTypeError unless the data are floats.

    >>> x, lengths = picograd.Tensor([1.0, 2.0, 3.0]), picograd.Tensor([1, 2])
    >>> picograd.segment_reduce(x, "sum", lengths=lengths).tolist()
    [1.0, 5.0]
    """
    op = "segment_reduce"
    check_known(op, "reduce", reduce, SEGMENTS)
    if lengths is None and offsets is not None:
        lengths = offsets.diff()
    if lengths is None or indices is not None:
        raise ValueRangeError(op, "no lengths of segments", "pass lengths or offsets")
    if not data.dtype.is_float:
        raise DTypeError(op, f"the data are {data.dtype.name}", "call .float() first")
    at = lengths.ndim - 1
    if as_axis(axis, data.ndim, op) != at or lengths.shape[:-1] != data.shape[:at]:
        problem = f"lengths {lengths.shape}, data {data.shape}, axis {axis}"
        raise ShapeError(op, problem, "give lengths along the axis for each row before it")
    ends, size = lengths.long().cumsum(-1), data.shape[at]
    if not unsafe and (lengths < 0).any():
        raise ValueRangeError(op, "a length is negative", "pass lengths of 0 or more")
    if not unsafe and (lengths.sum(-1) != size).any():
        raise ShapeError(op, "lengths do not add up", f"let each row have the sum {size}")
    return reduced(data, ends, lengths.to(data.dtype), reduce, initial)


def reduced(data: Any, ends: Any, lengths: Any, reduce: str, initial: float | None) -> Any:
    """Reduce the elements of each segment of an axis; what lies beyond the last is left out."""
    kind, start = SEGMENTS[reduce]
    is_extreme = math.isinf(start)
    start = start if initial is None or is_extreme else initial
    found = apply(reduced_segments, data, ends, kind, start)
    if is_extreme and initial is not None:  # equal ones: the gradient is the elements' alone
        return (found < initial if start < 0 else found > initial).where(initial, found)
    if reduce != "mean":
        return found
    wide = lengths.reshape(*lengths.shape, *[1] * (data.ndim - ends.ndim))
    return found / (wide if initial is None else wide.clamp(min=1))


# integrals and derivatives


@composed("trapezoid", "trapz", method=False)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """Integrate along an axis by the trapezoid rule, at points x or at distances dx.

    >>> picograd.trapezoid(picograd.Tensor([1.0, 2.0, 3.0])).item()
    4.0
    """
    op = "trapezoid"
    axis = integration_axis(op, y, x, dim)
    size = y.shape[axis]
    if x is not None:
        sides = y.narrow(axis, min(1, size), max(size - 1, 0)) + y.narrow(axis, 0, max(size - 1, 0))
        return (sides * distances(x, y.ndim, axis)).sum(axis) / 2
    ends: Any = (y.select(axis, 0) + y.select(axis, size - 1)) * 0.5 if size else 0.0
    return (y.sum(axis) - ends) * dx


@composed(method=False)
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1
) -> Tensor:
    """Integrate up to each point along an axis by the trapezoid rule: one element less.

    >>> picograd.cumulative_trapezoid(picograd.Tensor([1.0, 2.0, 3.0])).tolist()
    [1.5, 4.0]
    """
    op = "cumulative_trapezoid"
    axis = integration_axis(op, y, x, dim)
    count = max(y.shape[axis] - 1, 0)
    sides = y.narrow(axis, min(1, y.shape[axis]), count) + y.narrow(axis, 0, count)
    if x is None:
        return (sides * (dx / 2)).cumsum(axis)
    return (sides * distances(x, y.ndim, axis)).cumsum(axis) / 2


def integration_axis(op: str, y: Tensor, x: Tensor | None, dim: int) -> int:
    """Check the values and the points of an integral, and find its axis."""
    need_tensor(op, y)
    for each in (y, x):
        if each is not None:
            need_tensor(op, each)
            if each.dtype.kind == "bool":
                raise DTypeError(op, "is not defined for bool", "call .int() first")
    axis = axis_of(op, y, dim, False)
    if not y.ndim:
        text = "a zero-dim tensor has no axis to integrate along"
        raise ShapeError(op, text, "pass a vector")
    if x is not None and x.ndim and x.shape[axis - y.ndim if x.ndim > 1 else 0] != y.shape[axis]:
        text = f"x of shape {tuple(x.shape)} has no place for each of {tuple(y.shape)}"
        raise ShapeError(op, text, "give one x for each y")
    return axis


def distances(x: Tensor, rank: int, axis: int) -> Tensor:
    """Subtract neighbouring points; a vector of points lies along `axis` of `rank` axes."""
    if x.ndim == 1:
        x = x.reshape(lying_along(axis, rank))
    along = axis - rank
    count = max(x.shape[along] - 1, 0)
    return x.narrow(along, min(1, x.shape[along]), count) - x.narrow(along, 0, count)


@composed()
@together
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Subtract neighbours along an axis, n times; `prepend` and `append` are joined on first.

    >>> picograd.diff(picograd.Tensor([1, 4, 9]), append=picograd.Tensor([16])).tolist()
    [3, 5, 7]
    """
    if not input.ndim:
        raise ShapeError("diff", "a zero-dim tensor has no neighbours", "pass a vector")
    if n < 0:
        raise ValueRangeError("diff", f"n={n} is negative", "use 0 or more")
    if n == 0:
        return input
    parts = [each for each in (prepend, input, append) if each is not None]
    x = Recorded.kind.cat(parts, dim) if len(parts) > 1 else input
    axis = as_axis(dim, x.ndim, "diff")
    for _ in range(min(n, x.shape[axis])):
        size = x.shape[axis]
        later, earlier = x.narrow(axis, 1, size - 1), x.narrow(axis, 0, size - 1)
        x = later.logical_xor(earlier) if x.dtype is bool_ else later - earlier
    return x


@composed(method=False)
def gradient(
    input: Tensor,
    *,
    spacing: float | Sequence[Any] | Tensor | None = None,
    dim: Axis = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Estimate derivatives along axes by central differences, one-sided at the ends.

    `spacing` is one distance (1), one per axis, or one tensor of coordinates per axis.

    >>> [x.tolist() for x in picograd.gradient(picograd.Tensor([1.0, 2.0, 4.0]))]
    [[1.0, 1.5, 2.0]]
    """
    op = "gradient"
    listed = range(input.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    axes = [as_axis(each, input.ndim, op) for each in listed]
    is_list = isinstance(spacing, (list, tuple))
    given: Any = 1 if spacing is None else spacing
    if len(set(axes)) != len(axes):
        raise AxisError(op, f"dim={dim} names an axis twice", "name each axis once")
    steps = list(given) if is_list else [given] * len(axes)
    if len(steps) != len(axes) or edge_order not in (1, 2):
        text = f"{len(steps)} spacings for {len(axes)} axes, edge_order={edge_order}"
        raise ValueRangeError(op, text, "give one spacing per axis and edge_order 1 or 2")
    return tuple(slope(as_float(input), a, s, edge_order) for a, s in zip(axes, steps))


def slope(x: Tensor, axis: int, spacing: Any, edge_order: int) -> Tensor:
    """Estimate the derivative along one axis."""
    size = x.shape[axis]
    if size < edge_order + 1:
        text = f"axis {axis} of {tuple(x.shape)} is too short"
        raise ShapeError("gradient", text, f"it needs {edge_order + 1} elements")
    count = size - 2
    distance = None if is_tensor(spacing) else float(spacing)
    if distance is not None:
        spacing = along(np.arange(size) * distance, axis, x)
    else:
        spacing = as_float(spacing).reshape(lying_along(axis, x.ndim))
    step = diff(spacing, dim=axis)  # h[i] = t[i + 1] - t[i]
    rise = diff(x, dim=axis) / step
    first, last = rise.narrow(axis, 0, 1), rise.narrow(axis, size - 2, 1)
    if not count:
        return Recorded.kind.cat([first, last], axis)
    a, b = step.narrow(axis, 0, count), step.narrow(axis, 1, count)
    low, high = rise.narrow(axis, 0, count), rise.narrow(axis, 1, count)
    if distance is None:
        inner = (low * b + high * a) / (a + b)
    else:  # the element between has no part in it, be it NaN
        inner = (x.narrow(axis, 2, count) - x.narrow(axis, 0, count)) / (2 * distance)
    if edge_order == 2:  # the derivative of the parabola through three points
        bend = (high - low) / (a + b)
        first = first - bend.narrow(axis, 0, 1) * a.narrow(axis, 0, 1)
        last = last + bend.narrow(axis, count - 1, 1) * b.narrow(axis, count - 1, 1)
    return Recorded.kind.cat([first, inner, last], axis)


# moments and norms


@composed()
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Compute the covariance of the rows of (variables, observations).

    `fweights` says how often an observation is repeated, `aweights` how much it counts.

    >>> picograd.cov(picograd.Tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    op = "cov"
    if input.ndim > 2:
        raise ShapeError(op, f"{tuple(input.shape)} has more than 2 axes", "pass a matrix")
    if fweights is not None and fweights.dtype.is_differentiable:
        text = f"fweights say how often, but are {fweights.dtype.name}"
        raise DTypeError(op, text, "pass integers, or aweights")
    x = as_float(input).reshape(1, input.numel()) if input.ndim < 2 else as_float(input)
    weights = observation_weights(op, x, fweights, aweights)
    if weights is None:
        centred = x - x.mean(1, True)
        result = centred @ centred.mH / float(max(x.shape[1] - correction, 0))
    else:
        total = weights.sum()
        centred = x - (x * weights).sum(1, True) / total
        spread = total - correction
        if aweights is not None and correction:
            spread = total - correction * (weights * aweights).sum() / total
        weighted = centred * weights
        result = weighted @ centred.mH / spread.clamp(0, None)
    return result if result.numel() != 1 else result.reshape(())


def observation_weights(op: str, x: Tensor, fweights: Any, aweights: Any) -> Any:
    """Multiply the two kinds of weights; None without any."""
    result = None
    for given in (fweights, aweights):
        if given is not None:
            if tuple(given.shape) != (x.shape[1],):
                text = f"weights {tuple(given.shape)} for {x.shape[1]} observations"
                raise ShapeError(op, text, "give one weight per observation")
            error = ValueRangeError(op, "a weight is negative", "use weights of 0 or more")
            report(any_of(read(given).binary("less", 0)), error)
            each = given if given.dtype.is_float else given.cast(x.dtype.real)
            result = each if result is None else result * each
    return result


@composed()
def corrcoef(input: Tensor) -> Tensor:
    """Compute the correlation coefficients of the rows of (variables, observations).

    >>> picograd.corrcoef(picograd.Tensor([[1.0, 2.0], [4.0, 2.0]])).round().tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    both = cov(input)
    if not both.ndim:
        return both / both
    spread = both.diagonal().sqrt()
    rows = spread.unsqueeze(1)
    found = both / rows / spread
    if not found.dtype.is_complex:
        return found.clamp(-1, 1)
    real = found.real.clamp(-1, 1)
    imag = found.imag.clamp(-1, 1)
    return apply(Node.paired, real, imag)  # type: ignore[no-any-return]


@composed(in_place=True)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Shrink the slices along an axis whose p-norm is greater than `maxnorm` to that norm.

    >>> picograd.renorm(picograd.Tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)[1].tolist()
    [0.30000001192092896, 0.4000000059604645]
    """
    op = "renorm"
    if input.ndim < 2 or p <= 0 or maxnorm < 0:
        text = f"input {tuple(input.shape)}, p={p}, maxnorm={maxnorm}"
        raise ValueRangeError(op, text, "pass 2 or more axes, p > 0 and maxnorm >= 0")
    axis = as_axis(dim, input.ndim, op)
    size = input.norm(p, tuple(n for n in range(input.ndim) if n != axis), True)
    return input * (size > maxnorm).where(maxnorm / (size + 1e-7), 1.0)


@composed(method=False)
@within("functional")
@listed
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Measure the distances between the rows of a matrix: (N, M) -> (N (N - 1) / 2,).

    >>> picograd.nn.functional.pdist(picograd.Tensor([[0.0], [1.0], [3.0]])).tolist()
    [1.0, 3.0, 2.0]
    """
    if input.ndim != 2:
        raise ShapeError("pdist", f"{tuple(input.shape)} is not a matrix", "pass (N, M)")
    rows, columns = np.triu_indices(input.shape[0], 1)
    if not rows.size:
        return input.sum(1)[:0]
    gap = input[from_host(rows, input)] - input[from_host(columns, input)]
    return gap.norm(p, 1)

"""Methods of `Tensor` by kind. Running sums, sorting, and what is made of them.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from typing import Any, NamedTuple, overload

from picograd.errors import ValueRangeError
from picograd.tensor.core.annotations import DTypeLike, Tensor, TensorLike
from picograd.tensor.core.operands import UNSET, either, optional_dtype
from picograd.tensor.core.recording import Recorded, Same, apply, as_tensor, read, wrap
from picograd.tensor.indexing import selecting
from picograd.tensor.reductions import cumulative, equal_runs, sorting


class Ordered(NamedTuple):
    """This class holds values, and the indices along the axis they came from."""

    values: Tensor
    indices: Tensor


class OrderMethods(Recorded):
    """This class holds methods of `Tensor`. Running sums, sorting, and what is made of them."""

    __slots__ = ()

    # scans

    def cumsum(
        self: Same, axis: int = UNSET, dtype: DTypeLike | None = None, *, dim: int = UNSET
    ) -> Same:
        """Compute running sums along an axis; bool and integers give int64.

        >>> Tensor([1.0, 2.0, 3.0]).cumsum(0).tolist()
        [1.0, 3.0, 6.0]
        """
        chosen = either("cumsum", "axis", axis, "dim", dim, 0)
        wanted = optional_dtype(dtype)
        return apply(cumulative.cumulative, "cumsum", "sum", self, chosen, wanted)

    def cumprod(
        self: Same, axis: int = UNSET, dtype: DTypeLike | None = None, *, dim: int = UNSET
    ) -> Same:
        """Compute running products along an axis; bool and integers give int64.

        >>> Tensor([1.0, 2.0, 3.0]).cumprod(0).tolist()
        [1.0, 2.0, 6.0]
        """
        chosen = either("cumprod", "axis", axis, "dim", dim, 0)
        wanted = optional_dtype(dtype)
        return apply(cumulative.cumulative, "cumprod", "prod", self, chosen, wanted)

    def cummax(self: Same, axis: int = UNSET, *, dim: int = UNSET) -> Ordered:
        """Compute running maxima and where each came from: the last of equal ones.

        >>> values, indices = Tensor([1.0, 3.0, 2.0]).cummax(0)
        >>> values.tolist(), indices.tolist()
        ([1.0, 3.0, 3.0], [0, 1, 1])
        """
        chosen = either("cummax", "axis", axis, "dim", dim, 0)
        return running("cummax", "max", self, chosen)

    def cummin(self: Same, axis: int = UNSET, *, dim: int = UNSET) -> Ordered:
        """Compute running minima and where each came from: the last of equal ones.

        >>> values, indices = Tensor([2.0, 3.0, 1.0]).cummin(0)
        >>> values.tolist(), indices.tolist()
        ([2.0, 2.0, 1.0], [0, 0, 2])
        """
        chosen = either("cummin", "axis", axis, "dim", dim, 0)
        return running("cummin", "min", self, chosen)

    def logcumsumexp(self: Same, axis: int = UNSET, *, dim: int = UNSET) -> Same:
        """Compute log(cumsum(exp(self))) along an axis, without overflow.

        >>> Tensor([0.0, 0.0, 0.0]).logcumsumexp(0).tolist()
        [0.0, 0.6931..., 1.0986...]
        """
        chosen = either("logcumsumexp", "axis", axis, "dim", dim, 0)
        return apply(cumulative.log_cumulative, self, chosen)

    # sorting

    def sort(
        self: Same, dim: int = UNSET, descending: bool = False, stable: bool = True, *,
        axis: int = UNSET,
    ) -> Ordered:  # fmt: skip
        """Sort along an axis: values and indices. Always stable; NaN is the greatest.

        >>> values, indices = Tensor([3.0, 1.0, 2.0]).sort()
        >>> values.tolist(), indices.tolist()
        ([1.0, 2.0, 3.0], [1, 2, 0])
        """
        chosen = either("sort", "axis", axis, "dim", dim, -1)
        indices = apply(sorting.order, "sort", self, chosen, descending)
        return Ordered(apply(sorting.picked, self, indices, chosen), indices)

    def argsort(
        self: Same, dim: int = UNSET, descending: bool = False, stable: bool = True, *,
        axis: int = UNSET,
    ) -> Same:  # fmt: skip
        """Compute the indices that sort an axis.

        >>> Tensor([3.0, 1.0, 2.0]).argsort().tolist()
        [1, 2, 0]
        """
        chosen = either("argsort", "axis", axis, "dim", dim, -1)
        return apply(sorting.order, "argsort", self, chosen, descending)

    def msort(self: Same) -> Same:
        """Sort along the first axis.

        >>> Tensor([3.0, 1.0, 2.0]).msort().tolist()
        [1.0, 2.0, 3.0]
        """
        indices = apply(sorting.order, "msort", self, 0)
        return apply(sorting.picked, self, indices, 0)

    def topk(
        self: Same, k: int, dim: int = UNSET, largest: bool = True, sorted: bool = True, *,
        axis: int = UNSET,
    ) -> Ordered:  # fmt: skip
        """Find the k largest (or smallest) elements along an axis, best first.

        NaN is the greatest, and of equal elements the first comes first.

        >>> values, indices = Tensor([3.0, 1.0, 2.0]).topk(2)
        >>> values.tolist(), indices.tolist()
        ([3.0, 2.0], [0, 2])
        """
        chosen = either("topk", "axis", axis, "dim", dim, -1)
        indices = apply(sorting.top_indices, self, k, chosen, largest)
        return Ordered(apply(sorting.picked, self, indices, chosen), indices)

    def kthvalue(
        self: Same, k: int, dim: int = UNSET, keepdim: bool = False, *, axis: int = UNSET
    ) -> Ordered:
        """Find the k-th smallest element along an axis, counted from 1.

        >>> value, index = Tensor([3.0, 1.0, 2.0]).kthvalue(2)
        >>> value.item(), index.item()
        (2.0, 2)
        """
        chosen = either("kthvalue", "axis", axis, "dim", dim, -1)
        return chosen_one(self, apply(sorting.kth_index, self, k, chosen), chosen, keepdim)

    @overload
    def median(self: Same, dim: None = None, keepdim: bool = ...) -> Same: ...

    @overload
    def median(self, dim: int, keepdim: bool = ...) -> Ordered: ...

    @overload
    def median(self, *, axis: int, keepdim: bool = ...) -> Ordered: ...

    def median(
        self: Same, dim: int | None = UNSET, keepdim: bool = False, *, axis: int = UNSET
    ) -> Any:
        """Compute the lower median of all elements; along an axis (values, indices).

        >>> Tensor([3.0, 1.0, 2.0]).median().item()
        2.0
        """
        chosen = either("median", "axis", axis, "dim", dim)
        if chosen is None:
            return apply(sorting.median_of_all, self)
        return chosen_one(self, apply(sorting.median_index, self, chosen), chosen, keepdim)

    def quantile(
        self: Same, q: TensorLike, dim: int | None = UNSET, keepdim: bool = False, *,
        interpolation: str = "linear", axis: int | None = UNSET,
    ) -> Same:  # fmt: skip
        """Compute quantiles (fractions 0..1) along an axis, or of all elements.

        >>> Tensor([3.0, 1.0, 2.0]).quantile(0.5).item()
        2.0
        """
        chosen = either("quantile", "axis", axis, "dim", dim)
        given: Any = q
        wanted = given.tolist() if isinstance(q, Recorded) else q
        return apply(sorting.quantile, self, wanted, chosen, keepdim, interpolation)

    def unique(
        self: Same,
        sorted: bool = True,
        return_inverse: bool = False,
        return_counts: bool = False,
        dim: int | None = None,
    ) -> Any:
        """Find the distinct elements, or slices of an axis, sorted; how many is computed now.

        >>> Tensor([2.0, 1.0, 2.0]).unique().tolist()
        [1.0, 2.0]
        """
        x: Any = self
        nodes = sorting.unique(read(x)) if dim is None else equal_runs.unique_slices(read(x), dim)
        found, inverse, counts = (wrap(each, False) for each in nodes)
        if dim is not None:  # found are the positions of slices
            found = x.index_select(dim, found)
        wanted = [found, *[inverse] * return_inverse, *[counts] * return_counts]
        return tuple(wanted) if len(wanted) > 1 else wanted[0]

    def searchsorted(
        self: Same,
        values: TensorLike,
        right: bool = False,
        *,
        side: str | None = None,
        out_int32: bool = False,
        sorter: Tensor | None = None,
    ) -> Same:
        """Find where values belong in this sorted tensor (its last axis).

        With `sorter`, what `argsort` gives, this tensor need not be sorted.

        >>> Tensor([1.0, 3.0, 5.0]).searchsorted(Tensor([0.0, 3.0, 9.0])).tolist()
        [0, 1, 3]
        """
        if side not in (None, "left", "right"):
            problem = f"side={side!r} is unknown"
            raise ValueRangeError("searchsorted", problem, 'use "left" or "right"')
        is_right = right or side == "right"
        ordered = self
        if sorter is not None:
            ordered = apply(selecting.gather, "searchsorted", self, -1, sorter)
        found = apply(sorting.search, ordered, as_tensor(values, self), is_right)
        return found.int() if out_int32 else found

    def bincount(self: Same, weights: Tensor | None = None, minlength: int = 0) -> Same:
        """Count how often each number occurs; the length of the result is computed now.

        >>> Tensor([0, 2, 2]).bincount().tolist()
        [1, 0, 2]
        """
        return apply(sorting.bincount, self, weights, minlength)

    def histc(self: Same, bins: int = 100, min: float = 0, max: float = 0) -> Same:
        """Count elements in equal bins between min and max; both 0: between the extremes.

        >>> Tensor([1.0, 2.0, 2.5]).histc(bins=3, min=0, max=3).tolist()
        [0.0, 1.0, 2.0]
        """
        return apply(sorting.histogram, self, bins, min, max)


def running(op: str, monoid: str, x: Any, axis: int) -> Ordered:
    """Compute `cummax` and `cummin`."""
    values = apply(cumulative.running_extreme, op, monoid, x, axis)
    return Ordered(values, apply(cumulative.running_index, op, monoid, x, axis))


def chosen_one(x: Any, indices: Any, axis: int, keepdim: bool) -> Ordered:
    """Gather one element along an axis, whose index is there with size 1."""
    values = apply(sorting.picked, x, indices, axis)
    made = [apply(sorting.without_axis, each, axis, keepdim) for each in (values, indices)]
    return Ordered(*made)

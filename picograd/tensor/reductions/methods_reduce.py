"""Methods of `Tensor` by kind. Reductions: sums, extremes, statistics, norms.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, overload

from picograd.dtype import to_dtype
from picograd.graph import build
from picograd.tensor.core.annotations import Axis, DTypeLike, Scalar, Tensor
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.operands import UNSET, either, optional_dtype
from picograd.tensor.core.recording import Recorded, Same, apply
from picograd.tensor.reductions import reduce


class Extreme(NamedTuple):
    """This class holds the result of `max` and `min` along an axis."""

    values: Tensor
    indices: Tensor


class ReduceMethods(Recorded):
    """This class holds methods of `Tensor`. Reductions: sums, extremes, statistics, norms."""

    __slots__ = ()

    # reductions

    def sum(
        self: Same,
        axis: Axis = UNSET,
        keepdim: bool = UNSET,
        *,
        dtype: DTypeLike | None = None,
        dim: Axis = UNSET,
        keepdims: bool = UNSET,
    ) -> Same:
        """Add up; bool and integers give int64.

        >>> from picograd import Tensor
        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).sum(1).tolist()
        [3.0, 7.0]
        """
        where_, keep = axes("sum", axis, dim, keepdim, keepdims)
        return apply(reduce.total, "sum", self, where_, keep, optional_dtype(dtype))

    def prod(
        self: Same,
        axis: Axis = UNSET,
        keepdim: bool = UNSET,
        *,
        dtype: DTypeLike | None = None,
        dim: Axis = UNSET,
        keepdims: bool = UNSET,
    ) -> Same:
        """Multiply up; bool and integers give int64.

        >>> from picograd import Tensor
        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).prod(1).tolist()
        [2.0, 12.0]
        """
        where_, keep = axes("prod", axis, dim, keepdim, keepdims)
        return apply(reduce.total, "prod", self, where_, keep, optional_dtype(dtype))

    def mean(
        self: Same,
        axis: Axis = UNSET,
        keepdim: bool = UNSET,
        *,
        dtype: DTypeLike | None = None,
        dim: Axis = UNSET,
        keepdims: bool = UNSET,
    ) -> Same:
        """Average.

        >>> from picograd import Tensor
        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).mean(0).tolist()
        [2.0, 3.0]
        """
        x = self if dtype is None else apply(build.cast, self, to_dtype(dtype))
        return apply(reduce.mean, x, *axes("mean", axis, dim, keepdim, keepdims))

    @overload
    def max(
        self: Same,
        axis: Sequence[int] | Same | None = None,
        keepdim: bool = ...,
        *,
        keepdims: bool = ...,
    ) -> Same: ...

    @overload
    def max(self, axis: int, keepdim: bool = ..., *, keepdims: bool = ...) -> Extreme: ...

    @overload
    def max(self, *, dim: int, keepdim: bool = ..., keepdims: bool = ...) -> Extreme: ...

    def max(
        self: Same,
        axis: Axis | Same = UNSET,
        keepdim: bool = UNSET,
        *,
        dim: Axis = UNSET,
        keepdims: bool = UNSET,
    ) -> Any:
        """Find the largest element; along an axis (values, indices); or max(self, tensor).

        >>> from picograd import Tensor
        >>> values, indices = Tensor([[1.0, 2.0], [4.0, 3.0]]).max(1)
        >>> values.tolist(), indices.tolist()
        ([2.0, 4.0], [1, 0])
        """
        return extreme("max", self, axis, dim, keepdim, keepdims)

    @overload
    def min(
        self: Same,
        axis: Sequence[int] | Same | None = None,
        keepdim: bool = ...,
        *,
        keepdims: bool = ...,
    ) -> Same: ...

    @overload
    def min(self, axis: int, keepdim: bool = ..., *, keepdims: bool = ...) -> Extreme: ...

    @overload
    def min(self, *, dim: int, keepdim: bool = ..., keepdims: bool = ...) -> Extreme: ...

    def min(
        self: Same,
        axis: Axis | Same = UNSET,
        keepdim: bool = UNSET,
        *,
        dim: Axis = UNSET,
        keepdims: bool = UNSET,
    ) -> Any:
        """Find the smallest element; along an axis (values, indices); or min(self, tensor).

        >>> from picograd import Tensor
        >>> values, indices = Tensor([[1.0, 2.0], [4.0, 3.0]]).min(1)
        >>> values.tolist(), indices.tolist()
        ([1.0, 3.0], [0, 1])
        """
        return extreme("min", self, axis, dim, keepdim, keepdims)

    def amax(
        self: Same,
        axis: Axis = UNSET,
        keepdim: bool = UNSET,
        *,
        dim: Axis = UNSET,
        keepdims: bool = UNSET,
    ) -> Same:
        """Find the largest elements along axes; ties share the gradient.

        >>> from picograd import Tensor
        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).amax(0).tolist()
        [3.0, 4.0]
        """
        return apply(reduce.extreme, "max", self, *axes("amax", axis, dim, keepdim, keepdims))

    def amin(
        self: Same,
        axis: Axis = UNSET,
        keepdim: bool = UNSET,
        *,
        dim: Axis = UNSET,
        keepdims: bool = UNSET,
    ) -> Same:
        """Find the smallest elements along axes; ties share the gradient.

        >>> from picograd import Tensor
        >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).amin(0).tolist()
        [1.0, 2.0]
        """
        return apply(reduce.extreme, "min", self, *axes("amin", axis, dim, keepdim, keepdims))

    def argmax(
        self: Same,
        axis: int | None = UNSET,
        keepdim: bool = UNSET,
        *,
        dim: int | None = UNSET,
        keepdims: bool = UNSET,
    ) -> Same:
        """Find the first position of the largest element, in int64.

        >>> from picograd import Tensor
        >>> Tensor([[1.0, 2.0], [4.0, 3.0]]).argmax(1).tolist()
        [1, 0]
        """
        chosen = axes("argmax", axis, dim, keepdim, keepdims)
        return apply(reduce.arg_extreme, "argmax", self, *chosen)

    def argmin(
        self: Same,
        axis: int | None = UNSET,
        keepdim: bool = UNSET,
        *,
        dim: int | None = UNSET,
        keepdims: bool = UNSET,
    ) -> Same:
        """Find the first position of the smallest element, in int64.

        >>> from picograd import Tensor
        >>> Tensor([[1.0, 2.0], [4.0, 3.0]]).argmin(1).tolist()
        [0, 1]
        """
        chosen = axes("argmin", axis, dim, keepdim, keepdims)
        return apply(reduce.arg_extreme, "argmin", self, *chosen)

    def var(
        self: Same, axis: Axis = UNSET, keepdim: bool = UNSET, *, correction: Scalar = 1,
        dim: Axis = UNSET, keepdims: bool = UNSET, unbiased: bool | None = None,
    ) -> Same:  # fmt: skip
        """Compute the variance, divided by n - correction; unbiased=False is correction 0.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.0, 3.0]).var().item()
        1.0
        """
        chosen = axes("var", axis, dim, keepdim, keepdims)
        return apply(reduce.variance, "var", self, *chosen, lost(correction, unbiased))

    def std(
        self: Same, axis: Axis = UNSET, keepdim: bool = UNSET, *, correction: Scalar = 1,
        dim: Axis = UNSET, keepdims: bool = UNSET, unbiased: bool | None = None,
    ) -> Same:  # fmt: skip
        """Compute the standard deviation.

        >>> from picograd import Tensor
        >>> Tensor([1.0, 2.0, 3.0]).std().item()
        1.0
        """
        chosen = axes("std", axis, dim, keepdim, keepdims)
        return apply(reduce.deviation, self, *chosen, lost(correction, unbiased))

    def any(
        self: Same,
        axis: Axis = UNSET,
        keepdim: bool = UNSET,
        *,
        dim: Axis = UNSET,
        keepdims: bool = UNSET,
    ) -> Same:
        """Tell whether any element is non-zero.

        >>> from picograd import Tensor
        >>> Tensor([[True, False], [False, False]]).any(1).tolist()
        [True, False]
        """
        chosen = axes("any", axis, dim, keepdim, keepdims)
        return apply(reduce.truth_test, "any", "any", self, *chosen)

    def all(
        self: Same,
        axis: Axis = UNSET,
        keepdim: bool = UNSET,
        *,
        dim: Axis = UNSET,
        keepdims: bool = UNSET,
    ) -> Same:
        """Tell whether all elements are non-zero.

        >>> from picograd import Tensor
        >>> Tensor([[True, True], [True, False]]).all(1).tolist()
        [True, False]
        """
        chosen = axes("all", axis, dim, keepdim, keepdims)
        return apply(reduce.truth_test, "all", "all", self, *chosen)

    def logsumexp(
        self: Same,
        axis: Axis = UNSET,
        keepdim: bool = UNSET,
        *,
        dim: Axis = UNSET,
        keepdims: bool = UNSET,
    ) -> Same:
        """Compute log(sum(exp(x))) without overflow.

        >>> from picograd import Tensor
        >>> Tensor([[0.0, 0.0], [1.0, 1.0]]).logsumexp(1).tolist()
        [0.6931..., 1.6931...]
        """
        return apply(reduce.logsumexp, self, *axes("logsumexp", axis, dim, keepdim, keepdims))

    def softmax(
        self: Same, axis: Axis = UNSET, dtype: DTypeLike | None = None, *, dim: Axis = UNSET
    ) -> Same:
        """Normalise exp(x) to sum 1 along an axis (the last, unless given).

        >>> from picograd import Tensor
        >>> Tensor([1.0, 1.0, 1.0, 1.0]).softmax(0).tolist()
        [0.25, 0.25, 0.25, 0.25]
        """
        chosen = either("softmax", "axis", axis, "dim", dim, -1)
        return apply(reduce.softmax, "softmax", self, chosen, optional_dtype(dtype))

    def log_softmax(
        self: Same, axis: Axis = UNSET, dtype: DTypeLike | None = None, *, dim: Axis = UNSET
    ) -> Same:
        """Compute log(softmax(x)) along an axis (the last, unless given).

        >>> from picograd import Tensor
        >>> Tensor([1.0, 1.0, 1.0]).log_softmax(0).tolist()
        [-1.0986..., -1.0986..., -1.0986...]
        """
        chosen = either("log_softmax", "axis", axis, "dim", dim, -1)
        return apply(reduce.softmax, "log_softmax", self, chosen, optional_dtype(dtype))

    def norm(
        self: Same, p: Scalar | str = 2, axis: Axis = UNSET, keepdim: bool = UNSET, *,
        dim: Axis = UNSET, keepdims: bool = UNSET,
    ) -> Same:  # fmt: skip
        """Compute the vector norm of order p.

        >>> from picograd import Tensor
        >>> Tensor([3.0, 4.0]).norm().item()
        5.0
        """
        return apply(reduce.norm, self, p, *axes("norm", axis, dim, keepdim, keepdims))


def lost(correction: Scalar, unbiased: bool | None) -> Scalar:
    """Read the older spelling of a correction."""
    return correction if unbiased is None else int(unbiased)


def axes(op: str, axis: Axis, dim: Axis, keepdim: bool, keepdims: bool) -> tuple[Any, bool]:
    """Read the two spellings of a reduction's axes and of keeping them."""
    chosen = either(op, "axis", axis, "dim", dim)
    return chosen, bool(either(op, "keepdim", keepdim, "keepdims", keepdims, False))


def extreme(op: str, x: Any, axis: Any, dim: Axis, keepdim: bool, keepdims: bool) -> Any:
    """Compute `max` and `min` in their three forms."""
    if isinstance(axis, Recorded):
        return x.maximum(axis) if op == "max" else x.minimum(axis)
    chosen, keep = axes(op, axis, dim, keepdim, keepdims)
    if not isinstance(chosen, int):
        if chosen is None:
            return apply(reduce.extreme_of_all, op, x, keep)
        return apply(reduce.extreme, op, x, chosen, keep)
    indices = apply(reduce.arg_extreme, op, x, chosen, keep)
    if not (x._tracks and MODE.enabled):
        return Extreme(apply(reduce.extreme, op, x, chosen, keep), indices)
    kept = indices if keep else apply(reduce.arg_extreme, op, x, chosen, True)
    return Extreme(apply(reduce.picked, x, kept, chosen, keep), indices)

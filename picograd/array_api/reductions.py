"""Functions of the array API that combine elements: sums, extremes, statistics, products."""

from typing import Any

from picograd.array_api.elementwise import together
from picograd.dtype import DType, int64, to_dtype, uint64
from picograd.tensor.core.annotations import DTypeLike, Scalar
from picograd.tensor.tensor import Tensor

__all__ = [
    "all", "any", "cumulative_prod", "cumulative_sum", "diff", "matmul", "matrix_transpose", "max",
    "mean", "min", "prod", "std", "sum", "tensordot", "var", "vecdot",
]  # fmt: skip

Axes = int | tuple[int, ...] | None


def reduced(reduction: Any, x: Tensor, axis: Axes, keepdims: bool, **options: Scalar) -> Tensor:
    """Reduce over axes; over none, which are all in PyTorch, means over one of one element."""
    if axis == ():
        x, axis, keepdims = x.unsqueeze(-1), -1, False
    return reduction(x, axis, keepdim=keepdims, **options)


def summing_dtype(x: Tensor, dtype: DTypeLike | None) -> DType:
    """Choose the dtype of a sum: int64 or uint64 for whole numbers unless told otherwise."""
    if dtype is not None:
        return to_dtype(dtype)
    if x.dtype.kind == "uint":
        return uint64
    return int64 if x.dtype.kind in ("bool", "int") else x.dtype


def sum(
    x: Tensor, /, *, axis: Axes = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """Add elements."""
    wide = x.cast(summing_dtype(x, dtype))
    return wide if axis == () else wide.sum(axis, keepdim=keepdims, dtype=wide.dtype)


def prod(
    x: Tensor, /, *, axis: Axes = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """Multiply elements."""
    result = x.cast(summing_dtype(x, dtype))
    every = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    for each in sorted({each % x.ndim for each in every}, reverse=True):
        result = result.prod(each, keepdim=keepdims, dtype=result.dtype)
    return result


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Find the largest element."""
    return reduced(Tensor.amax, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Find the smallest element."""
    return reduced(Tensor.amin, x, axis, keepdims)


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Compute the mean."""
    return reduced(Tensor.mean, x, axis, keepdims)


def var(
    x: Tensor, /, *, axis: Axes = None, correction: Scalar = 0.0, keepdims: bool = False
) -> Tensor:
    """Compute the variance."""
    return reduced(Tensor.var, x, axis, keepdims, correction=correction)


def std(
    x: Tensor, /, *, axis: Axes = None, correction: Scalar = 0.0, keepdims: bool = False
) -> Tensor:
    """Compute the standard deviation."""
    return reduced(Tensor.std, x, axis, keepdims, correction=correction)


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Tell whether all elements are true."""
    return x.cast("bool") if axis == () else x.all(axis, keepdim=keepdims)


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Tell whether an element is true."""
    return x.cast("bool") if axis == () else x.any(axis, keepdim=keepdims)


def cumulative(x: Tensor, compute: Any, first: int, axis: int | None, is_led: bool) -> Tensor:
    """Combine the elements up to each along an axis, after the first value if that leads."""
    at = 0 if axis is None else axis % x.ndim
    result: Tensor = compute(x, at, x.dtype)
    if is_led:
        shape = [*x.shape]
        shape[at] = 1
        result = Tensor.cat([Tensor.full(shape, first, x.dtype, x.device), result], dim=at)
    return result


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Add the elements up to each along an axis."""
    return cumulative(x.cast(summing_dtype(x, dtype)), Tensor.cumsum, 0, axis, include_initial)


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Multiply the elements up to each along an axis."""
    return cumulative(x.cast(summing_dtype(x, dtype)), Tensor.cumprod, 1, axis, include_initial)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Subtract each element from the next along an axis, n times."""
    return x.diff(n, axis, prepend, append)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Multiply matrices."""
    first, second = together(x1, x2)
    return first @ second  # type: ignore[no-any-return]


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Swap the last two axes."""
    return x.mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """Multiply and sum over axes of both."""
    first, second = together(x1, x2)
    return first.tensordot(second, axes)  # type: ignore[no-any-return]


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sum products along an axis of both; the first one is conjugated."""
    first, second = together(x1, x2)
    rows, columns = first.movedim(axis, -1).conj(), second.movedim(axis, -1)
    return (rows.unsqueeze(-2) @ columns.unsqueeze(-1))[..., 0, 0]  # type: ignore[no-any-return]

"""Written by docs/stubs.py: the functions of picograd."""

from collections.abc import Sequence
from typing import Any, overload

from picograd.tensor.core.annotations import Axis, DTypeLike, Scalar, Tensor
from picograd.tensor.reductions.reduce import Extreme, Extremes

__all__ = [
    "all",
    "amax",
    "amin",
    "aminmax",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "log_softmax",
    "logsumexp",
    "max",
    "mean",
    "min",
    "nanmean",
    "nansum",
    "norm",
    "prod",
    "softmax",
    "std",
    "std_mean",
    "sum",
    "var",
    "var_mean",
]

def all(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def amax(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def amin(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def aminmax(
    input: Tensor,
    *,
    dim: int | None = None,
    keepdim: bool = False,
    axis: int | None = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Extremes: ...
def any(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def argmax(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def argmin(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def count_nonzero(
    input: Tensor, dim: Axis = None, *, axis: Axis = ..., out: Any = None
) -> Tensor: ...
def log_softmax(
    input: Tensor,
    dim: int = -1,
    dtype: DTypeLike | None = None,
    *,
    axis: int = ...,
    out: Any = None,
) -> Tensor: ...
def logsumexp(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
@overload
def max(
    input: Tensor, dim: int, keepdim: bool = False, *, keepdims: bool = ..., out: Any = None
) -> Extreme: ...
@overload
def max(input: Tensor, *, axis: int, keepdim: bool = False, out: Any = None) -> Extreme: ...
@overload
def max(
    input: Tensor, *, other: int, keepdim: bool = False, keepdims: bool = ..., out: Any = None
) -> Extreme: ...
@overload
def max(
    input: Tensor,
    dim: Sequence[int] | Tensor | None = None,
    keepdim: bool = False,
    *,
    axis: Sequence[int] | Tensor | None = ...,
    keepdims: bool = ...,
    other: Sequence[int] | Tensor | None = ...,
    out: Any = None,
) -> Tensor: ...
def mean(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
@overload
def min(
    input: Tensor, dim: int, keepdim: bool = False, *, keepdims: bool = ..., out: Any = None
) -> Extreme: ...
@overload
def min(input: Tensor, *, axis: int, keepdim: bool = False, out: Any = None) -> Extreme: ...
@overload
def min(
    input: Tensor, *, other: int, keepdim: bool = False, keepdims: bool = ..., out: Any = None
) -> Extreme: ...
@overload
def min(
    input: Tensor,
    dim: Sequence[int] | Tensor | None = None,
    keepdim: bool = False,
    *,
    axis: Sequence[int] | Tensor | None = ...,
    keepdims: bool = ...,
    other: Sequence[int] | Tensor | None = ...,
    out: Any = None,
) -> Tensor: ...
def nanmean(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def nansum(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def norm(
    input: Tensor,
    p: Scalar | str = 2,
    dim: Axis = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    *,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def prod(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def softmax(
    input: Tensor,
    dim: int = -1,
    dtype: DTypeLike | None = None,
    *,
    axis: int = ...,
    out: Any = None,
) -> Tensor: ...
def std(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    correction: Scalar = 1,
    unbiased: bool | None = None,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def std_mean(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    correction: Scalar = 1,
    unbiased: bool | None = None,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> tuple[Tensor, Tensor]: ...
def sum(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def var(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    correction: Scalar = 1,
    unbiased: bool | None = None,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def var_mean(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    correction: Scalar = 1,
    unbiased: bool | None = None,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> tuple[Tensor, Tensor]: ...

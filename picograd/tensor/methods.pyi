"""Written by docs/stubs.py: the methods of Tensor."""

from collections.abc import Sequence
from typing import overload

from picograd.tensor.core.annotations import Axis, DTypeLike, Scalar, Tensor
from picograd.tensor.core.recording import Recorded
from picograd.tensor.reductions.reduce import Extreme, Extremes

class Methods(Recorded):
    def all(
        self, dim: Axis = None, keepdim: bool = False, *, axis: Axis = ..., keepdims: bool = ...
    ) -> Tensor: ...
    def amax(
        self, dim: Axis = None, keepdim: bool = False, *, axis: Axis = ..., keepdims: bool = ...
    ) -> Tensor: ...
    def amin(
        self, dim: Axis = None, keepdim: bool = False, *, axis: Axis = ..., keepdims: bool = ...
    ) -> Tensor: ...
    def aminmax(
        self,
        *,
        dim: int | None = None,
        keepdim: bool = False,
        axis: int | None = ...,
        keepdims: bool = ...,
    ) -> Extremes: ...
    def any(
        self, dim: Axis = None, keepdim: bool = False, *, axis: Axis = ..., keepdims: bool = ...
    ) -> Tensor: ...
    def argmax(
        self,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        axis: int | None = ...,
        keepdims: bool = ...,
    ) -> Tensor: ...
    def argmin(
        self,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        axis: int | None = ...,
        keepdims: bool = ...,
    ) -> Tensor: ...
    def count_nonzero(self, dim: Axis = None, *, axis: Axis = ...) -> Tensor: ...
    def log_softmax(
        self, dim: int = -1, dtype: DTypeLike | None = None, *, axis: int = ...
    ) -> Tensor: ...
    def logsumexp(
        self, dim: Axis = None, keepdim: bool = False, *, axis: Axis = ..., keepdims: bool = ...
    ) -> Tensor: ...
    @overload
    def max(self, dim: int, keepdim: bool = False, *, keepdims: bool = ...) -> Extreme: ...
    @overload
    def max(self, *, axis: int, keepdim: bool = False) -> Extreme: ...
    @overload
    def max(self, *, other: int, keepdim: bool = False, keepdims: bool = ...) -> Extreme: ...
    @overload
    def max(
        self,
        dim: Sequence[int] | Tensor | None = None,
        keepdim: bool = False,
        *,
        axis: Sequence[int] | Tensor | None = ...,
        keepdims: bool = ...,
        other: Sequence[int] | Tensor | None = ...,
    ) -> Tensor: ...
    def mean(
        self,
        dim: Axis = None,
        keepdim: bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Axis = ...,
        keepdims: bool = ...,
    ) -> Tensor: ...
    @overload
    def min(self, dim: int, keepdim: bool = False, *, keepdims: bool = ...) -> Extreme: ...
    @overload
    def min(self, *, axis: int, keepdim: bool = False) -> Extreme: ...
    @overload
    def min(self, *, other: int, keepdim: bool = False, keepdims: bool = ...) -> Extreme: ...
    @overload
    def min(
        self,
        dim: Sequence[int] | Tensor | None = None,
        keepdim: bool = False,
        *,
        axis: Sequence[int] | Tensor | None = ...,
        keepdims: bool = ...,
        other: Sequence[int] | Tensor | None = ...,
    ) -> Tensor: ...
    def nanmean(
        self,
        dim: Axis = None,
        keepdim: bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Axis = ...,
        keepdims: bool = ...,
    ) -> Tensor: ...
    def nansum(
        self,
        dim: Axis = None,
        keepdim: bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Axis = ...,
        keepdims: bool = ...,
    ) -> Tensor: ...
    def norm(
        self,
        p: Scalar | str = 2,
        dim: Axis = None,
        keepdim: bool = False,
        dtype: DTypeLike | None = None,
        *,
        axis: Axis = ...,
        keepdims: bool = ...,
    ) -> Tensor: ...
    def prod(
        self,
        dim: Axis = None,
        keepdim: bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Axis = ...,
        keepdims: bool = ...,
    ) -> Tensor: ...
    def softmax(
        self, dim: int = -1, dtype: DTypeLike | None = None, *, axis: int = ...
    ) -> Tensor: ...
    def std(
        self,
        dim: Axis = None,
        keepdim: bool = False,
        *,
        correction: Scalar = 1,
        unbiased: bool | None = None,
        axis: Axis = ...,
        keepdims: bool = ...,
    ) -> Tensor: ...
    def std_mean(
        self,
        dim: Axis = None,
        keepdim: bool = False,
        *,
        correction: Scalar = 1,
        unbiased: bool | None = None,
        axis: Axis = ...,
        keepdims: bool = ...,
    ) -> tuple[Tensor, Tensor]: ...
    def sum(
        self,
        dim: Axis = None,
        keepdim: bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Axis = ...,
        keepdims: bool = ...,
    ) -> Tensor: ...
    def var(
        self,
        dim: Axis = None,
        keepdim: bool = False,
        *,
        correction: Scalar = 1,
        unbiased: bool | None = None,
        axis: Axis = ...,
        keepdims: bool = ...,
    ) -> Tensor: ...
    def var_mean(
        self,
        dim: Axis = None,
        keepdim: bool = False,
        *,
        correction: Scalar = 1,
        unbiased: bool | None = None,
        axis: Axis = ...,
        keepdims: bool = ...,
    ) -> tuple[Tensor, Tensor]: ...

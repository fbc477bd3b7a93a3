"""Written by docs/stubs.py: the functions of picograd."""

from collections.abc import Sequence
from typing import Any, overload

from picograd.tensor.core.annotations import Axis, DTypeLike, Scalar, Sizes, Tensor, TensorLike
from picograd.tensor.reductions.cumulative import Ordered
from picograd.tensor.reductions.reduce import Extreme, Extremes

__all__ = [
    "abs",
    "acos",
    "acosh",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addr",
    "all",
    "amax",
    "amin",
    "aminmax",
    "any",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "baddbmm",
    "bincount",
    "bmm",
    "cdist",
    "ceil",
    "chunk",
    "clamp",
    "clip",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cross",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "diag",
    "diag_embed",
    "diagonal",
    "digamma",
    "dist",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "flatten",
    "floor",
    "fmod",
    "frac",
    "gather",
    "heaviside",
    "histc",
    "hypot",
    "index_add",
    "index_copy",
    "index_fill",
    "index_select",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "kron",
    "kthvalue",
    "lerp",
    "lgamma",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_softmax",
    "logaddexp",
    "logcumsumexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logsumexp",
    "masked_fill",
    "masked_scatter",
    "max",
    "maximum",
    "mean",
    "median",
    "min",
    "minimum",
    "mm",
    "moveaxis",
    "movedim",
    "msort",
    "mv",
    "nan_to_num",
    "nanmean",
    "nansum",
    "norm",
    "outer",
    "pow",
    "prod",
    "put",
    "quantile",
    "reciprocal",
    "relu",
    "roll",
    "rot90",
    "rsqrt",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "searchsorted",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "softmax",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "std",
    "std_mean",
    "sum",
    "take",
    "take_along_dim",
    "tan",
    "tanh",
    "tensor_split",
    "tensordot",
    "topk",
    "trace",
    "transpose",
    "tril",
    "triu",
    "trunc",
    "unbind",
    "unflatten",
    "unique",
    "unsqueeze",
    "var",
    "var_mean",
    "vdot",
    "xlogy",
]

def abs(input: Tensor, *, out: Any = None) -> Tensor: ...
def acos(input: Tensor, *, out: Any = None) -> Tensor: ...
def acosh(input: Tensor, *, out: Any = None) -> Tensor: ...
def addcdiv(
    input: Tensor, tensor1: TensorLike, tensor2: TensorLike, value: Scalar = 1, *, out: Any = None
) -> Tensor: ...
def addcmul(
    input: Tensor, tensor1: TensorLike, tensor2: TensorLike, value: Scalar = 1, *, out: Any = None
) -> Tensor: ...
def addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
    out: Any = None,
) -> Tensor: ...
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1, out: Any = None
) -> Tensor: ...
def addr(
    input: Tensor,
    vec1: Tensor,
    vec2: Tensor,
    beta: Scalar = 1,
    alpha: Scalar = 1,
    *,
    out: Any = None,
) -> Tensor: ...
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
def arccos(input: Tensor, *, out: Any = None) -> Tensor: ...
def arccosh(input: Tensor, *, out: Any = None) -> Tensor: ...
def arcsin(input: Tensor, *, out: Any = None) -> Tensor: ...
def arcsinh(input: Tensor, *, out: Any = None) -> Tensor: ...
def arctan(input: Tensor, *, out: Any = None) -> Tensor: ...
def arctan2(input: TensorLike, other: TensorLike, *, out: Any = None) -> Tensor: ...
def arctanh(input: Tensor, *, out: Any = None) -> Tensor: ...
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
def argsort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    stable: bool = True,
    *,
    axis: int = ...,
    out: Any = None,
) -> Tensor: ...
def argwhere(input: Tensor, *, out: Any = None) -> Tensor: ...
def asin(input: Tensor, *, out: Any = None) -> Tensor: ...
def asinh(input: Tensor, *, out: Any = None) -> Tensor: ...
def atan(input: Tensor, *, out: Any = None) -> Tensor: ...
def atan2(input: TensorLike, other: TensorLike, *, out: Any = None) -> Tensor: ...
def atanh(input: Tensor, *, out: Any = None) -> Tensor: ...
def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
    out: Any = None,
) -> Tensor: ...
def bincount(
    input: Tensor, weights: Tensor | None = None, minlength: int = 0, *, out: Any = None
) -> Tensor: ...
def bmm(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: ...
def cdist(input: Tensor, other: Tensor, p: float = 2.0, *, out: Any = None) -> Tensor: ...
def ceil(input: Tensor, *, out: Any = None) -> Tensor: ...
def chunk(
    input: Tensor, chunks: int, dim: int = 0, *, axis: int = ..., out: Any = None
) -> tuple[Tensor, ...]: ...
def clamp(
    input: Tensor, min: TensorLike | None = None, max: TensorLike | None = None, *, out: Any = None
) -> Tensor: ...
def clip(
    input: Tensor, min: TensorLike | None = None, max: TensorLike | None = None, *, out: Any = None
) -> Tensor: ...
def copysign(input: TensorLike, other: TensorLike, *, out: Any = None) -> Tensor: ...
def cos(input: Tensor, *, out: Any = None) -> Tensor: ...
def cosh(input: Tensor, *, out: Any = None) -> Tensor: ...
def count_nonzero(
    input: Tensor, dim: Axis = None, *, axis: Axis = ..., out: Any = None
) -> Tensor: ...
def cross(
    input: Tensor, other: Tensor, dim: int | None = -1, *, axis: int | None = ..., out: Any = None
) -> Tensor: ...
def cummax(input: Tensor, dim: int = 0, *, axis: int = ..., out: Any = None) -> Ordered: ...
def cummin(input: Tensor, dim: int = 0, *, axis: int = ..., out: Any = None) -> Ordered: ...
def cumprod(
    input: Tensor, dim: int = 0, dtype: DTypeLike | None = None, *, axis: int = ..., out: Any = None
) -> Tensor: ...
def cumsum(
    input: Tensor, dim: int = 0, dtype: DTypeLike | None = None, *, axis: int = ..., out: Any = None
) -> Tensor: ...
def diag(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Tensor: ...
def diag_embed(
    input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1, *, out: Any = None
) -> Tensor: ...
def diagonal(
    input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1, *, out: Any = None
) -> Tensor: ...
def digamma(input: Tensor, *, out: Any = None) -> Tensor: ...
def dist(input: Tensor, other: TensorLike, p: float = 2, *, out: Any = None) -> Tensor: ...
def erf(input: Tensor, *, out: Any = None) -> Tensor: ...
def erfc(input: Tensor, *, out: Any = None) -> Tensor: ...
def erfinv(input: Tensor, *, out: Any = None) -> Tensor: ...
def exp(input: Tensor, *, out: Any = None) -> Tensor: ...
def exp2(input: Tensor, *, out: Any = None) -> Tensor: ...
def expm1(input: Tensor, *, out: Any = None) -> Tensor: ...
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1, *, out: Any = None) -> Tensor: ...
def floor(input: Tensor, *, out: Any = None) -> Tensor: ...
def fmod(input: TensorLike, other: TensorLike, *, out: Any = None) -> Tensor: ...
def frac(input: Tensor, *, out: Any = None) -> Tensor: ...
@overload
def gather(input: Tensor, dim: int, index: Tensor, *, out: Any = None) -> Tensor: ...
@overload
def gather(input: Tensor, *, axis: int, index: Tensor, out: Any = None) -> Tensor: ...
def heaviside(input: Tensor, values: TensorLike, *, out: Any = None) -> Tensor: ...
def histc(
    input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Any = None
) -> Tensor: ...
def hypot(input: TensorLike, other: TensorLike, *, out: Any = None) -> Tensor: ...
@overload
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Scalar = 1, out: Any = None
) -> Tensor: ...
@overload
def index_add(
    input: Tensor, *, axis: int, index: Tensor, source: Tensor, alpha: Scalar = 1, out: Any = None
) -> Tensor: ...
@overload
def index_copy(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, out: Any = None
) -> Tensor: ...
@overload
def index_copy(
    input: Tensor, *, axis: int, index: Tensor, source: Tensor, out: Any = None
) -> Tensor: ...
@overload
def index_fill(
    input: Tensor, dim: int, index: Tensor, value: TensorLike, *, out: Any = None
) -> Tensor: ...
@overload
def index_fill(
    input: Tensor, *, axis: int, index: Tensor, value: TensorLike, out: Any = None
) -> Tensor: ...
@overload
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Any = None) -> Tensor: ...
@overload
def index_select(input: Tensor, *, axis: int, index: Tensor, out: Any = None) -> Tensor: ...
def isclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def isfinite(input: Tensor, *, out: Any = None) -> Tensor: ...
def isinf(input: Tensor, *, out: Any = None) -> Tensor: ...
def isnan(input: Tensor, *, out: Any = None) -> Tensor: ...
def kron(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: ...
def kthvalue(
    input: Tensor,
    k: int,
    dim: int = -1,
    keepdim: bool = False,
    *,
    axis: int = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Ordered: ...
def lerp(input: Tensor, end: TensorLike, weight: TensorLike, *, out: Any = None) -> Tensor: ...
def lgamma(input: Tensor, *, out: Any = None) -> Tensor: ...
def log(input: Tensor, *, out: Any = None) -> Tensor: ...
def log10(input: Tensor, *, out: Any = None) -> Tensor: ...
def log1p(input: Tensor, *, out: Any = None) -> Tensor: ...
def log2(input: Tensor, *, out: Any = None) -> Tensor: ...
def log_softmax(
    input: Tensor,
    dim: int = -1,
    dtype: DTypeLike | None = None,
    *,
    axis: int = ...,
    out: Any = None,
) -> Tensor: ...
def logaddexp(input: TensorLike, other: TensorLike, *, out: Any = None) -> Tensor: ...
def logcumsumexp(input: Tensor, dim: int = 0, *, axis: int = ..., out: Any = None) -> Tensor: ...
def logical_and(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def logical_not(input: Tensor, *, out: Any = None) -> Tensor: ...
def logical_or(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def logical_xor(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def logit(input: Tensor, eps: float | None = None, *, out: Any = None) -> Tensor: ...
def logsumexp(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def masked_fill(input: Tensor, mask: Tensor, value: TensorLike, *, out: Any = None) -> Tensor: ...
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor, *, out: Any = None) -> Tensor: ...
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
def maximum(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
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
def median(
    input: Tensor, dim: int, keepdim: bool = False, *, keepdims: bool = ..., out: Any = None
) -> Ordered: ...
@overload
def median(input: Tensor, *, axis: int, keepdim: bool = False, out: Any = None) -> Ordered: ...
@overload
def median(
    input: Tensor,
    dim: None = None,
    keepdim: bool = False,
    *,
    axis: None = ...,
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
def minimum(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def mm(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: ...
def moveaxis(input: Tensor, source: Sizes, destination: Sizes, *, out: Any = None) -> Tensor: ...
def movedim(input: Tensor, source: Sizes, destination: Sizes, *, out: Any = None) -> Tensor: ...
def msort(input: Tensor, *, out: Any = None) -> Tensor: ...
def mv(input: Tensor, vec: Tensor, *, out: Any = None) -> Tensor: ...
def nan_to_num(
    input: Tensor,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
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
def outer(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: ...
def pow(input: Tensor, exponent: TensorLike, *, out: Any = None) -> Tensor: ...
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
def put(
    input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False, *, out: Any = None
) -> Tensor: ...
def quantile(
    input: Tensor,
    q: TensorLike,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Any = None,
) -> Tensor: ...
def reciprocal(input: Tensor, *, out: Any = None) -> Tensor: ...
def relu(input: Tensor, *, out: Any = None) -> Tensor: ...
def roll(input: Tensor, shifts: Sizes, dims: Axis = None, *, out: Any = None) -> Tensor: ...
def rot90(
    input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1), *, out: Any = None
) -> Tensor: ...
def rsqrt(input: Tensor, *, out: Any = None) -> Tensor: ...
@overload
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: TensorLike = ...,
    reduce: str | None = None,
    *,
    value: TensorLike = ...,
    out: Any = None,
) -> Tensor: ...
@overload
def scatter(
    input: Tensor,
    *,
    axis: int,
    index: Tensor,
    src: TensorLike = ...,
    reduce: str | None = None,
    value: TensorLike = ...,
    out: Any = None,
) -> Tensor: ...
@overload
def scatter_add(
    input: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Any = None
) -> Tensor: ...
@overload
def scatter_add(
    input: Tensor, *, axis: int, index: Tensor, src: Tensor, out: Any = None
) -> Tensor: ...
@overload
def scatter_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    include_self: bool = True,
    *,
    out: Any = None,
) -> Tensor: ...
@overload
def scatter_reduce(
    input: Tensor,
    *,
    axis: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    include_self: bool = True,
    out: Any = None,
) -> Tensor: ...
def searchsorted(
    input: Tensor,
    values: TensorLike,
    right: bool = False,
    *,
    side: str | None = None,
    out_int32: bool = False,
    sorter: Tensor | None = None,
    out: Any = None,
) -> Tensor: ...
def sigmoid(input: Tensor, *, out: Any = None) -> Tensor: ...
def sign(input: Tensor, *, out: Any = None) -> Tensor: ...
def signbit(input: Tensor, *, out: Any = None) -> Tensor: ...
def sin(input: Tensor, *, out: Any = None) -> Tensor: ...
def sinc(input: Tensor, *, out: Any = None) -> Tensor: ...
def sinh(input: Tensor, *, out: Any = None) -> Tensor: ...
def softmax(
    input: Tensor,
    dim: int = -1,
    dtype: DTypeLike | None = None,
    *,
    axis: int = ...,
    out: Any = None,
) -> Tensor: ...
def sort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    stable: bool = True,
    *,
    axis: int = ...,
    out: Any = None,
) -> Ordered: ...
def split(
    input: Tensor, sizes: Sizes, dim: int = 0, *, axis: int = ..., out: Any = None
) -> tuple[Tensor, ...]: ...
def sqrt(input: Tensor, *, out: Any = None) -> Tensor: ...
def square(input: Tensor, *, out: Any = None) -> Tensor: ...
def squeeze(input: Tensor, dim: Axis = None, *, axis: Axis = ..., out: Any = None) -> Tensor: ...
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
def take(input: Tensor, index: Tensor, *, out: Any = None) -> Tensor: ...
def take_along_dim(
    input: Tensor,
    indices: Tensor,
    dim: int | None = None,
    *,
    axis: int | None = ...,
    out: Any = None,
) -> Tensor: ...
def tan(input: Tensor, *, out: Any = None) -> Tensor: ...
def tanh(input: Tensor, *, out: Any = None) -> Tensor: ...
def tensor_split(
    input: Tensor,
    indices_or_sections: Sizes | Tensor,
    dim: int = 0,
    *,
    axis: int = ...,
    out: Any = None,
) -> tuple[Tensor, ...]: ...
def tensordot(
    input: Tensor, other: Tensor, dims: int | Sequence[Sequence[int]] = 2, *, out: Any = None
) -> Tensor: ...
def topk(
    input: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    axis: int = ...,
    out: Any = None,
) -> Ordered: ...
def trace(input: Tensor, *, out: Any = None) -> Tensor: ...
def transpose(input: Tensor, dim0: int = 0, dim1: int = 1, *, out: Any = None) -> Tensor: ...
def tril(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Tensor: ...
def triu(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Tensor: ...
def trunc(input: Tensor, *, out: Any = None) -> Tensor: ...
def unbind(
    input: Tensor, dim: int = 0, *, axis: int = ..., out: Any = None
) -> tuple[Tensor, ...]: ...
@overload
def unflatten(input: Tensor, dim: int, sizes: Sequence[int], *, out: Any = None) -> Tensor: ...
@overload
def unflatten(input: Tensor, *, axis: int, sizes: Sequence[int], out: Any = None) -> Tensor: ...
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    out: Any = None,
) -> Any: ...
def unsqueeze(input: Tensor, dim: int = 0, *, axis: int = ..., out: Any = None) -> Tensor: ...
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
def vdot(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: ...
def xlogy(input: TensorLike, other: TensorLike, *, out: Any = None) -> Tensor: ...

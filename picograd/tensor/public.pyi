"""Written by docs/stubs.py: the functions of picograd."""

import builtins
from collections.abc import Sequence
from typing import Any, TypeGuard, overload

import numpy as np

from picograd.dtype import DType
from picograd.tensor.core.annotations import (
    Axis,
    Data,
    DeviceLike,
    DTypeLike,
    Scalar,
    Sizes,
    Tensor,
    TensorLike,
)
from picograd.tensor.linalg import decompositions
from picograd.tensor.linalg.decompositions import QR, Slogdet
from picograd.tensor.linalg.reflectors import Reflected
from picograd.tensor.linalg.systems import LU, Triangular
from picograd.tensor.making import random
from picograd.tensor.making.random import Generator
from picograd.tensor.math.arithmetic import Parts
from picograd.tensor.reductions.cumulative import Ordered
from picograd.tensor.reductions.reduce import Extreme, Extremes
from picograd.tensor.reductions.statistics import Histogram, HistogramDD

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "add",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addr",
    "adjoint",
    "all",
    "allclose",
    "amax",
    "amin",
    "aminmax",
    "angle",
    "any",
    "arange",
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
    "as_strided",
    "as_tensor",
    "asarray",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "baddbmm",
    "bartlett_window",
    "bernoulli",
    "bincount",
    "binomial",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "blackman_window",
    "block_diag",
    "bmm",
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "bucketize",
    "can_cast",
    "cartesian_prod",
    "cat",
    "cdist",
    "ceil",
    "chain_matmul",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "chunk",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "clone",
    "column_stack",
    "combinations",
    "complex",
    "concat",
    "concatenate",
    "conj",
    "conj_physical",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "copysign",
    "corrcoef",
    "cos",
    "cosh",
    "count_nonzero",
    "cov",
    "cross",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_trapezoid",
    "deg2rad",
    "det",
    "detach",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_scatter",
    "diff",
    "digamma",
    "dist",
    "div",
    "divide",
    "dot",
    "dsplit",
    "dstack",
    "einsum",
    "empty",
    "empty_like",
    "eq",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "exponential",
    "eye",
    "fix",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "frexp",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "full",
    "full_like",
    "gather",
    "gcd",
    "ge",
    "geqrf",
    "ger",
    "get_default_dtype",
    "get_device",
    "get_rng_state",
    "grad",
    "gradient",
    "greater",
    "greater_equal",
    "gt",
    "hamming_window",
    "hann_window",
    "heaviside",
    "histc",
    "histogram",
    "histogramdd",
    "hsplit",
    "hstack",
    "hypot",
    "i0",
    "igamma",
    "igammac",
    "imag",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_put_",
    "index_reduce",
    "index_select",
    "initial_seed",
    "inner",
    "inverse",
    "is_complex",
    "is_conj",
    "is_floating_point",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_tensor",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "istft",
    "kaiser_window",
    "kron",
    "kthvalue",
    "lcm",
    "ldexp",
    "le",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "linspace",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logcumsumexp",
    "logdet",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logspace",
    "logsumexp",
    "lt",
    "lu",
    "lu_solve",
    "lu_unpack",
    "manual_seed",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matmul",
    "matrix_exp",
    "matrix_power",
    "max",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "maximum",
    "mean",
    "median",
    "meshgrid",
    "min",
    "minimum",
    "mm",
    "mode",
    "moveaxis",
    "movedim",
    "msort",
    "mul",
    "multinomial",
    "multiply",
    "mv",
    "mvlgamma",
    "nan_to_num",
    "nanmean",
    "nanmedian",
    "nanquantile",
    "nansum",
    "narrow",
    "narrow_copy",
    "ne",
    "neg",
    "negative",
    "nextafter",
    "nonzero",
    "nonzero_static",
    "norm",
    "normal",
    "not_equal",
    "numel",
    "ones",
    "ones_like",
    "orgqr",
    "ormqr",
    "outer",
    "pdist",
    "permute",
    "pinverse",
    "poisson",
    "polar",
    "positive",
    "pow",
    "prod",
    "promote_types",
    "put",
    "qr",
    "quantile",
    "rad2deg",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "range",
    "ravel",
    "real",
    "reciprocal",
    "relu",
    "remainder",
    "renorm",
    "repeat_interleave",
    "reshape",
    "resolve_conj",
    "resolve_neg",
    "result_type",
    "roll",
    "rot90",
    "round",
    "row_stack",
    "rsqrt",
    "rsub",
    "scalar_tensor",
    "scaled_mm",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "searchsorted",
    "seed",
    "segment_reduce",
    "select",
    "select_scatter",
    "set_rng_state",
    "sgn",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "slice_scatter",
    "slogdet",
    "softmax",
    "sort",
    "split",
    "split_with_sizes",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "std_mean",
    "stft",
    "sub",
    "subtract",
    "sum",
    "svd",
    "swapaxes",
    "swapdims",
    "t",
    "take",
    "take_along_dim",
    "tan",
    "tanh",
    "tensor_split",
    "tensordot",
    "tile",
    "topk",
    "trace",
    "transpose",
    "trapezoid",
    "trapz",
    "triangular_solve",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "true_divide",
    "trunc",
    "truncated_normal",
    "unbind",
    "unflatten",
    "unique",
    "unique_consecutive",
    "unravel_index",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "unsqueeze",
    "vander",
    "var",
    "var_mean",
    "vdot",
    "view_as_complex",
    "view_as_real",
    "vsplit",
    "vstack",
    "where",
    "xlogy",
    "zeros",
    "zeros_like",
]

def abs(input: Tensor, *, out: Any = None) -> Tensor: ...
def absolute(input: Tensor, *, out: Any = None) -> Tensor: ...
def acos(input: Tensor, *, out: Any = None) -> Tensor: ...
def acosh(input: Tensor, *, out: Any = None) -> Tensor: ...
def adaptive_avg_pool1d(
    input: Tensor, output_size: int | Sequence[int | None] | None, *, out: Any = None
) -> Tensor: ...
def adaptive_avg_pool2d(
    input: Tensor, output_size: int | Sequence[int | None] | None, *, out: Any = None
) -> Tensor: ...
def adaptive_avg_pool3d(
    input: Tensor, output_size: int | Sequence[int | None] | None, *, out: Any = None
) -> Tensor: ...
def adaptive_max_pool1d(
    input: Tensor,
    output_size: int | Sequence[int | None] | None,
    return_indices: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def adaptive_max_pool2d(
    input: Tensor,
    output_size: int | Sequence[int | None] | None,
    return_indices: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def adaptive_max_pool3d(
    input: Tensor,
    output_size: int | Sequence[int | None] | None,
    return_indices: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def add(input: Tensor, other: TensorLike, *, alpha: Scalar = 1, out: Any = None) -> Tensor: ...
def addbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
    out: Any = None,
) -> Tensor: ...
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
def adjoint(input: Tensor, *, out: Any = None) -> Tensor: ...
def all(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def allclose(
    input: Tensor,
    other: Tensor,
    rtol: builtins.float = 1e-05,
    atol: builtins.float = 1e-08,
    equal_nan: builtins.bool = False,
    *,
    out: Any = None,
) -> builtins.bool: ...
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
def angle(input: Tensor, *, out: Any = None) -> Tensor: ...
def any(
    input: Tensor,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def arange(
    start: Scalar = ...,
    end: Scalar | None = None,
    step: Scalar = 1,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
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
    stable: bool | None = True,
    *,
    axis: int = ...,
    out: Any = None,
) -> Tensor: ...
def argwhere(input: Tensor, *, out: Any = None) -> Tensor: ...
def as_strided(
    input: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def as_tensor(
    data: Data, dtype: DTypeLike | None = None, device: DeviceLike | None = None, *, out: Any = None
) -> Tensor: ...
def asarray(
    obj: Data,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
    out: Any = None,
) -> Tensor: ...
def asin(input: Tensor, *, out: Any = None) -> Tensor: ...
def asinh(input: Tensor, *, out: Any = None) -> Tensor: ...
def atan(input: Tensor, *, out: Any = None) -> Tensor: ...
def atan2(input: TensorLike, other: TensorLike, *, out: Any = None) -> Tensor: ...
def atanh(input: Tensor, *, out: Any = None) -> Tensor: ...
def atleast_1d(*tensors: Tensor | Sequence[Tensor], out: Any = None) -> Any: ...
def atleast_2d(*tensors: Tensor | Sequence[Tensor], out: Any = None) -> Any: ...
def atleast_3d(*tensors: Tensor | Sequence[Tensor], out: Any = None) -> Any: ...
def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def avg_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def avg_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
    out: Any = None,
) -> Tensor: ...
def bartlett_window(window_length: int, periodic: bool = True, **more: Any) -> Tensor: ...
def bernoulli(
    input: Tensor,
    p: float | Tensor | None = None,
    *,
    generator: Generator | None = None,
    out: Any = None,
) -> Tensor: ...
def bincount(
    input: Tensor, weights: Tensor | None = None, minlength: int = 0, *, out: Any = None
) -> Tensor: ...
def binomial(
    input: Tensor, prob: Tensor, generator: Generator | None = None, *, out: Any = None
) -> Tensor: ...
def bitwise_and(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def bitwise_left_shift(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def bitwise_not(input: Tensor, *, out: Any = None) -> Tensor: ...
def bitwise_or(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def bitwise_right_shift(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def bitwise_xor(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def blackman_window(window_length: int, periodic: bool = True, **more: Any) -> Tensor: ...
def block_diag(*tensors: Tensor | Sequence[Tensor], out: Any = None) -> Tensor: ...
def bmm(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: ...
def broadcast_shapes(*sizes: Sizes, out: Any = None) -> tuple[int, ...]: ...
def broadcast_tensors(
    *tensors: Tensor | Sequence[Tensor], out: Any = None
) -> tuple[Tensor, ...]: ...
def broadcast_to(input: Tensor, *sizes: Sizes, out: Any = None) -> Tensor: ...
def bucketize(
    input: TensorLike,
    boundaries: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: Any = None,
) -> Tensor: ...
def can_cast(from_: DTypeLike, to: DTypeLike, *, out: Any = None) -> bool: ...
def cartesian_prod(*tensors: Tensor, out: Any = None) -> Tensor: ...
def cat(
    input: Tensor | Sequence[Tensor], *others: Any, dim: builtins.int = ..., out: Any = None
) -> Tensor: ...
def cdist(
    input: Tensor,
    other: Tensor,
    p: float = 2.0,
    compute_mode: str | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def ceil(input: Tensor, *, out: Any = None) -> Tensor: ...
def chain_matmul(*matrices: Tensor, out: Any = None) -> Tensor: ...
def cholesky(input: Tensor, *, upper: bool = False, out: Any = None) -> Tensor: ...
def cholesky_inverse(input: Tensor, upper: bool = False, *, out: Any = None) -> Tensor: ...
def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False, *, out: Any = None) -> Tensor: ...
def chunk(
    input: Tensor, chunks: int, dim: int = 0, *, axis: int = ..., out: Any = None
) -> tuple[Tensor, ...]: ...
def clamp(
    input: Tensor, min: TensorLike | None = None, max: TensorLike | None = None, *, out: Any = None
) -> Tensor: ...
def clamp_max(input: Tensor, max: TensorLike, *, out: Any = None) -> Tensor: ...
def clamp_min(input: Tensor, min: TensorLike, *, out: Any = None) -> Tensor: ...
def clip(
    input: Tensor, min: TensorLike | None = None, max: TensorLike | None = None, *, out: Any = None
) -> Tensor: ...
def clone(input: Tensor, *, out: Any = None) -> Tensor: ...
def column_stack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor: ...
def combinations(
    input: Tensor, r: int = 2, with_replacement: bool = False, *, out: Any = None
) -> Tensor: ...
def complex(input: Tensor, imag: Tensor, *, out: Any = None) -> Tensor: ...
def concat(
    input: Tensor | Sequence[Tensor], *others: Any, dim: builtins.int = ..., out: Any = None
) -> Tensor: ...
def concatenate(
    input: Tensor | Sequence[Tensor], *others: Any, dim: builtins.int = ..., out: Any = None
) -> Tensor: ...
def conj(input: Tensor, *, out: Any = None) -> Tensor: ...
def conj_physical(input: Tensor, *, out: Any = None) -> Tensor: ...
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def conv_tbc(
    input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0, *, out: Any = None
) -> Tensor: ...
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def copysign(input: TensorLike, other: TensorLike, *, out: Any = None) -> Tensor: ...
def corrcoef(input: Tensor, *, out: Any = None) -> Tensor: ...
def cos(input: Tensor, *, out: Any = None) -> Tensor: ...
def cosh(input: Tensor, *, out: Any = None) -> Tensor: ...
def count_nonzero(
    input: Tensor, dim: Axis = None, *, axis: Axis = ..., out: Any = None
) -> Tensor: ...
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
    out: Any = None,
) -> Tensor: ...
def cross(
    input: Tensor, other: Tensor, dim: int | None = None, *, axis: int | None = ..., out: Any = None
) -> Tensor: ...
def cummax(input: Tensor, dim: int = 0, *, axis: int = ..., out: Any = None) -> Ordered: ...
def cummin(input: Tensor, dim: int = 0, *, axis: int = ..., out: Any = None) -> Ordered: ...
def cumprod(
    input: Tensor, dim: int = 0, dtype: DTypeLike | None = None, *, axis: int = ..., out: Any = None
) -> Tensor: ...
def cumsum(
    input: Tensor, dim: int = 0, dtype: DTypeLike | None = None, *, axis: int = ..., out: Any = None
) -> Tensor: ...
def cumulative_trapezoid(
    input: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1, out: Any = None
) -> Tensor: ...
def deg2rad(input: Tensor, *, out: Any = None) -> Tensor: ...
def det(input: Tensor, *, out: Any = None) -> Tensor: ...
def detach(input: Tensor, *, out: Any = None) -> Tensor: ...
def diag(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Tensor: ...
def diag_embed(
    input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1, *, out: Any = None
) -> Tensor: ...
def diagflat(input: Tensor, offset: int = 0, *, out: Any = None) -> Tensor: ...
def diagonal(
    input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1, *, out: Any = None
) -> Tensor: ...
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1, *, out: Any = None
) -> Tensor: ...
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def digamma(input: Tensor, *, out: Any = None) -> Tensor: ...
def dist(input: Tensor, other: TensorLike, p: float = 2, *, out: Any = None) -> Tensor: ...
def div(
    input: Tensor, other: TensorLike, rounding_mode: str | None = None, *, out: Any = None
) -> Tensor: ...
def divide(
    input: Tensor, other: TensorLike, rounding_mode: str | None = None, *, out: Any = None
) -> Tensor: ...
def dot(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def dsplit(input: Tensor, indices_or_sections: Sizes, *, out: Any = None) -> tuple[Tensor, ...]: ...
def dstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor: ...
def einsum(equation: Any, *tensors: Any, out: Any = None) -> Tensor: ...
def empty(
    *sizes: Sizes, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
) -> Tensor: ...
def empty_like(
    input: Tensor, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
) -> Tensor: ...
def eq(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def equal(input: Tensor, other: Tensor, *, out: Any = None) -> bool: ...
def erf(input: Tensor, *, out: Any = None) -> Tensor: ...
def erfc(input: Tensor, *, out: Any = None) -> Tensor: ...
def erfinv(input: Tensor, *, out: Any = None) -> Tensor: ...
def exp(input: Tensor, *, out: Any = None) -> Tensor: ...
def exp2(input: Tensor, *, out: Any = None) -> Tensor: ...
def expm1(input: Tensor, *, out: Any = None) -> Tensor: ...
def exponential(
    *sizes: Sizes,
    lambd: float = 1.0,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor: ...
def eye(
    n: builtins.int,
    m: builtins.int | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor: ...
def fix(input: Tensor, *, out: Any = None) -> Tensor: ...
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1, *, out: Any = None) -> Tensor: ...
def flip(
    input: Tensor, *axes: Sizes, dims: Axis = None, axis: Axis = None, out: Any = None
) -> Tensor: ...
def fliplr(input: Tensor, *, out: Any = None) -> Tensor: ...
def flipud(input: Tensor, *, out: Any = None) -> Tensor: ...
def float_power(input: TensorLike, exponent: TensorLike, *, out: Any = None) -> Tensor: ...
def floor(input: Tensor, *, out: Any = None) -> Tensor: ...
def floor_divide(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def fmax(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def fmin(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def fmod(input: TensorLike, other: TensorLike, *, out: Any = None) -> Tensor: ...
def frac(input: Tensor, *, out: Any = None) -> Tensor: ...
def frexp(input: Tensor, *, out: Any = None) -> Parts: ...
def from_dlpack(
    source: Any,
    *,
    device: DeviceLike | None = None,
    copy: builtins.bool | None = None,
    out: Any = None,
) -> Tensor: ...
def from_numpy(array: np.ndarray[Any, Any], *, out: Any = None) -> Tensor: ...
def frombuffer(
    buffer: Any,
    *,
    dtype: DTypeLike | None,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
    out: Any = None,
) -> Tensor: ...
def full(
    size: Sizes,
    fill_value: Scalar,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor: ...
def full_like(
    input: Tensor,
    fill_value: Scalar,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor: ...
@overload
def gather(input: Tensor, dim: int, index: Tensor, *, out: Any = None) -> Tensor: ...
@overload
def gather(input: Tensor, *, axis: int, index: Tensor, out: Any = None) -> Tensor: ...
def gcd(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def ge(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def geqrf(input: Tensor, *, out: Any = None) -> Reflected: ...
@overload
def ger(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: ...
@overload
def ger(input: Tensor, *, vec2: Tensor, out: Any = None) -> Tensor: ...
def get_default_dtype(*, out: Any = None) -> DType: ...
def get_device(input: Tensor, *, out: Any = None) -> int: ...
def get_rng_state(*, out: Any = None) -> Tensor: ...
def grad(
    input: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    retain_graph: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
    *,
    out: Any = None,
) -> list[Tensor]: ...
def gradient(
    input: Tensor,
    *,
    spacing: float | Sequence[Any] | Tensor | None = None,
    dim: Axis = None,
    edge_order: int = 1,
    out: Any = None,
) -> tuple[Tensor, ...]: ...
def greater(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def greater_equal(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def gt(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **more: Any
) -> Tensor: ...
def hann_window(window_length: int, periodic: bool = True, **more: Any) -> Tensor: ...
def heaviside(input: Tensor, values: TensorLike, *, out: Any = None) -> Tensor: ...
def histc(
    input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Any = None
) -> Tensor: ...
def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Any = None,
) -> Histogram: ...
def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    *,
    out: Any = None,
) -> HistogramDD: ...
def hsplit(input: Tensor, indices_or_sections: Sizes, *, out: Any = None) -> tuple[Tensor, ...]: ...
def hstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor: ...
def hypot(input: TensorLike, other: TensorLike, *, out: Any = None) -> Tensor: ...
def i0(input: Tensor, *, out: Any = None) -> Tensor: ...
def igamma(input: TensorLike, other: TensorLike, *, out: Any = None) -> Tensor: ...
def igammac(input: TensorLike, other: TensorLike, *, out: Any = None) -> Tensor: ...
def imag(input: Tensor, *, out: Any = None) -> Tensor: ...
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
def index_put(
    input: Tensor,
    indices: Sequence[Tensor | None],
    values: TensorLike,
    accumulate: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def index_put_(
    input: Tensor,
    indices: Sequence[Tensor | None],
    values: TensorLike,
    accumulate: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Any = None,
) -> Tensor: ...
@overload
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Any = None) -> Tensor: ...
@overload
def index_select(input: Tensor, *, axis: int, index: Tensor, out: Any = None) -> Tensor: ...
def initial_seed(*, out: Any = None) -> int: ...
def inner(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: ...
def inverse(input: Tensor, *, out: Any = None) -> Tensor: ...
def is_complex(input: Tensor, *, out: Any = None) -> bool: ...
def is_conj(input: Tensor, *, out: Any = None) -> bool: ...
def is_floating_point(input: Tensor, *, out: Any = None) -> bool: ...
def is_neg(input: Tensor, *, out: Any = None) -> bool: ...
def is_nonzero(input: Tensor, *, out: Any = None) -> bool: ...
def is_same_size(input: Tensor, other: Tensor, *, out: Any = None) -> bool: ...
def is_signed(input: Tensor, *, out: Any = None) -> bool: ...
def is_tensor(obj: Any, *, out: Any = None) -> TypeGuard[Tensor]: ...
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
def isin(
    input: TensorLike,
    test_elements: TensorLike,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: Any = None,
) -> Tensor: ...
def isinf(input: Tensor, *, out: Any = None) -> Tensor: ...
def isnan(input: Tensor, *, out: Any = None) -> Tensor: ...
def isneginf(input: Tensor, *, out: Any = None) -> Tensor: ...
def isposinf(input: Tensor, *, out: Any = None) -> Tensor: ...
def isreal(input: Tensor, *, out: Any = None) -> Tensor: ...
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, **more: Any
) -> Tensor: ...
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
def lcm(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def ldexp(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def le(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def lerp(input: Tensor, end: TensorLike, weight: TensorLike, *, out: Any = None) -> Tensor: ...
def less(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def less_equal(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def lgamma(input: Tensor, *, out: Any = None) -> Tensor: ...
def linspace(
    start: Scalar | builtins.complex,
    end: Scalar | builtins.complex,
    steps: builtins.int,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor: ...
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
def logaddexp2(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def logcumsumexp(input: Tensor, dim: int = 0, *, axis: int = ..., out: Any = None) -> Tensor: ...
def logdet(input: Tensor, *, out: Any = None) -> Tensor: ...
def logical_and(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def logical_not(input: Tensor, *, out: Any = None) -> Tensor: ...
def logical_or(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def logical_xor(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def logit(input: Tensor, eps: float | None = None, *, out: Any = None) -> Tensor: ...
def logspace(
    start: float,
    end: float,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
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
def lt(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def lu(
    input: Tensor, pivot: bool = True, get_infos: bool = False, *, out: Any = None
) -> tuple[Tensor, ...]: ...
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Any = None) -> Tensor: ...
def lu_unpack(
    input: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    out: Any = None,
) -> LU: ...
def manual_seed(seed: Any, *, out: Any = None) -> random.Generator: ...
def masked_fill(input: Tensor, mask: Tensor, value: TensorLike, *, out: Any = None) -> Tensor: ...
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor, *, out: Any = None) -> Tensor: ...
def masked_select(
    input: Tensor, mask: Tensor, *, size: int | None = None, fill_value: Scalar = 0, out: Any = None
) -> Tensor: ...
def matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: ...
def matrix_exp(input: Tensor, *, out: Any = None) -> Tensor: ...
def matrix_power(input: Tensor, n: int, *, out: Any = None) -> Tensor: ...
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
def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
def max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
    *,
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
def meshgrid(
    *tensors: Tensor | Sequence[Tensor], indexing: str = "ij", out: Any = None
) -> tuple[Tensor, ...]: ...
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
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Ordered: ...
def moveaxis(input: Tensor, source: Sizes, destination: Sizes, *, out: Any = None) -> Tensor: ...
def movedim(input: Tensor, source: Sizes, destination: Sizes, *, out: Any = None) -> Tensor: ...
def msort(input: Tensor, *, out: Any = None) -> Tensor: ...
def mul(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Any = None,
) -> Tensor: ...
def multiply(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def mv(input: Tensor, vec: Tensor, *, out: Any = None) -> Tensor: ...
def mvlgamma(input: Tensor, p: int, *, out: Any = None) -> Tensor: ...
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
def nanmedian(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None
) -> Any: ...
def nanquantile(
    input: Tensor,
    q: TensorLike,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
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
def narrow(
    input: Tensor, dim: int, start: int | Tensor, length: int, *, out: Any = None
) -> Tensor: ...
def narrow_copy(input: Tensor, dim: int, start: int, length: int, *, out: Any = None) -> Tensor: ...
def ne(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def neg(input: Tensor, *, out: Any = None) -> Tensor: ...
def negative(input: Tensor, *, out: Any = None) -> Tensor: ...
def nextafter(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def nonzero(
    input: Tensor,
    *,
    as_tuple: bool = False,
    size: int | None = None,
    fill_value: int = -1,
    out: Any = None,
) -> Any: ...
def nonzero_static(
    input: Tensor, *, size: int, fill_value: int = -1, out: Any = None
) -> Tensor: ...
def norm(
    input: Tensor,
    p: Scalar | str | None = 2,
    dim: Axis = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    *,
    axis: Axis = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def normal(
    mean: float | Tensor = 0.0,
    std: float | Tensor = 1.0,
    size: Sizes | None = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor: ...
def not_equal(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def numel(input: Tensor, *, out: Any = None) -> int: ...
def ones(
    *sizes: Sizes, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
) -> Tensor: ...
def ones_like(
    input: Tensor, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
) -> Tensor: ...
def orgqr(input: Tensor, tau: Tensor, *, out: Any = None) -> Tensor: ...
def ormqr(
    input: Tensor,
    tau: Tensor,
    other: Tensor,
    left: bool = True,
    transpose: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
@overload
def outer(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: ...
@overload
def outer(input: Tensor, *, vec2: Tensor, out: Any = None) -> Tensor: ...
def pdist(input: Tensor, p: float = 2.0, *, out: Any = None) -> Tensor: ...
def permute(
    input: Tensor, *axes: Sizes, dims: Sequence[int] | None = None, out: Any = None
) -> Tensor: ...
def pinverse(
    input: Tensor,
    rcond: float | Tensor | None = None,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    hermitian: bool = False,
    out: Any = None,
) -> Tensor: ...
def poisson(input: Tensor, generator: Generator | None = None, *, out: Any = None) -> Tensor: ...
def polar(input: Tensor, angle: Tensor, *, out: Any = None) -> Tensor: ...
def positive(input: Tensor, *, out: Any = None) -> Tensor: ...
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
def promote_types(type1: DTypeLike, type2: DTypeLike, *, out: Any = None) -> DType: ...
def put(
    input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False, *, out: Any = None
) -> Tensor: ...
def qr(
    input: Tensor, mode: str = "reduced", *, some: bool | None = None, out: Any = None
) -> QR: ...
def quantile(
    input: Tensor,
    q: TensorLike,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Any = None,
) -> Tensor: ...
def rad2deg(input: Tensor, *, out: Any = None) -> Tensor: ...
def rand(
    *sizes: Sizes,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor: ...
def rand_like(
    input: Tensor, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
) -> Tensor: ...
def randint(
    *given: Any,
    low: builtins.int | None = None,
    high: builtins.int | None = None,
    size: Sizes | None = None,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor: ...
def randint_like(
    input: Tensor,
    low: Scalar = 0,
    high: Scalar | None = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    out: Any = None,
) -> Tensor: ...
def randn(
    *sizes: Sizes,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor: ...
def randn_like(
    input: Tensor, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
) -> Tensor: ...
def randperm(
    n: builtins.int,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor: ...
def range(
    start: float,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor: ...
def ravel(input: Tensor, *, out: Any = None) -> Tensor: ...
def real(input: Tensor, *, out: Any = None) -> Tensor: ...
def reciprocal(input: Tensor, *, out: Any = None) -> Tensor: ...
def relu(input: Tensor, *, out: Any = None) -> Tensor: ...
def remainder(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Any = None) -> Tensor: ...
def repeat_interleave(
    input: Tensor,
    repeats: int | Tensor | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
    out: Any = None,
) -> Tensor: ...
def reshape(
    input: Tensor, *sizes: Sizes, shape: Sequence[int] | None = None, out: Any = None
) -> Tensor: ...
def resolve_conj(input: Tensor, *, out: Any = None) -> Tensor: ...
def resolve_neg(input: Tensor, *, out: Any = None) -> Tensor: ...
def result_type(input: TensorLike, tensor2: TensorLike, *, out: Any = None) -> DType: ...
def roll(input: Tensor, shifts: Sizes, dims: Axis = None, *, out: Any = None) -> Tensor: ...
def rot90(
    input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1), *, out: Any = None
) -> Tensor: ...
def round(input: Tensor, *, decimals: int = 0, out: Any = None) -> Tensor: ...
def row_stack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor: ...
def rsqrt(input: Tensor, *, out: Any = None) -> Tensor: ...
def rsub(input: Tensor, other: TensorLike, *, alpha: Scalar = 1, out: Any = None) -> Tensor: ...
def scalar_tensor(
    s: Scalar, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
) -> Tensor: ...
def scaled_mm(
    input: Tensor,
    b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    out_dtype: DTypeLike = ...,
    use_fast_accum: bool = False,
    *,
    out: Any = None,
) -> Tensor: ...
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
def seed(*, out: Any = None) -> int: ...
def segment_reduce(
    input: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
    out: Any = None,
) -> Tensor: ...
def select(input: Tensor, dim: int, index: int | Tensor, *, out: Any = None) -> Tensor: ...
def select_scatter(
    input: Tensor, src: Tensor, dim: int, index: int, *, out: Any = None
) -> Tensor: ...
def set_rng_state(new_state: Any, *, out: Any = None) -> None: ...
def sgn(input: Tensor, *, out: Any = None) -> Tensor: ...
def sigmoid(input: Tensor, *, out: Any = None) -> Tensor: ...
def sign(input: Tensor, *, out: Any = None) -> Tensor: ...
def signbit(input: Tensor, *, out: Any = None) -> Tensor: ...
def sin(input: Tensor, *, out: Any = None) -> Tensor: ...
def sinc(input: Tensor, *, out: Any = None) -> Tensor: ...
def sinh(input: Tensor, *, out: Any = None) -> Tensor: ...
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    out: Any = None,
) -> Tensor: ...
def slogdet(input: Tensor, *, out: Any = None) -> Slogdet: ...
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
    stable: bool | None = True,
    *,
    axis: int = ...,
    out: Any = None,
) -> Ordered: ...
@overload
def split(
    input: Tensor, sizes: Sizes, dim: int = 0, *, axis: int = ..., out: Any = None
) -> tuple[Tensor, ...]: ...
@overload
def split(
    input: Tensor, *, split_size: Sizes, dim: int = 0, axis: int = ..., out: Any = None
) -> tuple[Tensor, ...]: ...
def split_with_sizes(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0, *, out: Any = None
) -> tuple[Tensor, ...]: ...
def sqrt(input: Tensor, *, out: Any = None) -> Tensor: ...
def square(input: Tensor, *, out: Any = None) -> Tensor: ...
def squeeze(input: Tensor, dim: Axis = None, *, axis: Axis = ..., out: Any = None) -> Tensor: ...
def stack(
    input: Tensor | Sequence[Tensor], *others: Any, dim: builtins.int = ..., out: Any = None
) -> Tensor: ...
def std(
    input: Tensor,
    dim: Axis | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
    axis: Axis | bool = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def std_mean(
    input: Tensor,
    dim: Axis | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
    axis: Axis | bool = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> tuple[Tensor, Tensor]: ...
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    *,
    out: Any = None,
) -> Tensor: ...
def sub(input: Tensor, other: TensorLike, *, alpha: Scalar = 1, out: Any = None) -> Tensor: ...
def subtract(input: Tensor, other: TensorLike, *, alpha: Scalar = 1, out: Any = None) -> Tensor: ...
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
def svd(
    input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None
) -> decompositions.SVD: ...
def swapaxes(input: Tensor, axis0: int, axis1: int, *, out: Any = None) -> Tensor: ...
def swapdims(input: Tensor, axis0: int, axis1: int, *, out: Any = None) -> Tensor: ...
def t(input: Tensor, *, out: Any = None) -> Tensor: ...
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
def tile(input: Tensor, *counts: Sizes, out: Any = None) -> Tensor: ...
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
def trapezoid(
    input: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1, out: Any = None
) -> Tensor: ...
def trapz(
    input: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1, out: Any = None
) -> Tensor: ...
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Any = None,
) -> Triangular: ...
def tril(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Tensor: ...
def tril_indices(
    row: int,
    col: int | None = None,
    offset: int = 0,
    device: DeviceLike | None = None,
    dtype: DTypeLike = "int64",
    *,
    out: Any = None,
) -> Tensor: ...
def triu(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Tensor: ...
def triu_indices(
    row: int,
    col: int | None = None,
    offset: int = 0,
    device: DeviceLike | None = None,
    dtype: DTypeLike = "int64",
    *,
    out: Any = None,
) -> Tensor: ...
def true_divide(input: Tensor, other: TensorLike, *, out: Any = None) -> Tensor: ...
def trunc(input: Tensor, *, out: Any = None) -> Tensor: ...
def truncated_normal(
    *sizes: Sizes,
    mean: float = 0.0,
    std: float = 1.0,
    low: float = -2.0,
    high: float = 2.0,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor: ...
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
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    out: Any = None,
) -> Any: ...
def unravel_index(input: Tensor, shape: Sizes, *, out: Any = None) -> tuple[Tensor, ...]: ...
def unsafe_chunk(
    input: Tensor, chunks: int, dim: int = 0, *, axis: int = ..., out: Any = None
) -> tuple[Tensor, ...]: ...
@overload
def unsafe_split(
    input: Tensor, sizes: Sizes, dim: int = 0, *, axis: int = ..., out: Any = None
) -> tuple[Tensor, ...]: ...
@overload
def unsafe_split(
    input: Tensor, *, split_size: Sizes, dim: int = 0, axis: int = ..., out: Any = None
) -> tuple[Tensor, ...]: ...
def unsafe_split_with_sizes(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0, *, out: Any = None
) -> tuple[Tensor, ...]: ...
def unsqueeze(input: Tensor, dim: int = 0, *, axis: int = ..., out: Any = None) -> Tensor: ...
def vander(
    input: Tensor, N: int | None = None, increasing: bool = False, *, out: Any = None
) -> Tensor: ...
def var(
    input: Tensor,
    dim: Axis | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
    axis: Axis | bool = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> Tensor: ...
def var_mean(
    input: Tensor,
    dim: Axis | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
    axis: Axis | bool = ...,
    keepdims: bool = ...,
    out: Any = None,
) -> tuple[Tensor, Tensor]: ...
def vdot(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: ...
def view_as_complex(input: Tensor, *, out: Any = None) -> Tensor: ...
def view_as_real(input: Tensor, *, out: Any = None) -> Tensor: ...
def vsplit(input: Tensor, indices_or_sections: Sizes, *, out: Any = None) -> tuple[Tensor, ...]: ...
def vstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor: ...
@overload
def where(input: TensorLike, *, out: Any = None) -> tuple[Tensor, ...]: ...
@overload
def where(input: TensorLike, a: TensorLike, b: TensorLike, *, out: Any = None) -> Tensor: ...
def xlogy(input: TensorLike, other: TensorLike, *, out: Any = None) -> Tensor: ...
def zeros(
    *sizes: Sizes, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
) -> Tensor: ...
def zeros_like(
    input: Tensor, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
) -> Tensor: ...

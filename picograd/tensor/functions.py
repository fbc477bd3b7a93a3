"""PyTorch's function spelling: `picograd.exp(x)` is `x.exp()`, and so on."""

from collections.abc import Sequence
from typing import Final

from picograd.graph.shape import broadcast_shapes
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.core.arguments import need_tensors
from picograd.tensor.core.guard import guard_functions
from picograd.tensor.core.recording import apply_all
from picograd.tensor.core.recording import grad as grad
from picograd.tensor.core.spelling import spell_functions
from picograd.tensor.making.tensors_like import (
    empty_like,
    full_like,
    ones_like,
    rand_like,
    randn_like,
    zeros_like,
)
from picograd.tensor.math import special
from picograd.tensor.shaping import assembling
from picograd.tensor.shaping.joining import meshgrid as meshgrid
from picograd.tensor.tensor import Tensor
from picograd.tensor.tensor import where as where

zeros: Final = Tensor.zeros
ones: Final = Tensor.ones
empty: Final = Tensor.empty
full: Final = Tensor.full
arange: Final = Tensor.arange
linspace: Final = Tensor.linspace
eye: Final = Tensor.eye
from_numpy: Final = Tensor.from_numpy
rand: Final = Tensor.rand
randn: Final = Tensor.randn
randint: Final = Tensor.randint
randperm: Final = Tensor.randperm
manual_seed: Final = Tensor.manual_seed
cat: Final = Tensor.cat
stack: Final = Tensor.stack
einsum: Final = Tensor.einsum
concat: Final = cat
concatenate: Final = cat

exp: Final = Tensor.exp
exp2: Final = Tensor.exp2
expm1: Final = Tensor.expm1
log: Final = Tensor.log
log2: Final = Tensor.log2
log10: Final = Tensor.log10
log1p: Final = Tensor.log1p
sqrt: Final = Tensor.sqrt
rsqrt: Final = Tensor.rsqrt
reciprocal: Final = Tensor.reciprocal
square: Final = Tensor.square
sin: Final = Tensor.sin
cos: Final = Tensor.cos
tan: Final = Tensor.tan
tanh: Final = Tensor.tanh
erf: Final = Tensor.erf
abs: Final = Tensor.abs
sign: Final = Tensor.sign
neg: Final = Tensor.neg
floor: Final = Tensor.floor
ceil: Final = Tensor.ceil
round: Final = Tensor.round
trunc: Final = Tensor.trunc
relu: Final = Tensor.relu
sigmoid: Final = Tensor.sigmoid
isnan: Final = Tensor.isnan
isinf: Final = Tensor.isinf
isfinite: Final = Tensor.isfinite
allclose: Final = Tensor.allclose
maximum: Final = Tensor.maximum
minimum: Final = Tensor.minimum
clamp: Final = Tensor.clamp
lerp: Final = Tensor.lerp
add: Final = Tensor.add
sub: Final = Tensor.sub
mul: Final = Tensor.mul
div: Final = Tensor.div
pow: Final = Tensor.pow
logical_and: Final = Tensor.logical_and
logical_or: Final = Tensor.logical_or
logical_not: Final = Tensor.logical_not
logical_xor: Final = Tensor.logical_xor

cumsum: Final = Tensor.cumsum
cumprod: Final = Tensor.cumprod
cummax: Final = Tensor.cummax
cummin: Final = Tensor.cummin
logcumsumexp: Final = Tensor.logcumsumexp
sort: Final = Tensor.sort
argsort: Final = Tensor.argsort
msort: Final = Tensor.msort
topk: Final = Tensor.topk
kthvalue: Final = Tensor.kthvalue
median: Final = Tensor.median
quantile: Final = Tensor.quantile
unique: Final = Tensor.unique
searchsorted: Final = Tensor.searchsorted
bincount: Final = Tensor.bincount
histc: Final = Tensor.histc

reshape: Final = Tensor.reshape
permute: Final = Tensor.permute
transpose: Final = Tensor.transpose
flip: Final = Tensor.flip
squeeze: Final = Tensor.squeeze
unsqueeze: Final = Tensor.unsqueeze
flatten: Final = Tensor.flatten
roll: Final = Tensor.roll
tril: Final = Tensor.tril
triu: Final = Tensor.triu
split: Final = Tensor.split
chunk: Final = Tensor.chunk
gather: Final = Tensor.gather
index_select: Final = Tensor.index_select
take_along_dim: Final = Tensor.take_along_dim
scatter_add: Final = Tensor.scatter_add
matmul: Final = Tensor.matmul
mm: Final = Tensor.mm
bmm: Final = Tensor.bmm
dot: Final = Tensor.dot
outer: Final = Tensor.outer

sinh: Final = Tensor.sinh
cosh: Final = Tensor.cosh
asin: Final = Tensor.asin
acos: Final = Tensor.acos
atan: Final = Tensor.atan
atan2: Final = Tensor.atan2
asinh: Final = Tensor.asinh
acosh: Final = Tensor.acosh
atanh: Final = Tensor.atanh
arcsin: Final = Tensor.arcsin
arccos: Final = Tensor.arccos
arctan: Final = Tensor.arctan
arctan2: Final = Tensor.arctan2
arcsinh: Final = Tensor.arcsinh
arccosh: Final = Tensor.arccosh
arctanh: Final = Tensor.arctanh
sinc: Final = Tensor.sinc
erfc: Final = Tensor.erfc
erfinv: Final = Tensor.erfinv
lgamma: Final = Tensor.lgamma
digamma: Final = Tensor.digamma
polygamma: Final = special.polygamma
signbit: Final = Tensor.signbit
hypot: Final = Tensor.hypot
copysign: Final = Tensor.copysign
fmod: Final = Tensor.fmod
logaddexp: Final = Tensor.logaddexp
xlogy: Final = Tensor.xlogy
swapaxes: Final = Tensor.swapaxes
swapdims: Final = Tensor.swapdims
movedim: Final = Tensor.movedim
moveaxis: Final = Tensor.moveaxis
tile: Final = Tensor.tile
tensor_split: Final = Tensor.tensor_split
select: Final = Tensor.select
ravel: Final = Tensor.ravel
fliplr: Final = Tensor.fliplr
flipud: Final = Tensor.flipud
rot90: Final = Tensor.rot90
diff: Final = Tensor.diff
diag: Final = Tensor.diag
diag_embed: Final = Tensor.diag_embed
trace: Final = Tensor.trace
kron: Final = Tensor.kron
cross: Final = Tensor.cross
cdist: Final = Tensor.cdist
dist: Final = Tensor.dist
tensordot: Final = Tensor.tensordot
inner: Final = Tensor.inner
mv: Final = Tensor.mv
vdot: Final = Tensor.vdot
addmm: Final = Tensor.addmm
addmv: Final = Tensor.addmv
baddbmm: Final = Tensor.baddbmm
addr: Final = Tensor.addr
cov: Final = Tensor.cov
corrcoef: Final = Tensor.corrcoef
addcmul: Final = Tensor.addcmul
addcdiv: Final = Tensor.addcdiv
isclose: Final = Tensor.isclose
nan_to_num: Final = Tensor.nan_to_num
frac: Final = Tensor.frac
heaviside: Final = Tensor.heaviside
logit: Final = Tensor.logit
deg2rad: Final = Tensor.deg2rad
rad2deg: Final = Tensor.rad2deg
take: Final = Tensor.take
index_fill: Final = Tensor.index_fill
index_copy: Final = Tensor.index_copy
index_add: Final = Tensor.index_add
scatter: Final = Tensor.scatter
scatter_reduce: Final = Tensor.scatter_reduce
masked_scatter: Final = Tensor.masked_scatter
masked_select: Final = Tensor.masked_select
nonzero: Final = Tensor.nonzero
argwhere: Final = Tensor.argwhere
repeat_interleave: Final = Tensor.repeat_interleave
diagonal: Final = Tensor.diagonal
unflatten: Final = Tensor.unflatten
unbind: Final = Tensor.unbind
narrow: Final = Tensor.narrow
subtract: Final = Tensor.subtract
multiply: Final = Tensor.multiply
divide: Final = Tensor.divide
true_divide: Final = Tensor.true_divide
floor_divide: Final = Tensor.floor_divide
remainder: Final = Tensor.remainder
negative: Final = Tensor.negative
bitwise_and: Final = Tensor.bitwise_and
bitwise_or: Final = Tensor.bitwise_or
bitwise_xor: Final = Tensor.bitwise_xor
bitwise_not: Final = Tensor.bitwise_not
bitwise_left_shift: Final = Tensor.bitwise_left_shift
bitwise_right_shift: Final = Tensor.bitwise_right_shift
eq: Final = Tensor.eq
ne: Final = Tensor.ne
lt: Final = Tensor.lt
le: Final = Tensor.le
gt: Final = Tensor.gt
ge: Final = Tensor.ge
less: Final = Tensor.less
less_equal: Final = Tensor.less_equal
greater: Final = Tensor.greater
greater_equal: Final = Tensor.greater_equal
not_equal: Final = Tensor.not_equal
conv1d: Final = Tensor.conv1d
conv2d: Final = Tensor.conv2d
conv3d: Final = Tensor.conv3d
conv_transpose1d: Final = Tensor.conv_transpose1d
conv_transpose2d: Final = Tensor.conv_transpose2d
conv_transpose3d: Final = Tensor.conv_transpose3d
max_pool1d: Final = Tensor.max_pool1d
max_pool2d: Final = Tensor.max_pool2d
max_pool3d: Final = Tensor.max_pool3d
avg_pool1d: Final = Tensor.avg_pool1d
avg_pool2d: Final = Tensor.avg_pool2d
avg_pool3d: Final = Tensor.avg_pool3d
adaptive_avg_pool1d: Final = Tensor.adaptive_avg_pool1d
adaptive_avg_pool2d: Final = Tensor.adaptive_avg_pool2d
adaptive_avg_pool3d: Final = Tensor.adaptive_avg_pool3d
adaptive_max_pool1d: Final = Tensor.adaptive_max_pool1d
adaptive_max_pool2d: Final = Tensor.adaptive_max_pool2d
adaptive_max_pool3d: Final = Tensor.adaptive_max_pool3d
from_dlpack: Final = Tensor.from_dlpack


def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Repeat tensors to their common shape: views of them.

    >>> x, y = picograd.broadcast_tensors(Tensor([1.0, 2.0]), Tensor([[3.0], [4.0]]))
    >>> x.tolist(), y.tolist()
    ([[1.0, 2.0], [1.0, 2.0]], [[3.0, 3.0], [4.0, 4.0]])
    """
    listed = need_tensors("broadcast_tensors", tensors)
    shape = broadcast_shapes(*(each.shape for each in listed), op="broadcast_tensors")
    return tuple(each.expand(shape) for each in listed)


def block_diag(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """Put matrices on the diagonal of a larger one.

    >>> picograd.block_diag(Tensor([[1.0]]), Tensor([[2.0, 3.0]])).tolist()
    [[1.0, 0.0, 0.0], [0.0, 2.0, 3.0]]
    """
    return apply_all(assembling.block_diag, tensors)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join along axis 0 after making everything at least 2-d.

    >>> picograd.vstack([Tensor([1.0, 2.0]), Tensor([3.0, 4.0])]).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return apply_all(assembling.stack_along, tensors, 2, 0)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join along axis 1, or along axis 0 for vectors.

    >>> picograd.hstack([Tensor([1.0, 2.0]), Tensor([3.0])]).tolist()
    [1.0, 2.0, 3.0]
    """
    return apply_all(assembling.stack_along, tensors, 1, 1)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join along axis 2 after making everything at least 3-d.

    >>> picograd.dstack([Tensor([1.0, 2.0]), Tensor([3.0, 4.0])]).tolist()
    [[[1.0, 3.0], [2.0, 4.0]]]
    """
    return apply_all(assembling.stack_along, tensors, 3, 2)


def tril_indices(
    row: int,
    col: int | None = None,
    offset: int = 0,
    device: DeviceLike | None = None,
    dtype: DTypeLike = "int64",
) -> Tensor:
    """List the positions of a lower triangle, (2, count) in int64.

    >>> picograd.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    return Tensor(assembling.triangle_indices(row, col, offset, True), dtype, device)


def triu_indices(
    row: int,
    col: int | None = None,
    offset: int = 0,
    device: DeviceLike | None = None,
    dtype: DTypeLike = "int64",
) -> Tensor:
    """List the positions of an upper triangle, (2, count) in int64.

    >>> picograd.triu_indices(2, 2).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    return Tensor(assembling.triangle_indices(row, col, offset, False), dtype, device)


row_stack: Final = vstack

OWN = [name for name, value in globals().items() if getattr(value, "__module__", "") == __name__]
LIKE = [each.__name__ for each in (
    empty_like, full_like, ones_like, rand_like, randn_like, zeros_like,
)]  # fmt: skip
guard_functions(globals(), [*OWN, *LIKE, "meshgrid", "where"])
spell_functions(globals(), [name for name in globals() if name not in ("apply_all", "several_of")])

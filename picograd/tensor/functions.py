"""PyTorch's function spelling: `picograd.exp(x)` is `x.exp()`, and so on."""

import builtins
from typing import Any

from picograd.tensor import assembling
from picograd.tensor.autograd import is_grad_enabled
from picograd.tensor.recording import apply_all, read, wrap
from picograd.tensor.recording import grad as grad
from picograd.tensor.tensor import Tensor
from picograd.tensor.tensor import where as where

zeros = Tensor.zeros
ones = Tensor.ones
empty = Tensor.empty
full = Tensor.full
arange = Tensor.arange
linspace = Tensor.linspace
eye = Tensor.eye
from_numpy = Tensor.from_numpy
rand = Tensor.rand
randn = Tensor.randn
randint = Tensor.randint
randperm = Tensor.randperm
manual_seed = Tensor.manual_seed
cat = Tensor.cat
stack = Tensor.stack
einsum = Tensor.einsum
concat = concatenate = cat

exp = Tensor.exp
exp2 = Tensor.exp2
expm1 = Tensor.expm1
log = Tensor.log
log2 = Tensor.log2
log10 = Tensor.log10
log1p = Tensor.log1p
sqrt = Tensor.sqrt
rsqrt = Tensor.rsqrt
reciprocal = Tensor.reciprocal
square = Tensor.square
sin = Tensor.sin
cos = Tensor.cos
tan = Tensor.tan
tanh = Tensor.tanh
erf = Tensor.erf
abs = Tensor.abs
sign = Tensor.sign
neg = Tensor.neg
floor = Tensor.floor
ceil = Tensor.ceil
round = Tensor.round
trunc = Tensor.trunc
relu = Tensor.relu
sigmoid = Tensor.sigmoid
isnan = Tensor.isnan
isinf = Tensor.isinf
isfinite = Tensor.isfinite
allclose = Tensor.allclose
maximum = Tensor.maximum
minimum = Tensor.minimum
clamp = Tensor.clamp
lerp = Tensor.lerp
add = Tensor.add
sub = Tensor.sub
mul = Tensor.mul
div = Tensor.div
pow = Tensor.pow
logical_and = Tensor.logical_and
logical_or = Tensor.logical_or
logical_not = Tensor.logical_not
logical_xor = Tensor.logical_xor

sum = Tensor.sum
prod = Tensor.prod
mean = Tensor.mean
max = Tensor.max
min = Tensor.min
amax = Tensor.amax
amin = Tensor.amin
argmax = Tensor.argmax
argmin = Tensor.argmin
var = Tensor.var
std = Tensor.std
norm = Tensor.norm
any = Tensor.any
all = Tensor.all
logsumexp = Tensor.logsumexp
softmax = Tensor.softmax
log_softmax = Tensor.log_softmax
cumsum = Tensor.cumsum
cumprod = Tensor.cumprod
cummax = Tensor.cummax
cummin = Tensor.cummin
logcumsumexp = Tensor.logcumsumexp
sort = Tensor.sort
argsort = Tensor.argsort
msort = Tensor.msort
topk = Tensor.topk
kthvalue = Tensor.kthvalue
median = Tensor.median
quantile = Tensor.quantile
unique = Tensor.unique
searchsorted = Tensor.searchsorted
bincount = Tensor.bincount
histc = Tensor.histc

reshape = Tensor.reshape
permute = Tensor.permute
transpose = Tensor.transpose
flip = Tensor.flip
squeeze = Tensor.squeeze
unsqueeze = Tensor.unsqueeze
flatten = Tensor.flatten
roll = Tensor.roll
tril = Tensor.tril
triu = Tensor.triu
split = Tensor.split
chunk = Tensor.chunk
gather = Tensor.gather
index_select = Tensor.index_select
take_along_dim = Tensor.take_along_dim
scatter_add = Tensor.scatter_add
matmul = Tensor.matmul
mm = Tensor.mm
bmm = Tensor.bmm
dot = Tensor.dot
outer = Tensor.outer

sinh = Tensor.sinh
cosh = Tensor.cosh
asin = Tensor.asin
acos = Tensor.acos
atan = Tensor.atan
atan2 = Tensor.atan2
asinh = Tensor.asinh
acosh = Tensor.acosh
atanh = Tensor.atanh
arcsin = Tensor.arcsin
arccos = Tensor.arccos
arctan = Tensor.arctan
arctan2 = Tensor.arctan2
arcsinh = Tensor.arcsinh
arccosh = Tensor.arccosh
arctanh = Tensor.arctanh
sinc = Tensor.sinc
erfc = Tensor.erfc
erfinv = Tensor.erfinv
lgamma = Tensor.lgamma
digamma = Tensor.digamma
polygamma = Tensor.polygamma
signbit = Tensor.signbit
hypot = Tensor.hypot
copysign = Tensor.copysign
fmod = Tensor.fmod
logaddexp = Tensor.logaddexp
xlogy = Tensor.xlogy
swapaxes = Tensor.swapaxes
swapdims = Tensor.swapdims
movedim = Tensor.movedim
moveaxis = Tensor.moveaxis
tile = Tensor.tile
tensor_split = Tensor.tensor_split
select = Tensor.select
ravel = Tensor.ravel
fliplr = Tensor.fliplr
flipud = Tensor.flipud
rot90 = Tensor.rot90
diff = Tensor.diff
diag = Tensor.diag
diag_embed = Tensor.diag_embed
trace = Tensor.trace
kron = Tensor.kron
cross = Tensor.cross
cdist = Tensor.cdist
dist = Tensor.dist
tensordot = Tensor.tensordot
inner = Tensor.inner
mv = Tensor.mv
vdot = Tensor.vdot
addmm = Tensor.addmm
addmv = Tensor.addmv
baddbmm = Tensor.baddbmm
addr = Tensor.addr
cov = Tensor.cov
corrcoef = Tensor.corrcoef
addcmul = Tensor.addcmul
addcdiv = Tensor.addcdiv
isclose = Tensor.isclose
nan_to_num = Tensor.nan_to_num
frac = Tensor.frac
heaviside = Tensor.heaviside
logit = Tensor.logit
deg2rad = Tensor.deg2rad
rad2deg = Tensor.rad2deg
std_mean = Tensor.std_mean
var_mean = Tensor.var_mean
aminmax = Tensor.aminmax
count_nonzero = Tensor.count_nonzero
nansum = Tensor.nansum
nanmean = Tensor.nanmean
take = Tensor.take
index_fill = Tensor.index_fill
index_copy = Tensor.index_copy
index_add = Tensor.index_add
scatter = Tensor.scatter
scatter_reduce = Tensor.scatter_reduce
masked_scatter = Tensor.masked_scatter
masked_select = Tensor.masked_select
nonzero = Tensor.nonzero
argwhere = Tensor.argwhere
repeat_interleave = Tensor.repeat_interleave
diagonal = Tensor.diagonal
unflatten = Tensor.unflatten
unbind = Tensor.unbind
narrow = Tensor.narrow
subtract = Tensor.subtract
multiply = Tensor.multiply
divide = Tensor.divide
true_divide = Tensor.true_divide
floor_divide = Tensor.floor_divide
remainder = Tensor.remainder
negative = Tensor.negative
bitwise_and = Tensor.bitwise_and
bitwise_or = Tensor.bitwise_or
bitwise_xor = Tensor.bitwise_xor
bitwise_not = Tensor.bitwise_not
bitwise_left_shift = Tensor.bitwise_left_shift
bitwise_right_shift = Tensor.bitwise_right_shift
eq = Tensor.eq
ne = Tensor.ne
lt = Tensor.lt
le = Tensor.le
gt = Tensor.gt
ge = Tensor.ge
less = Tensor.less
less_equal = Tensor.less_equal
greater = Tensor.greater
greater_equal = Tensor.greater_equal
not_equal = Tensor.not_equal
conv1d = Tensor.conv1d
conv2d = Tensor.conv2d
conv3d = Tensor.conv3d
conv_transpose1d = Tensor.conv_transpose1d
conv_transpose2d = Tensor.conv_transpose2d
conv_transpose3d = Tensor.conv_transpose3d
max_pool1d = Tensor.max_pool1d
max_pool2d = Tensor.max_pool2d
max_pool3d = Tensor.max_pool3d
avg_pool1d = Tensor.avg_pool1d
avg_pool2d = Tensor.avg_pool2d
avg_pool3d = Tensor.avg_pool3d
adaptive_avg_pool1d = Tensor.adaptive_avg_pool1d
adaptive_avg_pool2d = Tensor.adaptive_avg_pool2d
adaptive_avg_pool3d = Tensor.adaptive_avg_pool3d
adaptive_max_pool1d = Tensor.adaptive_max_pool1d
adaptive_max_pool2d = Tensor.adaptive_max_pool2d
adaptive_max_pool3d = Tensor.adaptive_max_pool3d
from_dlpack = Tensor.from_dlpack


def place_like(x: Tensor, dtype: Any, device: Any) -> dict[str, Any]:
    """Default dtype and device to those of a tensor."""
    return dict(dtype=dtype or x.dtype, device=device or x.device)


def zeros_like(x: Tensor, dtype: Any = None, device: Any = None, **more: Any) -> Tensor:
    """Make zeros of the shape, dtype and device of another tensor."""
    return Tensor.zeros(x.shape, **place_like(x, dtype, device), **more)


def ones_like(x: Tensor, dtype: Any = None, device: Any = None, **more: Any) -> Tensor:
    """Make ones of the shape, dtype and device of another tensor."""
    return Tensor.ones(x.shape, **place_like(x, dtype, device), **more)


def empty_like(x: Tensor, dtype: Any = None, device: Any = None, **more: Any) -> Tensor:
    """Make a tensor of the shape, dtype and device of another; its values are zeros."""
    return Tensor.empty(x.shape, **place_like(x, dtype, device), **more)


def full_like(
    x: Tensor, fill_value: Any, dtype: Any = None, device: Any = None, **more: Any
) -> Tensor:
    """Fill the shape of another tensor with one value."""
    return Tensor.full(x.shape, fill_value, **place_like(x, dtype, device), **more)


def rand_like(x: Tensor, dtype: Any = None, device: Any = None, **more: Any) -> Tensor:
    """Draw uniformly from [0, 1) in the shape of another tensor."""
    return Tensor.rand(x.shape, **place_like(x, dtype, device), **more)


def randn_like(x: Tensor, dtype: Any = None, device: Any = None, **more: Any) -> Tensor:
    """Draw from the standard normal distribution in the shape of another tensor."""
    return Tensor.randn(x.shape, **place_like(x, dtype, device), **more)


def several_of(function: Any, tensors: Any, *options: Any) -> tuple[Any, ...]:
    """Record an operation that turns several tensors into several."""
    listed = (
        list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    )
    nodes = function([read(each) for each in listed], *options)
    tracks = is_grad_enabled() and builtins.any(each.requires_grad for each in listed)
    return tuple(wrap(node, tracks and node.dtype.is_float) for node in nodes)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Any, ...]:
    """Repeat vectors over the grid they span; indexing="xy" swaps the first two axes."""
    return several_of(assembling.meshgrid, tensors, indexing)


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """Repeat tensors to their common shape."""
    return several_of(assembling.broadcast_all, tensors)


def block_diag(*tensors: Any) -> Tensor:
    """Put matrices on the diagonal of a larger one."""
    return apply_all(assembling.block_diag, tensors)


def vstack(tensors: Any) -> Tensor:
    """Join along axis 0 after making everything at least 2-d."""
    return apply_all(assembling.stack_along, tensors, 2, 0)


def hstack(tensors: Any) -> Tensor:
    """Join along axis 1, or along axis 0 for vectors."""
    return apply_all(assembling.stack_along, tensors, 1, 1)


def dstack(tensors: Any) -> Tensor:
    """Join along axis 2 after making everything at least 3-d."""
    return apply_all(assembling.stack_along, tensors, 3, 2)


def tril_indices(row: int, col: int | None = None, offset: int = 0, device: Any = None) -> Tensor:
    """List the positions of a lower triangle, (2, count) in int64."""
    return Tensor(assembling.triangle_indices(row, col, offset, True), device=device)


def triu_indices(row: int, col: int | None = None, offset: int = 0, device: Any = None) -> Tensor:
    """List the positions of an upper triangle, (2, count) in int64."""
    return Tensor(assembling.triangle_indices(row, col, offset, False), device=device)


row_stack = vstack

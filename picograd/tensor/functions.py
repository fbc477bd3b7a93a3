"""PyTorch's function spelling: `picograd.exp(x)` is `x.exp()`, and so on."""

from typing import Any

from picograd.graph.shape import broadcast_shapes
from picograd.tensor import assembling, special_functions
from picograd.tensor.arranging import meshgrid as meshgrid
from picograd.tensor.guard import guard_functions
from picograd.tensor.inputs import need_tensors
from picograd.tensor.making import (
    empty_like,
    full_like,
    ones_like,
    rand_like,
    randn_like,
    zeros_like,
)
from picograd.tensor.recording import apply_all
from picograd.tensor.recording import grad as grad
from picograd.tensor.spelling import spell_functions
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
polygamma = special_functions.polygamma
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


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """Repeat tensors to their common shape: views of them.

    >>> import picograd
    >>> from picograd import Tensor
    >>> x, y = picograd.broadcast_tensors(Tensor([1.0, 2.0]), Tensor([[3.0], [4.0]]))
    >>> x.tolist(), y.tolist()
    ([[1.0, 2.0], [1.0, 2.0]], [[3.0, 3.0], [4.0, 4.0]])
    """
    listed = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    need_tensors("broadcast_tensors", (listed,))
    shape = broadcast_shapes(*(each.shape for each in listed), op="broadcast_tensors")
    return tuple(each.expand(shape) for each in listed)


def block_diag(*tensors: Any) -> Tensor:
    """Put matrices on the diagonal of a larger one.

    >>> import picograd
    >>> from picograd import Tensor
    >>> picograd.block_diag(Tensor([[1.0]]), Tensor([[2.0, 3.0]])).tolist()
    [[1.0, 0.0, 0.0], [0.0, 2.0, 3.0]]
    """
    return apply_all(assembling.block_diag, tensors)


def vstack(tensors: Any) -> Tensor:
    """Join along axis 0 after making everything at least 2-d.

    >>> import picograd
    >>> from picograd import Tensor
    >>> picograd.vstack([Tensor([1.0, 2.0]), Tensor([3.0, 4.0])]).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return apply_all(assembling.stack_along, tensors, 2, 0)


def hstack(tensors: Any) -> Tensor:
    """Join along axis 1, or along axis 0 for vectors.

    >>> import picograd
    >>> from picograd import Tensor
    >>> picograd.hstack([Tensor([1.0, 2.0]), Tensor([3.0])]).tolist()
    [1.0, 2.0, 3.0]
    """
    return apply_all(assembling.stack_along, tensors, 1, 1)


def dstack(tensors: Any) -> Tensor:
    """Join along axis 2 after making everything at least 3-d.

    >>> import picograd
    >>> from picograd import Tensor
    >>> picograd.dstack([Tensor([1.0, 2.0]), Tensor([3.0, 4.0])]).tolist()
    [[[1.0, 3.0], [2.0, 4.0]]]
    """
    return apply_all(assembling.stack_along, tensors, 3, 2)


def tril_indices(
    row: int, col: int | None = None, offset: int = 0, device: Any = None, dtype: Any = "int64"
) -> Tensor:
    """List the positions of a lower triangle, (2, count) in int64.

    >>> import picograd
    >>> picograd.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    return Tensor(assembling.triangle_indices(row, col, offset, True), dtype, device)


def triu_indices(
    row: int, col: int | None = None, offset: int = 0, device: Any = None, dtype: Any = "int64"
) -> Tensor:
    """List the positions of an upper triangle, (2, count) in int64.

    >>> import picograd
    >>> picograd.triu_indices(2, 2).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    return Tensor(assembling.triangle_indices(row, col, offset, False), dtype, device)


row_stack = vstack

OWN = [name for name, value in globals().items() if getattr(value, "__module__", "") == __name__]
LIKE = [each.__name__ for each in (
    empty_like, full_like, ones_like, rand_like, randn_like, zeros_like,
)]  # fmt: skip
guard_functions(globals(), [*OWN, *LIKE, "meshgrid", "where"])
spell_functions(globals(), [name for name in globals() if name not in ("apply_all", "several_of")])

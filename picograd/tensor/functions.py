"""PyTorch's function spelling: `picograd.exp(x)` is `x.exp()`, and so on."""

from typing import Any

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

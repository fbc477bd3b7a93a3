"""PyTorch's function spelling: `picograd.exp(x)` is `x.exp()`, and so on."""

from typing import Any

from picograd.tensor.tensor import Tensor
from picograd.tensor.tensor import where as where
from picograd.tensor.tensor import grad as grad

zeros, ones, empty, full = Tensor.zeros, Tensor.ones, Tensor.empty, Tensor.full
arange, linspace, eye, from_numpy = Tensor.arange, Tensor.linspace, Tensor.eye, Tensor.from_numpy
rand, randn, randint, randperm = Tensor.rand, Tensor.randn, Tensor.randint, Tensor.randperm
manual_seed = Tensor.manual_seed
cat, stack, einsum = Tensor.cat, Tensor.stack, Tensor.einsum
concat = concatenate = cat

exp, exp2, expm1 = Tensor.exp, Tensor.exp2, Tensor.expm1
log, log2, log10, log1p = Tensor.log, Tensor.log2, Tensor.log10, Tensor.log1p
sqrt, rsqrt, reciprocal, square = Tensor.sqrt, Tensor.rsqrt, Tensor.reciprocal, Tensor.square
sin, cos, tan, tanh, erf = Tensor.sin, Tensor.cos, Tensor.tan, Tensor.tanh, Tensor.erf
abs, sign, neg = Tensor.abs, Tensor.sign, Tensor.neg  # noqa: A001
floor, ceil, round, trunc = Tensor.floor, Tensor.ceil, Tensor.round, Tensor.trunc  # noqa: A001
relu, sigmoid = Tensor.relu, Tensor.sigmoid
isnan, isinf, isfinite, allclose = Tensor.isnan, Tensor.isinf, Tensor.isfinite, Tensor.allclose
maximum, minimum, clamp, lerp = Tensor.maximum, Tensor.minimum, Tensor.clamp, Tensor.lerp
add, sub, mul, div, pow = Tensor.add, Tensor.sub, Tensor.mul, Tensor.div, Tensor.pow  # noqa: A001
logical_and, logical_or = Tensor.logical_and, Tensor.logical_or
logical_not, logical_xor = Tensor.logical_not, Tensor.logical_xor

sum, prod, mean = Tensor.sum, Tensor.prod, Tensor.mean  # noqa: A001
max, min, amax, amin = Tensor.max, Tensor.min, Tensor.amax, Tensor.amin  # noqa: A001
argmax, argmin, var, std, norm = Tensor.argmax, Tensor.argmin, Tensor.var, Tensor.std, Tensor.norm
any, all, logsumexp = Tensor.any, Tensor.all, Tensor.logsumexp  # noqa: A001
softmax, log_softmax, cumsum = Tensor.softmax, Tensor.log_softmax, Tensor.cumsum

reshape, permute, transpose, flip = Tensor.reshape, Tensor.permute, Tensor.transpose, Tensor.flip
squeeze, unsqueeze, flatten = Tensor.squeeze, Tensor.unsqueeze, Tensor.flatten
roll, tril, triu, split, chunk = Tensor.roll, Tensor.tril, Tensor.triu, Tensor.split, Tensor.chunk
gather, index_select = Tensor.gather, Tensor.index_select
take_along_dim, scatter_add = Tensor.take_along_dim, Tensor.scatter_add
matmul, mm, bmm, dot, outer = Tensor.matmul, Tensor.mm, Tensor.bmm, Tensor.dot, Tensor.outer


def tensor(
    data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Make a tensor, as `torch.tensor`."""
    return Tensor(data, dtype, device, requires_grad)


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

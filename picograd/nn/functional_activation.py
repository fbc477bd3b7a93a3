"""Activation functions that are not methods of Tensor, composed from those that are.

All are elementwise, keep shape and dtype, and fuse into the kernel before them.
"""

from picograd.errors import ShapeError, ValueRangeError
from picograd.tensor.tensor import Tensor

# Klambauer et al. (2017): the fixed point that keeps mean 0 and variance 1.
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Compute x where positive, else negative_slope * x (Maas et al., 2013)."""
    return x.leaky_relu(negative_slope)


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """Compute x where positive, else alpha * (exp(x) - 1) (Clevert et al., 2016)."""
    return x.elu(alpha)


def selu(x: Tensor) -> Tensor:
    """Compute SELU_SCALE * elu(x, SELU_ALPHA) (Klambauer et al., 2017)."""
    return x.elu(SELU_ALPHA) * SELU_SCALE


def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """Compute max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) (Barron, 2017)."""
    return (x / alpha).elu() * alpha


def softplus(
    x: Tensor,
    beta: float = 1.0,
    threshold: float = 20.0,
) -> Tensor:
    """Compute log(1 + exp(beta * x)) / beta, and x itself where beta * x > threshold."""
    return x.softplus(beta, threshold)


def softsign(x: Tensor) -> Tensor:
    """Compute x / (1 + |x|)."""
    return x / (x.abs() + 1.0)


def tanhshrink(x: Tensor) -> Tensor:
    """Compute x - tanh(x)."""
    return x - x.tanh()


def hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """Zero what lies in [-lambd, lambd]."""
    return (x.abs() <= lambd).where(0.0, x)


def softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """Move every element by lambd towards 0, not past it."""
    if lambd < 0.0:
        raise ValueRangeError(
            "softshrink",
            f"lambd={lambd} is negative",
            "use 0 or more",
        )
    below = (x < -lambd).where(x + lambd, x * 0.0)
    return (x > lambd).where(x - lambd, below)


def threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    """Compute x where it is above the threshold, else `value`."""
    return (x <= threshold).where(value, x)


def hardtanh(
    x: Tensor,
    min_val: float = -1.0,
    max_val: float = 1.0,
) -> Tensor:
    """Limit to [min_val, max_val]."""
    return x.hardtanh(min_val, max_val)


def relu6(x: Tensor) -> Tensor:
    """Compute min(max(x, 0), 6) (Howard et al., 2017)."""
    return x.relu6()


def hardsigmoid(x: Tensor) -> Tensor:
    """Compute relu6(x + 3) / 6 (Howard et al., 2019)."""
    return (x + 3.0).relu6() / 6.0


def hardswish(x: Tensor) -> Tensor:
    """Compute x * relu6(x + 3) / 6 (Howard et al., 2019)."""
    return x * (x + 3.0).relu6() / 6.0


def mish(x: Tensor) -> Tensor:
    """Compute x * tanh(softplus(x)) (Misra, 2019)."""
    return x * x.softplus().tanh()


def logsigmoid(x: Tensor) -> Tensor:
    """Compute log(1 / (1 + exp(-x)))."""
    return x.logsigmoid()


def prelu(x: Tensor, weight: Tensor) -> Tensor:
    """Compute x where positive, else weight * x (He et al., 2015).

    `weight` has one element, or one per channel (axis 1). Raises ShapeError otherwise.
    """
    count = weight.numel()
    if count == 1:
        return (x > 0).where(x, weight.reshape(()) * x)
    channels = x.shape[1] if len(x.shape) > 1 else 1
    if count != channels:
        problem = f"{count} weights for {channels} channels of input {tuple(x.shape)}"
        raise ShapeError(
            "prelu",
            problem,
            "give one weight, or one per channel",
        )
    column = weight.reshape(count, *(1,) * (len(x.shape) - 2))
    return (x > 0).where(x, column * x)


def rrelu(
    x: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
) -> Tensor:
    """Compute leaky_relu with slopes drawn from [lower, upper), or their middle in evaluation.

    Xu et al. (2015).
    """
    if not training:
        return x.leaky_relu((lower + upper) / 2)
    slopes = Tensor.rand(*x.shape, device=x.device).cast(x.dtype) * (upper - lower) + lower
    return (x >= 0).where(x, x * slopes)


def glu(x: Tensor, dim: int = -1) -> Tensor:
    """Halve an axis and compute a * sigmoid(b): (..., 2 N) -> (..., N) (Dauphin et al., 2017)."""
    if x.shape[dim] % 2:
        problem = f"axis {dim} of shape {tuple(x.shape)} has an odd size"
        raise ShapeError("glu", problem, "give both halves")
    a, b = x.chunk(2, dim)
    return a * b.sigmoid()


def softmin(x: Tensor, dim: int = -1) -> Tensor:
    """Normalise exp(-x) to sum 1 along an axis."""
    return (-x).softmax(dim)


def gumbel_softmax(
    logits: Tensor,
    tau: float = 1.0,
    hard: bool = False,
    dim: int = -1,
) -> Tensor:
    """Sample from a relaxed categorical distribution (Jang et al., 2017).

    `hard`: a one-hot value whose gradient is that of the soft sample.
    """
    unit = Tensor.rand(*logits.shape, device=logits.device).cast(logits.dtype)
    noise = -(-(unit.maximum(1e-20)).log()).maximum(1e-20).log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    is_largest = soft.argmax(dim, keepdim=True) == _positions(soft, dim)
    return is_largest.cast(soft.dtype) - soft.detach() + soft


def _positions(x: Tensor, dim: int) -> Tensor:
    axis = dim % len(x.shape)
    shape = [size if i == axis else 1 for i, size in enumerate(x.shape)]
    return Tensor.arange(x.shape[axis], device=x.device).reshape(*shape)


def normalize(
    x: Tensor,
    p: float = 2.0,
    dim: int = 1,
    eps: float = 1e-12,
) -> Tensor:
    """Divide by the p-norm along an axis, or by eps where that is smaller."""
    return x / _clamped_norm(x, p, dim, eps)


def _clamped_norm(x: Tensor, p: float, dim: int, eps: float) -> Tensor:
    size = x.norm(p, dim, keepdim=True)
    return (size < eps).where(eps, size)


def cosine_similarity(
    a: Tensor,
    b: Tensor,
    dim: int = 1,
    eps: float = 1e-8,
) -> Tensor:
    """Compute a.b / (|a| |b|) along an axis; norms below eps count as eps."""
    product = (a * b).sum(dim)
    sizes = _squared(a, dim, eps) * _squared(b, dim, eps)
    return product * sizes.rsqrt()


def _squared(x: Tensor, dim: int, eps: float) -> Tensor:
    square = (x * x).sum(dim)
    return square.maximum(eps * eps)


def pairwise_distance(
    a: Tensor,
    b: Tensor,
    p: float = 2.0,
    eps: float = 1e-6,
    keepdim: bool = False,
) -> Tensor:
    """Compute the p-norm of a - b + eps along the last axis."""
    difference = a - b + eps
    return difference.norm(p, -1, keepdim=keepdim)

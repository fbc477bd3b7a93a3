"""Functions behind the first layers: activations, normalisation, dropout, convolution."""

from typing import Any

from picograd.dtype import accumulate_dtype
from picograd.errors import ShapeError, ValueRangeError
from picograd.graph import build
from picograd.graph import build_composite as composite
from picograd.graph.node import Node
from picograd.tensor.tensor import Tensor, apply


def relu(x: Tensor) -> Tensor:
    """Compute max(x, 0)."""
    return x.relu()


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """Compute x * Phi(x)."""
    return x.gelu(approximate=approximate)


def silu(x: Tensor) -> Tensor:
    """Compute x * sigmoid(x)."""
    return x.silu()


def tanh(x: Tensor) -> Tensor:
    """Compute tanh(x)."""
    return x.tanh()


def sigmoid(x: Tensor) -> Tensor:
    """Compute 1 / (1 + exp(-x))."""
    return x.sigmoid()


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """Normalise exp(x) to sum 1 along an axis."""
    return x.softmax(dim)


def log_softmax(x: Tensor, dim: int = -1) -> Tensor:
    """Compute log(softmax(x)) along an axis."""
    return x.log_softmax(dim)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute x @ weight.T + bias: (..., I) with weight (O, I) -> (..., O)."""
    return x.linear(weight, bias)


def conv2d(x: Tensor, weight: Tensor, bias: Tensor | None = None, **options: Any) -> Tensor:
    """Convolve images (B, C, H, W) with kernels (O, C/groups, KH, KW)."""
    return x.conv2d(weight, bias, **options)


def max_pool2d(x: Tensor, kernel_size: Any, **options: Any) -> Tensor:
    """Take the maximum of each window."""
    return x.max_pool2d(kernel_size, **options)


def avg_pool2d(x: Tensor, kernel_size: Any, **options: Any) -> Tensor:
    """Average each window."""
    return x.avg_pool2d(kernel_size, **options)


def embedding(index: Tensor, weight: Tensor) -> Tensor:
    """Look up rows of a table."""
    return weight[index]


def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Zero elements with probability p and scale the others by 1/(1-p), while training."""
    if not 0.0 <= p <= 1.0:
        raise ValueRangeError("dropout", f"p={p} is not a probability", "use 0 <= p <= 1")
    if not training or p == 0.0:
        return x
    if p == 1.0:
        return x * 0.0
    is_kept = Tensor.rand(*x.shape, device=x.device) >= p
    return is_kept.where(x * (1.0 / (1.0 - p)), 0.0)


def batch_normalize(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise each channel (axis 1) by the batch; also return its mean and biased variance.

    The statistics come without gradient; that of the result takes them into account.
    """
    stats: list[Node] = []

    def record(x: Node, weight: Node, bias: Node) -> Node:
        stats[:] = composite.batch_stats(x)
        return composite.batch_norm(x, weight, bias, eps, (stats[0], stats[1]))

    place = dict(device=x.device, dtype=accumulate_dtype(x.dtype))
    scale = Tensor.ones(x.shape[1], **place) if weight is None else weight
    shift = Tensor.zeros(x.shape[1], **place) if bias is None else bias
    y = apply(record, x, scale, shift)
    mean, var = (Tensor.from_node(build.detach(node)) for node in stats)
    return y, mean, var


def normalize_channels(
    x: Tensor,
    mean: Tensor,
    var: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
    """Compute (x - mean) / sqrt(var + eps) * weight + bias for each channel (axis 1)."""
    shape = (1, x.shape[1]) + (1,) * (len(x.shape) - 2)
    scale = (var + eps).rsqrt()
    if weight is not None:
        scale = scale * weight
    y = (x - mean.reshape(shape)) * scale.reshape(shape)
    if bias is not None:
        y = y + bias.reshape(shape)
    return y.cast(x.dtype)


def layer_norm(
    x: Tensor,
    normalized_shape: tuple[int, ...],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise over the last axes to mean 0 and variance 1, then scale and shift."""
    rank = len(normalized_shape)
    if tuple(x.shape[len(x.shape) - rank :]) != tuple(normalized_shape):
        problem = f"input of shape {tuple(x.shape)} does not end in {tuple(normalized_shape)}"
        raise ShapeError("layer_norm", problem, "pass the sizes of the last axes")
    return apply(composite.layer_norm, x, rank, weight, bias, eps)


def one_hot(index: Tensor, num_classes: int) -> Tensor:
    """Write each index as a row of int64 with a single 1."""
    return index.one_hot(num_classes)

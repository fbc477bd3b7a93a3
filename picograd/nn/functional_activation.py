"""Activation functions that PyTorch gives another signature than the method, and distances.

`inplace` writes the result over the input.
"""

from picograd.dtype import accumulate_dtype
from picograd.errors import DTypeError
from picograd.tensor.core.arguments import promoted
from picograd.tensor.core.autocast import listed
from picograd.tensor.core.recording import maybe_in_place
from picograd.tensor.tensor import Tensor


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Compute x where positive, else negative_slope * x (Maas et al., 2013).

    >>> from picograd import Tensor, nn
    >>> nn.functional.leaky_relu(Tensor([-1.0, 0.0, 2.0]), 0.5).tolist()
    [-0.5, 0.0, 2.0]
    """
    return maybe_in_place("leaky_relu", input, input.leaky_relu(negative_slope), inplace)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Compute x where positive, else alpha * (exp(x) - 1) (Clevert et al., 2016).

    >>> from picograd import Tensor, nn
    >>> nn.functional.elu(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.6321..., 0.0, 2.0]
    """
    return maybe_in_place("elu", input, input.elu(alpha), inplace)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Compute log(1 + exp(beta * x)) / beta, and x itself where beta * x > threshold.

    >>> from picograd import Tensor, nn
    >>> nn.functional.softplus(Tensor([-1.0, 0.0, 2.0])).tolist()
    [0.3132..., 0.6931..., 2.1269...]
    """
    return input.softplus(beta, threshold)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Limit to [min_val, max_val].

    >>> from picograd import Tensor, nn
    >>> nn.functional.hardtanh(Tensor([-3.0, 0.5, 2.0])).tolist()
    [-1.0, 0.5, 1.0]
    """
    return maybe_in_place("hardtanh", input, input.hardtanh(min_val, max_val), inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute min(max(x, 0), 6) (Howard et al., 2017).

    >>> from picograd import Tensor, nn
    >>> nn.functional.relu6(Tensor([-1.0, 3.0, 8.0])).tolist()
    [0.0, 3.0, 6.0]
    """
    return maybe_in_place("relu6", input, input.relu6(), inplace)


def logsigmoid(input: Tensor) -> Tensor:
    """Compute log(1 / (1 + exp(-x))).

    >>> from picograd import Tensor, nn
    >>> nn.functional.logsigmoid(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-1.3132..., -0.6931..., -0.1269...]
    """
    return input.logsigmoid()


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divide by the p-norm along an axis, or by eps where that is smaller.

    >>> from picograd import Tensor, nn
    >>> nn.functional.normalize(Tensor([[3.0, 4.0]])).tolist()
    [[0.6000..., 0.8000...]]
    """
    return input / _clamped_norm(input, p, dim, eps)


def _clamped_norm(input: Tensor, p: float, dim: int, eps: float) -> Tensor:
    size = input.norm(p, dim, keepdim=True)
    return (size < eps).where(eps, size)


@listed
def cosine_similarity(a: Tensor, b: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Compute a.b / (|a| |b|) along an axis; norms below eps count as eps.

    >>> from picograd import Tensor, nn
    >>> nn.functional.cosine_similarity(Tensor([[1.0, 0.0]]), Tensor([[1.0, 1.0]])).tolist()
    [0.7071...]
    """
    first, second = promoted("cosine_similarity", a, b)
    if not first.dtype.is_float:
        text = f"needs floats, got {a.dtype.name} and {b.dtype.name}"
        raise DTypeError("cosine_similarity", text, "call .float() first")
    x, y = (each.cast(accumulate_dtype(each.dtype)) for each in (first, second))
    sizes = _clamped_norm(x, 2, dim, eps) * _clamped_norm(y, 2, dim, eps)
    return ((x * y).sum(dim) / sizes.squeeze(dim)).cast(first.dtype)


def pairwise_distance(
    a: Tensor, b: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Compute the p-norm of a - b + eps along the last axis.

    >>> from picograd import Tensor, nn
    >>> nn.functional.pairwise_distance(Tensor([[0.0, 0.0]]), Tensor([[3.0, 4.0]])).tolist()
    [4.9999...]
    """
    first, second = promoted("pairwise_distance", a, b)
    x, y = (each.cast(accumulate_dtype(each.dtype)) for each in (first, second))
    distance = (x - y + eps).norm(p, -1, keepdim=keepdim)
    return distance.cast(first.dtype) if first.dtype.is_float else distance

"""Functions behind layers that no method has: softmax over PyTorch's axis, products, distances."""

from picograd.dtype import accumulate_dtype
from picograd.errors import DTypeError
from picograd.tensor.core.annotations import DTypeLike
from picograd.tensor.core.arguments import promoted
from picograd.tensor.core.autocast import listed
from picograd.tensor.core.function import within
from picograd.tensor.network.activation_functions import implicit_axis
from picograd.tensor.tensor import Tensor


@within("functional")
def softmax(input: Tensor, dim: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Normalise exp(x) to sum 1 along an axis, converted to `dtype` before.

    `dim` None is axis 0 of tensors with 0, 1 or 3 axes, else axis 1, as in PyTorch: name the axis.

    >>> from picograd import Tensor, nn
    >>> nn.functional.softmax(Tensor([1.0, 1.0, 1.0, 1.0]), 0).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    wide = input if dtype is None else input.cast(dtype)
    return wide.softmax(implicit_axis(input, dim))


@within("functional")
def log_softmax(input: Tensor, dim: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Compute log(softmax(x)) along an axis, chosen as in `softmax`.

    >>> from picograd import Tensor, nn
    >>> nn.functional.log_softmax(Tensor([1.0, 1.0, 1.0]), 0).tolist()
    [-1.0986..., -1.0986..., -1.0986...]
    """
    wide = input if dtype is None else input.cast(dtype)
    return wide.log_softmax(implicit_axis(input, dim))


@within("functional")
@listed
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute a W b + bias: (..., I), (..., J) with weight (O, I, J) -> (..., O).

    >>> from picograd import Tensor, nn
    >>> nn.functional.bilinear(Tensor([[1.0, 2.0]]), Tensor([[3.0]]), Tensor([[[1.0],
    ...     [1.0]]])).tolist()
    [[9.0]]
    """
    left = input1.reshape(-1, input1.shape[-1])  # N I
    right = input2.reshape(-1, input2.shape[-1])  # N J
    y = Tensor.einsum("noj,nj->no", Tensor.einsum("ni,oij->noj", left, weight), right)
    y = y if bias is None else y + bias
    return y.reshape(*input1.shape[:-1], weight.shape[0])


@within("functional")
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


@within("functional")
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


@within("functional")
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

"""Functions behind the first layers: activations and linear maps."""

from picograd.tensor.core.annotations import DTypeLike
from picograd.tensor.core.autocast import listed
from picograd.tensor.core.recording import maybe_in_place
from picograd.tensor.network.activation_functions import implicit_axis
from picograd.tensor.tensor import Tensor


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute max(x, 0).

    >>> from picograd import Tensor, nn
    >>> nn.functional.relu(Tensor([-1.0, 0.0, 2.0])).tolist()
    [0.0, 0.0, 2.0]
    """
    result = input.relu()
    return maybe_in_place("relu", input, result, inplace)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Compute x * Phi(x).

    >>> from picograd import Tensor, nn
    >>> nn.functional.gelu(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.1586..., 0.0, 1.9544...]
    """
    return input.gelu(approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Compute x * sigmoid(x).

    >>> from picograd import Tensor, nn
    >>> nn.functional.silu(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.2689..., 0.0, 1.7615...]
    """
    result = input.silu()
    return maybe_in_place("silu", input, result, inplace)


def tanh(input: Tensor) -> Tensor:
    """Compute tanh(x).

    >>> from picograd import Tensor, nn
    >>> nn.functional.tanh(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.7615..., 0.0, 0.9640...]
    """
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """Compute 1 / (1 + exp(-x)).

    >>> from picograd import Tensor, nn
    >>> nn.functional.sigmoid(Tensor([-1.0, 0.0, 2.0])).tolist()
    [0.2689..., 0.5, 0.8807...]
    """
    return input.sigmoid()


def softmax(input: Tensor, dim: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Normalise exp(x) to sum 1 along an axis, converted to `dtype` before.

    `dim` None is axis 0 of tensors with 0, 1 or 3 axes, else axis 1, as in PyTorch: name the axis.

    >>> from picograd import Tensor, nn
    >>> nn.functional.softmax(Tensor([1.0, 1.0, 1.0, 1.0]), 0).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    wide = input if dtype is None else input.cast(dtype)
    return wide.softmax(implicit_axis(input, dim))


def log_softmax(input: Tensor, dim: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Compute log(softmax(x)) along an axis, chosen as in `softmax`.

    >>> from picograd import Tensor, nn
    >>> nn.functional.log_softmax(Tensor([1.0, 1.0, 1.0]), 0).tolist()
    [-1.0986..., -1.0986..., -1.0986...]
    """
    wide = input if dtype is None else input.cast(dtype)
    return wide.log_softmax(implicit_axis(input, dim))


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute x @ weight.T + bias: (..., I) with weight (O, I) -> (..., O).

    >>> from picograd import Tensor, nn
    >>> nn.functional.linear(Tensor([[1.0, 2.0]]), Tensor([[1.0, 1.0]]), Tensor([0.5])).tolist()
    [[3.5]]
    """
    return input.linear(weight, bias)


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
    half = Tensor.einsum("ni,oij->noj", left, weight)
    y = Tensor.einsum("noj,nj->no", half, right)
    y = y if bias is None else y + bias
    return y.reshape(*input1.shape[:-1], weight.shape[0])


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Write each index as a row of int64 with a single 1; -1 classes: the largest index + 1.

    >>> from picograd import Tensor, nn
    >>> nn.functional.one_hot(Tensor([0, 2]), 3).tolist()
    [[1, 0, 0], [0, 0, 1]]
    """
    return input.one_hot(num_classes)

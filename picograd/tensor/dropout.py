"""Dropout: of elements, of channels and for self-normalising networks, by PyTorch's names.

`inplace` is taken for PyTorch's sake: results are values of their own.
"""

from picograd.errors import ShapeError, ValueRangeError
from picograd.tensor.activation_functions import SELU_ALPHA, SELU_SCALE
from picograd.tensor.inputs import Tensor
from picograd.tensor.recording import Recorded

# The value that SELU tends to for large negative inputs: what alpha dropout drops to.
SATURATED = -SELU_ALPHA * SELU_SCALE


def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero elements with probability p and scale the others by 1/(1-p), while training.

    >>> from picograd import Tensor, nn
    >>> nn.functional.dropout(Tensor([1.0, 2.0, 3.0]), 0.5, training=False).tolist()
    [1.0, 2.0, 3.0]
    """
    if not 0.0 <= p <= 1.0:
        raise ValueRangeError("dropout", f"p={p} is not a probability", "use 0 <= p <= 1")
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return input * 0.0
    is_kept = Recorded.kind.rand(*input.shape, device=input.device) >= p
    return is_kept.where(input * (1.0 / (1.0 - p)), 0.0)


def drop_channels(op: str, axes: int, input: Tensor, p: float, training: bool) -> Tensor:
    """Zero whole channels of (B, C, *S), or (C, *S) without a batch, of `axes` spatial axes."""
    rank = len(input.shape)
    if rank not in (axes + 1, axes + 2):
        problem = f"input of shape {tuple(input.shape)} has {rank} axes"
        raise ShapeError(op, problem, f"give {axes + 2}, or {axes + 1} without a batch")
    if not training or p == 0.0:
        return input
    shape = (*input.shape[: rank - axes], *(1,) * axes)
    ones = Recorded.kind.ones(*shape, device=input.device, dtype=input.dtype)
    return input * dropout(ones, p)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (B, C, L) with probability p (Tompson et al., 2015).

    >>> from picograd import Tensor, nn
    >>> nn.functional.dropout1d(Tensor([[[1.0, 2.0]]]), training=False).tolist()
    [[[1.0, 2.0]]]
    """
    return drop_channels("dropout1d", 1, input, p, training)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (B, C, H, W) with probability p (Tompson et al., 2015).

    >>> from picograd import Tensor, nn
    >>> nn.functional.dropout2d(Tensor([[[[1.0, 2.0]]]]), training=False).tolist()
    [[[[1.0, 2.0]]]]
    """
    return drop_channels("dropout2d", 2, input, p, training)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (B, C, D, H, W) with probability p (Tompson et al., 2015).

    >>> from picograd import Tensor, nn
    >>> nn.functional.dropout3d(Tensor([[[[[1.0, 2.0]]]]]), training=False).tolist()
    [[[[[1.0, 2.0]]]]]
    """
    return drop_channels("dropout3d", 3, input, p, training)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Drop to SELU's negative limit, keeping mean 0 and variance 1 (Klambauer et al., 2017).

    >>> from picograd import Tensor, nn
    >>> nn.functional.alpha_dropout(Tensor([1.0, 2.0, 3.0]), training=False).tolist()
    [1.0, 2.0, 3.0]
    """
    return drop_to_limit("alpha_dropout", input, p, training, tuple(input.shape))


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Compute alpha_dropout of whole channels: axes 0 and 1 are drawn for.

    >>> from picograd import Tensor, nn
    >>> nn.functional.feature_alpha_dropout(Tensor([[[1.0, 2.0]]]), training=False).tolist()
    [[[1.0, 2.0]]]
    """
    shape = (*input.shape[:2], *(1,) * (len(input.shape) - 2))
    return drop_to_limit("feature_alpha_dropout", input, p, training, shape)


def drop_to_limit(
    op: str, input: Tensor, p: float, training: bool, shape: tuple[int, ...]
) -> Tensor:
    """Drop with a mask of a shape that broadcasts to the input's."""
    if not 0.0 <= p <= 1.0:
        raise ValueRangeError(op, f"p={p} is not a probability", "use 0 <= p <= 1")
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return input * 0.0
    scale = ((1.0 - p) * (1.0 + p * SATURATED * SATURATED)) ** -0.5
    is_kept = Recorded.kind.rand(*shape, device=input.device) >= p
    return is_kept.where(input, SATURATED) * scale - scale * SATURATED * p

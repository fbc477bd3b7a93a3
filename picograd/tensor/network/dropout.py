"""Dropout: of elements, of channels and for self-normalising networks, by PyTorch's names.

`inplace` writes the result over the input.
"""

import warnings

from picograd.engine.followed import event
from picograd.errors import ShapeError, check_probability
from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.function import method_within, within
from picograd.tensor.core.recording import Recorded, fresh, maybe_in_place
from picograd.tensor.making import creation, random
from picograd.tensor.network.activation_functions import SELU_ALPHA, SELU_SCALE

# The value that SELU tends to for large negative inputs: what alpha dropout drops to.
SATURATED = -SELU_ALPHA * SELU_SCALE


@method_within("functional")
@event
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero elements with probability p and scale the others by 1/(1-p), while training.

    >>> nn.functional.dropout(Tensor([1.0, 2.0, 3.0]), 0.5, training=False).tolist()
    [1.0, 2.0, 3.0]
    """
    need_tensor("dropout", input)
    check_probability("dropout", "p", p)
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return maybe_in_place("dropout", input, input * 0.0, inplace)
    is_kept = kept(tuple(input.shape), p, input)
    return maybe_in_place("dropout", input, is_kept.where(input * (1.0 / (1.0 - p)), 0), inplace)


def kept(shape: tuple[int, ...], p: float, input: Tensor) -> Tensor:
    """Draw what is kept, where an input is."""
    return fresh(random.kept(shape, p, creation.device_named(input.device), None))


def drop_features(op: str, input: Tensor, p: float, training: bool, leading: int) -> Tensor:
    """Zero whole slices behind the `leading` axes, which are drawn for."""
    check_probability(op, "p", p)
    if not training or p == 0.0:
        return input
    rank = len(input.shape)
    if rank < leading:
        problem = f"input of shape {tuple(input.shape)} has no channels"
        raise ShapeError(op, problem, "give (B, C, ...)")
    shape = (*input.shape[:leading], *(1,) * (rank - leading))
    ones = Recorded.kind.ones(*shape, device=input.device, dtype=input.dtype)
    return input * dropout(ones, p)


def warn_rank(op: str, input: Tensor, meaning: str) -> None:
    """Warn of a number of axes that a function of channels was not made for."""
    text = f"{op}: an input of shape {tuple(input.shape)} is read as {meaning}"
    warnings.warn(text, stacklevel=3)


@within("functional")
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (B, C, L) with probability p (Tompson et al., 2015).

    >>> nn.functional.dropout1d(Tensor([[[1.0, 2.0]]]), training=False).tolist()
    [[[1.0, 2.0]]]
    """
    need_tensor("dropout1d", input)
    if input.ndim not in (2, 3):
        problem = f"input of shape {tuple(input.shape)} has {input.ndim} axes"
        raise ShapeError("dropout1d", problem, "give (B, C, L), or (C, L) without a batch")
    result = drop_features("dropout1d", input, p, training, input.ndim - 1)
    return maybe_in_place("dropout1d", input, result, inplace)


@within("functional")
def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (B, C, H, W) with probability p (Tompson et al., 2015).

    Other numbers of axes are read as (B, C, ...), with a warning: (B, C) drops elements.

    >>> nn.functional.dropout2d(Tensor([[[[1.0, 2.0]]]]), training=False).tolist()
    [[[[1.0, 2.0]]]]
    """
    need_tensor("dropout2d", input)
    if input.ndim != 4:
        warn_rank("dropout2d", input, "(B, C, ...)")
    result = drop_features("dropout2d", input, p, training, 2)
    return maybe_in_place("dropout2d", input, result, inplace)


@within("functional")
def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (B, C, D, H, W) with probability p (Tompson et al., 2015).

    Four axes are (C, D, H, W); others are read as (C, ...), with a warning.

    >>> nn.functional.dropout3d(Tensor([[[[[1.0, 2.0]]]]]), training=False).tolist()
    [[[[[1.0, 2.0]]]]]
    """
    need_tensor("dropout3d", input)
    if input.ndim not in (4, 5):
        warn_rank("dropout3d", input, "(C, ...)")
    result = drop_features("dropout3d", input, p, training, 2 if input.ndim == 5 else 1)
    return maybe_in_place("dropout3d", input, result, inplace)


@within("functional")
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Drop to SELU's negative limit, keeping mean 0 and variance 1 (Klambauer et al., 2017).

    >>> nn.functional.alpha_dropout(Tensor([1.0, 2.0, 3.0]), training=False).tolist()
    [1.0, 2.0, 3.0]
    """
    need_tensor("alpha_dropout", input)
    result = drop_to_limit("alpha_dropout", input, p, training, tuple(input.shape))
    return maybe_in_place("alpha_dropout", input, result, inplace)


@within("functional")
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Compute alpha_dropout of whole channels: axes 0 and 1 are drawn for.

    >>> nn.functional.feature_alpha_dropout(Tensor([[[1.0, 2.0]]]), training=False).tolist()
    [[[1.0, 2.0]]]
    """
    need_tensor("feature_alpha_dropout", input)
    if training and input.ndim < 2:
        problem = f"input of shape {tuple(input.shape)} has no channels"
        raise ShapeError("feature_alpha_dropout", problem, "give (B, C, ...)")
    shape = (*input.shape[:2], *(1,) * (len(input.shape) - 2))
    result = drop_to_limit("feature_alpha_dropout", input, p, training, shape)
    return maybe_in_place("feature_alpha_dropout", input, result, inplace)


def drop_to_limit(
    op: str, input: Tensor, p: float, training: bool, shape: tuple[int, ...]
) -> Tensor:
    """Drop with a mask of a shape that broadcasts to the input's."""
    check_probability(op, "p", p)
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return input * 0.0
    scale = ((1.0 - p) * (1.0 + p * SATURATED * SATURATED)) ** -0.5
    is_kept = kept(shape, p, input)
    return is_kept.where(input, SATURATED) * scale - scale * SATURATED * p

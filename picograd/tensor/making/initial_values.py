"""Random tensors in the scale of a layer's weights; the first axis counts a layer's outputs."""

import math
from typing import Any

from picograd.errors import ShapeError
from picograd.helpers import product
from picograd.tensor.core.annotations import Sizes, Tensor
from picograd.tensor.core.function import composed
from picograd.tensor.core.operands import as_shape
from picograd.tensor.core.recording import Recorded


@composed(function=False, static=True)
def scaled_uniform(*sizes: Sizes, **more: Any) -> Tensor:
    """Draw from [-b, b) with b = 1 / sqrt(number of elements).

    >>> bool((Tensor.scaled_uniform(8, 2).abs() <= 0.25).all())
    True
    """
    shape = as_shape(sizes, "scaled_uniform")
    return symmetric(shape, product(shape) or 1, more)


@composed(function=False, static=True)
def glorot_uniform(*sizes: Sizes, **more: Any) -> Tensor:
    """Draw from [-b, b) with b = sqrt(6 / (outputs + inputs)) (Glorot and Bengio, 2010).

    >>> bool((Tensor.glorot_uniform(3, 3).abs() <= 1).all())
    True
    """
    shape = as_shape(sizes, "glorot_uniform")
    inputs = fan_in("glorot_uniform", shape)
    return symmetric(shape, (shape[0] + inputs) / 6.0, more)


@composed(function=False, static=True)
def kaiming_uniform(*sizes: Sizes, a: float = 0.01, **more: Any) -> Tensor:
    """Draw from [-b, b) with b = sqrt(6 / ((1 + a^2) inputs)) (He et al., 2015).

    `a` is the slope of the leaky ReLU that follows.

    >>> bool((Tensor.kaiming_uniform(2, 6, a=0.0).abs() <= 1).all())
    True
    """
    shape = as_shape(sizes, "kaiming_uniform")
    return symmetric(shape, fan_in("kaiming_uniform", shape) * (1.0 + a * a) / 6.0, more)


@composed(function=False, static=True)
def kaiming_normal(*sizes: Sizes, a: float = 0.01, **more: Any) -> Tensor:
    """Draw from the normal distribution of variance 2 / ((1 + a^2) inputs) (He et al., 2015).

    `a` is the slope of the leaky ReLU that follows.

    >>> Tensor.kaiming_normal(2, 3).shape
    (2, 3)
    """
    shape = as_shape(sizes, "kaiming_normal")
    count = fan_in("kaiming_normal", shape)
    std = math.sqrt(2.0 / ((1.0 + a * a) * count))
    return Recorded.kind.normal(shape, std=std, **more)


def symmetric(shape: tuple[int, ...], square: float, more: dict[str, Any]) -> Tensor:
    """Draw from [-b, b) with b = 1 / sqrt(square)."""
    bound = 1.0 / math.sqrt(square)
    return Recorded.kind.uniform(shape, low=-bound, high=bound, **more)


def fan_in(op: str, shape: tuple[int, ...]) -> int:
    """Count the inputs of one output: the elements of all axes but the first, at least 1."""
    if not shape:
        raise ShapeError(op, "the shape () has no axis of outputs", "give one size or more")
    return max(product(shape[1:]), 1)

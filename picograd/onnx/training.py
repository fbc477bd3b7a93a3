"""ONNX operators of training (`ai.onnx.preview.training`): the updates of optimizers."""

from collections.abc import Sequence
from typing import Any

from picograd.onnx.table import operator
from picograd.tensor.public import where
from picograd.tensor.tensor import Tensor


def groups(values: tuple[Any, ...], kinds: int) -> list[tuple[Any, ...]]:
    """Sort inputs by parameter: all parameters come first, then all gradients, and so on."""
    count = len(values) // kinds
    return [values[place::count] for place in range(count)]


def in_order(found: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """List results as ONNX does: all parameters first."""
    return tuple(each[k] for k in range(len(found[0])) for each in found)


@operator("Adagrad")
def adagrad(
    rate: Tensor,
    step: Tensor,
    *values: Tensor,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> Any:
    """Divide by the root of all squared gradients."""
    now = rate / (1 + step * decay_factor)
    found = []
    for x, gradient, squares in groups(values, 3):
        slope = gradient + x * norm_coefficient
        new = squares + slope * slope
        found.append(((x - now * slope / (new.sqrt() + epsilon)).to(x.dtype), new))
    return in_order(found)


@operator("Adam")
def adam(
    rate: Tensor, step: Tensor, *values: Tensor, alpha: float = 0.9, beta: float = 0.999,
    epsilon: float = 1e-6, norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0,
) -> Any:  # fmt: skip
    """Divide the mean gradient by the root of the mean square."""
    count = step.to(rate.dtype)
    corrected = rate * (1 - beta**count).sqrt() / (1 - alpha**count)
    now = where(step > 0, corrected, rate)
    found = []
    for x, gradient, mean, square in groups(values, 4):
        slope = gradient + x * norm_coefficient
        mean = mean * alpha + slope * (1 - alpha)
        square = square * beta + slope * slope * (1 - beta)
        new = x - now * mean / (square.sqrt() + epsilon)
        found.append(((new * (1 - norm_coefficient_post)).to(x.dtype), mean, square))
    return in_order(found)


@operator("Momentum")
def momentum(
    rate: Tensor,
    step: int,
    *values: Tensor,
    alpha: float,
    beta: float,
    mode: str,
    norm_coefficient: float,
) -> Any:
    """Follow an average of gradients, Nesterov's or not."""
    factor = beta if step > 0 else 1.0
    found = []
    for x, gradient, average in groups(values, 3):
        slope = gradient + x * norm_coefficient
        new = average * alpha + slope * factor
        move = new if mode == "standard" else slope + new * alpha
        found.append(((x - rate * move).to(x.dtype), new))
    return in_order(found)

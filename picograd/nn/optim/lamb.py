"""LAMB: Adam with a step length per layer, for large batches."""

from collections.abc import Iterable
from typing import Any

from picograd.nn.optim.adam import Adam
from picograd.nn.optim.base import Result, Slots
from picograd.nn.optim.group import Numbers, Options
from picograd.tensor.tensor import Tensor


class LAMB(Adam):
    """This class scales Adam's direction by |p| / |direction| (You et al., 2020, arXiv 1904.00962).

    r = (m / c1) / (sqrt(v / c2) + eps) + weight_decay p; p = p - lr |p| / |r| r, with a ratio of 1
    where either norm is 0. The norms are 2-norms over one parameter: a "layer" of the paper.

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.LAMB([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.tolist()]
    [0.843, 1.841]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 1e-2,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, maximize=maximize)

    def decay(
        self, value: Tensor, gradient: Tensor, n: Numbers, options: Options
    ) -> tuple[Tensor, Tensor]:
        """Leave both: weight decay is part of the direction."""
        return value, gradient

    def update(
        self, value: Tensor, gradient: Tensor, state: Slots, n: Numbers, options: Options
    ) -> Result:
        """Record the formula of the class."""
        moved, new = super().update(value * 0.0, gradient, state, n, options)
        direction = value * n["weight_decay"] - moved / n["lr"]
        lengths = (value * value).sum().sqrt(), (direction * direction).sum().sqrt()
        is_usual = (lengths[0] > 0.0) & (lengths[1] > 0.0)
        ratio = is_usual.where(lengths[0] / lengths[1], 1.0)
        return value - n["lr"] * ratio * direction, new

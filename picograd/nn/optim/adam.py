"""Adam and AdamW, and the numbers of moving averages that other optimizers share."""

import math
from collections.abc import Iterable
from typing import Any

from picograd.nn.optim.base import Optimizer, Result, Slots
from picograd.nn.optim.group import Numbers, Options, given_options
from picograd.number import converted
from picograd.tensor.tensor import Tensor


def average_numbers(options: Options) -> dict[str, float]:
    """Compute what moving averages with `betas` need; all in double precision, on the host.

    `rest` is 1 - beta, which would cancel in float32; `log` serves `correction`.
    """
    numbers = {}
    for number, beta in enumerate(options["betas"], 1):
        numbers[f"beta{number}"] = converted(float, beta)
        numbers[f"rest{number}"] = 1.0 - beta
        numbers[f"log{number}"] = math.log(beta) if beta else -math.inf
    return numbers


def correction(step: Tensor, log_beta: Tensor) -> Tensor:
    """Compute 1 - beta^step, the weight a moving average has gathered, without cancellation."""
    return -((step * log_beta).expm1())


def average(old: Tensor, new: Tensor, rest: Tensor) -> Tensor:
    """Move an average towards a new value by `rest`."""
    return old + (new - old) * rest


class Averaging(Optimizer):
    """This class is the base of optimizers with two averages, `betas` and a step count."""

    _shared = {"step": 0.0}

    second = "exp_avg_sq"

    def slots(self, options: Options) -> dict[str, float]:
        """Name both moments."""
        return {"exp_avg": 0.0, self.second: 0.0}

    def numbers(self, options: Options) -> dict[str, float]:
        """Add the numbers of both averages."""
        return super().numbers(options) | average_numbers(options)


class Adam(Averaging):
    """This class is Adam (Kingma and Ba, 2015).

    m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p = p - lr (m / c1) / (sqrt(v / c2) + eps) with
    c = 1 - b^t; the root of c2 is moved to lr and eps, so that it costs nothing per element.
    `amsgrad` divides by the largest v so far (Reddi et al., 2018). Weight decay is added to the
    gradient, or with `decoupled_weight_decay` shrinks the parameter, as in AdamW.

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.Adam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.tolist()]
    [0.9, 1.9]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(params, given_options(locals()))

    def slots(self, options: Options) -> dict[str, float]:
        """Name both moments, and the largest second moment for amsgrad."""
        slots = super().slots(options)
        return slots | {"max_exp_avg_sq": 0.0} if options["amsgrad"] else slots

    def prepare(self, n: Numbers, shared: Slots) -> tuple[Numbers, Slots]:
        """Correct the bias of both averages."""
        step = shared["step"] + 1.0
        root = correction(step, n["log2"]).sqrt()
        step_size = n["lr"] * root / correction(step, n["log1"])
        return {**n, "step_size": step_size, "eps": n["eps"] * root}, {"step": step}

    def update(
        self, value: Tensor, gradient: Tensor, state: Slots, n: Numbers, options: Options
    ) -> Result:
        """Record the formula of the class."""
        mean = average(state["exp_avg"], gradient, n["rest1"])
        square = state["exp_avg_sq"] * n["beta2"] + gradient * gradient * n["rest2"]
        new = {"exp_avg": mean, "exp_avg_sq": square}
        if options["amsgrad"]:
            square = new["max_exp_avg_sq"] = state["max_exp_avg_sq"].maximum(square)
        change = n["step_size"] * mean / (square.sqrt() + n["eps"])
        return value - change, new


class AdamW(Adam):
    """This class is Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.AdamW([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.tolist()]
    [0.899, 1.898]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, **given_options(locals()), decoupled_weight_decay=True)

"""Optimizers that look at signs: Lion and Rprop."""

from collections.abc import Iterable
from typing import Any

from picograd.nn.optim.adam import average, average_numbers
from picograd.nn.optim.base import Optimizer, Result, Slots
from picograd.nn.optim.group import Numbers, Options, given_options
from picograd.number import converted
from picograd.tensor.tensor import Tensor


class Lion(Optimizer):
    """This class moves by the sign of a momentum (Chen et al., 2023); weight decay is decoupled.

    p = p (1 - lr weight_decay) - lr sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g.

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.Lion([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.tolist()]
    [0.9, 1.9]
    """

    _slots = {"exp_avg": 0.0}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        options = given_options(locals()) | dict(decoupled_weight_decay=True)
        super().__init__(params, options)

    def numbers(self, options: Options) -> dict[str, float]:
        """Add the numbers of both averages."""
        return super().numbers(options) | average_numbers(options)

    def update(
        self, value: Tensor, gradient: Tensor, state: Slots, n: Numbers, options: Options
    ) -> Result:
        """Record the formula of the class."""
        direction = average(state["exp_avg"], gradient, n["rest1"]).sign()
        mean = average(state["exp_avg"], gradient, n["rest2"])
        return value - n["lr"] * direction, {"exp_avg": mean}


class Rprop(Optimizer):
    """This class is resilient backpropagation (Riedmiller and Braun, 1993).

    Every element has a step size of its own: it grows while the sign of the gradient stays and
    shrinks when it turns, and then the element waits for one step.

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.Rprop([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.tolist()]
    [0.9, 1.9]
    """

    _shared = {"step": 0.0}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, given_options(locals()))

    def slots(self, options: Options) -> dict[str, float]:
        """Name the gradient before and the step sizes, which start at lr."""
        return {"prev": 0.0, "step_size": converted(float, options["lr"])}

    def numbers(self, options: Options) -> dict[str, float]:
        """Add factors and limits of the step sizes."""
        names = ("shrink", "grow", "least", "most")
        given = (*options["etas"], *options["step_sizes"])
        values = [converted(float, each) for each in given]
        return super().numbers(options) | dict(zip(names, values))

    def update(
        self, value: Tensor, gradient: Tensor, state: Slots, n: Numbers, options: Options
    ) -> Result:
        """Record the formula of the class."""
        agreement = gradient * state["prev"]
        has_turned = agreement < 0.0
        factor = has_turned.where(n["shrink"], (agreement > 0.0).where(n["grow"], 1.0))
        size = (state["step_size"] * factor).maximum(n["least"]).minimum(n["most"])
        kept = has_turned.where(0.0, gradient)
        return value - kept.sign() * size, {"prev": kept, "step_size": size}

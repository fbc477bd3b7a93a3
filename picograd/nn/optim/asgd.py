"""Averaged stochastic gradient descent."""

from collections.abc import Iterable
from typing import Any

from picograd.nn.optim.base import Optimizer, Result, Slots
from picograd.nn.optim.group import Numbers, Options, given_options
from picograd.tensor.tensor import Tensor


class ASGD(Optimizer):
    """This class averages the parameters of the last steps in `ax` (Polyak and Juditsky, 1992).

    p = p (1 - lambd eta) - eta g; ax = ax + mu (p - ax), with eta = lr / (1 + lambd lr t)^alpha
    and mu = 1 / max(1, t - t0) of the step before.

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.ASGD([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.tolist()]
    [0.8, 1.6]
    """

    _slots = {"ax": 0.0}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, given_options(locals()))

    def shared(self, options: Options) -> dict[str, float]:
        """Name the step count, the rate and the weight of the next step."""
        return {"step": 0.0, "eta": float(options["lr"]), "mu": 1.0}

    def prepare(self, n: Numbers, shared: Slots) -> tuple[Numbers, Slots]:
        """Compute rate and weight of the step after this one."""
        step = shared["step"] + 1.0
        decay = 1.0 + n["lambd"] * n["lr"] * step
        eta = n["lr"] / decay ** n["alpha"]
        mu = 1.0 / (step - n["t0"]).maximum(1.0)
        now = {"eta": shared["eta"].detach(), "mu": shared["mu"].detach()}
        return {**n, **now}, {"step": step, "eta": eta, "mu": mu}

    def update(
        self, value: Tensor, gradient: Tensor, state: Slots, n: Numbers, options: Options
    ) -> Result:
        """Record the formula of the class."""
        value = value * (1.0 - n["lambd"] * n["eta"]) - gradient * n["eta"]
        average = state["ax"]
        return value, {"ax": average + (value - average) * n["mu"]}

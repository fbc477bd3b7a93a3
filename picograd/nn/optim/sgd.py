"""Stochastic gradient descent, with momentum, Nesterov's variant and dampening."""

from collections.abc import Iterable
from typing import Any

from picograd.errors import ValueRangeError
from picograd.nn.optim.base import Optimizer, Result, Slots
from picograd.nn.optim.group import Numbers, Options, given_options
from picograd.tensor.tensor import Tensor


class SGD(Optimizer):
    """This class is stochastic gradient descent with momentum, Nesterov and weight decay.

    g = grad + weight_decay * p; v = momentum * v + (1 - dampening) * g (v = g at the first step);
    p = p - lr * (g + momentum * v if nesterov else v). Sutskever et al. (2013).

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.SGD([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.tolist()]
    [0.8, 1.6]
    """

    # 1 until the first step, then 0: the first velocity is undamped.
    hidden = {"undamped": 0.0}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            problem = "nesterov needs momentum > 0 and dampening 0"
            raise ValueRangeError("SGD", problem, "set momentum=0.9")
        super().__init__(params, given_options(locals()))

    def slots(self, options: Options) -> dict[str, float]:
        """Name the velocity."""
        return {"momentum_buffer": 0.0} if options["momentum"] else {}

    def shared(self, options: Options) -> dict[str, float]:
        """Name the flag of the first step, where it matters."""
        return {"undamped": 1.0} if options["momentum"] and options["dampening"] else {}

    def prepare(self, n: Numbers, shared: Slots) -> tuple[Numbers, Slots]:
        """Weigh the gradient: 1 at the first step, then 1 - dampening."""
        if not shared:
            return n, shared
        undamped = shared["undamped"]
        weight = 1.0 - n["dampening"] * (1.0 - undamped)
        return {**n, "weight": weight}, {"undamped": undamped * 0.0}

    def update(
        self, value: Tensor, gradient: Tensor, state: Slots, n: Numbers, options: Options
    ) -> Result:
        """Record the formula of the class."""
        if not options["momentum"]:
            return value - n["lr"] * gradient, {}
        damped = gradient * n["weight"] if options["dampening"] else gradient
        velocity = state["momentum_buffer"] * n["momentum"] + damped
        direction = gradient + velocity * n["momentum"] if options["nesterov"] else velocity
        return value - n["lr"] * direction, {"momentum_buffer": velocity}

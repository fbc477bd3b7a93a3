"""Stochastic gradient descent, with momentum, Nesterov's variant and dampening.

Averaged stochastic gradient descent.

Optimizers that look at signs: Lion and Rprop.
"""

from collections.abc import Iterable
from typing import Any

from picograd.errors import ValueRangeError
from picograd.nn.optim.adam import average, average_numbers
from picograd.nn.optim.base import Optimizer, Result, Slots
from picograd.nn.optim.group import Numbers, Options, given_options
from picograd.number import converted
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

    def update(self, p: Tensor, g: Tensor, state: Slots, n: Numbers, options: Options) -> Result:
        """Record the formula of the class."""
        if not options["momentum"]:
            return p - n["lr"] * g, {}
        damped = g * n["weight"] if options["dampening"] else g
        velocity = state["momentum_buffer"] * n["momentum"] + damped
        direction = g + velocity * n["momentum"] if options["nesterov"] else velocity
        return p - n["lr"] * direction, {"momentum_buffer": velocity}


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

    def update(self, p: Tensor, g: Tensor, state: Slots, n: Numbers, options: Options) -> Result:
        """Record the formula of the class."""
        p = p * (1.0 - n["lambd"] * n["eta"]) - g * n["eta"]
        average = state["ax"]
        return p, {"ax": average + (p - average) * n["mu"]}


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

    def update(self, p: Tensor, g: Tensor, state: Slots, n: Numbers, options: Options) -> Result:
        """Record the formula of the class."""
        direction = average(state["exp_avg"], g, n["rest1"]).sign()
        mean = average(state["exp_avg"], g, n["rest2"])
        return p - n["lr"] * direction, {"exp_avg": mean}


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

    def update(self, p: Tensor, g: Tensor, state: Slots, n: Numbers, options: Options) -> Result:
        """Record the formula of the class."""
        agreement = g * state["prev"]
        has_turned = agreement < 0.0
        factor = has_turned.where(n["shrink"], (agreement > 0.0).where(n["grow"], 1.0))
        size = (state["step_size"] * factor).maximum(n["least"]).minimum(n["most"])
        kept = has_turned.where(0.0, g)
        return p - kept.sign() * size, {"prev": kept, "step_size": size}

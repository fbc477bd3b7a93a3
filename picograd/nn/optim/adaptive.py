"""Optimizers with a rate per element: RMSprop, Adagrad, Adadelta."""

from collections.abc import Iterable, Mapping
from typing import Any

from picograd.errors import ValueRangeError
from picograd.nn.optim.adam import average
from picograd.nn.optim.base import Optimizer, Result, Slots, scalars_beside
from picograd.nn.optim.group import Numbers, Options, given_options
from picograd.tensor.tensor import Tensor


class RMSprop(Optimizer):
    """This class divides by a moving root mean square (Hinton, lecture 6e, 2012).

    v = alpha v + (1 - alpha) g^2, less the square of the mean gradient if `centered` (Graves,
    2013); b = momentum b + g / (sqrt(v) + eps); p = p - lr b.

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.RMSprop([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.tolist()]
    [0.0, 1.0]
    """

    _shared = {"step": 0.0}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, given_options(locals()))

    def slots(self, options: Options) -> dict[str, float]:
        """Name the mean square, and the mean and momentum where they are used."""
        names = ["square_avg"]
        names += ["momentum_buffer"] if options["momentum"] else []
        names += ["grad_avg"] if options["centered"] else []
        return dict.fromkeys(names, 0.0)

    def numbers(self, options: Options) -> dict[str, float]:
        """Add 1 - alpha."""
        return super().numbers(options) | {"rest": 1.0 - options["alpha"]}

    def update(
        self, value: Tensor, gradient: Tensor, state: Slots, n: Numbers, options: Options
    ) -> Result:
        """Record the formula of the class."""
        square = state["square_avg"] * n["alpha"] + gradient * gradient * n["rest"]
        new, spread = {"square_avg": square}, square
        if options["centered"]:
            mean = new["grad_avg"] = average(state["grad_avg"], gradient, n["rest"])
            spread = square - mean * mean
        move = gradient / (spread.sqrt() + n["eps"])
        if options["momentum"]:
            move = state["momentum_buffer"] * n["momentum"] + move
            new["momentum_buffer"] = move
        return value - n["lr"] * move, new


class Adagrad(Optimizer):
    """This class divides by the root of the sum of squares (Duchi et al., 2011).

    s = s + g^2; p = p - lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps).

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.Adagrad([x], lr=0.1)
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
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, given_options(locals()))

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Train more parameters; their state is there before the first step."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for parameter in group.parameters:
            self.make_state(group, parameter, scalars_beside(self, parameter, {"step": 0.0}))

    def slots(self, options: Options) -> dict[str, float]:
        """Name the sum of squares."""
        return {"sum": float(options["initial_accumulator_value"])}

    def prepare(self, n: Numbers, shared: Slots) -> tuple[Numbers, Slots]:
        """Lower the rate with the steps done before."""
        step = shared["step"]
        return {**n, "rate": n["lr"] / (step * n["lr_decay"] + 1.0)}, {"step": step + 1.0}

    def update(
        self, value: Tensor, gradient: Tensor, state: Slots, n: Numbers, options: Options
    ) -> Result:
        """Record the formula of the class."""
        total = state["sum"] + gradient * gradient
        return value - n["rate"] * gradient / (total.sqrt() + n["eps"]), {"sum": total}


class Adadelta(Optimizer):
    """This class scales by the root of past changes over that of gradients (Zeiler, 2012).

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.Adadelta([x], lr=1.0)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.tolist()]
    [0.997, 1.997]
    """

    _slots = {"square_avg": 0.0, "acc_delta": 0.0}
    _shared = {"step": 0.0}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0.0 <= rho <= 1.0:
            raise ValueRangeError("Adadelta", f"rho={rho} is not in [0, 1]", "use 0.9")
        super().__init__(params, given_options(locals()))

    def numbers(self, options: Options) -> dict[str, float]:
        """Add 1 - rho."""
        return super().numbers(options) | {"rest": 1.0 - options["rho"]}

    def update(
        self, value: Tensor, gradient: Tensor, state: Slots, n: Numbers, options: Options
    ) -> Result:
        """Record the formula of the class."""
        square = state["square_avg"] * n["rho"] + gradient * gradient * n["rest"]
        move = (state["acc_delta"] + n["eps"]).sqrt() / (square + n["eps"]).sqrt() * gradient
        moves = state["acc_delta"] * n["rho"] + move * move * n["rest"]
        return value - n["lr"] * move, {"square_avg": square, "acc_delta": moves}

"""Optimizers with a rate per element: RMSprop, Adagrad, Adadelta.

Adafactor: second moments of matrices kept as their rows' and columns' means.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from picograd.errors import ValueRangeError
from picograd.nn.optim.adam import average
from picograd.nn.optim.base import Optimizer, Result, Slots, scalars_beside
from picograd.nn.optim.group import Numbers, Options, check_rate, given_options, math_dtype
from picograd.nn.parameter import realize
from picograd.number import converted
from picograd.tensor.core.autograd import enable_grad, no_grad
from picograd.tensor.core.type_info import finfo
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

    def update(self, p: Tensor, g: Tensor, state: Slots, n: Numbers, options: Options) -> Result:
        """Record the formula of the class."""
        square = state["square_avg"] * n["alpha"] + g * g * n["rest"]
        new, spread = {"square_avg": square}, square
        if options["centered"]:
            mean = new["grad_avg"] = average(state["grad_avg"], g, n["rest"])
            spread = square - mean * mean
        move = g / (spread.sqrt() + n["eps"])
        if options["momentum"]:
            move = state["momentum_buffer"] * n["momentum"] + move
            new["momentum_buffer"] = move
        return p - n["lr"] * move, new


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
        check_rate("initial_accumulator_value", initial_accumulator_value)
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

    def update(self, p: Tensor, g: Tensor, state: Slots, n: Numbers, options: Options) -> Result:
        """Record the formula of the class."""
        total = state["sum"] + g * g
        return p - n["rate"] * g / (total.sqrt() + n["eps"]), {"sum": total}


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

    def update(self, p: Tensor, g: Tensor, state: Slots, n: Numbers, options: Options) -> Result:
        """Record the formula of the class."""
        square = state["square_avg"] * n["rho"] + g * g * n["rest"]
        move = (state["acc_delta"] + n["eps"]).sqrt() / (square + n["eps"]).sqrt() * g
        moves = state["acc_delta"] * n["rho"] + move * move * n["rest"]
        return p - n["lr"] * move, {"square_avg": square, "acc_delta": moves}


class Adafactor(Optimizer):
    """This class scales by second moments in little memory (Shazeer and Stern, 2018).

    With b = t^beta2_decay: rows r and columns c of matrices average the means of g^2 along the
    other axis, r = r + b (mean - r); v = r c / mean(r). Vectors keep v itself. Then
    u = g / sqrt(v), divided by max(1, rms(u) / d), and, after p = p (1 - lr weight_decay),
    p = p - min(lr, 1 / sqrt(t)) max(eps2, rms(p)) u. `eps` is (eps1, eps2); eps1, the least root
    of v, is that of the dtype where it is None.

    >>> from picograd import Tensor, nn
    >>> x = nn.Parameter(Tensor([1.0, 2.0]))
    >>> optimizer = nn.optim.Adafactor([x], lr=0.1, weight_decay=0.0)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 3) for value in x.tolist()]
    [0.842, 1.842]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        least, least_size = eps
        for name, value, is_right, fix in (
            ("lr", lr, converted(float, lr) >= 0.0, "use 0 or more"),
            ("beta2_decay", beta2_decay, beta2_decay <= 0.0, "use 0 or less"),
            ("eps[0]", least, least is None or least >= 0.0, "use None, 0 or more"),
            ("eps[1]", least_size, least_size >= 0.0, "use 0 or more"),
            ("d", d, d >= 1.0, "use 1 or more"),
            ("weight_decay", weight_decay, weight_decay >= 0.0, "use 0 or more"),
        ):
            if not is_right:
                raise ValueRangeError("Adafactor", f"{name}={value} is out of range", fix)
        options = dict(lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay)
        super().__init__(params, options | dict(foreach=foreach, maximize=maximize))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; `closure` computes the loss again."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        changed: list[Tensor] = []
        with no_grad():
            for group in self.param_groups:
                for parameter in group.parameters:
                    if parameter.grad is not None:
                        changed += self.move(parameter, parameter.grad, group)
        if changed:
            realize(changed)
        return loss

    def move(self, parameter: Tensor, gradient: Tensor, options: Any) -> list[Tensor]:
        """Record the formula of the class for one parameter; lists what it changes."""
        dtype = math_dtype(parameter)
        value = parameter.detach().to(dtype)
        g = gradient.detach().to(dtype)
        g = -g if options["maximize"] else g
        least, least_size = options["eps"]
        least = finfo(parameter.dtype).eps if least is None else least
        state = self.begun(parameter)
        state["step"].add_(1.0)
        step = state["step"].to(dtype)
        rate = (1.0 / step.sqrt()).minimum(options["lr"])
        size = rms(value).maximum(least_size)
        value = value * (1.0 - options["lr"] * options["weight_decay"])
        variance = second_moment(state, g, step ** options["beta2_decay"], least)
        move = g / variance.maximum(least * least).sqrt()
        move = move / (rms(move) / options["d"]).maximum(1.0)
        value = value - rate * size * move
        parameter.copy_(value.to(parameter.dtype))
        return [parameter, *state.values()]

    def begun(self, parameter: Tensor) -> dict[str, Tensor]:
        """Find the state of a parameter; zeros at its first step."""
        state = self.state[parameter]
        if not state:
            place: dict[str, Any] = dict(dtype=parameter.dtype, device=parameter.device)
            shape = tuple(parameter.shape)
            state["step"] = Tensor.zeros((), device=parameter.device)
            if len(shape) > 1:
                state["row_var"] = Tensor.zeros(*shape[:-1], 1, **place)
                state["col_var"] = Tensor.zeros(*shape[:-2], 1, shape[-1], **place)
            else:
                state["variance"] = Tensor.zeros(*shape, **place)
        return state


def rms(x: Tensor) -> Tensor:
    """Compute the root of the mean square of all elements."""
    return (x * x).mean().sqrt()


def second_moment(state: dict[str, Tensor], g: Tensor, share: Tensor, least: float) -> Tensor:
    """Move the averages of g^2 in `state`, and estimate the second moment of each element."""
    square = g * g
    if g.ndim < 2:
        averaged(state["variance"], square, share)
        return state["variance"].to(g.dtype)
    averaged(state["row_var"], square.mean(-1, keepdim=True), share)
    averaged(state["col_var"], square.mean(-2, keepdim=True), share)
    rows = state["row_var"].to(g.dtype)
    columns = state["col_var"].to(g.dtype)
    return rows @ columns / rows.mean(-2, keepdim=True).maximum(least)


def averaged(average: Tensor, value: Tensor, share: Tensor) -> None:
    """Move an average by a share of the way to a value."""
    wide = average.to(value.dtype)
    average.copy_((wide + (value - wide) * share).to(average.dtype))

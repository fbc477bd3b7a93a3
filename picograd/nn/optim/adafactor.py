"""Adafactor: second moments of matrices kept as their rows' and columns' means."""

from collections.abc import Callable, Iterable
from typing import Any

from picograd.errors import ValueRangeError
from picograd.nn.optim.base import Optimizer
from picograd.nn.optim.group import math_dtype
from picograd.nn.parameter import realize
from picograd.number import converted
from picograd.tensor.core.autograd import enable_grad, no_grad
from picograd.tensor.core.type_info import finfo
from picograd.tensor.tensor import Tensor


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
    mean = rows.mean(-2, keepdim=True)
    return rows @ columns / mean.maximum(least)


def averaged(average: Tensor, value: Tensor, share: Tensor) -> None:
    """Move an average by a share of the way to a value."""
    wide = average.to(value.dtype)
    average.copy_((wide + (value - wide) * share).to(average.dtype))

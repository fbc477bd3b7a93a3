"""Optimizers with a rate per element: RMSprop, Adagrad, Adadelta; and Lion.

Arithmetic is PyTorch's (torch.optim), Lion's that of its paper. As in `optim`, all state is tensors
on the device and one realisation updates a whole group.
"""

from collections.abc import Iterable
from typing import Any

from picograd.errors import ShapeError, check
from picograd.nn.optim import Optimizer, ParameterGroup
from picograd.tensor.tensor import Tensor

Changes = list[tuple[Tensor, Tensor]]


def decayed_gradient(parameter: Tensor, weight_decay: float) -> Tensor:
    """Read a gradient and add weight_decay * parameter. Raises ShapeError if it does not fit."""
    found = parameter.grad
    check(found is not None, "an update without a gradient")
    gradient: Tensor = found.detach()  # type: ignore[union-attr]
    if gradient.shape != parameter.shape:
        problem = f"gradient {gradient.shape} does not fit its parameter {parameter.shape}"
        raise ShapeError("optim", problem, "give them the same shape")
    return gradient + parameter.detach() * weight_decay if weight_decay else gradient


class RMSprop(Optimizer):
    """This class divides by a moving root mean square (Hinton, lecture 6e, 2012)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
    ) -> None:
        options = dict(lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay)
        super().__init__(params, options | dict(momentum=momentum, centered=centered))

    def prepare(self, group: ParameterGroup) -> None:
        """Create the mean square, and the mean and momentum where they are used."""
        group.add_slots("square_avg")
        if group["centered"]:
            group.add_slots("grad_avg")
        if group["momentum"]:
            group.add_slots("momentum_buffer")

    def update(self, group: ParameterGroup, used: list[int]) -> Changes:
        """Record the update rule of the class."""
        changed: Changes = []
        alpha = group["alpha"]
        for i in used:
            parameter = group.parameters[i]
            gradient = decayed_gradient(parameter, group["weight_decay"])
            old = group.slots["square_avg"][i]
            square = old * alpha + gradient * gradient * (1.0 - alpha)
            changed.append((old, square))
            spread = square
            if group["centered"]:
                average = group.slots["grad_avg"][i]
                mean = average + (gradient - average) * (1.0 - alpha)
                changed.append((average, mean))
                spread = square - mean * mean
            move = gradient / (spread.sqrt() + group["eps"])
            if group["momentum"]:
                buffer = group.slots["momentum_buffer"][i]
                move = buffer * group["momentum"] + move
                changed.append((buffer, move))
            changed.append((parameter, parameter.detach() - group.rate * move))
        return changed


class Adagrad(Optimizer):
    """This class divides by the root of the sum of squares (Duchi et al., 2011)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
    ) -> None:
        options = dict(lr=lr, lr_decay=lr_decay, weight_decay=weight_decay, eps=eps)
        options["initial_accumulator_value"] = initial_accumulator_value
        super().__init__(params, options)

    def prepare(self, group: ParameterGroup) -> None:
        """Create the sums and the step count."""
        group.add_slots("sum")
        start = group["initial_accumulator_value"]
        group.slots["sum"] = [total + start if start else total for total in group.slots["sum"]]
        group.add_scalar("step", 0.0)

    def update(self, group: ParameterGroup, used: list[int]) -> Changes:
        """Record the update rule of the class."""
        step = group.scalars["step"]
        rate = group.rate / (step * group["lr_decay"] + 1.0)
        changed: Changes = [(step, step + 1.0)]
        for i in used:
            parameter, old = group.parameters[i], group.slots["sum"][i]
            gradient = decayed_gradient(parameter, group["weight_decay"])
            total = old + gradient * gradient
            move = rate * gradient / (total.sqrt() + group["eps"])
            changed += [(old, total), (parameter, parameter.detach() - move)]
        return changed


class Adadelta(Optimizer):
    """This class scales by the root of past changes over that of gradients (Zeiler, 2012)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, dict(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay))

    def prepare(self, group: ParameterGroup) -> None:
        """Create both moving averages."""
        group.add_slots("square_avg")
        group.add_slots("acc_delta")

    def update(self, group: ParameterGroup, used: list[int]) -> Changes:
        """Record the update rule of the class."""
        changed: Changes = []
        rho, eps = group["rho"], group["eps"]
        for i in used:
            parameter = group.parameters[i]
            old, deltas = group.slots["square_avg"][i], group.slots["acc_delta"][i]
            gradient = decayed_gradient(parameter, group["weight_decay"])
            square = old * rho + gradient * gradient * (1.0 - rho)
            move = (deltas + eps).sqrt() / (square + eps).sqrt() * gradient
            moves = deltas * rho + move * move * (1.0 - rho)
            changed += [(old, square), (deltas, moves)]
            changed.append((parameter, parameter.detach() - group.rate * move))
        return changed


class Lion(Optimizer):
    """This class moves by the sign of a momentum (Chen et al., 2023); decay is decoupled."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    def prepare(self, group: ParameterGroup) -> None:
        """Create the momentum."""
        group.add_slots("exp_avg")

    def update(self, group: ParameterGroup, used: list[int]) -> Changes:
        """Record the update rule of the class."""
        changed: Changes = []
        beta1, beta2 = group["betas"]
        for i in used:
            parameter, old = group.parameters[i], group.slots["exp_avg"][i]
            gradient = decayed_gradient(parameter, 0.0)
            direction = (old * beta1 + gradient * (1.0 - beta1)).sign()
            start = parameter.detach() * (1.0 - group.rate * group["weight_decay"])
            changed.append((old, old * beta2 + gradient * (1.0 - beta2)))
            changed.append((parameter, start - group.rate * direction))
        return changed

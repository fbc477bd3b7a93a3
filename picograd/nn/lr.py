"""Learning-rate schedules: each is a closed formula of the step number.

`scheduler.step()` after `optimizer.step()` sets the rate of every group on the device, so that a
jitted training step follows the schedule without being traced again.
"""

import math
from collections.abc import Callable
from typing import Any

from picograd.errors import ValueRangeError
from picograd.nn.optim import Optimizer


class Schedule:
    """This class is the base of schedules: `rate(base, step)` is all that a schedule defines."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer, self.last_step = optimizer, 0
        self.base_rates = [float(group["lr"]) for group in optimizer.param_groups]
        self._set()

    def rate(self, base: float, step: int) -> float:
        """Compute the learning rate after `step` steps from a group's first rate."""
        raise NotImplementedError

    def step(self) -> None:
        """Count one step and set the new rates."""
        self.last_step += 1
        self._set()

    def _set(self) -> None:
        for group, base in zip(self.optimizer.param_groups, self.base_rates):
            value = self.rate(base, self.last_step)
            if value != group["lr"]:
                group["lr"] = value

    def get_last_lr(self) -> list[float]:
        """List the current rate of each group."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return what is needed to continue later."""
        return {
            "last_step": self.last_step,
            "base_rates": list(self.base_rates),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.last_step, self.base_rates = (
            int(state["last_step"]),
            list(state["base_rates"]),
        )
        self._set()


class LambdaLR(Schedule):
    """This class multiplies the first rate by `factor(step)`."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: Callable[[int], float],
    ) -> None:
        self.factor = factor
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """Compute base * factor(step)."""
        return base * self.factor(step)


class StepLR(Schedule):
    """This class multiplies the rate by gamma every `step_size` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        step_size: int,
        gamma: float = 0.1,
    ) -> None:
        self.step_size, self.gamma = (
            _positive("StepLR", "step_size", step_size),
            gamma,
        )
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """Compute base * gamma ** (step // step_size)."""
        return float(base * self.gamma ** (step // self.step_size))


class LinearLR(Schedule):
    """This class moves the factor linearly from start to end over `total_iters` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3.0,
        end_factor: float = 1.0,
        total_iters: int = 5,
    ) -> None:
        self.start_factor, self.end_factor = (
            start_factor,
            end_factor,
        )
        self.total_iters = _positive("LinearLR", "total_iters", total_iters)
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """Interpolate between the factors."""
        share = min(step, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * share)


class CosineAnnealingLR(Schedule):
    """This class lowers the rate along half a cosine to eta_min (Loshchilov and Hutter, 2017)."""

    def __init__(
        self,
        optimizer: Optimizer,
        T_max: int,
        eta_min: float = 0.0,
    ) -> None:
        self.steps, self.eta_min = (
            _positive("CosineAnnealingLR", "T_max", T_max),
            eta_min,
        )
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """Compute eta_min + (base - eta_min) * (1 + cos(pi * step / T_max)) / 2."""
        wave = (1.0 + math.cos(math.pi * step / self.steps)) / 2.0
        return self.eta_min + (base - self.eta_min) * wave


class MultiStepLR(Schedule):
    """This class multiplies the rate by gamma at each milestone (a step number)."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: list[int],
        gamma: float = 0.1,
    ) -> None:
        self.milestones, self.gamma = (
            sorted(milestones),
            gamma,
        )
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """Compute base * gamma ** (milestones passed)."""
        return float(base * self.gamma ** sum(step >= mark for mark in self.milestones))


class ExponentialLR(Schedule):
    """This class multiplies the rate by gamma every step."""

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        self.gamma = gamma
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """Compute base * gamma ** step."""
        return float(base * self.gamma**step)


class ConstantLR(Schedule):
    """This class multiplies the rate by `factor` for the first `total_iters` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3.0,
        total_iters: int = 5,
    ) -> None:
        self.factor, self.total_iters = (
            factor,
            total_iters,
        )
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """Compute base * factor, and base afterwards."""
        return base * self.factor if step < self.total_iters else base


class PolynomialLR(Schedule):
    """This class lowers the rate to 0 as (1 - step / total_iters) ** power."""

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
    ) -> None:
        self.total_iters, self.power = (
            _positive(
                "PolynomialLR",
                "total_iters",
                total_iters,
            ),
            power,
        )
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """Compute base * (1 - step / total_iters) ** power."""
        share = 1.0 - min(step, self.total_iters) / self.total_iters
        return float(base * share**self.power)


class TriangleLR(Schedule):
    """This class raises the rate linearly from near 0 to its first value, then lowers it to 0.

    `total_steps` steps in all, of which the share `rise` rises; the k-th step (from 0) of the rise
    uses (k + 1) / rise_steps, the fall reaches 0 just after the last step.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        total_steps: int,
        rise: float = 0.2,
    ) -> None:
        self.total_steps = _positive("TriangleLR", "total_steps", total_steps)
        self.rise_steps = max(1, round(rise * total_steps))
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        """Interpolate on the side of the triangle that `step` is on."""
        if step < self.rise_steps:
            return base * (step + 1) / self.rise_steps
        fall = max(1, self.total_steps - self.rise_steps)
        return base * max(0.0, (self.total_steps - step) / fall)


def _positive(op: str, name: str, value: int) -> int:
    if value < 1:
        raise ValueRangeError(
            op,
            f"{name}={value} is not positive",
            "count steps from 1",
        )
    return value

"""Learning-rate schedules: what the rate of each group becomes from one epoch to the next.

`schedule.step()` after `optimizer.step()` sets the rates on the device, so that a jitted training
step follows without being traced again. As in PyTorch a schedule computes the next rate from the
present one, so that schedules can be combined; the closed formula serves `step(epoch)`. Cyclic
schedules and combinations are in `lr_cyclic`; `nn.lr_scheduler` has them all.
"""

import math
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

from picograd.engine.tracing import RUNNING, birth, is_born_here, note_undo
from picograd.errors import DTypeError, MemberError, StateError, ValueRangeError, check_callable
from picograd.nn.optim.base import Optimizer
from picograd.number import converted
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.jit_variables import follow

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR",
    "MultiStepLR", "MultiplicativeLR", "PolynomialLR", "StepLR", "TriangleLR",
]  # fmt: skip

Factor = Callable[[int], float]
EPOCH_DEPRECATION_WARNING = (  # PyTorch's name: programs filter what it says
    "step(epoch): a schedule counts its own steps, and some have no closed form to go by. "
    "Fix: call step() once an epoch."
)
EARLY_WARNING = (
    "step: the schedule steps before its optimizer did, so the first rate is never used. "
    "Fix: call optimizer.step() first, then step() of the schedule."
)
HELD = frozenset(("optimizer", "is_initial", "_birth"))  # attributes that are no state


def in_place(group: Any, rate: Any) -> Any:
    """Write a rate into the tensor that is the rate of a group, and give that; else the rate.

    Who else holds the tensor, another group or a program that logs it, sees what a schedule sets.
    """
    held = None if RUNNING.traces else group["lr"]
    if not isinstance(held, Tensor):
        return rate
    held.detach().fill_(rate)
    return held


class LRScheduler:
    """This class is the base of schedules: `next_rate` is all that most of them define.

    A schedule written for PyTorch defines `get_lr`, the list of the rates at `last_epoch`, instead.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> schedule = nn.optim.lr_scheduler.ConstantLR(optimizer, 0.5)
    >>> schedule.last_epoch, schedule.get_last_lr()
    (0, [0.5])
    """

    is_initial: bool
    _last_lr: Sequence[Any]  # the rates that the last step set

    # Whether the first rate is the optimizer's own, or already follows the formula.
    keeps_first = False
    _follows_numbers = True  # a trace in which it steps follows its counters
    _birth: Any = None  # in which trace it was made

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """Remember the trace in which it is made."""
        made = object.__new__(cls)
        if RUNNING.traces:
            made._birth = birth()
        return made

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(type(self).__name__, optimizer)
        for group in optimizer.param_groups:
            if last_epoch == -1:
                rate = group["lr"]
                own = rate.detach().clone() if isinstance(rate, Tensor) else rate
                group.setdefault("initial_lr", own)
            elif "initial_lr" not in group:
                problem = f"last_epoch={last_epoch}, but a group has no 'initial_lr'"
                fix = "load the optimizer's state first"
                raise MemberError(type(self).__name__, problem, fix)
        self.optimizer = optimizer
        groups = optimizer.param_groups
        self.base_lrs: list[float] = [converted(float, group["initial_lr"]) for group in groups]
        self.last_epoch: int = last_epoch
        self.start()

    def next_rate(self, number: int, rate: float) -> float:
        """Compute the rate of a group at `last_epoch` from the rate before."""
        raise NotImplementedError

    def rate_at(self, number: int) -> float | None:
        """Compute the rate of a group at `last_epoch` by a closed formula, where there is one."""
        return None

    def values(self, number: int, is_jump: bool = False) -> dict[str, Any]:
        """Compute the options of a group at `last_epoch`: its rate, and momentum if it cycles."""
        rate = converted(float, self.optimizer.param_groups[number]["lr"])
        if self.is_initial and self.keeps_first:
            return {"lr": rate}
        closed = self.rate_at(number) if is_jump else None
        return {"lr": self.next_rate(number, rate) if closed is None else closed}

    def start(self) -> None:
        """Take the first step, which sets the rates of epoch 0."""
        self.is_initial = True
        try:
            self.step()
        finally:
            self.is_initial = False

    def undo(self) -> None:
        """Forget the first step, so that a combination can take it again."""
        self.last_epoch -= 1

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to a given one, and set the rates.

        >>> from picograd import Tensor, nn
        >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
        >>> schedule = nn.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> for _ in range(4):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.25]
        """
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=2)
        if not (self.last_epoch or self.is_initial or self.optimizer._opt_called):
            warnings.warn(EARLY_WARNING, stacklevel=2)
        self.move(None if epoch is None else converted(int, epoch))

    _get_lr_called_within_step = True  # schedules of the user's warn where it is not

    def follow_numbers(self) -> None:
        """Let a trace of `picograd.jit` follow the counters, and what the formula is made of."""
        is_followed = RUNNING.traces and not is_born_here(self._birth)
        if is_followed and RUNNING.traces[-1].numbers is None:
            note_undo(partial(vars(self).update, vars(self).copy()))
        for name in list(vars(self)) if is_followed else ():
            follow(self, vars, name, f"{type(self).__name__}.{name}")

    def move(self, epoch: int | None) -> None:
        """Set the rates of the next epoch, or of a given one."""
        self.follow_numbers()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        own = self.get_lr() if type(self).get_lr is not LRScheduler.get_lr else None
        groups, is_jump = self.optimizer.param_groups, epoch is not None
        found = [{"lr": rate} for rate in own or ()]
        found = found or [self.values(number, is_jump) for number in range(len(groups))]
        for group, values in zip(groups, found):
            group.set_options({**values, "lr": in_place(group, values["lr"])}, -math.inf)
        self._note_rates()

    def _note_rates(self) -> None:
        self._last_lr = [converted(float, group["lr"]) for group in self.optimizer.param_groups]

    def get_lr(self) -> list[float]:
        """List the rates that belong to `last_epoch`, without setting them."""
        count = len(self.optimizer.param_groups)
        return [converted(float, self.values(number)["lr"]) for number in range(count)]

    @property
    def _step_count(self) -> int:
        """How often the schedule stepped; the first time when it was made."""
        return self.last_epoch + 1

    def get_last_lr(self) -> list[float]:
        """List the rate of each group that the last step set, or that a user's schedule names."""
        return list(self._last_lr)

    def state_dict(self) -> dict[str, Any]:
        """Return what is needed to continue later, by PyTorch's names; None for a function."""
        state = {"_is_initial": False, "_get_lr_called_within_step": False}
        kept = {k: without_functions(v) for k, v in vars(self).items() if k not in HELD}
        return {"_step_count": self._step_count, **state, **kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state; the optimizer's own state holds the rates."""
        if "last_epoch" not in state_dict:
            problem = "a schedule's state has the key 'last_epoch'"
            raise StateError(type(self).__name__, problem, "pass what state_dict() returned")
        known = {name: each for name, each in vars(self).items() if name not in HELD}
        for name in known.keys() & state_dict.keys():
            given, functions = state_dict[name], function_list(known[name])
            for function, inside in zip(functions, given if isinstance(given, list) else [given]):
                vars(function).update(inside or {})
            if not functions:
                setattr(self, name, given)


class LambdaLR(LRScheduler):
    """This class multiplies the first rate by `lr_lambda(epoch)`; one function, or one a group.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> schedule = nn.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 0.3333, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Factor | Sequence[Factor], last_epoch: int = -1
    ) -> None:
        self.lr_lambdas: list[Factor] = functions("LambdaLR", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def next_rate(self, number: int, rate: float) -> float:
        """Compute base * lr_lambda(epoch)."""
        return self.base_lrs[number] * self.lr_lambdas[number](self.last_epoch)


class MultiplicativeLR(LRScheduler):
    """This class multiplies the rate by `lr_lambda(epoch)` at every epoch.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> schedule = nn.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda step: 0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 0.25, 0.125]
    """

    keeps_first = True

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Factor | Sequence[Factor], last_epoch: int = -1
    ) -> None:
        self.lr_lambdas: list[Factor] = functions("MultiplicativeLR", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def next_rate(self, number: int, rate: float) -> float:
        """Compute rate * lr_lambda(epoch)."""
        return rate * self.lr_lambdas[number](self.last_epoch)


class StepLR(LRScheduler):
    """This class multiplies the rate by gamma every `step_size` epochs.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> schedule = nn.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 1.0, 0.5, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size: int = positive("StepLR", "step_size", step_size)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def next_rate(self, number: int, rate: float) -> float:
        """Multiply at multiples of the step size."""
        is_due = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return rate * self.gamma if is_due else rate

    def rate_at(self, number: int) -> float:
        """Compute base * gamma ** (epoch // step_size)."""
        times = self.last_epoch // self.step_size
        return converted(float, self.base_lrs[number] * self.gamma**times)


class MultiStepLR(LRScheduler):
    """This class multiplies the rate by gamma at each milestone (an epoch).

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> schedule = nn.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], gamma=0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones: Counter[int] = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def next_rate(self, number: int, rate: float) -> float:
        """Multiply as often as the epoch is a milestone."""
        due = sum(count for at, count in self.milestones.items() if at == self.last_epoch)
        return converted(float, rate * self.gamma**due)

    def rate_at(self, number: int) -> float:
        """Compute base * gamma ** (milestones passed)."""
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return converted(float, self.base_lrs[number] * self.gamma**passed)


class ConstantLR(LRScheduler):
    """This class multiplies the rate by `factor` until epoch `total_iters`.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> schedule = nn.optim.lr_scheduler.ConstantLR(optimizer, 0.5, total_iters=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.5, 0.5, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        within("ConstantLR", "factor", factor, is_zero_allowed=True)
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def next_rate(self, number: int, rate: float) -> float:
        """Multiply at epoch 0, divide at the end."""
        if self.last_epoch == 0:
            return rate * self.factor
        if self.last_epoch != self.total_iters:
            return rate
        return rate / self.factor if self.factor else self.base_lrs[number]

    def rate_at(self, number: int) -> float:
        """Compute base * factor, and base afterwards."""
        is_over = self.last_epoch >= self.total_iters
        return self.base_lrs[number] * (1.0 if is_over else self.factor)


class LinearLR(LRScheduler):
    """This class moves a factor linearly from start to end over `total_iters` epochs.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> schedule = nn.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.5, 0.75, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3.0,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        within("LinearLR", "start_factor", start_factor)
        within("LinearLR", "end_factor", end_factor, is_zero_allowed=True)
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters: int = positive("LinearLR", "total_iters", total_iters)
        super().__init__(optimizer, last_epoch)

    def next_rate(self, number: int, rate: float) -> float:
        """Multiply by the quotient of this epoch's factor and the one before."""
        if self.last_epoch == 0:
            return rate * self.start_factor
        if self.is_initial or self.last_epoch > self.total_iters:
            return rate
        rise = self.end_factor - self.start_factor
        return rate * (
            1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)
        )

    def rate_at(self, number: int) -> float:
        """Interpolate between the factors."""
        share = min(self.last_epoch, self.total_iters) / self.total_iters
        factor = self.start_factor + (self.end_factor - self.start_factor) * share
        return self.base_lrs[number] * factor


class ExponentialLR(LRScheduler):
    """This class multiplies the rate by gamma every epoch.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> schedule = nn.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 0.25, 0.125]
    """

    keeps_first = True

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def next_rate(self, number: int, rate: float) -> float:
        """Compute rate * gamma."""
        return rate * self.gamma

    def rate_at(self, number: int) -> float:
        """Compute base * gamma ** epoch."""
        return converted(float, self.base_lrs[number] * self.gamma**self.last_epoch)


class PolynomialLR(LRScheduler):
    """This class lowers the rate to 0 as (1 - epoch / total_iters) ** power.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> schedule = nn.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.75, 0.5, 0.25]
    """

    keeps_first = True

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters: int = positive("PolynomialLR", "total_iters", total_iters)
        self.power = power
        super().__init__(optimizer, last_epoch)

    def next_rate(self, number: int, rate: float) -> float:
        """Multiply by the quotient of this epoch's share and the one before."""
        if self.last_epoch > self.total_iters:
            return rate
        left, before = (1.0 - e / self.total_iters for e in (self.last_epoch, self.last_epoch - 1))
        return converted(float, rate * (left / before) ** self.power)

    def rate_at(self, number: int) -> float:
        """Compute base * (1 - epoch / total_iters) ** power."""
        left = 1.0 - min(self.last_epoch, self.total_iters) / self.total_iters
        return converted(float, self.base_lrs[number] * left**self.power)


class CosineAnnealingLR(LRScheduler):
    """This class lowers the rate along half a cosine to eta_min (Loshchilov and Hutter, 2017).

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> schedule = nn.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.8536, 0.5, 0.1464]
    """

    keeps_first = True

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max: int = positive("CosineAnnealingLR", "T_max", T_max)
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def next_rate(self, number: int, rate: float) -> float:
        """Scale the height above eta_min by the quotient of two cosines; from 0 it starts anew."""
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            height = self.base_lrs[number] - self.eta_min
            return rate + height * (1.0 - math.cos(math.pi / self.T_max)) / 2.0
        now = 1.0 + math.cos(math.pi * self.last_epoch / self.T_max)
        before = 1.0 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        return now / before * (rate - self.eta_min) + self.eta_min

    def rate_at(self, number: int) -> float:
        """Compute eta_min + (base - eta_min) * (1 + cos(pi * epoch / T_max)) / 2."""
        wave = (1.0 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2.0
        return self.eta_min + (self.base_lrs[number] - self.eta_min) * wave


class TriangleLR(LRScheduler):
    """This class raises the rate linearly from near 0 to its first value, then lowers it to 0.

    `total_steps` steps in all, of which the share `rise` rises; the k-th step (from 0) of the rise
    uses (k + 1) / rise_steps, the fall reaches 0 just after the last step.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> schedule = nn.optim.lr_scheduler.TriangleLR(optimizer, total_steps=4, rise=0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.5, 1.0, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, total_steps: int, rise: float = 0.2, last_epoch: int = -1
    ) -> None:
        self.total_steps: int = positive("TriangleLR", "total_steps", total_steps)
        self.rise_steps: int = max(1, round(rise * total_steps))
        super().__init__(optimizer, last_epoch)

    def next_rate(self, number: int, rate: float) -> float:
        """Interpolate on the side of the triangle that the epoch is on."""
        base, step = self.base_lrs[number], self.last_epoch
        if step < self.rise_steps:
            return base * (step + 1) / self.rise_steps
        fall = max(1, self.total_steps - self.rise_steps)
        return base * max(0.0, (self.total_steps - step) / fall)


def check_optimizer(op: str, optimizer: Any) -> None:
    """Raise DTypeError for anything that is no optimizer."""
    if not isinstance(optimizer, Optimizer):
        problem = f"{type(optimizer).__name__} is no optimizer"
        raise DTypeError(op, problem, "pass an optimizer of nn.optim")


def functions(op: str, optimizer: Optimizer, given: Any) -> list[Factor]:
    """Read one function, or one for every group."""
    listed = per_group(op, "lr_lambda", optimizer, given)
    for function in listed:
        check_callable(op, function, "pass lambda epoch: 0.9**epoch")
    return listed


def per_group(op: str, name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Repeat a value for every group, or check that there is one for each."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        problem = f"{name} has {len(value)} values for {count} groups"
        raise ValueRangeError(op, problem, "give one a group")
    return list(value)


def function_list(value: Any) -> list[Any]:
    """List the functions that an attribute is, or is a list of: a file cannot keep them."""
    listed = value if isinstance(value, list) else [value]
    return listed if listed and callable(listed[0]) else []


def without_functions(value: Any) -> Any:
    """Put in the place of a function None, in that of a callable object its attributes."""
    states = [
        None if isinstance(each, FunctionType) else vars(each).copy()
        for each in function_list(value)
    ]
    if not states:
        return value
    return states if isinstance(value, list) else states[0]


def positive(op: str, name: str, value: int) -> int:
    """Raise ValueRangeError for a count that is not positive."""
    if value < 1:
        raise ValueRangeError(op, f"{name}={value} is not positive", "count steps from 1")
    return value


def within(op: str, name: str, value: float, is_zero_allowed: bool = False) -> None:
    """Raise ValueRangeError for a factor outside of (0, 1], or [0, 1]."""
    if not 0.0 <= value <= 1.0 or (value == 0.0 and not is_zero_allowed):
        bounds = "[0, 1]" if is_zero_allowed else "(0, 1]"
        raise ValueRangeError(op, f"{name}={value} is not in {bounds}", "use 0.5")

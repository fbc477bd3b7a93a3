"""Schedules made of schedules, one after the other or all at once; and one that follows a loss."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from picograd.errors import DTypeError, StateError, ValueRangeError, check_known
from picograd.nn.optim.base import Optimizer
from picograd.nn.optim.lr import LRScheduler, check_optimizer, per_group
from picograd.number import converted

PYTORCH = {"schedulers": "_schedulers", "milestones": "_milestones"}  # names in state dicts
OURS = {name: own for own, name in PYTORCH.items()}


class Composed(LRScheduler):
    """This class is the base of combinations: it holds other schedules of the same optimizer."""

    schedulers: list[LRScheduler]

    def undo(self) -> None:
        """Forget the first step of every schedule."""
        for schedule in self.schedulers:
            schedule.undo()

    def get_lr(self) -> list[float]:
        """List the current rates: those of the schedules that are at work."""
        return self.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """Return the states of all schedules."""
        state = {PYTORCH.get(k, k): each for k, each in super().state_dict().items()}
        return {**state, "_schedulers": [each.state_dict() for each in self.schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue every schedule from its state."""
        given = {OURS.get(k, k): each for k, each in state_dict.items()}
        states = given.pop("schedulers", [])
        if len(states) != len(self.schedulers):
            problem = f"{len(states)} states for {len(self.schedulers)} schedules"
            raise StateError(type(self).__name__, problem, "load a state of the same combination")
        vars(self).update({k: v for k, v in given.items() if k in vars(self)})
        for schedule, state in zip(self.schedulers, states):
            schedule.load_state_dict(state)


class SequentialLR(Composed):
    """This class follows one schedule after the other; each starts anew at its milestone.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> first = nn.optim.lr_scheduler.ConstantLR(optimizer, 0.5, 2)
    >>> then = nn.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    >>> schedule = nn.optim.lr_scheduler.SequentialLR(optimizer, [first, then], milestones=[2])
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        self.schedulers = check_schedules("SequentialLR", schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            problem = f"{len(milestones)} milestones for {len(schedulers)} schedules"
            raise ValueRangeError("SequentialLR", problem, "give one less than schedules")
        self.optimizer: Optimizer = optimizer
        self.milestones: list[int] = list(milestones)
        self.is_initial: bool = False
        self.last_epoch: int = last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        self.undo()
        self.schedulers[bisect_right(self.milestones, 0)].start()
        self._note_rates()

    def step(self, epoch: float | None = None) -> None:
        """Let the schedule of this epoch take its step."""
        self.follow_numbers()
        self.last_epoch += 1
        at = bisect_right(self.milestones, self.last_epoch)
        if at and self.milestones[at - 1] == self.last_epoch:
            self.schedulers[at].move(0)
        else:
            self.schedulers[at].step()
        self._note_rates()


class ChainedScheduler(Composed):
    """This class lets several schedules change the rate, one after the other, at every step.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> halved = nn.optim.lr_scheduler.ConstantLR(optimizer, 0.5, 2)
    >>> shrunk = nn.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    >>> both = nn.optim.lr_scheduler.ChainedScheduler([halved, shrunk])
    >>> both.step()
    >>> both.get_last_lr()
    [0.25]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        first = schedulers[0].optimizer if schedulers else None
        wanted = first if optimizer is None else optimizer
        self.schedulers = check_schedules("ChainedScheduler", schedulers, wanted)
        self.optimizer: Optimizer = self.schedulers[0].optimizer
        self.is_initial: bool = False
        self.last_epoch: int = 0
        self._note_rates()

    def step(self, epoch: float | None = None) -> None:
        """Let every schedule take its step."""
        self.follow_numbers()
        self.last_epoch += 1
        for schedule in self.schedulers:
            schedule.step()
        self._note_rates()

    def move(self, epoch: int | None) -> None:
        """Send every schedule to an epoch."""
        for schedule in self.schedulers:
            schedule.move(epoch)
        self._note_rates()


class ReduceLROnPlateau(LRScheduler):
    """This class multiplies the rate by `factor` when a loss has not improved for a while.

    `step(loss)`: after more than `patience` epochs without improvement by `threshold` (a share if
    `threshold_mode` is "rel", a difference if "abs") the rate falls, not below min_lr, and the
    next `cooldown` epochs do not count. `mode` "max" is for scores that should rise.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> schedule = nn.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    >>> for loss in (2.0, 1.0, 1.0):
    ...     schedule.step(loss)
    >>> optimizer.param_groups[0]["lr"]
    0.5
    """

    eps: float
    best: float
    factor: float
    patience: int
    cooldown: int
    threshold: float
    cooldown_counter: int
    num_bad_epochs: int

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        op = "ReduceLROnPlateau"
        check_optimizer(op, optimizer)
        if factor >= 1.0:
            raise ValueRangeError(op, f"factor={factor} is not below 1", "use 0.1")
        check_known(op, "mode", mode, ("min", "max"))
        check_known(op, "threshold_mode", threshold_mode, ("rel", "abs"))
        self.optimizer: Optimizer = optimizer
        self.is_initial: bool = False
        self.last_epoch: int = 0
        self.mode, self.factor, self.patience, self.eps = mode, factor, patience, eps
        self.threshold, self.threshold_mode, self.cooldown = (threshold, threshold_mode, cooldown)
        self.default_min_lr = min_lr
        self.min_lrs: list[Any] = per_group(op, "min_lr", optimizer, min_lr)
        self.best = self.mode_worse = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0
        self._note_rates()

    def is_better(self, value: float) -> bool:
        """Tell whether a value improves on the best so far by more than the threshold."""
        margin = self.threshold if self.mode == "max" else -self.threshold
        is_share = self.threshold_mode == "rel"
        bound = self.best * (1.0 + margin) if is_share else self.best + margin
        return value > bound if self.mode == "max" else value < bound

    def get_lr(self) -> list[float]:
        """List the current rates."""
        return self.get_last_lr()

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Note a loss: a number or a tensor of one element."""
        self.follow_numbers()
        value = converted(float, metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._note_rates()

    def _reduce(self) -> None:
        """Lower the rates, where that makes a difference."""
        groups = self.optimizer.param_groups
        missing = len(groups) - len(self.min_lrs)
        for group, least in zip(groups, self.min_lrs + self.min_lrs[-1:] * missing):
            old = converted(float, group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                group["lr"] = new


def check_schedules(op: str, schedules: Sequence[Any], optimizer: Any) -> list[LRScheduler]:
    """Raise unless these are schedules of one optimizer that step without a loss."""
    if not schedules:
        raise ValueRangeError(op, "there are no schedules", "pass at least one")
    for schedule in schedules:
        if not isinstance(schedule, LRScheduler):
            problem = f"{type(schedule).__name__} is no schedule"
            raise DTypeError(op, problem, "pass schedules of nn.lr_scheduler")
        if isinstance(schedule, ReduceLROnPlateau):
            problem = "ReduceLROnPlateau needs a loss at every step"
            raise ValueRangeError(op, problem, "step it by itself")
        if schedule.optimizer is not optimizer:
            problem = "the schedules belong to different optimizers"
            raise ValueRangeError(op, problem, "make them of the same one")
    return list(schedules)

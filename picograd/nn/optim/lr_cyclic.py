"""Schedules that rise and fall: warm restarts, cycles, one cycle; the last two move momentum too.

Momentum is `momentum`, or the first of `betas`, whichever the optimizer has.

Schedules made of schedules, one after the other or all at once; and one that follows a loss.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from picograd.errors import DTypeError, StateError, ValueRangeError, check_known, check_least
from picograd.nn.optim.base import Optimizer
from picograd.nn.optim.group import ParameterGroup
from picograd.nn.optim.lr import LRScheduler, check_optimizer, in_place, per_group, positive
from picograd.number import converted

__all__ = [
    "ChainedScheduler", "CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR",
    "ReduceLROnPlateau", "SequentialLR",
]  # fmt: skip

Rates = float | Sequence[float]
PHASE = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
MODES = ("triangular", "triangular2", "exp_range")


class CosineAnnealingWarmRestarts(LRScheduler):
    """This class falls along half a cosine, again and again (Loshchilov and Hutter, 2017).

    The first fall takes T_0 epochs, each later one T_mult times as many. `step(epoch)` takes
    fractions of an epoch.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> schedule = nn.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 1.0, 0.5]
    """

    T_i: int

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        op = "CosineAnnealingWarmRestarts"
        self.T_0 = self.T_i = positive(op, "T_0", T_0)
        self.T_mult: int = positive(op, "T_mult", T_mult)
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def next_rate(self, number: int, rate: float) -> float:
        """Compute eta_min + (base - eta_min) * (1 + cos(pi * T_cur / T_i)) / 2."""
        wave = (1.0 + math.cos(math.pi * self.T_cur / self.T_i)) / 2.0
        return self.eta_min + (self.base_lrs[number] - self.eta_min) * wave

    def step(self, epoch: float | None = None) -> None:
        """Go on by one epoch, or to a given one, which may be a fraction."""
        self.follow_numbers()
        if epoch is None and self.last_epoch >= 0:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
            self.move(self.last_epoch + 1)
            return
        self._find(epoch or 0.0)
        self.move(math.floor(epoch or 0.0))

    def _find(self, epoch: float) -> None:
        """Find the fall that an epoch is in, and the place in it."""
        check_least("CosineAnnealingWarmRestarts", "epoch", epoch)
        first, growth = self.T_0, self.T_mult
        if growth == 1 or epoch < first:
            self.T_i, self.T_cur = first, epoch % first if epoch >= first else epoch
            return
        falls = converted(int, math.log(epoch / first * (growth - 1) + 1, growth))
        self.T_i = first * growth**falls
        self.T_cur = epoch - first * (growth**falls - 1) / (growth - 1)


class CyclicLR(LRScheduler):
    """This class moves the rate between two bounds in straight lines (Smith, 2017).

    `mode`: "triangular", "triangular2" (each cycle half as high) or "exp_range" (gamma ** epoch as
    high); or `scale_fn`, of the cycle (from 1) or the iteration as `scale_mode` says. Momentum
    moves the other way.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> schedule = nn.optim.lr_scheduler.CyclicLR(optimizer, 0.5, 1.0, step_size_up=2,
    ...     cycle_momentum=False)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.5, 0.75, 1.0, 0.75]
    """

    use_beta1: bool
    base_momentums: list[float]
    max_momentums: list[float]

    def __init__(
        self, optimizer: Optimizer, base_lr: Rates, max_lr: Rates, step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
        cycle_momentum: bool = True, base_momentum: Rates = 0.8, max_momentum: Rates = 0.9,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        check_optimizer("CyclicLR", optimizer)
        if mode not in MODES and scale_fn is None:
            problem = f"mode={mode!r} is unknown"
            raise ValueRangeError("CyclicLR", problem, f"use {', '.join(MODES)}")
        base_lrs = per_group("CyclicLR", "base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs):
                group["lr"] = in_place(group, rate)
        self.max_lrs: list[Any] = per_group("CyclicLR", "max_lr", optimizer, max_lr)
        up = float(positive("CyclicLR", "step_size_up", step_size_up))
        self.total_size: float = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio: float = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        is_by_epoch = scale_fn is None and mode == "exp_range"
        self.scale_mode: str = "iterations" if is_by_epoch else scale_mode
        self.cycle_momentum, self.use_beta1 = cycle_momentum, "betas" in optimizer.defaults
        if cycle_momentum:
            bounds = base_momentum, max_momentum
            kept = start_momentum("CyclicLR", optimizer, *bounds, last_epoch == -1)
            self.base_momentums, self.max_momentums = kept
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def height(self, cycle: int) -> float:
        """Compute how high this cycle, or iteration, may rise."""
        at = cycle if self.scale_mode == "cycle" else self.last_epoch
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(at)
        if self.mode == "triangular2":
            return converted(float, 1.0 / 2.0 ** (at - 1))
        return converted(float, self.gamma**at) if self.mode == "exp_range" else 1.0

    def values(self, number: int, is_jump: bool = False) -> dict[str, Any]:
        """Interpolate between the bounds of rate and momentum."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        is_rising = place <= self.step_ratio
        share = place / self.step_ratio if is_rising else (place - 1) / (self.step_ratio - 1)
        low, high, scale = (self.base_lrs[number], self.max_lrs[number], self.height(cycle))
        found = {"lr": low + (high - low) * share * scale}
        if not self.cycle_momentum:
            return found
        low, high = self.base_momentums[number], self.max_momentums[number]
        momentum = high - (high - low) * share * scale
        return found | momentum_option(self.optimizer.param_groups[number], momentum)


class OneCycleLR(LRScheduler):
    """This class rises to max_lr and falls far below the start, once (Smith and Topin, 2018).

    Starts at max_lr / div_factor, rises for the share `pct_start` of `total_steps` (or of epochs *
    steps_per_epoch), and falls to start / final_div_factor; `three_phase` falls to the start in
    between. `anneal_strategy` is "cos" or "linear". Momentum moves the other way.

    >>> from picograd import Tensor, nn
    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0, 2.0]))], lr=1.0)
    >>> schedule = nn.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=5,
    ...     cycle_momentum=False)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 4))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.04, 0.9505, 0.6113, 0.1883]
    """

    cycle_momentum: bool

    def __init__(
        self, optimizer: Optimizer, max_lr: Rates, total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
        anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: Rates = 0.85,
        max_momentum: Rates = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        check_optimizer("OneCycleLR", optimizer)
        self.total_steps: int = count_steps(total_steps, epochs, steps_per_epoch)
        if not 0.0 <= pct_start <= 1.0:
            problem = f"pct_start={pct_start} is not in [0, 1]"
            raise ValueRangeError("OneCycleLR", problem, "use 0.3")
        check_known("OneCycleLR", "anneal_strategy", anneal_strategy, ("cos", "linear"))
        self._anneal_func_type, self.cycle_momentum = anneal_strategy, cycle_momentum
        self.use_beta1: bool = "betas" in optimizer.defaults
        phases = list_ends(self.total_steps, pct_start, three_phase)
        self._schedule_phases: list[Any] = [dict(zip(PHASE, phase)) for phase in phases]
        rates = per_group("OneCycleLR", "max_lr", optimizer, max_lr)
        for group, rate in zip(optimizer.param_groups, rates):
            if last_epoch == -1:
                first = rate / div_factor
                limits = {"max_lr": rate, "min_lr": first / final_div_factor}
                group.set_options({"initial_lr": first, **limits})
        if cycle_momentum:
            bounds = base_momentum, max_momentum
            start_momentum("OneCycleLR", optimizer, *bounds, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def values(self, number: int, is_jump: bool = False) -> dict[str, Any]:
        """Interpolate between the ends of the phase that the step is in."""
        if self.last_epoch > self.total_steps:
            problem = f"step {self.last_epoch} of {self.total_steps}"
            raise ValueRangeError("OneCycleLR", problem, "pass a larger total_steps")
        group = self.optimizer.param_groups[number]
        ends = [phase["end_step"] for phase in self._schedule_phases[:-1]]
        at = bisect_left(ends, self.last_epoch)
        begin = ends[at - 1] if at else 0.0
        end, *names = self._schedule_phases[at].values()
        share = (self.last_epoch - begin) / (end - begin)
        first, last, low, high = (group.get(name) for name in names)
        found = {"lr": self.anneal(first, last, share)}
        if self.cycle_momentum:
            found |= momentum_option(group, self.anneal(low, high, share))
        return found

    def anneal(self, start: Any, end: Any, share: float) -> float:
        """Interpolate along half a cosine or a line."""
        if self._anneal_func_type == "linear":
            return converted(float, (end - start) * share + start)
        return converted(float, end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1.0))


def list_ends(total: int, share: float, is_three: bool) -> list[tuple[float, str, str, str, str]]:
    """List (last step, rate from, to, momentum from, to) of each phase."""
    rise = float(share * total) - 1.0
    up = (rise, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    if not is_three:
        return [up, (total - 1.0, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    fall = float(2 * share * total) - 2.0
    down = (fall, "max_lr", "initial_lr", "base_momentum", "max_momentum")
    return [up, down, (total - 1.0, "initial_lr", "min_lr", "max_momentum", "max_momentum")]


def count_steps(total: int | None, epochs: int | None, steps: int | None) -> int:
    """Read the length of a cycle, given in one of two ways."""
    if total is None and (epochs is None or steps is None):
        problem = "the length of the cycle is missing"
        fix = "pass total_steps, or epochs and steps_per_epoch"
        raise ValueRangeError("OneCycleLR", problem, fix)
    if total is not None:
        return positive("OneCycleLR", "total_steps", total)
    first = positive("OneCycleLR", "epochs", epochs or 0)
    return first * positive("OneCycleLR", "steps_per_epoch", steps or 0)


def start_momentum(
    op: str, optimizer: Optimizer, base: Rates, most: Rates, is_first: bool
) -> tuple[list[float], list[float]]:
    """Check that the optimizer has momentum, and set it to its upper bound."""
    if not {"momentum", "betas"} & optimizer.defaults.keys():
        problem = f"{type(optimizer).__name__} has neither momentum nor betas"
        raise ValueRangeError(op, problem, "pass cycle_momentum=False")
    lows = per_group(op, "base_momentum", optimizer, base)
    highs = per_group(op, "max_momentum", optimizer, most)
    for group, low, high in zip(optimizer.param_groups, lows, highs):
        if is_first:
            bounds = {"max_momentum": high, "base_momentum": low}
            group.set_options({**momentum_option(group, high), **bounds})
    return lows, highs


def momentum_option(group: ParameterGroup, momentum: float) -> dict[str, Any]:
    """Name the option of a group that is its momentum."""
    if "betas" in group:
        return {"betas": (momentum, *group["betas"][1:])}
    return {"momentum": momentum}


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
            group["lr"] = in_place(group, group["initial_lr"])
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
    >>> optimizer.step()
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
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
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
                group["lr"] = in_place(group, new)


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

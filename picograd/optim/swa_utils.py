"""Averages of weights: stochastic weight averaging (Izmailov et al., 2018), and exponential ones.

`AveragedModel` keeps the average beside the model that is trained; `SWALR` brings the rate to that
of averaging; `update_bn` measures the batch statistics that the averaged weights need.
"""

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from picograd.errors import ValueRangeError, check_known
from picograd.nn.module import Module
from picograd.nn.norm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from picograd.nn.optim.base import Optimizer
from picograd.nn.optim.lr import LRScheduler, per_group
from picograd.tensor.core.annotations import DeviceLike
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.tensor import Tensor

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
    "get_swa_multi_avg_fn", "update_bn",
]  # fmt: skip

Average = Callable[[Tensor, Tensor, Tensor], Tensor]
Averages = Callable[[Sequence[Tensor], Sequence[Tensor], Tensor], None]
BATCH_NORMS = (BatchNorm1d, BatchNorm2d, BatchNorm3d)


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Make the rule average * decay + current * (1 - decay).

    >>> from picograd import Tensor, optim
    >>> rule = optim.swa_utils.get_ema_avg_fn(0.5)
    >>> rule(Tensor([1.0]), Tensor([3.0]), picograd.tensor(1)).tolist()
    [2.0]
    """
    check_decay(decay)
    return partial(exponential, decay)


def exponential(decay: float, average: Tensor, current: Tensor, count: Tensor) -> Tensor:
    """Move an average: a function of its own, so that a model that has the rule can be pickled."""
    return average * decay + current * (1.0 - decay)


def get_swa_avg_fn() -> Average:
    """Make the rule of equal weights: average + (current - average) / (count + 1)."""
    return equal


def equal(average: Tensor, current: Tensor, count: Tensor) -> Tensor:
    """Take one more value into an average of `count`."""
    return average + (current - average) / (count + 1)


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """Make the rule of `get_ema_avg_fn` for lists of tensors, which it changes."""
    return partial(average_all, get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Averages:
    """Make the rule of `get_swa_avg_fn` for lists of tensors, which it changes."""
    return partial(average_all, get_swa_avg_fn())


def average_all(
    rule: Average, averages: Sequence[Tensor], currents: Sequence[Tensor], count: Tensor
) -> None:
    """Change lists of tensors by a rule for tensors; whole numbers lose fractions."""
    for average, current in zip(averages, currents):
        average.copy_(rule(average.detach(), current.detach(), count))


def check_decay(decay: float) -> None:
    """Raise ValueRangeError for a decay outside 0..1."""
    if not 0.0 <= decay <= 1.0:
        raise ValueRangeError("EMA", f"decay={decay} is outside 0..1", "use 0.999")


class AveragedModel(Module):
    """This class holds the average of a model's weights; `update_parameters` takes a model in.

    The average is equal unless a rule is given: `avg_fn(average, current, count)` for a tensor, or
    `multi_avg_fn(averages, currents, count)`, which changes lists of them. Buffers are averaged
    with `use_buffers`, else copied.

    >>> from picograd import nn, optim
    >>> model = nn.Linear(1, 1, bias=False)
    >>> average = optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 3.0):
    ...     _ = nn.init.constant_(model.weight, value)
    ...     average.update_parameters(model)
    >>> average.module.weight.item(), average.n_averaged.item()
    (2.0, 2)
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: DeviceLike | None = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        if avg_fn is not None and multi_avg_fn is not None:
            problem = "avg_fn and multi_avg_fn are given"
            raise ValueRangeError("AveragedModel", problem, "use one of them")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device)
        self.register_buffer("n_averaged", Tensor(0, dtype="int64", device=device))
        rule = get_swa_avg_fn() if avg_fn is None else avg_fn
        self.rule = partial(average_all, rule) if multi_avg_fn is None else multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Compute the output of the averaged model."""
        return self.module(*inputs, **options)

    def update_parameters(self, model: Module) -> None:
        """Take the present weights of a model into the average."""
        averages, currents = held(self.module, True), held(model, True)
        buffers, others = held(self.module, False), held(model, False)
        if self.use_buffers:
            averages, currents, buffers, others = averages + buffers, currents + others, [], []
        pairs = list(zip(buffers, others))
        is_first = self.n_averaged.item() == 0
        with no_grad():
            if is_first:
                pairs += zip(averages, currents)
            else:
                moved = [x.detach().to(y.device) for x, y in zip(currents, averages)]
                self.rule(averages, moved, self.n_averaged)
            for average, current in pairs:
                average.copy_(current.detach().to(average.device))
            self.n_averaged.add_(1)


def held(model: Module, is_trained: bool) -> list[Tensor]:
    """List the parameters, or the buffers, of a model."""
    return list(model.parameters() if is_trained else model.buffers())


def update_bn(loader: Iterable[Any], model: Module, device: DeviceLike | None = None) -> None:
    """Measure the batch statistics of a model over data: plain means over all its batches.

    Batches may be tensors, or lists and tuples that begin with one.
    """
    norms = [module for module in model.modules() if isinstance(module, BATCH_NORMS)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    with no_grad():
        for batch in loader:
            given = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(given if device is None else given.to(device))
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """This class brings the rates to `swa_lr` over some epochs, by a cosine or linearly.

    >>> from picograd import nn, optim
    >>> optimizer = optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = optim.swa_utils.SWALR(optimizer, 0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> for _ in range(3):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        check_known("SWALR", "anneal_strategy", anneal_strategy, ("cos", "linear"))
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueRangeError("SWALR", f"anneal_epochs={anneal_epochs}", "use 0 or more")
        self.swa_lrs = per_group("SWALR", "swa_lr", optimizer, swa_lr)
        for group, rate in zip(optimizer.param_groups, self.swa_lrs):
            group["swa_lr"] = rate  # where programs, and the states of PyTorch, have it
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def share(self, step: int) -> float:
        """Tell how far the rates are at a step: 0 at the optimizer's own, 1 at `swa_lr`."""
        part = min(1.0, max(0.0, step / max(1, self.anneal_epochs)))
        return part if self.anneal_strategy == "linear" else (1.0 - math.cos(math.pi * part)) / 2.0

    def next_rate(self, number: int, rate: float) -> float:
        """Take the last step's share out of the rate, and put this step's in."""
        step = self.last_epoch if self.anneal_epochs else max(1, self.last_epoch)
        goal, before, now = self.swa_lrs[number], self.share(step - 1), self.share(step)
        own = goal if before == 1.0 else (rate - before * goal) / (1.0 - before)
        return goal * now + own * (1.0 - now)

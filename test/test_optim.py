"""picograd.optim: torch.optim's names (optimizer, lr_scheduler), and averages (swa_utils)."""

import pickle
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import nn, optim

torch = pytest.importorskip("torch")


class Halving(optim.lr_scheduler.LRScheduler):
    """A schedule as programs for PyTorch define one."""

    def __init__(self, optimizer, every, last_epoch=-1):
        self.every = every
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [base * 0.5 ** (self.last_epoch // self.every) for base in self.base_lrs]


def test_schedules_of_the_users_own() -> None:
    optimizer = optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    schedule = Halving(optimizer, 2)
    rates = []
    for _ in range(4):
        rates.append(schedule.get_last_lr()[0])
        schedule.step()
    assert rates == [1.0, 1.0, 0.5, 0.5] and schedule._step_count == 5


def trained(library, linear: np.ndarray) -> list[float]:
    """Average a model's weights while it trains, by a library; gives rates and averages."""
    swa = library.optim.swa_utils
    model = library.nn.Linear(3, 1, bias=False)
    with library.no_grad():
        model.weight.copy_(library.tensor(linear))
    average, ema = (
        swa.AveragedModel(model),
        swa.AveragedModel(model, avg_fn=swa.get_ema_avg_fn(0.9)),
    )
    optimizer = library.optim.SGD(model.parameters(), lr=0.1)
    schedule = swa.SWALR(optimizer, swa_lr=0.02, anneal_epochs=4)
    x, found = library.tensor([[1.0, 2.0, 3.0]]), []
    for _ in range(6):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        average.update_parameters(model)
        ema.update_parameters(model)
        schedule.step()
        found += schedule.get_last_lr()
    swa.update_bn([x], average)
    return found + average(x).tolist()[0] + ema.module.weight.tolist()[0]


def test_averages_of_weights() -> None:
    start = np.array([[0.5, -0.25, 0.125]], np.float32)
    np.testing.assert_allclose(trained(picograd, start), trained(torch, start), rtol=1e-4)


@pytest.mark.parametrize("rule", ["avg_fn", "multi_avg_fn"])
def test_averages_of_whole_numbers_lose_fractions(rule: str) -> None:
    found = []
    for library in (picograd, torch):
        swa = library.optim.swa_utils
        make = swa.get_ema_avg_fn if rule == "avg_fn" else swa.get_ema_multi_avg_fn
        norm = library.nn.BatchNorm1d(2)
        norm.register_buffer("places", library.arange(300))
        average = swa.AveragedModel(norm, use_buffers=True, **{rule: make(0.9)})
        for _ in range(3):
            norm(library.tensor([[1.0, 2.0], [3.0, 5.0]]))
            norm.places.add_(3)
            average.update_parameters(norm)
        found.append([average.module.places.tolist(), average.module.num_batches_tracked.item()])
    assert found[0] == found[1]


def test_statistics_after_averaging() -> None:
    norm = nn.BatchNorm1d(2)
    batches = [picograd.rand(8, 2), picograd.rand(8, 2) + 1]
    optim.swa_utils.update_bn([(x, None) for x in batches], norm)
    wanted = sum(np.mean(x.numpy(), 0) for x in batches) / 2
    np.testing.assert_allclose(norm.running_mean.numpy(), wanted, rtol=1e-5)
    assert norm.momentum == 0.1


def test_names_are_the_one_definition() -> None:
    assert optim.Adam is nn.optim.Adam and optim.optimizer.Optimizer is nn.optim.Optimizer
    assert optim.lr_scheduler.StepLR is nn.optim.lr_scheduler.StepLR


def test_averages_are_pickled_with_their_rules() -> None:
    rules = optim.swa_utils
    for options in ({}, {"avg_fn": rules.get_ema_avg_fn(0.9)}):
        average: Any = rules.AveragedModel(nn.Linear(2, 2), **options)
        average.update_parameters(nn.Linear(2, 2))
        copied, model = pickle.loads(pickle.dumps(average)), nn.Linear(2, 2)
        average.update_parameters(model)
        copied.update_parameters(model)
        assert copied.module.weight.tolist() == average.module.weight.tolist()


@pytest.mark.parametrize("differentiable", [False, True])
def test_steps_of_optimizers_of_others_are_recorded_if_they_say_so(differentiable: bool) -> None:
    from picograd.optim import optimizer

    class Plain(optimizer.Optimizer):
        @optimizer._use_grad_for_differentiable
        def step(self) -> bool:
            return picograd.is_grad_enabled()

    x = picograd.ones(2, requires_grad=True)
    assert Plain([x], {"differentiable": differentiable}).step() is differentiable
    assert optimizer._default_to_fused_or_foreach([x], False) == (False, False)
    assert optimizer._get_capturable_supported_devices() == ["cuda"]

"""Combinations of schedules, and the one that follows a loss, against PyTorch's."""

import math

import pytest
from lr_support import follow, optimizers, torch

from picograd import Tensor, nn
from picograd.errors import DTypeError, StateError, ValueRangeError


def warm_up(room, optimizer):
    parts = [room.LinearLR(optimizer, 0.1, total_iters=5), room.CosineAnnealingLR(optimizer, 20)]
    return room.SequentialLR(optimizer, [*parts, room.ExponentialLR(optimizer, 0.9)], [5, 25])


def restarts_last(room, optimizer):
    parts = [room.ConstantLR(optimizer, 0.5, 4), room.CosineAnnealingWarmRestarts(optimizer, 6, 2)]
    return room.SequentialLR(optimizer, parts, milestones=[4])


def chained(room, optimizer):
    parts = [room.ConstantLR(optimizer, 0.1, 2), room.ExponentialLR(optimizer, 0.9)]
    return room.ChainedScheduler([*parts, room.StepLR(optimizer, 10)], optimizer)


def nested(room, optimizer):
    both = [room.ConstantLR(optimizer, 0.5, 3), room.MultiStepLR(optimizer, [6, 9])]
    parts = [room.ChainedScheduler(both), room.PolynomialLR(optimizer, 10)]
    return room.SequentialLR(optimizer, parts, [12])


@pytest.mark.parametrize("make", [warm_up, restarts_last, chained, nested])
def test_combinations_equal_pytorchs(make):
    follow(make)


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 3},
        {"mode": "max", "factor": 0.5, "patience": 2, "cooldown": 3, "min_lr": [0.1, 0.0]},
        {"threshold": 0.1, "threshold_mode": "abs", "patience": 0, "min_lr": 1e-3},
        {"mode": "max", "threshold": 0.05, "threshold_mode": "abs", "patience": 1},
    ],
)
def test_plateau_equals_pytorchs(options):
    make = lambda room, optimizer: room.ReduceLROnPlateau(optimizer, **options)  # noqa: E731
    losses = [math.sin(0.3 * step) / (1 + 0.1 * step) + 1 for step in range(60)]
    losses[40] = math.nan
    follow(make, argument=lambda step: losses[step])


def test_plateau_takes_a_tensor():
    optimizer = optimizers()[0]
    schedule = nn.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    schedule.step(Tensor(1.0))
    schedule.step(Tensor([2.0]))
    assert optimizer.lr == pytest.approx(0.03)


@pytest.mark.parametrize("make", [warm_up, chained])
def test_state_continues(make):
    first, _ = follow(make, 8)
    fresh, _ = optimizers()
    second = make(nn.lr_scheduler, fresh)
    fresh.load_state_dict(first.optimizer.state_dict())
    second.load_state_dict(first.state_dict())
    for _ in range(20):
        first.step()
        second.step()
        assert first.get_last_lr() == second.get_last_lr() == second.get_lr()


def test_wrong_use_is_named():
    room, (optimizer, _) = nn.lr_scheduler, optimizers()
    plateau, step = room.ReduceLROnPlateau(optimizer), room.StepLR(optimizer, 2)
    with pytest.raises(ValueRangeError, match="ReduceLROnPlateau needs a loss"):
        room.ChainedScheduler([plateau])
    with pytest.raises(ValueRangeError, match="1 milestones for 1 schedules"):
        room.SequentialLR(optimizer, [step], [3])
    with pytest.raises(ValueRangeError, match="different optimizers"):
        room.SequentialLR(optimizers()[0], [step], [])
    with pytest.raises(DTypeError, match="int is no schedule"):
        room.ChainedScheduler([step, 3])
    with pytest.raises(ValueRangeError, match="there are no schedules"):
        room.ChainedScheduler([])
    with pytest.raises(ValueRangeError, match=r"factor=1.0 is not below 1"):
        room.ReduceLROnPlateau(optimizer, factor=1.0)
    with pytest.raises(StateError, match="0 states for 1 schedules"):
        room.ChainedScheduler([step]).load_state_dict({})


@pytest.mark.parametrize("make", [warm_up, chained, nested])
def test_states_have_pytorchs_names(make):
    ours, theirs = follow(make, 8)
    mine, reference = optimizers()
    found, wanted = make(nn.lr_scheduler, mine), make(torch.optim.lr_scheduler, reference)
    mine.load_state_dict(ours.optimizer.state_dict())
    reference.load_state_dict(theirs.optimizer.state_dict())
    found.load_state_dict(theirs.state_dict())
    wanted.load_state_dict(ours.state_dict())
    for _ in range(20):
        found.step()
        wanted.step()
        assert found.optimizer.lr == pytest.approx(wanted.optimizer.param_groups[0]["lr"])

"""Cyclic schedules against PyTorch's: rates and momentum."""

import pytest
from lr_support import follow, optimizers

import picograd
from picograd import Tensor, nn
from picograd.errors import ValueRangeError

CASES = {
    "restarts": ("CosineAnnealingWarmRestarts", {"T_0": 7}),
    "growing": ("CosineAnnealingWarmRestarts", {"T_0": 5, "T_mult": 2, "eta_min": 0.01}),
    "triangular": ("CyclicLR", {"base_lr": 0.1, "max_lr": [0.5, 0.9], "step_size_up": 6}),
    "triangular2": (
        "CyclicLR",
        {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 4, "step_size_down": 9},
    ),
    "exp_range": (
        "CyclicLR",
        {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 5, "mode": "exp_range", "gamma": 0.97},
    ),
    "own_scale": (
        "CyclicLR",
        {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 5, "scale_fn": lambda x: 1 / x},
    ),
    "one_cycle": ("OneCycleLR", {"max_lr": [0.5, 1.0], "total_steps": 60}),
    "three_phase": (
        "OneCycleLR",
        {"max_lr": 1.0, "epochs": 6, "steps_per_epoch": 10, "three_phase": True},
    ),
    "one_cycle_linear": (
        "OneCycleLR",
        {"max_lr": 1.0, "total_steps": 60, "anneal_strategy": "linear", "pct_start": 0.5},
    ),
}
CASES["triangular2"][1]["mode"] = "triangular2"


@pytest.mark.parametrize("name", ["SGD", "Adam"])
@pytest.mark.parametrize("case", CASES)
def test_schedules_equal_pytorchs(case, name):
    schedule, options = CASES[case]
    momentum = {"momentum": 0.9} if name == "SGD" else {}
    make = lambda room, optimizer: getattr(room, schedule)(optimizer, **options)  # noqa: E731
    follow(make, name=name, **momentum)  # one past the last step: lines go on, below zero


@pytest.mark.parametrize("case", ["restarts", "growing"])
def test_restarts_take_fractions(case):
    schedule, options = CASES[case]
    make = lambda room, optimizer: getattr(room, schedule)(optimizer, **options)  # noqa: E731
    follow(make, argument=lambda step: step * 0.37)


def test_momentum_reaches_a_jitted_step():
    weight = nn.Parameter(Tensor([0.0]))
    optimizer = nn.optim.SGD([weight], lr=1.0, momentum=0.5)
    schedule = nn.lr_scheduler.CyclicLR(optimizer, 1.0, 1.0, 1, base_momentum=0.0, max_momentum=1.0)

    @picograd.jit
    def step(gradient):
        weight.grad = gradient
        optimizer.step()

    found = []
    for _ in range(4):
        step(Tensor([1.0]))
        found.append(weight.item())
        schedule.step()
    # momentum 1, 0, 1, 0: velocities 1, 1, 2, 1
    # with and without: two updates
    assert found == [-1.0, -2.0, -4.0, -5.0] and step.traces == 2


def test_wrong_use_is_named():
    plain = nn.optim.Adagrad([nn.Parameter(Tensor([1.0]))])
    with pytest.raises(ValueRangeError, match="Adagrad has neither momentum nor betas"):
        nn.lr_scheduler.CyclicLR(plain, 0.1, 1.0)
    with pytest.raises(ValueRangeError, match="mode='x' is unknown"):
        nn.lr_scheduler.CyclicLR(optimizers()[0], 0.1, 1.0, mode="x")
    with pytest.raises(ValueRangeError, match="the length of the cycle is missing"):
        nn.lr_scheduler.OneCycleLR(optimizers()[0], 0.1, epochs=3)
    schedule = nn.lr_scheduler.OneCycleLR(optimizers()[0], 0.1, total_steps=2)
    schedule.step()
    schedule.step()
    with pytest.raises(ValueRangeError, match="step 3 of 2"):
        schedule.step()

"""RMSprop, Adagrad and Adadelta against PyTorch's."""

import pytest
from optim_support import KERNEL_SHAPES, check_steps, kernels_of_a_step, planned, start

from picograd import Tensor, nn
from picograd.errors import ValueRangeError

CASES = {
    "rmsprop": ("RMSprop", {"weight_decay": 0.1}),
    "rmsprop_momentum": ("RMSprop", {"momentum": 0.9, "maximize": True}),
    "rmsprop_all": ("RMSprop", {"momentum": 0.9, "centered": True, "alpha": 0.9}),
    "adagrad": ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    "adagrad_decay": ("Adagrad", {"weight_decay": 0.1, "maximize": True}),
    "adadelta": ("Adadelta", {"weight_decay": 0.1}),
    "adadelta_rho": ("Adadelta", {"rho": 0.5, "maximize": True}),
}


@pytest.mark.parametrize("case", CASES)
def test_steps_equal_pytorchs(case, device):
    # The same gradients make a centered variance that is nearly 0: a larger eps keeps it steady.
    name, options = CASES[case]
    check_steps(name, {**options, "eps": 1e-4}, device)


@pytest.mark.parametrize("case", ["rmsprop", "adagrad", "adadelta"])
def test_bfloat16(case, device):
    check_steps(*CASES[case], device, "bfloat16", steps=6)


@pytest.mark.parametrize("name", ["RMSprop", "Adadelta"])
def test_one_kernel(name, device):
    ours, _ = start(device, KERNEL_SHAPES)
    assert kernels_of_a_step(getattr(nn.optim, name)(ours), ours) == 1


def test_steps_of_each_parameter_are_counted_behind_what_reads_them(device):
    ours, _ = start(device, KERNEL_SHAPES)
    for parameter in ours:
        parameter.grad = Tensor.ones(*parameter.shape, device=device)
    plan = planned(nn.optim.Adagrad(ours)).plan
    assert len(plan.kernels) == len(plan.steps) == 2  # nothing is copied


def test_rho_is_a_share():
    with pytest.raises(ValueRangeError, match="rho=1.1 is not in"):
        nn.optim.Adadelta([nn.Parameter(Tensor([1.0]))], rho=1.1)


def test_the_first_sum_of_squares_is_not_negative():
    with pytest.raises(ValueRangeError, match="initial_accumulator_value"):
        nn.optim.Adagrad([Tensor([1.0])], initial_accumulator_value=-1.0)

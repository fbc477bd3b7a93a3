"""SGD against PyTorch's."""

import pytest
from optim_support import KERNEL_SHAPES, check_steps, kernels_of_a_step, start

from picograd import nn

CASES = {
    "plain": {"lr": 0.1},
    "decay": {"lr": 0.1, "weight_decay": 0.01, "maximize": True},
    "momentum": {"lr": 0.1, "momentum": 0.9},
    "dampening": {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1},
    "nesterov": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
}


@pytest.mark.parametrize("case", CASES)
def test_steps_equal_pytorchs(case, device):
    check_steps("SGD", CASES[case], device)


def test_bfloat16(device):
    check_steps("SGD", CASES["nesterov"], device, "bfloat16")


def test_one_kernel(device):
    ours, _ = start(device, KERNEL_SHAPES)
    assert kernels_of_a_step(nn.optim.SGD(ours, momentum=0.9), ours) == 1

"""ASGD against PyTorch's."""

import pytest
from optim_support import KERNEL_SHAPES, check_steps, kernels_of_a_step, start

from picograd import nn

CASES = {
    "asgd": {"lr": 0.1},
    "averaging": {"lr": 0.1, "t0": 3, "lambd": 0.1, "weight_decay": 0.1, "maximize": True},
}


@pytest.mark.parametrize("case", CASES)
def test_steps_equal_pytorchs(case, device):
    check_steps("ASGD", CASES[case], device)


def test_bfloat16(device):
    check_steps("ASGD", CASES["averaging"], device, "bfloat16", steps=6)


def test_one_kernel_and_that_of_numbers(device):
    """All parameters share a kernel; the other computes the rate and weight of the next step."""
    ours, _ = start(device, KERNEL_SHAPES)
    assert kernels_of_a_step(nn.optim.ASGD(ours), ours) == 2

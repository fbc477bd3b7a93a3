"""Adam and AdamW against PyTorch's.

Ancestors' list: M34.
"""

import pytest
from optim_support import KERNEL_SHAPES, check_steps, kernels_of_a_step, start

from picograd import nn

CASES = {
    "adam": ("Adam", {"lr": 0.01}),
    "decay": ("Adam", {"lr": 0.01, "weight_decay": 0.1, "betas": (0.8, 0.9), "maximize": True}),
    "amsgrad": ("Adam", {"lr": 0.01, "amsgrad": True, "betas": (0.0, 0.9)}),
    "decoupled": ("Adam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "adamw": ("AdamW", {"lr": 0.01, "weight_decay": 0.1, "fused": True}),
    "adamw_amsgrad": ("AdamW", {"amsgrad": True, "foreach": True}),
}


@pytest.mark.parametrize("case", CASES)
def test_steps_equal_pytorchs(case, device):
    check_steps(*CASES[case], device)


def test_bfloat16(device):
    check_steps(*CASES["adamw"], device, "bfloat16")


def test_one_kernel_and_the_step_count(device):
    ours, _ = start(device, KERNEL_SHAPES)
    assert kernels_of_a_step(nn.optim.AdamW(ours), ours) == 2

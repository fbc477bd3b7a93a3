"""Muon against PyTorch's; both round to bfloat16 inside."""

import numpy as np
import pytest
from optim_support import array, kernels_of_a_step, set_gradients, start, torch

from picograd import Tensor, nn
from picograd.nn.optim.muon import orthogonal

SHAPES = [(6, 4), (4, 6)]
CASES = {
    "muon": {"lr": 0.05},
    "plain": {"lr": 0.05, "nesterov": False, "weight_decay": 0.0, "ns_steps": 3},
    "moonshot": {"lr": 0.05, "adjust_lr_fn": "match_rms_adamw", "momentum": 0.8},
}


@pytest.mark.parametrize("case", CASES)
def test_steps_equal_pytorchs(case, device):
    ours, theirs = start(device, SHAPES)
    mine = nn.optim.Muon(ours, **CASES[case])
    reference = torch.optim.Muon(theirs, **CASES[case])
    assert mine.state_dict() == reference.state_dict()
    for _ in range(5):
        set_gradients(ours, theirs, device)
        mine.step()
        reference.step()
        for a, b in zip(ours, theirs):
            # A step moves an element by at most about lr; bfloat16 has 8 bits of it.
            np.testing.assert_allclose(a.numpy(), b.detach().numpy(), atol=0.02)
    buffer = mine.state_dict()["state"][0]["momentum_buffer"].numpy()
    wanted = reference.state_dict()["state"][0]["momentum_buffer"].numpy()
    np.testing.assert_allclose(buffer, wanted, rtol=1e-5, atol=1e-6)


def test_singular_values_come_near_one(device):
    found = orthogonal(Tensor(array(6, 4), device=device), (3.4445, -4.7750, 2.0315), 5)
    values = np.linalg.svd(found.float().numpy(), compute_uv=False)
    assert found.shape == (6, 4) and values.min() > 0.5 and values.max() < 1.5


def test_kernels_are_products(device):
    """Five Newton-Schulz steps of three products, and a norm, for each matrix."""
    ours, _ = start(device, SHAPES)
    count = kernels_of_a_step(nn.optim.Muon(ours), ours)
    assert count <= len(SHAPES) * (3 * 5 + 4)

"""Rprop against PyTorch's, Lion against its formula."""

import numpy as np
import pytest
from optim_support import KERNEL_SHAPES, check_steps, kernels_of_a_step, start

from picograd import Tensor, nn

CASES = {
    "rprop": {"lr": 0.1},
    "limits": {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (0.05, 0.2), "maximize": True},
}


@pytest.mark.parametrize("case", CASES)
def test_rprop_equals_pytorchs(case, device):
    check_steps("Rprop", CASES[case], device)


def test_rprop_bfloat16(device):
    check_steps("Rprop", CASES["rprop"], device, "bfloat16", steps=6)


@pytest.mark.parametrize("maximize", [False, True])
def test_lion_follows_its_formula(maximize, device):
    (weight, *_), _ = start(device)
    wanted, mean = weight.numpy().astype(np.float64), np.zeros((3, 4))
    options = dict(lr=0.1, betas=(0.8, 0.95), weight_decay=0.2, maximize=maximize)
    optimizer = nn.optim.Lion([weight], **options)
    for _ in range(5):
        gradient = np.random.randn(3, 4).astype(np.float32)
        weight.grad = Tensor(gradient, device=device)
        optimizer.step()
        gradient = -gradient if maximize else gradient
        wanted = wanted * (1 - 0.1 * 0.2) - 0.1 * np.sign(0.8 * mean + 0.2 * gradient)
        mean = 0.95 * mean + 0.05 * gradient
        np.testing.assert_allclose(weight.numpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["Lion", "Rprop"])
def test_one_kernel(name, device):
    ours, _ = start(device, KERNEL_SHAPES)
    assert kernels_of_a_step(getattr(nn.optim, name)(ours), ours) == 1


def test_a_decay_that_is_no_option_changes_nothing():
    """PyTorch's Rprop reads no weight decay that a group has."""
    values = []
    for more in ({}, {"weight_decay": 0.5}):
        x = nn.Parameter(Tensor([1.0, -2.0]))
        optimizer = nn.optim.Rprop([{"params": [x], **more}], lr=0.1)
        for _ in range(3):
            x.grad = Tensor([0.1, -0.1])
            optimizer.step()
        values.append(x.tolist())
    assert values[0] == values[1]

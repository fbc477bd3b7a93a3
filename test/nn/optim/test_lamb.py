"""LAMB against the formula of its paper in double precision."""

import numpy as np
import pytest
from optim_support import KERNEL_SHAPES, kernels_of_a_step, start

import picograd
from picograd import Tensor, nn


class Reference:
    """Algorithm 2 of You et al. (2020) for one parameter."""

    def __init__(self, value):
        self.value = value.astype(np.float64)
        self.mean, self.square, self.step = np.zeros_like(self.value), np.zeros_like(self.value), 0

    def update(self, gradient, lr, betas, eps, weight_decay):
        self.step += 1
        self.mean = betas[0] * self.mean + (1 - betas[0]) * gradient
        self.square = betas[1] * self.square + (1 - betas[1]) * gradient**2
        mean = self.mean / (1 - betas[0] ** self.step)
        square = self.square / (1 - betas[1] ** self.step)
        direction = mean / (np.sqrt(square) + eps) + weight_decay * self.value
        lengths = np.linalg.norm(self.value), np.linalg.norm(direction)
        ratio = lengths[0] / lengths[1] if lengths[0] > 0 and lengths[1] > 0 else 1.0
        self.value = self.value - lr * ratio * direction


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_ten_steps(weight_decay, device):
    ours, _ = start(device, [(3, 4), (5,)])
    with picograd.no_grad():
        ours[1].zero_()  # a norm of 0
    options = dict(lr=0.1, betas=(0.8, 0.9), eps=1e-6, weight_decay=weight_decay)
    optimizer = nn.optim.LAMB(ours, **options)
    references = [Reference(parameter.numpy()) for parameter in ours]
    for step in range(10):
        for parameter, reference in zip(ours, references):
            gradient = np.random.randn(*parameter.shape).astype(np.float32)
            gradient = gradient * 0 if step == 0 else gradient
            parameter.grad = Tensor(gradient, device=device)
            reference.update(gradient, **options)
        optimizer.step()
        for parameter, reference in zip(ours, references):
            np.testing.assert_allclose(parameter.numpy(), reference.value, rtol=2e-5, atol=2e-6)


def test_a_norm_and_an_update_per_parameter(device):
    """Norms wait for every element, so each parameter needs kernels of its own."""
    ours, _ = start(device, KERNEL_SHAPES)
    assert kernels_of_a_step(nn.optim.LAMB(ours), ours) <= 1 + 3 * len(ours)

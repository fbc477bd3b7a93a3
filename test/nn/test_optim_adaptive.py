"""100 steps of each optimizer against PyTorch; Lion against its formula; clipping."""

import numpy as np
import pytest
from nn_support import array, torch

from picograd import Tensor, nn
from picograd.nn import optim_adaptive

CASES = {
    "rmsprop": ("RMSprop", {"weight_decay": 0.1}),
    "rmsprop_all": ("RMSprop", {"momentum": 0.9, "centered": True}),
    "adagrad": ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    "adadelta": ("Adadelta", {"weight_decay": 0.1}),
}


@pytest.mark.parametrize("case", CASES)
def test_hundred_steps_equal_pytorchs(case, device):
    name, options = CASES[case]
    start = array(3, 4)
    ours, theirs = nn.Parameter(Tensor(start, device=device)), torch.tensor(start)
    theirs.requires_grad = True
    mine = getattr(optim_adaptive, name)([ours], **options)
    reference = getattr(torch.optim, name)([theirs], **options)
    for _ in range(100):
        gradient = array(3, 4)
        ours.grad, theirs.grad = Tensor(gradient, device=device), torch.tensor(gradient)
        mine.step()
        reference.step()
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_lion_moves_by_the_sign(device):
    weight = nn.Parameter(Tensor([1.0, 2.0], device=device))
    optimizer = optim_adaptive.Lion([weight], lr=0.5, weight_decay=0.1)
    weight.grad = Tensor([3.0, -4.0], device=device)
    optimizer.step()
    np.testing.assert_allclose(weight.numpy(), [0.95 - 0.5, 1.9 + 0.5], rtol=1e-6)


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
def test_clip_by_norm(norm_type, device):
    values, results = [array(3, 4), array(5)], []
    ours = [nn.Parameter(Tensor(value, device=device)) for value in values]
    theirs = [torch.tensor(value, requires_grad=True) for value in values]
    for a, b, value in zip(ours, theirs, values):
        a.grad, b.grad = Tensor(value, device=device), torch.tensor(value)
    results.append(nn.utils.clip_grad_norm_(ours, 0.5, norm_type).item())
    results.append(torch.nn.utils.clip_grad_norm_(theirs, 0.5, norm_type).item())
    assert results[0] == pytest.approx(results[1], rel=1e-5)
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-5)


def test_clip_by_value(device):
    weight = nn.Parameter(Tensor([1.0, 2.0], device=device))
    weight.grad = Tensor([3.0, -0.5], device=device)
    nn.utils.clip_grad_value_([weight], 1.0)
    assert weight.grad.tolist() == [1.0, -0.5]

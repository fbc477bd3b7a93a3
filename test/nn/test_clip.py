"""Clipping of gradients against PyTorch's."""

import math

import numpy as np
import pytest
from nn_support import array, torch

from picograd import Tensor, nn
from picograd.errors import DTypeError, GradientError


def start(device, values, dtype="float32"):
    ours = [nn.Parameter(Tensor(value, device=device).cast(dtype)) for value in values]
    theirs = [torch.tensor(value).to(getattr(torch, dtype)).requires_grad_() for value in values]
    for a, b in zip(ours, theirs):
        a.grad, b.grad = a.detach() * 3, b.detach() * 3
    return [*ours, nn.Parameter(Tensor([1.0]))], [*theirs, torch.ones(1)]


@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3, 0, math.inf, -math.inf])
def test_by_norm(norm_type, device):
    ours, theirs = start(device, [array(3, 4), array(5)])
    found = nn.utils.clip_grad_norm_(ours, 0.5, norm_type, foreach=False).item()
    wanted = torch.nn.utils.clip_grad_norm_(theirs, 0.5, norm_type).item()
    assert found == pytest.approx(wanted, rel=1e-5)
    for a, b in zip(ours[:2], theirs):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-5)


def test_bfloat16_keeps_its_dtype(device):
    ours, theirs = start(device, [array(3, 4)], "bfloat16")
    found = nn.utils.clip_grad_norm_(ours[:1], 0.5)
    wanted = torch.nn.utils.clip_grad_norm_(theirs[:1], 0.5)
    assert found.dtype.name == "bfloat16" and ours[0].grad.dtype.name == "bfloat16"
    assert found.item() == pytest.approx(wanted.item(), rel=1e-2)


def test_small_norms_change_nothing(device):
    ours, _ = start(device, [array(3, 4)])
    before = ours[0].grad.numpy()
    nn.utils.clip_grad_norm_(iter(ours), 1e6)
    np.testing.assert_array_equal(ours[0].grad.numpy(), before)


def test_norms_that_are_not_finite(device):
    ours, _ = start(device, [np.asarray([math.inf, 1.0], np.float32)])
    with pytest.raises(GradientError, match="the norm of the gradients is inf"):
        nn.utils.clip_grad_norm_(ours, 1.0, error_if_nonfinite=True)
    assert nn.utils.clip_grad_norm_(ours, 1.0).item() == math.inf
    assert math.isnan(ours[0].grad.numpy()[0]) and ours[0].grad.numpy()[1] == 0.0


def test_nothing_to_clip():
    assert nn.utils.get_total_norm([]).item() == 0.0
    assert nn.utils.clip_grad_norm_([nn.Parameter(Tensor([1.0]))], 1.0).item() == 0.0
    with pytest.raises(DTypeError, match="float is no parameter"):
        nn.utils.clip_grad_value_([1.0], 1.0)


def test_by_value(device):
    ours, theirs = start(device, [array(3, 4)])
    nn.utils.clip_grad_value_(ours, 0.7)
    torch.nn.utils.clip_grad_value_(theirs, 0.7)
    np.testing.assert_allclose(ours[0].grad.numpy(), theirs[0].grad.numpy())


def test_held_gradients_are_clipped_and_zeroed(device):
    weight = nn.Parameter(Tensor([3.0, 4.0], device=device))
    (weight * weight / 2).sum().backward()
    held = weight.grad
    nn.utils.clip_grad_norm_(weight, 1.0)
    np.testing.assert_allclose(held.numpy(), [0.6, 0.8], rtol=1e-5)
    nn.utils.clip_grad_value_(weight, 0.5)
    assert held.tolist() == [0.5, 0.5]
    nn.optim.SGD([weight], lr=0.1).zero_grad(set_to_none=False)
    assert held.tolist() == [0, 0] and held is weight.grad


@pytest.mark.parametrize("norm_type", [2.0, 1.0, math.inf])
def test_norms_of_complex_and_mixed_gradients_are_real(norm_type):
    """One that is complex alone or beside real ones; the widest dtype is that of the norm."""
    for names in (("complex64",), ("float32", "complex64"), ("float32", "float64")):
        norms = []
        for library in (torch, nn):
            make = torch.tensor if library is torch else Tensor
            dtypes = [getattr(torch, name) if library is torch else name for name in names]
            given = [make([3.0, 4.0], dtype=each) for each in dtypes]
            given = [each * (1 + 2j) if each.is_complex() else each for each in given]
            owners = [each.clone().requires_grad_() for each in given]
            for owner, gradient in zip(owners, given):
                owner.grad = gradient
            clip = (torch.nn if library is torch else nn).utils.clip_grad_norm_
            total = clip(owners, 1.0, norm_type)
            norms.append([total, *[owner.grad for owner in owners]])
        for wanted, found in zip(*norms):
            assert str(found.dtype).split(".")[-1] == str(wanted.dtype).split(".")[-1]
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)

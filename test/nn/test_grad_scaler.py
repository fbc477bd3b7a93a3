"""Gradient scaling against PyTorch's: the same scales, skipped steps and states."""

import math

import numpy as np
import pytest
from nn_support import array, torch

import picograd
from picograd import Tensor, nn
from picograd.errors import DTypeError, GradientError, StateError, ValueRangeError

OPTIONS = dict(init_scale=64.0, growth_factor=2.0, backoff_factor=0.25, growth_interval=3)


def pair(device, **options):
    value = array(3)
    ours, theirs = nn.Parameter(Tensor(value, device=device)), torch.tensor(value)
    theirs.requires_grad = True
    mine = nn.optim.Adam([ours], lr=0.1), picograd.GradScaler(device, **{**OPTIONS, **options})
    scaler = torch.amp.GradScaler("cpu", **{**OPTIONS, **options})
    return (ours, *mine), (theirs, torch.optim.Adam([theirs], lr=0.1), scaler)


@pytest.mark.parametrize("is_clipped", [False, True])
def test_scales_and_steps_equal_pytorchs(is_clipped, device):
    """Steps 2 and 7 overflow: they change neither parameters nor the step count."""
    mine, reference = pair(device)
    for step in range(12):
        gradient = array(3)
        if step in (2, 7):
            gradient[step % 3] = math.inf if step == 2 else math.nan
        for (weight, optimizer, scaler), make, room in (
            (mine, lambda x: Tensor(x, device=device), nn.utils),
            (reference, torch.tensor, torch.nn.utils),
        ):
            optimizer.zero_grad()
            scaler.scale((weight * make(gradient)).sum()).backward()
            if is_clipped:
                scaler.unscale_(optimizer)
                room.clip_grad_norm_([weight], 0.5)
            scaler.step(optimizer)
            scaler.update()
        found, wanted = mine[0].numpy(), reference[0].detach().numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
        assert mine[2].get_scale() == reference[2].get_scale()
        assert mine[2].state_dict() == reference[2].state_dict()
    assert mine[1].state_dict()["state"][0]["step"].item() == 10.0


def test_jitted_steps_are_skipped_on_the_device(device):
    weight = nn.Parameter(Tensor([1.0], device=device))
    optimizer, scaler = nn.optim.SGD([weight], lr=1.0), picograd.GradScaler(device, 8.0)

    @picograd.jit
    def step(x):
        optimizer.zero_grad()
        scaler.scale((weight * x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    found = []
    for value in (1.0, math.inf, 2.0):
        step(Tensor([value], device=device))
        found.append((weight.item(), scaler.get_scale()))
    assert found == [(0.0, 8.0), (0.0, 4.0), (-2.0, 4.0)] and step.traces == 1


def test_float16_gradients_survive(device):
    """A gradient below 2**-24 is 0 in float16 unless the loss is scaled."""
    weight = nn.Parameter(Tensor([1.0], device=device))
    optimizer, scaler = nn.optim.SGD([weight], lr=1e8), picograd.GradScaler(device, 32768.0)
    small = Tensor([[1e-4]], device=device)
    for is_scaled, wanted in ((False, 1.0), (True, 0.0)):
        optimizer.zero_grad()
        with picograd.autocast(device, dtype="float16"):
            loss = (weight.reshape(1, 1) @ small @ small).float().sum()
        (scaler.scale(loss) if is_scaled else loss).backward()
        if is_scaled:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        assert weight.item() == pytest.approx(wanted, abs=2e-2)


def test_disabled_passes_everything(device):
    weight = nn.Parameter(Tensor([1.0], device=device))
    optimizer, scaler = nn.optim.SGD([weight], lr=1.0), picograd.GradScaler(device, enabled=False)
    loss = (weight * 2.0).sum()
    assert scaler.scale(loss) is loss and scaler.get_scale() == 1.0 and not scaler.is_enabled()
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    scaler.load_state_dict(scaler.state_dict())
    assert weight.tolist() == [-1.0] and scaler.state_dict() == {}


def test_state_and_settings_continue():
    first, second = picograd.GradScaler(init_scale=32.0), picograd.amp.GradScaler()
    first.set_growth_factor(4.0)
    first.set_backoff_factor(0.125)
    first.set_growth_interval(7)
    first.update(16.0)
    second.load_state_dict(first.state_dict())
    assert second.state_dict() == first.state_dict() and second.get_scale() == 16.0
    assert second.get_growth_factor() == 4.0 and second.get_backoff_factor() == 0.125
    assert second.get_growth_interval() == 7
    scaled = first.scale([Tensor(1.0), (Tensor(2.0),)])
    assert [scaled[0].item(), scaled[1][0].item()] == [16.0, 32.0]


def test_wrong_use_is_named():
    weight = nn.Parameter(Tensor([1.0]))
    optimizer, scaler = nn.optim.SGD([weight]), picograd.GradScaler()
    with pytest.raises(GradientError, match="no optimizer has looked"):
        scaler.update()
    with pytest.raises(GradientError, match="no parameter has a gradient"):
        scaler.step(optimizer)
    weight.grad = Tensor([1.0])
    scaler.step(optimizer)
    with pytest.raises(GradientError, match="has taken its step already"):
        scaler.step(optimizer)
    with pytest.raises(GradientError, match="unscaled already"):
        scaler.unscale_(optimizer)
    with pytest.raises(DTypeError, match="str is no tensor"):
        scaler.scale("loss")
    with pytest.raises(ValueRangeError, match="growth_factor=1.0 is not above 1"):
        picograd.GradScaler(growth_factor=1.0)
    with pytest.raises(ValueRangeError, match="backoff_factor=1.0"):
        picograd.GradScaler(backoff_factor=1.0)
    with pytest.raises(StateError, match="the state has no 'scale'"):
        scaler.load_state_dict({})
    half = nn.Parameter(Tensor([1.0]).half())
    half.grad = Tensor([1.0]).half()
    with pytest.raises(ValueRangeError, match="a gradient is float16"):
        picograd.GradScaler().unscale_(nn.optim.SGD([half]))

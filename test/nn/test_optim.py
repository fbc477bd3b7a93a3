"""Optimizers against PyTorch: the same parameters after several steps."""

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import GradientError, StateError, ValueRangeError

torch = pytest.importorskip("torch")
CASES = {
    "sgd": ("SGD", {"lr": 0.1}),
    "sgd_decay": ("SGD", {"lr": 0.1, "weight_decay": 0.01}),
    "sgd_momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "sgd_dampening": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    "sgd_nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", {"lr": 0.01}),
    "adam_decay": ("Adam", {"lr": 0.01, "weight_decay": 0.1, "betas": (0.8, 0.9)}),
    "adamw": ("AdamW", {"lr": 0.01, "weight_decay": 0.1}),
}
SHAPES = [(3, 4), (5,), ()]


def start(device):
    values = [np.asarray(np.random.randn(*shape), np.float32) for shape in SHAPES]
    ours = [nn.Parameter(Tensor(value, device=device)) for value in values]
    return ours, [torch.tensor(value, requires_grad=True) for value in values]


def set_gradients(ours, theirs, device):
    for a, b in zip(ours, theirs):
        value = np.asarray(np.random.randn(*a.shape), np.float32)
        a.grad, b.grad = Tensor(value, device=device), torch.tensor(value)


def compare(ours, theirs):
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("case", CASES)
def test_steps_equal_pytorchs(case, device):
    name, options = CASES[case]
    ours, theirs = start(device)
    mine = getattr(nn.optim, name)(ours, **options)
    reference = getattr(torch.optim, name)(theirs, **options)
    for step in range(4):
        set_gradients(ours, theirs, device)
        if step == 2:
            mine.lr = 0.05
            reference.param_groups[0]["lr"] = 0.05
        mine.step()
        reference.step()
        compare(ours, theirs)


def test_groups_have_their_own_options(device):
    ours, theirs = start(device)
    groups = lambda p: [{"params": p[:1], "lr": 0.5}, {"params": p[1:]}]  # noqa: E731
    mine = nn.optim.SGD(groups(ours), lr=0.1)
    reference = torch.optim.SGD(groups(theirs), lr=0.1)
    set_gradients(ours, theirs, device)
    mine.step()
    reference.step()
    compare(ours, theirs)
    mine.param_groups[1]["lr"] = 0.25
    assert [group["lr"] for group in mine.param_groups] == [0.5, 0.25]


def test_parameters_without_gradient_stay(device):
    ours, _ = start(device)
    ours[0].grad = Tensor.ones(3, 4, device=device)
    before = ours[1].numpy()
    nn.optim.Adam(ours).step()
    np.testing.assert_array_equal(ours[1].numpy(), before)


def test_jitted_step_follows_the_learning_rate(device):
    """Parameters, state and learning rate are captured by reference, not by value."""
    weight = nn.Parameter(Tensor([1.0, 2.0], device=device))
    optimizer = nn.optim.SGD([weight], lr=0.5)

    @picograd.jit
    def step(x):
        loss = (weight * x).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    x = Tensor([1.0, 1.0], device=device)
    losses = [step(x).item(), step(x).item()]
    optimizer.lr = 1.0
    losses.append(step(x).item())
    assert losses == [3.0, 2.0, 1.0]
    assert weight.tolist() == [-1.0, 0.0]


@pytest.mark.parametrize("case", CASES)
def test_jitted_training_equals_pytorchs(case, device):
    name, options = CASES[case]
    value = np.random.randn(4, 3).astype(np.float32)
    ours, theirs = nn.Parameter(Tensor(value, device=device)), torch.tensor(value)
    theirs.requires_grad = True
    mine = getattr(nn.optim, name)([ours], **options)
    reference = getattr(torch.optim, name)([theirs], **options)

    @picograd.jit
    def step(x):
        loss = ((x @ ours) ** 2).mean()
        loss.backward()
        mine.step()
        mine.zero_grad()
        return loss

    for _ in range(4):
        batch = np.random.randn(5, 4).astype(np.float32)
        reference.zero_grad()
        expected = ((torch.tensor(batch) @ theirs) ** 2).mean()
        expected.backward()
        reference.step()
        assert step(Tensor(batch, device=device)).item() == pytest.approx(expected.item(), rel=1e-4)
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_state_dict_continues_training(device, tmp_path):
    ours, theirs = start(device)
    first = nn.optim.Adam(ours, lr=0.01)
    reference = torch.optim.Adam(theirs, lr=0.01)
    for _ in range(2):
        set_gradients(ours, theirs, device)
        first.step()
        reference.step()
    nn.save(first.state_dict(), tmp_path / "optimizer.safetensors")
    second = nn.optim.Adam(ours, lr=0.5)
    second.load_state_dict(nn.load(tmp_path / "optimizer.safetensors"))
    assert second.lr == pytest.approx(0.01) and second.state_dict()["0.step"].item() == 2.0
    set_gradients(ours, theirs, device)
    second.step()
    reference.step()
    compare(ours, theirs)


def test_wrong_use_is_named(device):
    weight = nn.Parameter(Tensor([1.0]))
    with pytest.raises(GradientError, match="SGD: no parameter has a gradient"):
        nn.optim.SGD([weight]).step()
    with pytest.raises(ValueRangeError, match="there are no parameters"):
        nn.optim.SGD([])
    with pytest.raises(ValueRangeError, match="lr=-1.0 is negative"):
        nn.optim.Adam([weight], lr=-1.0)
    with pytest.raises(ValueRangeError, match=r"betas=\(1.0, 0.9\) are not in"):
        nn.optim.Adam([weight], betas=(1.0, 0.9))
    with pytest.raises(ValueRangeError, match="a parameter appears twice"):
        nn.optim.SGD([weight, weight])
    with pytest.raises(ValueRangeError, match="nesterov needs momentum"):
        nn.optim.SGD([weight], nesterov=True)
    with pytest.raises(StateError, match="names differ: 0.momentum_buffer.0"):
        state = nn.optim.SGD([weight], momentum=0.9).state_dict()
        nn.optim.SGD([weight]).load_state_dict(state)

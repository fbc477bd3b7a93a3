"""Comparing a layer with PyTorch's: same state, same inputs, same outputs and gradients."""

import numpy as np
import pytest

from picograd import Tensor, nn

torch = pytest.importorskip("torch")
TOLERANCE = dict(rtol=1e-4, atol=2e-5)


def array(*shape):
    return np.asarray(np.random.randn(*shape), np.float32)


def copy_state(ours, reference):
    """Load PyTorch's state unchanged."""
    state = {name: value.numpy().copy() for name, value in reference.state_dict().items()}
    ours.load_state_dict(state)


def flat(result):
    """List the tensors of nested results."""
    if isinstance(result, (tuple, list)):
        return [item for part in result for item in flat(part)]
    return [] if result is None else [result]


def tensors(data, device):
    """Make (ours, theirs) of arrays; floats want gradients; other things pass."""
    mine, reference = [], []
    for value in data:
        is_array = isinstance(value, np.ndarray)
        wants = is_array and value.dtype == np.float32
        mine.append(Tensor(value, device=device, requires_grad=wants) if is_array else value)
        reference.append(torch.tensor(value, requires_grad=wants) if is_array else value)
    return mine, reference


def compare(ours, reference, data, device="cpu", tolerance=TOLERANCE, **options):
    """Call both, compare outputs, gradients of inputs and of parameters."""
    mine, theirs = tensors(data, device)
    keys, values = list(options), list(options.values())
    my_options, their_options = tensors(values, device)
    results = flat(ours(*mine, **dict(zip(keys, my_options))))
    expected = flat(reference(*theirs, **dict(zip(keys, their_options))))
    assert len(results) == len(expected)
    total, goal = 0.0, 0.0
    for a, b in zip(results, expected):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), **tolerance)
        if b.requires_grad:
            direction = array(*b.shape)
            total = total + (a * Tensor(direction, device=device)).sum()
            goal = goal + (b * torch.tensor(direction)).sum()
    if isinstance(goal, float):
        return
    total.backward()
    goal.backward()
    for a, b in zip(mine, theirs):
        if isinstance(b, torch.Tensor) and b.grad is not None:
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), **tolerance)
    compare_gradients(ours, reference, tolerance)


def compare_gradients(ours, reference, tolerance=TOLERANCE):
    """Compare the gradients of parameters by name."""
    if not isinstance(reference, torch.nn.Module):
        return
    mine = dict(ours.named_parameters())
    for name, value in reference.named_parameters():
        if value.grad is not None:
            found = mine[name].grad.numpy()
            np.testing.assert_allclose(found, value.grad.numpy(), err_msg=name, **tolerance)


def compare_layer(case, device):
    """Compare a layer of both, its gradients and its state after: (class, args, options, shape)."""
    name, args, options, shape = case
    reference = getattr(torch.nn, name)(*args, **options)
    ours = getattr(nn, name)(*args, **options).to(device)
    copy_state(ours, reference)
    compare(ours, reference, [array(*shape)], device)
    for label, value in reference.state_dict().items():
        found = ours.state_dict()[label].numpy()
        np.testing.assert_allclose(found, value.numpy(), rtol=1e-4, atol=1e-5, err_msg=label)


def compare_state(name, *args):
    """Compare the names and shapes of a layer's state."""
    ours, reference = getattr(nn, name)(*args), getattr(torch.nn, name)(*args)
    shapes = {key: tuple(value.shape) for key, value in reference.state_dict().items()}
    assert {key: tuple(value.shape) for key, value in ours.state_dict().items()} == shapes


# losses


def unit(*shape):
    return np.random.uniform(0.05, 0.95, shape).astype(np.float32)


def half(*shape):
    """Probabilities, exact zeros and ones among them; float64 so that no gradient is asked."""
    values = np.random.rand(*shape)
    values[0] = np.round(values[0])
    return Fixed(values.astype(np.float32))


def counts(*shape):
    return Fixed(np.random.poisson(2.0, shape).astype(np.float32))


class Fixed:
    """An array that no gradient is wanted for."""

    def __init__(self, values):
        self.values = values


def bind(loss, make, data):
    """Fix the arguments that want no gradient."""
    fixed = [make(item.values) if isinstance(item, Fixed) else None for item in data]

    def call(*given):
        rest = iter(given)
        return loss(*[next(rest) if item is None else item for item in fixed])

    return call


def compare_loss(case, reduction, device):
    """Compare a loss of both and its gradients: (class, options, a function that makes data)."""
    name, options, make = case
    data = make()
    ours = getattr(nn, name)(**options, reduction=reduction)
    reference = getattr(torch.nn, name)(**options, reduction=reduction)
    varying = [item for item in data if not isinstance(item, Fixed)]
    mine = bind(ours, lambda value: Tensor(value, device=device), data)
    compare(mine, bind(reference, torch.tensor, data), varying, device)

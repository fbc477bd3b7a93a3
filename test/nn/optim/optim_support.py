"""Comparing an optimizer with PyTorch's: same parameters, gradients and options, same state."""

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine.tracing import tracing

torch = pytest.importorskip("torch")
SHAPES = [(3, 4), (5,), ()]
KERNEL_SHAPES = [(3, 4), (5,), (2, 2, 2)]
TOLERANCE = {"float32": dict(rtol=3e-5, atol=3e-6), "bfloat16": dict(rtol=4e-2, atol=4e-2)}


def array(*shape):
    return np.asarray(np.random.randn(*shape), np.float32)


def start(device, shapes=SHAPES, dtype="float32"):
    """Make the same parameters twice."""
    values = [array(*shape) for shape in shapes]
    ours = [nn.Parameter(Tensor(value, device=device).cast(dtype)) for value in values]
    theirs = [torch.tensor(value).to(getattr(torch, dtype)) for value in values]
    return ours, [value.requires_grad_() for value in theirs]


def set_gradients(ours, theirs, device, absent=()):
    for number, (a, b) in enumerate(zip(ours, theirs)):
        value = array(*a.shape)
        a.grad, b.grad = Tensor(value, device=device).cast(a.dtype), torch.tensor(value).to(b.dtype)
        if number in absent:
            a.grad = b.grad = None


def compare(ours, theirs, dtype="float32"):
    for a, b in zip(ours, theirs):
        found, wanted = a.float().numpy(), b.detach().float().numpy()
        np.testing.assert_allclose(found, wanted, **TOLERANCE[dtype])


def compare_states(mine, reference, dtype="float32"):
    """Compare state dicts: the same layout, names, options and values."""
    found, wanted = mine.state_dict(), reference.state_dict()
    assert set(found["state"]) == set(wanted["state"])
    for number, entry in wanted["state"].items():
        assert set(found["state"][number]) == {k for k, v in entry.items() if v is not None}
        for name, tensor in found["state"][number].items():
            value = torch.as_tensor(entry[name]).float().numpy()
            tolerance = TOLERANCE[dtype]
            np.testing.assert_allclose(tensor.float().numpy(), value, err_msg=name, **tolerance)
    for ours, theirs in zip(found["param_groups"], wanted["param_groups"]):
        assert ours == theirs


def check_steps(name, options, device, dtype="float32", steps=10, shapes=SHAPES):
    """Take steps beside PyTorch: the rate changes, one parameter lacks gradients at times."""
    ours, theirs = start(device, shapes, dtype)
    mine = getattr(nn.optim, name)(ours, **options)
    reference = getattr(torch.optim, name)(theirs, **options)
    assert mine.state_dict()["param_groups"] == reference.state_dict()["param_groups"]
    assert mine.state_dict()["state"].keys() == reference.state_dict()["state"].keys()
    for step in range(steps):
        set_gradients(ours, theirs, device, absent={0: {1}, 4: {0}}.get(step, ()))
        if step == 3:
            mine.lr = reference.param_groups[0]["lr"] = 2.0 * mine.lr
        mine.step()
        reference.step()
        compare(ours, theirs, dtype)
    compare_states(mine, reference, dtype)


def kernels_of_a_step(optimizer, parameters):
    """Count the kernels of one step over parameters of several shapes."""
    for parameter in parameters:
        parameter.grad = Tensor(array(*parameter.shape), device=parameter.device)
    return len(planned(optimizer).kernels)


def planned(optimizer):
    """Plan what a step would run; the step itself is taken later."""
    with tracing():  # a step realises nothing here
        optimizer.step()
    state = [tensor for slots in optimizer.state.values() for tensor in slots.values()]
    parameters = [p for group in optimizer.param_groups for p in group.parameters]
    distinct = {id(tensor): tensor for tensor in (*parameters, *state)}
    return picograd.plan(*distinct.values())

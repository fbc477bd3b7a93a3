"""Activations and distances by PyTorch's signatures: options by position, values and gradients."""

import numpy as np
import pytest
from nn_support import array, compare, torch

import picograd
from picograd import Tensor
from picograd.errors import ShapeError
from picograd.nn import functional

CALLS = {
    "leaky_relu": (0.3, True),
    "elu": (0.5, True),
    "softplus": (2.0, 0.5),
    "hardtanh": (-0.5, 0.25, True),
    "relu6": (True,),
    "logsigmoid": (),
    "normalize": (1.0, 0, 1e-3),
}


@pytest.mark.parametrize("name", CALLS)
def test_options_by_position(name, device):
    def calls(library):
        # overwriting its input, PyTorch wants a computed one
        return lambda x: getattr(library, name)(x * 1.0, *CALLS[name])

    compare(calls(functional), calls(torch.nn.functional), [array(3, 4)], device)


def test_limits_of_whole_numbers(device):
    values = [-3, -1, 0, 1, 3]
    found = functional.hardtanh(Tensor(values, device=device), -1.5, 2.5)
    wanted = torch.nn.functional.hardtanh(torch.tensor(values), -1.5, 2.5)
    assert found.tolist() == wanted.tolist() and found.dtype.is_integer


def test_a_slope_is_a_vector(device):
    x = Tensor.ones(2, 4, 3, device=device)
    with pytest.raises(ShapeError, match=r"prelu: weight of shape \(2, 2\)"):
        functional.prelu(x, Tensor.ones(2, 2, device=device))


def test_rows_shorter_than_eps(device):
    data = array(3, 4) * 1e-3
    calls = [lambda x, f=f: f.normalize(x, eps=1.0) for f in (functional, torch.nn.functional)]
    compare(*calls, [data], device)


@pytest.mark.parametrize("name, options", [("cosine_similarity", (0,)), ("pairwise_distance", ())])
def test_distances(name, options, device):
    calls = [
        lambda x, y, f=f: getattr(f, name)(x, y, *options)
        for f in (functional, torch.nn.functional)
    ]
    compare(*calls, [array(3, 4), array(3, 4)], device)


@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
def test_second_derivatives_where_pieces_meet(name):
    found = []
    for library in (picograd, torch):
        x = library.tensor([0.0, -0.0, 2.0, -2.0], requires_grad=True)
        y = getattr(library.nn.functional, name)(x).sum()
        (first,) = library.autograd.grad(y, x, create_graph=True)
        (second,) = library.autograd.grad(first.sum(), x)
        found.append([*first.tolist(), *second.tolist()])
    assert found[0] == pytest.approx(found[1], rel=1e-5)


@pytest.mark.parametrize("name", ["hardsigmoid", "hardswish"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_hard_steps_are_recorded_at_once(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were three or four operations of tensors."""
    calls: list[object] = []
    monkeypatch.setattr(Tensor, "__add__", lambda *args: calls.append(args))
    x = Tensor(np.array([-4.0, -3.0, 0.0, 1.0, 3.0, 9.0])).cast(getattr(picograd, dtype))
    found = getattr(functional, name)(x)
    theirs = torch.tensor(x.float().numpy()).to(getattr(torch, dtype)).float()
    want = getattr(torch.nn.functional, name)(theirs)
    assert not calls
    np.testing.assert_allclose(found.float().numpy(), want.numpy(), rtol=1e-2)


@pytest.mark.parametrize("name", ["hardsigmoid", "hardswish"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_hard_steps_end_where_the_number_does(name: str, dtype: str) -> None:
    """x + 3 is rounded to 6 before x is 3 (and to 0 at -3), where the gradient was another."""
    found = []
    for library in (picograd, torch):
        values = np.concatenate([np.linspace(-3.1, -2.9, 99), np.linspace(2.9, 3.1, 99)])
        x = library.tensor(values).to(getattr(library, dtype)).requires_grad_()
        y = getattr(library.nn.functional, name)(x)
        y.sum().backward()
        found.append((y.detach().float().numpy(), x.grad.float().numpy()))
    for mine, theirs in zip(*found):
        np.testing.assert_allclose(mine, theirs, rtol=1e-2, atol=1e-2)

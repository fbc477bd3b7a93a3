"""Weights that are orthogonal, or of unit norm, by parametrization."""

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import ShapeError
from picograd.nn.utils import parametrizations

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("is_new", [False, True])
def test_weight_norm(is_new: bool) -> None:
    """Outputs, gradients and names are PyTorch's."""
    ours, theirs = nn.Conv1d(2, 3, 2), torch.nn.Conv1d(2, 3, 2)
    theirs.load_state_dict({k: torch.from_numpy(v.numpy()) for k, v in ours.state_dict().items()})
    places = [parametrizations if is_new else nn.utils, torch.nn.utils]
    if is_new:
        places[1] = torch.nn.utils.parametrizations
    ours, theirs = places[0].weight_norm(ours), places[1].weight_norm(theirs)
    x = np.random.default_rng(0).normal(size=(2, 2, 5)).astype(np.float32)
    a, b = ours(Tensor(x)), theirs(torch.from_numpy(x))
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), atol=1e-5)
    a.square().sum().backward()
    b.square().sum().backward()
    assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
    wanted = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        np.testing.assert_allclose(parameter.grad.numpy(), wanted[name].grad.numpy(), atol=1e-4)


def test_orthogonal() -> None:
    for options in ({}, {"orthogonal_map": "cayley"}):
        for sizes in ((4, 3), (3, 4), (3, 3)):
            layer = parametrizations.orthogonal(nn.Linear(*sizes), **options)
            w = layer.weight if sizes[0] >= sizes[1] else layer.weight.T
            np.testing.assert_allclose((w @ w.T).numpy(), np.eye(min(sizes)), atol=1e-5)
            layer(picograd.rand(1, sizes[0])).sum().backward()
            assert layer.parametrizations.weight.original.grad is not None
    with pytest.raises(ShapeError, match="no matrix"):
        parametrizations.orthogonal(nn.Linear(2, 2), "bias")


@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("is_based", [False, True])
def test_orthogonal_weights_are_those_of_the_same_state(kind: str, is_based: bool) -> None:
    rng = np.random.default_rng(0)
    value, change = rng.normal(size=(2, 4, 2))
    found = []
    for library in (picograd, torch):
        layer = library.nn.Linear(2, 4, dtype=library.float64)
        layer.weight.data.copy_(library.tensor(value))
        library.nn.utils.parametrizations.orthogonal(
            layer, orthogonal_map=kind, use_trivialization=is_based
        )
        if is_based:
            base = layer.parametrizations.weight[0].base
            base.copy_(library.eye(4, dtype=library.float64).flip(0))
        original = layer.parametrizations.weight.original
        original.data.add_(library.tensor(change).tril(-1))
        layer.weight.cos().sum().backward()
        found.append([layer.weight.detach().numpy(), original.grad.numpy()])
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_weight_norm_reads_the_state_of_its_predecessor() -> None:
    """Checkpoints of vocoders have `weight_g` and `weight_v`."""
    older = nn.Sequential(nn.utils.weight_norm(nn.Linear(3, 2)))
    layer = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)))
    layer.load_state_dict(older.state_dict())
    x = picograd.ones(1, 3)
    assert layer(x).tolist() == older(x).tolist()

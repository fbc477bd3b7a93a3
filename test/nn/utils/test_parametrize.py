"""Weights that are computed: by hooks, by properties, by masks; norms folded away."""

import importlib

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import MemberError, ShapeError, StateError, ValueRangeError
from picograd.nn.utils import parametrizations, parametrize, prune

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


def test_spectral_norm() -> None:
    old = nn.utils.spectral_norm(nn.Linear(4, 3), n_power_iterations=4)
    new = parametrizations.spectral_norm(nn.Linear(4, 3))
    for layer, names in ((old, ["weight_orig"]), (new, ["parametrizations.weight.original"])):
        for _ in range(3):
            layer(picograd.rand(2, 4)).sum().backward()
        assert abs(float(picograd.linalg.svdvals(layer.weight.detach())[0]) - 1) < 0.05
        assert names[0] in dict(layer.named_parameters())
        before = layer.eval().weight.tolist()
        layer(picograd.rand(2, 4))
        assert layer.weight.tolist() == before
    nn.utils.remove_spectral_norm(old)
    assert sorted(old.state_dict()) == ["bias", "weight"]
    with pytest.raises(MemberError, match="not found"):
        nn.utils.remove_weight_norm(old)


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


class Symmetric(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.triu() + x.triu(1).T

    def right_inverse(self, x: Tensor) -> Tensor:
        return x.triu()


def test_of_the_users_own() -> None:
    layer = nn.Linear(3, 3)
    before = (layer.weight.triu() + layer.weight.triu(1).T).tolist()
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert layer.weight.tolist() == before and parametrize.is_parametrized(layer, "weight")
    assert isinstance(layer, nn.Linear) and not parametrize.is_parametrized(nn.ReLU())
    layer.weight = picograd.ones(3, 3)
    assert layer.weight.tolist() == [[1.0] * 3] * 3
    with parametrize.cached():
        assert layer.weight is layer.weight
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and isinstance(layer.weight, nn.Parameter)
    with pytest.raises(MemberError, match="no parameter"):
        parametrize.register_parametrization(layer, "other", Symmetric())
    with pytest.raises(ShapeError, match="would become"):
        parametrize.register_parametrization(nn.Linear(2, 3), "weight", nn.Flatten(0))


def test_pruning() -> None:
    w = np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)
    ours, theirs = nn.Linear(6, 4), torch.nn.Linear(6, 4)
    ours.weight = nn.Parameter(Tensor(w))
    theirs.weight = torch.nn.Parameter(torch.from_numpy(w.copy()))
    other = importlib.import_module("torch.nn.utils.prune")
    for tool, layer in ((prune, ours), (other, theirs)):
        tool.l1_unstructured(layer, "weight", amount=0.25)
        tool.ln_structured(layer, "weight", amount=1, n=2, dim=1)
        tool.l1_unstructured(layer, name="weight", amount=3)
    np.testing.assert_array_equal(ours.weight.detach().numpy(), theirs.weight.detach().numpy())
    assert sorted(ours.state_dict()) == sorted(theirs.state_dict()) and prune.is_pruned(ours)
    ours(picograd.rand(2, 6)).sum().backward()
    zeros = int((ours.weight == 0).sum())
    assert int((ours.weight_orig.grad == 0).sum()) == zeros
    prune.remove(ours, "weight")
    assert int((ours.weight == 0).sum()) == zeros and not prune.is_pruned(ours)
    with pytest.raises(MemberError, match="no mask"):
        prune.remove(ours, "weight")
    with pytest.raises(ValueRangeError, match="amount=1.5"):
        prune.random_unstructured(ours, "weight", amount=1.5)
    pair = [nn.Linear(3, 3), nn.Linear(3, 3)]
    options = dict(pruning_method=prune.L1Unstructured, amount=0.5)
    prune.global_unstructured([(each, "weight") for each in pair], **options)
    assert sum(int((each.weight == 0).sum()) for each in pair) == 9


def test_fusion() -> None:
    x = picograd.rand(2, 3, 5, 5)
    for conv, is_adjoint in ((nn.Conv2d(3, 4, 3), False), (nn.ConvTranspose2d(3, 4, 3), True)):
        norm = nn.BatchNorm2d(4)
        norm(conv(x))
        conv.eval(), norm.eval()
        fused = nn.utils.fuse_conv_bn_eval(conv, norm, is_adjoint)
        np.testing.assert_allclose(fused(x).numpy(), norm(conv(x)).numpy(), atol=1e-4)
    with pytest.raises(StateError, match="training"):
        nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 1, 1), norm)

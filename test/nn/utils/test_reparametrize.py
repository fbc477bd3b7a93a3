"""Weights that hooks compute."""

import copy
import pickle
from typing import Any

import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import StateError, ValueRangeError
from picograd.nn.utils import parametrizations


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
    with pytest.raises(ValueRangeError, match="not found"):
        nn.utils.remove_weight_norm(old)


@pytest.mark.parametrize("norm", [nn.utils.weight_norm, nn.utils.spectral_norm])
def test_modules_with_hooks_are_pickled(norm: Any) -> None:
    layer, x = norm(nn.Linear(3, 2)).eval(), Tensor.ones(1, 3)
    again = pickle.loads(pickle.dumps(layer))
    assert again(x).tolist() == layer(x).tolist()
    assert list(again.state_dict()) == list(layer.state_dict())
    again.bias.data.add_(1)
    own = next(each for name, each in again.named_parameters() if name != "bias")
    own.data.mul_(0)
    assert again(x).tolist() != layer(x).tolist()


def test_a_normed_layer_is_copied_before_its_first_call() -> None:
    layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    u = layer.weight_u.tolist()
    again = copy.deepcopy(layer)
    assert again.weight_u.tolist() == u  # no step was taken yet
    x = Tensor.ones(1, 3)
    assert again(x).tolist() == layer(x).tolist()


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_a_weight_without_sizes_is_refused_and_left(name: str) -> None:
    layer = nn.LazyLinear(3)
    with pytest.raises(StateError, match=f"{name}: weight has no sizes yet"):
        getattr(nn.utils, name)(layer)
    assert layer(picograd.ones(2, 4)).shape == (2, 3)

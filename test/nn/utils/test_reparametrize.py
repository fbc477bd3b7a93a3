"""Weights that hooks compute."""

import pytest

import picograd
from picograd import nn
from picograd.errors import MemberError
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
    with pytest.raises(MemberError, match="not found"):
        nn.utils.remove_weight_norm(old)

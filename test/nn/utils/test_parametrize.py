"""Weights that are computed: by hooks, by properties, by masks; norms folded away."""

import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import MemberError, ShapeError
from picograd.nn.utils import parametrize


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

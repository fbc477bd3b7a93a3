"""Weights that are computed: by hooks, by properties, by masks; norms folded away."""

import copy
import pickle
from typing import Any

import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import ChoiceError, DTypeError, ShapeError, StateError, ValueRangeError
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
    with pytest.raises(ValueError, match="no parameter"):
        parametrize.register_parametrization(layer, "other", Symmetric())


class Doubled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Outer(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x[:, None] * y

    def right_inverse(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x[:, 0].clone(), (x[0] / x[0, 0]).clone()


def test_the_parameter_stays_the_one_that_is_trained() -> None:
    layer = nn.Linear(2, 2)
    own = layer.weight
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.parametrizations.weight.original is own
    own.data.fill_(1.0)
    assert parametrize.remove_parametrizations(layer, "weight").weight is own
    assert own.tolist() == [[2.0, 2.0]] * 2
    nn.utils.prune.l1_unstructured(layer, "weight", 1)
    assert layer.weight_orig is own and nn.utils.prune.remove(layer, "weight").weight is own
    assert nn.utils.spectral_norm(layer).weight_orig is own


def test_what_was_frozen_or_a_buffer_stays_so() -> None:
    layer = nn.Linear(2, 2).requires_grad_(False)
    parametrize.register_parametrization(layer, "weight", Outer())
    assert not any(each.requires_grad for each in layer.parameters())
    with pytest.raises(ValueRangeError, match="several"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert not parametrize.remove_parametrizations(layer, "weight").weight.requires_grad
    norm = nn.BatchNorm1d(2)
    parametrize.register_parametrization(norm, "running_mean", Doubled())
    assert len(list(norm.parameters())) == 2 and norm.running_mean.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("is_second", [False, True])
def test_wrong_parametrizations_change_nothing(is_second: bool) -> None:
    layer = nn.Linear(2, 3)
    if is_second:
        parametrize.register_parametrization(layer, "weight", Doubled())
        with pytest.raises(StateError, match="right_inverse"):
            layer.weight = picograd.ones(3, 2)
    before = layer.weight.tolist()
    with pytest.raises(ShapeError, match="would become"):
        parametrize.register_parametrization(layer, "weight", nn.Flatten(0))
    for made in (lambda x: x.half(), lambda x: [x]):
        wrong = nn.Module()
        wrong.forward = made
        with pytest.raises(ChoiceError, match="would become"):
            parametrize.register_parametrization(layer, "weight", wrong)
    assert layer.weight.tolist() == before


def test_values_of_other_shapes_are_not_assigned() -> None:
    layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 4))
    before = layer.weight.tolist()
    for shape in ((5, 5), (1, 3)):
        with pytest.raises(ShapeError, match="for a weight of shape"):
            layer.weight = picograd.ones(shape)
        assert layer.weight.tolist() == before


def test_what_is_no_module():
    with pytest.raises(DTypeError, match="register_parametrization: function is no module"):
        nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", lambda x: x)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_have_computed_weights_of_their_own(copied: Any) -> None:
    """Copies shared a class: a weight made a parameter in one was gone in the other."""
    layer, x = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)), picograd.ones(1, 3)
    again = copied(layer)
    assert parametrize.type_before_parametrizations(again) is nn.Linear
    assert again(x).tolist() == layer(x).tolist()
    parametrize.remove_parametrizations(again, "weight")
    assert type(again) is nn.Linear and layer.weight.shape == (2, 3)
    assert parametrize.is_parametrized(layer, "weight")

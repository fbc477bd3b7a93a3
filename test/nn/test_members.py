"""What sits in attributes, as dicts."""

import copy
import pickle
from typing import Any

import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import StateError


def test_dicts_of_members():
    """What sits in attributes is shown by kind, and changed through the dicts."""
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    assert list(model._modules) == ["0", "1"] and list(model[0]._parameters) == ["weight", "bias"]
    assert "running_mean" in model[1]._buffers and len(model[1]._buffers) == 3
    model._modules["1"] = nn.ReLU()
    assert repr(model[1]) == "ReLU()" and "weight" not in model._parameters
    model[0]._buffers["scale"] = Tensor([2.0])
    del model[0]._parameters["bias"]
    model[0].bias = None
    assert list(model.state_dict()) == ["0.weight", "0.scale"]
    model[0].shift = nn.Buffer(Tensor([1.0]), persistent=False)
    assert [name for name, _ in model.named_buffers()] == ["0.scale", "0.shift"]
    assert "0.shift" not in model.state_dict()
    assert model.to(memory_format=picograd.channels_last, non_blocking=True) is model


def test_what_was_computed_takes_the_place_of_a_parameter() -> None:
    """A step of MAML puts new weights among the parameters: gradients reach the old ones."""
    model = nn.Linear(2, 1)
    weight = model.weight
    model._parameters["weight"] = weight - 0.1 * weight
    assert [name for name, _ in model.named_parameters()] == ["weight", "bias"]
    assert list(model.state_dict()) == ["weight", "bias"] and not list(model.buffers())
    model(Tensor([[1.0, 2.0]])).sum().backward()
    assert weight.grad is not None and weight.grad.allclose(Tensor([[0.9, 1.8]]))
    model._parameters["weight"] = weight
    assert not model._placed and model.weight is weight
    other = nn.Linear(2, 1, bias=False)
    model._parameters = other._parameters
    assert model.weight is other.weight and len(list(model.parameters())) == 1
    norm = nn.Sequential(nn.BatchNorm1d(2))
    copied = norm[0]._buffers.copy()
    norm[0]._buffers = {"running_mean": copied["running_mean"]}
    assert list(norm[0]._buffers) == ["running_mean"]
    norm._modules = {"1": nn.ReLU()}
    assert [name for name, _ in norm.named_children()] == ["1"]
    model._parameters["weight"] = weight * 1
    del model.weight
    model.weight = weight * 2  # type: ignore[assignment]
    assert not list(model.parameters())


def test_members_are_walked_from_the_end() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    assert [name for name, _ in reversed(model._modules.items())] == ["1", "0"]
    assert list(reversed(model._modules)) == list(reversed(model._modules.keys())) == ["1", "0"]
    assert list(reversed(model._modules.values())) == [model[1], model[0]]
    assert not nn.Conv1d(1, 1, 1).transposed and nn.ConvTranspose1d(1, 1, 1).transposed


def test_what_a_module_notes_is_not_assigned() -> None:
    """A `__setattr__` of the user's sees what programs assign, and may register members itself."""
    seen = []

    class Renamed(nn.Module):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            seen.append(name)
            if isinstance(value, nn.Parameter):
                self.register_parameter(name + "_too", value)
                self.register_buffer("steps", Tensor([0.0]))
                self.register_parameter("none", None)

    model = Renamed()
    model.weight = nn.Parameter(Tensor([1.0]))
    del model.steps, model.none
    assert seen == ["weight"] and list(model._parameters) == ["weight", "weight_too"]


def test_a_property_may_hide_a_member() -> None:
    """A read-only property that finds nothing leaves the name to what is registered."""

    class Problem(nn.Module):
        @property
        def best(self) -> Tensor:
            return super().best  # type: ignore[misc,no-any-return]

    problem = Problem()
    problem.register_buffer("best", Tensor([2.0]))
    assert list(problem.state_dict()) == ["best"] and problem.best.item() == 2.0
    with pytest.raises(KeyError, match="has an attribute 'best' already"):
        problem.register_parameter("best", nn.Parameter(Tensor([1.0])))


def test_dicts_of_members_copy_by_their_class() -> None:
    """`type(module._parameters)(pairs)` is a dict of these pairs."""
    layer = nn.Linear(2, 1)
    kind = type(layer._parameters)
    assert kind(layer._parameters.items()) == dict(layer.named_parameters())
    assert kind() == {} and kind(weight=1) == {"weight": 1}


def test_members_are_shown_among_the_attributes_as_in_pytorch() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    modules = vars(model)["_modules"]
    assert list(modules) == ["0", "1"] and list(vars(model[0])["_parameters"]) == ["weight", "bias"]
    assert next(iter(vars(model[1]).get("_buffers"))) == "running_mean"
    copied = copy.deepcopy(model)
    vars(copied)["_modules"]["1"] = nn.Tanh()
    vars(copied[0])["_parameters"]["bias"] = Tensor([1.0, 2.0, 3.0])
    assert isinstance(copied[1], nn.Tanh) and isinstance(model[1], nn.BatchNorm1d)
    assert copied[0].bias.tolist() == [1.0, 2.0, 3.0]
    loaded = pickle.loads(pickle.dumps(model))
    assert list(vars(loaded)["_modules"]) == ["0", "1"]
    kept = vars(model[0])["_parameters"]
    del model  # no cycle holds it
    with pytest.raises(StateError, match="gone"):
        list(kept)


def test_a_setattr_of_the_class_may_store_in_the_dicts_of_members() -> None:
    class Patched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)
            self._parameters = {"weight": object()}

        def __setattr__(self, name: str, value: Any) -> None:
            place = next((k for k in ("_modules", "_parameters") if name in vars(self)[k]), None)
            if place is None:
                super().__setattr__(name, value)
            else:
                vars(self)[place][name] = value

    model = Patched()
    model.inner, model.weight = nn.Linear(2, 3), Tensor([1.0]) * 2
    assert model.inner.weight.shape == (3, 2)
    assert next(name for name, _ in model.named_parameters()) == "weight"

"""ParameterList and ParameterDict beside PyTorch's."""

import pytest
from nn_support import torch

from picograd import Tensor, nn
from picograd.errors import AxisError, MemberError


def both(make):
    """Make the same container with picograd and with PyTorch."""
    return make(nn, Tensor.ones), make(torch.nn, torch.ones)


def same_state(ours, reference):
    shapes = {name: tuple(value.shape) for name, value in reference.state_dict().items()}
    assert {name: tuple(value.shape) for name, value in ours.state_dict().items()} == shapes
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in reference.named_parameters()]


def test_list():
    def make(room, ones):
        values = room.ParameterList([ones(2), room.Parameter(ones(1, 3))])
        values.append(ones(4)).extend([ones(5), "text"])
        values += [ones(6)]
        values[0] = ones(7)
        return values

    ours, reference = both(make)
    same_state(ours, reference)
    assert len(ours) == 6 and ours[-2] == "text" and isinstance(ours[0], nn.Parameter)
    same_state(ours[1:4], reference[1:4])
    assert repr(nn.ParameterList()) == "ParameterList()"
    with pytest.raises(AxisError, match="index 6 is out of range for 6 values"):
        ours[6]


def test_dict():
    def make(room, ones):
        values = room.ParameterDict({"a": ones(2), "b": room.Parameter(ones(3))})
        values["c"] = ones(4)
        values.update([("d", ones(5))])
        values.setdefault("e", ones(6))
        values.pop("b")
        del values["c"]
        return values

    ours, reference = both(make)
    same_state(ours, reference)
    assert list(ours) == ["a", "d", "e"] and "b" not in ours and ours.get("b") is None
    assert [name for name, _ in ours.items()] == ours.keys() and len(ours.values()) == 3
    ours.clear()
    assert len(ours) == 0 and not ours.state_dict()
    with pytest.raises(MemberError, match="there is no parameter 'b'"):
        ours["b"]
    with pytest.raises(KeyError, match="has an attribute 'keys' already"):
        ours["keys"] = Tensor([1.0])


def test_parameters_train():
    class Model(nn.Module):
        def __init__(self):
            self.weights = nn.ParameterList([Tensor([2.0]), Tensor([3.0])])
            self.shifts = nn.ParameterDict({"low": Tensor([1.0])})

        def forward(self, x):
            for weight in self.weights:
                x = x * weight
            return x + self.shifts["low"]

    model = Model()
    model(Tensor([5.0])).backward()
    assert {n: p.grad.tolist() for n, p in model.named_parameters()} == {
        "weights.0": [15.0],
        "weights.1": [10.0],
        "shifts.low": [1.0],
    }


def test_lines_of_settings_are_indented() -> None:
    """A list of parameters inside a module shows a line each, as `extra_repr` gives them."""

    def make(room, ones):
        return room.ModuleList([room.ParameterList([ones(2), ones(1, 3)])])

    ours, reference = both(make)
    assert repr(ours) == repr(reference).replace("torch.", "picograd.")


def test_places_may_be_tensors() -> None:
    values = nn.ParameterList([Tensor.ones(2), Tensor.zeros(3)])
    values[Tensor.of(1)] = Tensor.ones(4)
    assert values[Tensor.of(1)] is values[1] and values[1].shape == (4,) and len(values) == 2


def test_plain_dicts_are_ordered_by_name() -> None:
    """States of optimizers go by the order of parameters."""
    for framework in (nn, torch.nn):
        parts = framework.ParameterDict({"b": 1, "a": 2})
        parts.update([("d", 3), ("c", 4)])
        assert list(parts.keys()) == ["a", "b", "d", "c"]


def test_dicts_are_merged_as_in_pytorch():
    for package, ones in ((nn, Tensor.ones), (torch.nn, torch.ones)):
        first = package.ParameterDict({"b": ones(1), "a": ones(1)})
        second = package.ParameterDict({"c": ones(2), "a": ones(3)})
        both = first | second
        assert type(both) is package.ParameterDict and list(both) == ["a", "b", "c"]
        assert both["a"].shape == (3,) and both["b"] is first["b"] and len(first) == 2
        assert list(first | {"z": ones(1)}) == ["a", "b", "z"]
        merged = {"z": ones(1), "a": ones(2)} | first
        assert type(merged) is dict and list(merged) == ["z", "a", "b"]
        assert merged["a"] is first["a"]
        first |= second
        assert list(first) == ["a", "b", "c"] and first["a"] is second["a"]

"""Names of devices are strings that know their kind and number."""

import copy
import pickle

import pytest

import picograd
from picograd import Tensor, nn
from picograd.config import config
from picograd.errors import DeviceError, NoDataError


def test_parts() -> None:
    found = [picograd.device(*each) for each in (("cpu",), ("cuda",), ("cuda:2",), ("cuda", 1))]
    assert found == ["cpu", "cuda", "cuda:2", "cuda:1"]
    assert [(each.type, each.index) for each in found] == [
        ("cpu", None),
        ("cuda", None),
        ("cuda", 2),
        ("cuda", 1),
    ]
    assert picograd.device(1) == "cuda:1" and picograd.device(found[2]) == found[2]
    assert type(found[0].type) is str and {found[0]: 3}["cpu"] == 3
    assert str(found[3]) == "cuda:1" and f"{found[0]}" == "cpu"
    for wrong in ("gpu", "cuda:x", "cpu:"):
        with pytest.raises(DeviceError, match="no device"):
            picograd.device(wrong)


def test_of_tensors() -> None:
    x = Tensor([1.0], device="cpu")
    assert isinstance(x.device, picograd.device) and x.device == "cpu"
    assert x.device == picograd.device("cpu") and x.device.type == "cpu" and x.device.index is None
    assert x.to(x.device) is x and Tensor.zeros(2, device=x.device).device.type == "cpu"
    assert nn.Linear(1, 1).to(picograd.device("cpu")).weight.device == x.device
    for made in (copy.deepcopy(x.device), pickle.loads(pickle.dumps(x.device))):
        assert made == x.device and made.type == "cpu"


def test_as_a_block() -> None:
    before = config.device
    with picograd.device("null"):
        assert Tensor.zeros(2).device.type == "null"
        with picograd.device("cpu"):
            assert nn.Linear(2, 2).weight.device == "cpu"
        assert picograd.get_default_device() == "null"
    assert config.device == before
    picograd.set_default_device("null")
    assert Tensor.zeros(2).device == "null"
    picograd.set_default_device(None)
    assert config.device == ""
    config.device = before


def test_shapes_alone() -> None:
    with picograd.device("meta"):
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Embedding(10, 4))
        found = model[1](model[0](picograd.randn(2, 3)))
    assert found.is_meta and found.shape == (2, 4) and model[2].weight.device == "meta"
    found.sum().backward()
    assert model[0].weight.grad.shape == (4, 3)
    assert repr(found.detach()) == "Tensor(..., size=(2, 4), device='meta')"
    with picograd.no_grad():
        assert model[0].weight.copy_(picograd.ones(4, 3, device="cpu")).is_meta
    assert found.clone().copy_(found).is_meta
    with pytest.raises(NoDataError, match="to_empty"):
        model.to("cpu")
    weight = model.to_empty(device="cpu")[0].weight
    assert weight.device == "cpu" and weight.requires_grad and weight.is_leaf
    state, other = model.state_dict(), nn.Linear(3, 4, device="meta")
    other.load_state_dict({"weight": state["0.weight"], "bias": state["0.bias"]}, assign=True)
    assert other(picograd.ones(1, 3, device="cpu")).numpy().shape == (1, 4)

import pytest

from picograd import Tensor, nn
from picograd.errors import AxisError


def test_sequential_runs_in_order_and_indexes():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU()).append(nn.Linear(3, 1))
    assert len(model) == 3 and isinstance(model[1], nn.ReLU) and model[-1] is model[2]
    assert [type(m).__name__ for m in model[:2]] == ["Linear", "ReLU"]
    assert model(Tensor.ones(4, 2)).shape == (4, 1)
    with pytest.raises(AxisError, match="index 3 is out of range for 3 modules"):
        model[3]


def test_module_list():
    layers = nn.ModuleList(nn.Linear(i, i + 1) for i in range(1, 4))
    assert len(layers) == 3 and len(list(layers.parameters())) == 6
    assert [name for name, _ in layers.named_children()] == ["0", "1", "2"]
    assert isinstance(layers[1:], nn.ModuleList)


def test_module_dict():
    modules = nn.ModuleDict({"a": nn.ReLU()})
    modules["b"] = nn.Linear(1, 1)
    assert list(modules) == ["a", "b"] and "a" in modules and len(modules) == 2
    assert isinstance(modules["b"], nn.Linear)
    assert [name for name, _ in modules.items()] == ["a", "b"]
    assert sorted(modules.state_dict()) == ["b.bias", "b.weight"]

import collections

import pytest

from picograd import Tensor, nn
from picograd.errors import AxisError, DTypeError, MemberError


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


def pair(make):
    return make(nn), make(pytest.importorskip("torch").nn)


def same(ours, reference):
    assert list(ours.state_dict()) == list(reference.state_dict())
    assert repr(ours) == repr(reference)


def test_sequential_edits_equal_pytorch():
    def make(room):
        named = {"first": room.Linear(2, 3), "act": room.Tanh(), "last": room.Linear(3, 2)}
        model = room.Sequential(*room.Sequential(collections.OrderedDict(named))[1:])
        model.insert(0, room.Linear(4, 5))
        model.extend([room.ReLU(), room.Linear(5, 6)])
        model[1] = room.Sigmoid()
        del model[2]
        model.pop(-1)
        return model + room.Sequential(room.Linear(6, 7)) * 2

    same(*pair(make))
    named = nn.Sequential({"a": nn.ReLU(), "b": nn.Linear(1, 1)})
    assert list(named[1:].state_dict()) == ["b.weight", "b.bias"]


def test_a_module_twice_in_a_row_runs_twice():
    layer = nn.Linear(2, 2)
    model = nn.Sequential(layer, layer)
    x = Tensor.ones(1, 2)
    assert model(x).tolist() == layer(layer(x)).tolist() and len(list(model.children())) == 1


def test_module_list_edits_equal_pytorch():
    def make(room):
        layers = room.ModuleList([room.Linear(2, 2), room.Linear(2, 2), room.ReLU()])
        layers.insert(1, room.Linear(3, 3))
        layers += [room.ReLU(), room.ReLU()]
        layers[-1] = room.Tanh()
        del layers[0]
        return room.ModuleList([layers, layers[1:] + room.ModuleList([room.Bilinear(1, 2, 3)])])

    same(*pair(make))


def test_module_dict_edits_equal_pytorch():
    def make(room):
        modules = room.ModuleDict([("a", room.ReLU()), ("b", room.Linear(1, 2))])
        modules.update({"c": room.Linear(2, 1), "a": room.Tanh()})
        modules.pop("b")
        return modules

    same(*pair(make))
    modules = make(nn)
    modules.clear()
    assert len(modules) == 0


def test_names_that_are_wrong():
    modules = nn.ModuleDict({"a": nn.ReLU()})
    with pytest.raises(MemberError, match="ModuleDict: there is no module 'b'. Fix: use one of a"):
        modules["b"]
    with pytest.raises(KeyError):
        del modules["b"]
    for name in ("keys", "", "a.b"):
        with pytest.raises(MemberError):
            modules[name] = nn.ReLU()
    with pytest.raises(DTypeError, match="int is no module"):
        modules["c"] = 3
    with pytest.raises(DTypeError, match="int is no module"):
        nn.Sequential(3)


def test_an_index_may_be_a_tensor() -> None:
    model = nn.Sequential(nn.ReLU(), nn.Tanh())
    assert model[Tensor([1])[0]] is model[1]

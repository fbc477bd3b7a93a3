import numpy as np
import pytest

from picograd import Tensor, nn
from picograd.errors import StateError


class Block(nn.Module):
    def __init__(self):
        self.scale = nn.Parameter(Tensor([2.0]))
        self.layers = [nn.Linear(3, 4), {"inner": nn.Linear(4, 2)}]
        self.constant = Tensor([1.0])
        self.register_buffer("count", Tensor([0.0]))
        self.register_buffer("scratch", Tensor([0.0]), persistent=False)

    def forward(self, x):
        return self.layers[1]["inner"](self.layers[0](x)) * self.scale


NAMES = [
    "scale",
    "layers.0.weight",
    "layers.0.bias",
    "layers.1.inner.weight",
    "layers.1.inner.bias",
]


def test_parameters_are_found_in_attributes_lists_and_dicts():
    assert [name for name, _ in Block().named_parameters()] == NAMES


def test_buffers_and_state_names():
    block = Block()
    assert [name for name, _ in block.named_buffers()] == ["count", "scratch"]
    assert sorted(block.state_dict()) == sorted([*NAMES, "count"])


def test_shared_parameter_is_listed_once():
    layer = nn.Linear(2, 2)
    model = nn.Sequential(layer, layer)
    assert len(list(model.parameters())) == 2
    assert sorted(model.state_dict()) == ["0.bias", "0.weight", "1.bias", "1.weight"]


def test_train_and_eval_reach_every_module():
    model = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5)))
    assert not any(module.training for module in model.eval().modules())
    assert all(module.training for module in model.train().modules())


def test_apply_visits_children_before_parents():
    model = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    seen = []
    model.apply(lambda module: seen.append(type(module).__name__))
    assert seen[-1] == "Sequential" and len(seen) == 3


def test_load_state_dict_copies_in_place():
    source, target = Block(), Block()
    kept = target.layers[0].weight
    result = target.load_state_dict(source.state_dict())
    assert result == ([], []) and target.layers[0].weight is kept
    for name, value in source.state_dict().items():
        np.testing.assert_array_equal(target.state_dict()[name].numpy(), value.numpy())


def test_load_state_dict_takes_arrays():
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": np.ones((1, 2), np.float32), "bias": [3.0]})
    assert layer(Tensor([[1.0, 1.0]])).tolist() == [[5.0]]


def test_load_state_dict_names_what_differs():
    state = Block().state_dict()
    state["other"] = state.pop("scale")
    message = (
        "load_state_dict: missing scale; unexpected other. "
        "Fix: load a state made by the same model, or pass strict=False."
    )
    with pytest.raises(StateError) as error:
        Block().load_state_dict(state)
    assert str(error.value) == message
    assert Block().load_state_dict(state, strict=False) == (["scale"], ["other"])


def test_load_state_dict_with_a_wrong_shape_changes_nothing():
    layer = nn.Linear(2, 1)
    before = layer.bias.tolist()
    with pytest.raises(StateError, match=r"weight has shape \(2, 2\), the model wants \(1, 2\)"):
        layer.load_state_dict({"bias": [9.0], "weight": np.ones((2, 2))})
    assert layer.bias.tolist() == before


def test_zero_grad_and_freezing():
    layer = nn.Linear(2, 1)
    layer(Tensor([[1.0, 2.0]])).sum().backward()
    assert layer.weight.grad.tolist() == [[1.0, 2.0]]
    layer.zero_grad()
    assert layer.weight.grad is None
    layer.requires_grad_(False)
    assert not any(p.requires_grad for p in layer.parameters())


def test_to_keeps_the_parameter_objects():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    before = list(model.parameters())
    model.to(dtype="float64")
    assert all(a is b for a, b in zip(before, model.parameters()))
    assert model[0].weight.dtype.name == "float64"
    assert model[1].num_batches_tracked.dtype.name == "int64"
    assert model(Tensor.ones(3, 2, dtype="float64")).dtype.name == "float64"


def test_repr_is_like_pytorch():
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Conv2d(1, 2, 3, padding=1)))
    assert repr(model) == (
        "Sequential(\n"
        "  (0): Linear(in_features=3, out_features=4, bias=True)\n"
        "  (1): Sequential(\n"
        "    (0): ReLU()\n"
        "    (1): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))\n"
        "  )\n"
        ")"
    )


def test_forward_must_be_defined():
    with pytest.raises(NotImplementedError, match="Module does not define forward"):
        nn.Module()(1)

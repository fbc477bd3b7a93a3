"""Layers that take a size from their first input, and modules that run on one device."""

import copy
import pickle

import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import StateError


def test_each_becomes_its_layer() -> None:
    for name in [each for each in nn.__all__ if each.startswith("Lazy")]:
        axes = int(name[-2]) if name[-1] == "d" else 0
        x = picograd.rand(2, 3, *[4] * axes)
        has_size = "Norm" in name
        layer = getattr(nn, name)(*([] if has_size else [5] if not axes else [5, 2]))
        assert layer.has_uninitialized_params()
        assert all(isinstance(p, nn.UninitializedParameter) for p in layer.parameters())
        y = layer(x)
        assert type(layer) is getattr(nn, name.removeprefix("Lazy")) and y.shape[0] == 2
        assert y.shape[1] == (3 if has_size else 5) and layer(x).shape == y.shape


def test_in_a_model() -> None:
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2)).eval()
    assert model(picograd.rand(2, 3, 6, 6).double()).dtype is picograd.float64
    assert model[3].in_features == 64 and not model[3].training
    assert list(model.state_dict()) == ["0.weight", "0.bias", "3.weight", "3.bias"]


def test_without_a_batch() -> None:
    for axes in (1, 2, 3):
        x = picograd.rand(3, *[4] * axes)
        for name in ("Conv", "ConvTranspose", "InstanceNorm"):
            sizes = [] if name == "InstanceNorm" else [5, 1]
            layer = getattr(nn, f"Lazy{name}{axes}d")(*sizes)
            assert layer(x).shape == (5 if sizes else 3, *[4] * axes)


def test_modules_of_programs_wait_for_their_first_input():
    class Became(nn.Module):
        def forward(self, x):
            return x * self.weight

    class Waiting(nn.lazy.LazyModuleMixin, Became):
        cls_to_become = Became

        def __init__(self):
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            self.weight.materialize(x.shape[-1:])

    class Forgetful(Waiting):
        def initialize_parameters(self, x):
            pass

    layer = Waiting()
    assert layer.has_uninitialized_params() and isinstance(
        nn.LazyLinear(1), nn.lazy.LazyModuleMixin
    )
    assert layer(Tensor.ones(2, 3)).shape == (2, 3) and type(layer) is Became
    with pytest.raises(StateError, match="weight has no sizes"):
        Forgetful()(Tensor.ones(2))


def test_an_optimizer_may_hold_what_has_no_sizes_yet():
    model = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d(), nn.LazyLinear(1))
    copies = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1)
    model(picograd.rand(4, 2)).square().sum().backward()
    before = model[0].weight.tolist()
    optimizer.step()
    assert (
        model[0].weight.tolist() != before
        and optimizer.param_groups[0]["params"][0] is model[0].weight
    )
    assert all(each(picograd.rand(4, 2)).shape == (4, 1) for each in copies)


def test_a_state_gives_sizes():
    layer, lazy = nn.Linear(2, 3), nn.LazyLinear(3)
    with pytest.raises(StateError, match="weight has the shape of an uninitialized parameter"):
        layer.load_state_dict(lazy.state_dict())
    other = nn.LazyLinear(3)
    other.load_state_dict(lazy.state_dict())
    assert other.has_uninitialized_params()
    lazy.load_state_dict(layer.state_dict())
    assert not lazy.has_uninitialized_params() and lazy.weight.shape == (3, 2)
    x = picograd.rand(4, 2)
    assert lazy(x).equal(layer(x)) and type(lazy) is nn.Linear and lazy.in_features == 2


def test_its_values_are_drawn_when_sizes_are_known():
    lazy = nn.LazyLinear(3)
    picograd.manual_seed(0)
    lazy(picograd.ones(1, 2))
    picograd.manual_seed(0)
    nn.Linear(2, 3, device="meta")
    assert nn.Linear(2, 3).weight.equal(lazy.weight)


def test_a_lazy_convolution_is_written_with_what_is_known():
    assert repr(nn.LazyConv2d(8, 3)) == "LazyConv2d(0, 8, kernel_size=(3, 3), stride=(1, 1))"
    text = "LazyConv1d(0, 8, kernel_size=(3,), stride=(1,), padding=(1,))"
    assert repr(nn.LazyConv1d(8, 3, padding=1)) == text


@pytest.mark.parametrize("by_name", [True, False])
def test_a_transposed_convolution_takes_the_size_of_its_first_output(by_name: bool) -> None:
    layer = nn.LazyConvTranspose2d(3, 3, stride=2)
    x, size = picograd.ones(1, 2, 4, 4), (10, 10)
    found = layer(x, output_size=size) if by_name else layer(x, size)
    assert found.shape == (1, 3, 10, 10) and type(layer) is nn.ConvTranspose2d

"""`picograd.compile` of modules: what programs for PyTorch read of the result."""

import copy
import importlib
import pickle

import pytest

import picograd
from picograd import Tensor, nn
from picograd._dynamo.eval_frame import OptimizedModule


class Scaled(nn.Module):
    """This class has an attribute, a method and a part."""

    scale = 2.0

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) * self.scale

    def count(self) -> int:
        return sum(each.numel() for each in self.parameters())


def test_a_module_is_held_under_the_name_of_pytorch() -> None:
    model = Scaled()
    compiled = picograd.compile(model, mode="reduce-overhead")
    assert isinstance(compiled, OptimizedModule) and compiled._orig_mod is model
    assert list(compiled.state_dict()) == ["_orig_mod.inner.weight", "_orig_mod.inner.bias"]
    compiled.load_state_dict(compiled.state_dict())
    x = picograd.ones(3, 2)
    compiled(x).sum().backward()
    assert compiled(x).tolist() == model(x).tolist() and model.inner.weight.grad is not None
    assert not hasattr(model, "_orig_mod") and getattr(model, "_orig_mod", model) is model


def test_the_rest_is_that_of_the_module() -> None:
    model = Scaled()
    compiled = picograd.compile(model)
    assert compiled.count() == 6 and compiled.inner is model.inner
    compiled.scale = 3.0
    assert model.scale == 3.0 and not hasattr(compiled, "missing")
    assert not compiled.eval().training and not model.training and not model.inner.training
    model.train()
    assert compiled.training
    assert len(picograd.compile(nn.Sequential(nn.ReLU(), nn.ReLU()))) == 2
    assert bool(picograd.compile(nn.Sequential()))


def test_copies_and_pickles_hold_a_copy() -> None:
    compiled = picograd.compile(Scaled())
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert other._orig_mod is not compiled._orig_mod
        assert other(picograd.ones(1, 2)).tolist() == compiled(picograd.ones(1, 2)).tolist()
    begun = OptimizedModule.__new__(OptimizedModule)  # as a copy begins
    assert not hasattr(begun, "scale") and not hasattr(begun, "_orig_mod")


def test_functions_and_decorators_give_the_function() -> None:
    @picograd.compile(fullgraph=True)
    def double(x: float) -> float:
        return x * 2

    assert double(2) == 4 and picograd.compile(abs) is abs
    assert isinstance(picograd.compile(dynamic=True)(nn.ReLU()), OptimizedModule)
    older = importlib.import_module("picograd._dynamo").optimize("inductor")
    assert older(abs) is abs and isinstance(older(nn.ReLU()), OptimizedModule)
    model = nn.ReLU()
    model.compile()
    assert type(model) is nn.ReLU
    with pytest.raises(AttributeError, match="_orig_mod"):
        model._orig_mod

"""Tensors that become each other."""

import pytest

import picograd
from picograd import nn
from picograd.errors import StateError
from picograd.utils import swap_tensors


def test_all_that_a_tensor_is_changes_hands() -> None:
    layer = nn.Linear(2, 1)
    weight, other = layer.weight, picograd.tensor([[3, 4, 5]])
    layer(picograd.ones(1, 2)).sum().backward()
    before, other.note = weight.tolist(), "mine"
    swap_tensors(weight, other)
    assert (type(weight), type(other)) == (picograd.Tensor, nn.Parameter)
    assert weight.tolist() == [[3, 4, 5]] and not weight.requires_grad and weight.grad is None
    assert other.tolist() == before and other.requires_grad and other.grad.tolist() == [[1.0, 1.0]]
    assert weight.note == "mine" and not hasattr(other, "note")
    assert layer.weight is weight
    other.mul(2.0).sum().backward()
    assert other.grad.tolist() == [[3.0, 3.0]]


def test_recorded_results_are_refused() -> None:
    x = picograd.ones(2, requires_grad=True)
    with pytest.raises(StateError, match="swap_tensors: a tensor is the result"):
        swap_tensors(x * 2, x)

"""In-place methods change the tensor, carry gradients, and refuse leaves and wrong results."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor

torch = pytest.importorskip("torch")

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
CALLS: dict[str, Any] = {
    "exp_": lambda x: x.exp_(),
    "clamp_": lambda x: x.clamp_(-0.5, 1),
    "pow_": lambda x: x.pow_(2),
    "masked_fill_": lambda x: x.masked_fill_(x > 0, 3.0),
    "tril_": lambda x: x.tril_(),
    "relu_": lambda x: x.relu_(),
    "twice": lambda x: x.neg_().exp_(),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients(name: str) -> None:
    found, want = Tensor(X), torch.tensor(X)
    assert CALLS[name](found) is found
    CALLS[name](want)
    assert np.allclose(found.numpy(), want.numpy())
    x, t = Tensor(X, requires_grad=True), torch.tensor(X, requires_grad=True)
    CALLS[name](y := x * 1)
    CALLS[name](u := t * 1)
    (y * y).sum().backward()
    (u * u).sum().backward()
    assert np.allclose(x.grad.numpy(), t.grad.numpy())


def test_errors() -> None:
    with pytest.raises(RuntimeError, match="a leaf that requires gradients"):
        Tensor(X, requires_grad=True).exp_()
    with pytest.raises((RuntimeError, TypeError), match="the result is float32"):
        picograd.arange(3).exp_()


def test_scatter_in_place() -> None:
    x = picograd.zeros(2, 3)
    x.scatter_(1, Tensor([[1], [0]]), 5.0).index_fill_(1, Tensor([2]), 7)
    assert x.tolist() == [[0, 5, 7], [5, 0, 7]]


def test_a_copy_of_itself_changes_nothing():
    for x in (Tensor([1.0, 2.0]), picograd.ones(1, 3).expand(2, 3), Tensor([[1.0], [2.0]])[:, 0]):
        before = x.tolist()
        assert x.copy_(x) is x and x.tolist() == before and x._version == 0

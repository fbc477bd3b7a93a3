"""The front door of gradients: torch.autograd's names."""

import pytest

import picograd
from picograd import Tensor, autograd
from picograd.errors import ShapeError


def test_names() -> None:
    assert picograd.autograd is autograd
    assert all(hasattr(autograd, name) for name in autograd.__all__)


def test_backward_of_several() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    autograd.backward([y, x.sum()], [Tensor([1.0, 10.0]), None])
    assert x.grad is not None and x.grad.tolist() == [3, 41]
    autograd.backward(y.sum(), inputs=[x])
    assert x.grad.tolist() == [5, 45]
    with pytest.raises(ShapeError, match="1 gradients for 2 tensors"):
        autograd.backward([y, y], [None])

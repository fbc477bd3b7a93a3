"""The front door of gradients: torch.autograd's names."""

import numpy as np
import pytest

import picograd
from picograd import Tensor, autograd
from picograd.errors import ShapeError


def test_names() -> None:
    assert picograd.autograd is autograd
    assert autograd.anomaly.detect_anomaly is autograd.detect_anomaly
    assert all(hasattr(autograd, name) for name in autograd.__all__)

    class Own(autograd.Function):
        @staticmethod
        def forward(ctx: autograd.FunctionCtx, x: Tensor) -> Tensor:
            assert isinstance(ctx, autograd.FunctionCtx)
            return x * 2.0

    assert Own.apply(Tensor([1.0])).tolist() == [2.0]


def test_backward_of_several() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    autograd.backward([y, x.sum()], [Tensor([1.0, 10.0]), None])
    assert x.grad is not None and x.grad.tolist() == [3, 41]
    autograd.backward(y.sum(), inputs=[x])
    assert x.grad.tolist() == [5, 45]
    with pytest.raises(ShapeError, match="1 gradients for 2 tensors"):
        autograd.backward([y, y], [None])


def test_inputs_may_be_whatever_can_be_walked() -> None:
    weights = {"w": Tensor([2.0], requires_grad=True), "b": Tensor([1.0], requires_grad=True)}
    loss = (weights["w"] * 3 + weights["b"]).sum()
    assert [g.item() for g in autograd.grad(loss, weights.values())] == [3.0, 1.0]


def test_variables() -> None:
    x = autograd.Variable(Tensor([1.0]), requires_grad=True)
    assert x.requires_grad and isinstance(x, autograd.Variable)


def test_grad_takes_arguments_in_pytorchs_order() -> None:
    """A gradient penalty, written as programs for PyTorch write it."""
    x = Tensor([[3.0, 4.0]], requires_grad=True)
    y = (x * x).sum(1)
    ones = picograd.ones(y.size())
    options = dict(create_graph=True, retain_graph=True, only_inputs=True)
    (found,) = autograd.grad(outputs=y, inputs=x, grad_outputs=ones, **options)
    penalty = (found.norm(2, dim=1) - 1).square().sum()
    (second,) = autograd.grad(penalty, [x], None, True)
    assert isinstance(autograd.grad(y, x, ones), tuple)
    np.testing.assert_allclose(second.numpy(), [[21.6, 28.8]], rtol=1e-4)

"""The front door of gradients: torch.autograd's names."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, autograd
from picograd.errors import GradientError, ShapeError


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


def test_anomalies_are_named() -> None:
    """NaN is found where it arises, and only where somebody looks."""
    x = Tensor([0.0, 4.0], requires_grad=True)
    wanted = pytest.raises(GradientError, match="'SqrtBackward0' returned nan values")
    with wanted, autograd.detect_anomaly():
        assert autograd.is_anomaly_enabled()
        (x.sqrt() * 0.0).sum().backward()
    assert not autograd.is_anomaly_enabled()
    (x.sqrt() * 0.0).sum().backward()
    switch = autograd.set_detect_anomaly(True)
    with pytest.raises(RuntimeError, match="0th output"):
        autograd.grad((x.sqrt() * 0.0).sum(), x)
    with autograd.profiler.record_function("a block"):
        autograd.grad((x.sqrt() + 1.0).sum(), x)
    switch.__exit__()
    assert not picograd.is_anomaly_enabled()


def test_inputs_may_be_whatever_can_be_walked() -> None:
    weights = {"w": Tensor([2.0], requires_grad=True), "b": Tensor([1.0], requires_grad=True)}
    loss = (weights["w"] * 3 + weights["b"]).sum()
    assert [g.item() for g in autograd.grad(loss, weights.values())] == [3.0, 1.0]


def test_second_derivatives_along() -> None:
    x, y, v = Tensor([1.0, 2.0]), Tensor([3.0]), Tensor([1.0, -1.0])
    value, product = autograd.functional.hvp(lambda a: (a**3).sum(), x, v)
    assert value.item() == 9 and product.tolist() == [6, -12]
    _, several = autograd.functional.vhp(lambda a, b: (a * b).sum(), (x, y), (v, Tensor([1.0])))
    assert [each.tolist() for each in several] == [[1.0, 1.0], [0.0]]
    assert autograd.functional.jacobian(lambda a: a * a, x).tolist() == [[2, 0], [0, 4]]


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


def test_graph_of_hooks() -> None:
    graph = picograd.autograd.graph
    x = picograd.Tensor([1.0, 2.0], requires_grad=True)
    with graph.save_on_cpu(pin_memory=True), graph.allow_mutation_on_saved_tensors():
        middle = x * 1
        y = middle.exp()
        middle.sin_()
    y.sum().backward()
    assert x.grad is not None and np.allclose(x.grad.numpy(), np.exp([1.0, 2.0]))
    with graph.disable_saved_tensors_hooks("not here"):
        assert (x * x).requires_grad
        with pytest.raises(RuntimeError, match="not here"), graph.save_on_cpu():
            pass
    refused = pytest.raises(RuntimeError, match="close the block")
    with graph.save_on_cpu(), refused, graph.disable_saved_tensors_hooks("not here"):
        pass


def test_hooks_of_several_gradients() -> None:
    graph = picograd.autograd.graph
    a, b = (picograd.ones(1, requires_grad=True) for _ in range(2))
    both: list[Any] = []
    one: list[Any] = []
    handle = graph.register_multi_grad_hook([a, b], both.append)
    graph.register_multi_grad_hook([a, b], one.append, mode="any")
    (a * 2).sum().backward()
    (a * 3 + b * 5).sum().backward()
    assert [each.tolist() for each in both[0]] == [[3.0], [5.0]] and len(both) == 1
    assert len(one) == 2
    handle.remove()
    (a * b).sum().backward()
    assert len(both) == 1 and isinstance((a * b).grad_fn, graph.Node)
    with pytest.raises(ValueError, match="register_multi_grad_hook: mode='none'"):
        graph.register_multi_grad_hook([a], both.append, mode="none")

"""Custom functions, checkpoints, hooks and derivative products against PyTorch."""

from typing import Any

import numpy as np
import pytest
import torch

import picograd
from picograd import Tensor

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])


class Cube(picograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * x * scale

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradient * 3 * x * x * ctx.scale, None


class Parts(picograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a, b)
        return a * b, a + b

    @staticmethod
    def backward(ctx: Any, first: Any, second: Any) -> Any:
        a, b = ctx.saved_tensors
        return first * b + second, first * a + second


def leaf(values: Any = X) -> Tensor:
    return Tensor(values, requires_grad=True)


def test_function_has_its_own_gradient() -> None:
    x = leaf()
    y = Cube.apply(x, 2.0)
    assert np.allclose(y.numpy(), 2 * X**3)
    y.sum().backward()
    assert np.allclose(x.grad.numpy(), 6 * X**2)


def test_function_can_be_differentiated_twice() -> None:
    x = leaf()
    first = picograd.grad(Cube.apply(x, 1.0).sum(), x, create_graph=True)[0]
    second = picograd.grad(first.sum(), x)[0]
    assert np.allclose(second.numpy(), 6 * X)


def test_function_with_two_outputs() -> None:
    a, b = leaf(), leaf(X + 1)
    product, total = Parts.apply(a, b)
    (product * 2 + total * 3).sum().backward()
    assert np.allclose(a.grad.numpy(), 2 * (X + 1) + 3)
    assert np.allclose(b.grad.numpy(), 2 * X + 3)


def test_function_without_gradients() -> None:
    with picograd.no_grad():
        assert not Cube.apply(leaf(), 1.0).requires_grad


def test_wrong_gradient_shape_is_an_error() -> None:
    class Wrong(picograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient.sum()

    x = leaf()
    with pytest.raises(RuntimeError, match="the gradient of argument 0 has shape"):
        Wrong.apply(x).sum().backward()


def test_checkpoint_gives_the_same_gradients() -> None:
    x, w = leaf(), leaf(X.T.copy())

    def block(t: Any) -> Any:
        return (t @ w).tanh().exp()

    y = picograd.checkpoint(block, x, use_reentrant=False)
    y.sum().backward()
    tx, tw = torch.tensor(X, requires_grad=True), torch.tensor(X.T.copy(), requires_grad=True)
    (tx @ tw).tanh().exp().sum().backward()
    assert np.allclose(x.grad.numpy(), tx.grad.numpy())
    assert np.allclose(w.grad.numpy(), tw.grad.numpy())


def test_hooks_on_leaves_and_results() -> None:
    x = leaf()
    seen = []
    handle = x.register_hook(lambda g: g * 2)
    y = x * 3
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * y).sum().backward()
    assert np.allclose(x.grad.numpy(), 2 * 18 * X)
    assert np.allclose(seen[0], 6 * X)
    handle.remove()
    x.grad = None
    (x * 3).sum().backward(retain_graph=True)
    assert np.allclose(x.grad.numpy(), 3)


def test_retain_grad() -> None:
    x = leaf()
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    assert np.allclose(y.grad.numpy(), 4 * X)
    assert np.allclose(x.grad.numpy(), 8 * X)


def test_products_with_derivatives() -> None:
    def ours(t: Any) -> Any:
        return (t * t).sum(1).sin()

    x, v, t = X, np.array([1.0, 2.0]), X + 1
    functional = torch.autograd.functional
    args = (ours, torch.tensor(x))
    y, g = picograd.vjp(ours, Tensor(x), Tensor(v))
    want_y, want_g = functional.vjp(*args, torch.tensor(v))
    assert np.allclose(y.numpy(), want_y) and np.allclose(g.numpy(), want_g)
    y, g = picograd.jvp(ours, Tensor(x), Tensor(t))
    assert np.allclose(g.numpy(), functional.jvp(*args, torch.tensor(t))[1])
    found = picograd.jacobian(ours, Tensor(x)).numpy()
    assert np.allclose(found, functional.jacobian(*args))

    def scalar(t: Any) -> Any:
        return (t * t * t).sum() + t.prod()

    found = picograd.hessian(scalar, Tensor(x)).numpy()
    assert np.allclose(found, functional.hessian(scalar, torch.tensor(x)))


@pytest.mark.usefixtures("on_host")
def test_numpy_and_dlpack_share_memory() -> None:
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    shared = picograd.from_numpy(array)
    array[0, 0] = 9
    assert shared[0, 0].item() == 9
    tensor = (shared + 1).realize()
    view = torch.from_dlpack(tensor)
    assert view.tolist() == (array + 1).tolist()
    with picograd.no_grad():
        view[0, 0] = -5
    assert tensor[0, 0].item() == -5
    back = picograd.from_dlpack(torch.arange(4.0))
    assert back.tolist() == [0, 1, 2, 3]
    strided = picograd.from_numpy(array.T)
    assert strided.tolist() == array.T.tolist()

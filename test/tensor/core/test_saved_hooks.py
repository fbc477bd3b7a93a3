"""Hooks of what gradients read: they run, and gradients read what they give."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import StateError

F = picograd.nn.functional
hooks = picograd.autograd.graph.saved_tensors_hooks
X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
WEIGHT = np.linspace(-1, 1, 12).reshape(3, 4)
OPS: dict[str, Callable[..., Any]] = {
    "product": lambda x, w: x * x,
    "matmul": lambda x, w: x @ w,
    "einsum": lambda x, w: picograd.einsum("ij,jk->ik", x, w),
    "softmax": lambda x, w: (x @ w).softmax(1),
    "layer_norm": lambda x, w: F.layer_norm(x, (3,), w[:, 0]),
    "attention": lambda x, w: F.scaled_dot_product_attention(x, x, x),
    "cross_entropy": lambda x, w: F.cross_entropy(x, Tensor([0, 2])),
    "dropout": lambda x, w: F.dropout(x, 0.5) * w[0, 0],
    "gather": lambda x, w: x.gather(1, Tensor([[0], [1]])) ** 2,
    "in place": lambda x, w: (x * 1).mul_(w[:, 0]).add_(x),
    "sort": lambda x, w: x.sort(1)[0] ** 2,
    "second result": lambda x, w: picograd.std_mean(x * x, 1)[1],
    "joined": lambda x, w: picograd.cat([x, x * x]).sin(),
}


def gradients(op: Callable[..., Any], pack: Any = None, unpack: Any = None) -> list[Any]:
    """Compute first and second derivatives, with and without hooks."""
    x, w = Tensor(X, requires_grad=True), Tensor(WEIGHT, requires_grad=True)
    picograd.manual_seed(0)
    if pack is None:
        y = op(x, w)
    else:
        with hooks(pack, unpack):
            y = op(x, w)
    first = picograd.grad((y * y).sum(), [x, w], create_graph=True, allow_unused=True)
    total = sum((each * each).sum() for each in first if each is not None)
    second = picograd.grad(total, [x, w], allow_unused=True)
    return [each.detach().numpy() for each in (*first, *second) if each is not None]


@pytest.mark.parametrize("name", OPS)
def test_gradients_read_what_is_unpacked(name: str) -> None:
    calls: list[str] = []

    def pack(x: Tensor) -> Any:
        calls.append("pack")
        return x.numpy().copy()

    def unpack(values: Any) -> Tensor:
        calls.append("unpack")
        return Tensor(values)

    want, found = gradients(OPS[name]), gradients(OPS[name], pack, unpack)
    assert len(want) == len(found) and {*calls} == {"pack", "unpack"}
    assert all(np.allclose(a, b) for a, b in zip(want, found))


def test_other_values_give_other_gradients() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    with hooks(lambda t: t, lambda t: t * 10):
        y = x * x
        z = x + 3  # reads nothing
    assert y.tolist() == [1.0, 4.0]
    (y + z).sum().backward()
    assert x.grad.tolist() == [21.0, 41.0]
    assert not picograd.is_autocast_enabled()
    after = picograd.grad((x * x).sum(), x)[0]
    assert after.tolist() == [2.0, 4.0]


def test_what_functions_save_is_packed() -> None:
    class Square(picograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, None)
            return x * x

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            assert ctx.saved_tensors[1] is None
            return gradient * 2 * ctx.saved_tensors[0]

    x = Tensor([1.0, 2.0], requires_grad=True)
    seen: list[Any] = []
    with hooks(lambda t: seen.append(t.tolist()) or t, lambda t: t * 10):
        y = Square.apply(x)
        Square.apply(x.detach())
    (first,) = picograd.grad(y.sum(), x, create_graph=True)
    assert seen == [[1.0, 2.0]] and first.tolist() == [20.0, 40.0]
    assert picograd.grad(first.sum(), x)[0].tolist() == [2.0, 2.0]


def test_what_hooks_cannot_do_is_refused() -> None:
    x = Tensor(X[:, :2], requires_grad=True)
    with hooks(lambda t: t, lambda t: None), pytest.raises(StateError, match="factorization"):
        picograd.linalg.qr(x)
    for answer, text in ((3, "returned an int"), (Tensor([1.0]), "what was unpacked is float32")):
        with hooks(lambda t: t, lambda t, answer=answer: answer):
            y = x.sin()
        with pytest.raises((TypeError, RuntimeError), match=text):
            y.sum().backward()

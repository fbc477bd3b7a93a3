"""Function transforms against torch.func, their nesting, and their errors."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, func
from picograd.errors import AxisError, DTypeError, GradientError, ShapeError

torch = pytest.importorskip("torch")
X = np.array([0.5, -1.0, 2.0], np.float32)
W = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]], np.float32)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.numpy(), expected.numpy(), 1e-4, 1e-5)


def smooth(x: Any) -> Any:
    return (x.sin() * x.exp()).cumsum(0)


def test_grad(device: str) -> None:
    x, w = Tensor(X, device=device), Tensor(W, device=device)

    def loss(w: Any, x: Any) -> Any:
        return ((w @ x) ** 2).sum()

    tx, tw = torch.tensor(X), torch.tensor(W)
    close(func.grad(loss)(w, x), torch.func.grad(loss)(tw, tx))
    both, wanted = func.grad(loss, (0, -1))(w, x), torch.func.grad(loss, (0, 1))(tw, tx)
    close(both[0], wanted[0])
    close(both[1], wanted[1])
    slopes, (value, extra) = func.grad_and_value(lambda x: ((x**2).sum(), x * 2), has_aux=True)(x)
    close(slopes, 2 * tx)
    assert value.item() == 5.25 and extra.tolist() == [1, -2, 4] and not extra.requires_grad
    tree = func.grad(lambda p: (p["a"] * p["b"][0]).sum())({"a": x, "b": (x * 3,)})
    close(tree["b"][0], tx)
    assert func.grad(lambda a, b: (a * 2).sum(), 1)(x, x).tolist() == [0, 0, 0]


def test_nested_and_mixed_with_backward() -> None:
    cube = func.grad(func.grad(func.grad(lambda x: x**4)))
    assert cube(Tensor(2.0)).item() == 48
    # perturbations do not mix: d/dx (x d/dy (x + y)) = 1
    assert func.grad(lambda x: x * func.grad(lambda y: x + y)(Tensor(1.0)))(Tensor(3.0)).item() == 1
    x = Tensor(X, requires_grad=True)
    slope = func.grad(lambda t: (t**3).sum())(x)
    assert slope.requires_grad
    slope.sum().backward()
    assert x.grad is not None and x.grad.numpy() == pytest.approx(6 * X)
    with picograd.no_grad():
        inside = func.grad(lambda t: (t * x).sum())(x)
    assert not inside.requires_grad and inside.tolist() == x.tolist()
    a = Tensor(2.0)
    assert not func.grad(lambda t: t * t)(a).requires_grad and a.grad is None


def test_argument_may_change_in_place() -> None:
    def change(x: Tensor) -> Tensor:
        x *= x
        return x.sum()

    assert func.grad(change)(Tensor(X)).numpy() == pytest.approx(2 * X)


def test_products() -> None:
    x, tx = Tensor(X), torch.tensor(X)
    y, pull = func.vjp(smooth, x)
    ty, tpull = torch.func.vjp(smooth, tx)
    close(y, ty)
    close(pull(x)[0], tpull(tx)[0])
    y, along = func.jvp(smooth, (x,), (Tensor(X * 2),))
    close(along, torch.func.jvp(smooth, (tx,), (tx * 2,))[1])
    (out, _), pull, aux = func.vjp(lambda x, y: ((x * y, x.sum()), y), x, x, has_aux=True)
    a, b = pull((x, Tensor(1.0)))
    assert a.numpy() == pytest.approx(X * X + 1) and b.numpy() == pytest.approx(X * X)
    assert aux.tolist() == x.tolist() and out.shape == (3,)
    logs = func.jvp(lambda x: x.logcumsumexp(0), (x,), (x,))[1]
    close(logs, torch.func.jvp(lambda x: x.logcumsumexp(0), (tx,), (tx,))[1])
    assert func.jvp(lambda x: x.detach(), (x,), (x,))[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", ["jacrev", "jacfwd"])
def test_jacobians(kind: str) -> None:
    ours, theirs = getattr(func, kind), getattr(torch.func, kind)
    x, w, tx, tw = Tensor(X), Tensor(W), torch.tensor(X), torch.tensor(W)

    def many(w: Any, x: Any) -> Any:
        return {"y": (w * x).exp().sum(1), "n": w.sum()}

    close(ours(smooth)(x), theirs(smooth)(tx))
    close(ours(smooth, chunk_size=2)(x), theirs(smooth)(tx))
    found, wanted = ours(many, (0, 1))(w, x), theirs(many, (0, 1))(tw, tx)
    for name in ("y", "n"):
        for at in (0, 1):
            close(found[name][at], wanted[name][at])
    found, aux = ours(lambda x: (x * 2, x), has_aux=True)(x)
    assert found.tolist() == (np.eye(3) * 2).tolist() and aux.tolist() == x.tolist()


def test_hessian_and_vmap_of_it() -> None:
    def energy(x: Any) -> Any:
        return (x.sin() * x).sum() * x[0]

    close(func.hessian(energy)(Tensor(X)), torch.func.hessian(energy)(torch.tensor(X)))
    rows = func.vmap(func.hessian(energy))(Tensor(W))
    close(rows, torch.func.vmap(torch.func.hessian(energy))(torch.tensor(W)))
    close(func.jacfwd(func.grad(energy))(Tensor(X)), torch.func.hessian(energy)(torch.tensor(X)))
    close(
        func.jacrev(func.vmap(energy))(Tensor(W)),
        torch.func.jacrev(torch.func.vmap(energy))(torch.tensor(W)),
    )


def test_wrong_use() -> None:
    x = Tensor(X)
    with pytest.raises(GradientError, match=r"returned \(3,\), not one number"):
        func.grad(lambda x: x * 2)(x)
    with pytest.raises(GradientError, match="an? int64 tensor"):
        func.grad(lambda x: x.sum())(Tensor([1, 2]))
    with pytest.raises(GradientError, match="with respect to a float"):
        func.grad(lambda x: x)(2.0)
    with pytest.raises(AxisError, match="argnums=1 of 1"):
        func.grad(lambda x: x, 1)(x)
    with pytest.raises(DTypeError, match="argnums='a'"):
        func.grad(lambda x: x, "a")(x)
    with pytest.raises(DTypeError, match="did not return a pair"):
        func.grad(lambda x: x.sum(), has_aux=True)(x)
    with pytest.raises(GradientError, match="int64 result has no gradient"):
        func.grad(lambda x: x.argmax())(x)
    _, pull = func.vjp(lambda x: x, x)
    with pytest.raises(ShapeError, match=r"cotangent \(2,\) does not fit the result \(3,\)"):
        pull(Tensor([1.0, 2.0]))
    with pytest.raises(ShapeError, match="2 cotangents for 1 results"):
        pull(x, x)
    with pytest.raises(ShapeError, match="do not fit the primals"):
        func.jvp(lambda x: x, (x,), (Tensor(1.0),))
    with pytest.raises(DTypeError, match="must be tuples"):
        func.jvp(lambda x: x, x, x)
    with pytest.raises(GradientError, match="the function returned an int"):
        func.vjp(lambda x: 3, x)


def test_what_a_function_writes_to_its_arguments_they_are_afterwards() -> None:
    def write(x: Tensor, y: Tensor) -> Tensor:
        x[0] = y[1] * 2
        return x.sum()

    for derivative in (
        lambda x, y: picograd.func.jvp(write, (x, y), (Tensor.ones(2), Tensor.ones(2)))[1],
        lambda x, y: picograd.func.vjp(write, x, y)[0],
        picograd.func.grad(write, (0, 1)),
    ):
        x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
        derivative(x, y)
        assert x.tolist() == [8.0, 2.0] and not x.requires_grad and y.tolist() == [3.0, 4.0]
    batch = Tensor([[1.0, 2.0], [3.0, 4.0]])
    tangents = picograd.vmap(
        lambda x: picograd.func.jvp(lambda x: x.mul_(x), (x,), (Tensor.ones(2),))[1]
    )(batch)
    assert batch.tolist() == [[1.0, 4.0], [9.0, 16.0]] and tangents.tolist() == [[2, 4], [6, 8]]


def test_arguments_and_results_that_name_nothing() -> None:
    func, x = picograd.func, Tensor([1.0, 2.0])
    for argnums in ((), (0, 0), (0, -1)):
        for transform in (func.jacrev, func.jacfwd):
            with pytest.raises(AxisError, match="each once"):
                transform(picograd.sin, argnums)(x)
    for made in (func.jacrev(lambda x: ()), func.jacfwd(lambda x: [])):
        with pytest.raises(GradientError, match="the function returned no tensor"):
            made(x)
    with pytest.raises(TypeError, match="there is no primal"):
        func.jvp(lambda: x, (), ())
    with pytest.raises(GradientError, match="result 1 does not follow"):
        func.jvp(lambda y: (y, x), (x,), (x,), strict=True)
    assert func.jvp(picograd.sin, (x,), (x,), strict=True)[1].shape == (2,)
    with pytest.raises(ShapeError, match="in its structure"):
        func.vjp(lambda x: (x, (x, x)), x)[1](((x, (x, x)),))

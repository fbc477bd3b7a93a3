"""What is called with the gradient of a tensor, on leaves and on results."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def leaf() -> Any:
    return Tensor(X, requires_grad=True)


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
    with pytest.warns(UserWarning, match="retain_grad"):
        assert y.grad is None and x.grad is None
    y.retain_grad()
    (y * y).sum().backward()
    assert np.allclose(y.grad.numpy(), 4 * X)
    assert np.allclose(x.grad.numpy(), 8 * X)


def test_hooks_of_a_tensor_see_one_gradient() -> None:
    """What a hook writes to the gradient, or sets on it, the next one finds."""
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(g.mul_(2)))
    y.register_hook(lambda g: seen.append(g))
    (y * y).sum().backward()
    assert seen[0] is seen[1] and seen[0].tolist() == [12.0, 24.0]
    assert x.grad.tolist() == [36.0, 72.0]


def test_retained_is_what_hooks_left() -> None:
    x = leaf()
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 3)
    y.sum().backward()
    assert np.allclose(y.grad.numpy(), 3) and np.allclose(x.grad.numpy(), 6)


def test_hook_sees_the_gradient_of_earlier_operations() -> None:
    x = leaf()
    y = x * 3
    z = (y * y).sum() + y.sum()
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.numpy()) or g * 10)
    z.backward()
    assert np.allclose(seen[0], 6 * X + 1) and np.allclose(x.grad.numpy(), 30 * (6 * X + 1))
    handle.remove()
    assert np.allclose(picograd.grad(z, x)[0].numpy(), 3 * (6 * X + 1))
    x.register_hook(lambda g: g.sum())
    with pytest.raises(RuntimeError, match=r"a hook returned \(\)"):
        z.backward()
    with pytest.raises(TypeError, match="int is no function"):
        x.register_hook(3)


def test_hook_after_accumulation() -> None:
    x = leaf()
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.numpy()))
    for _ in range(2):
        (x * 2).sum().backward()
    handle.remove()
    (x * 2).sum().backward()
    assert [float(each[0, 0]) for each in seen] == [2, 4]
    with pytest.raises(RuntimeError, match="no leaf that asked for gradients"):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_each_leaf_has_an_optimizer_that_steps_in_its_hook() -> None:
    """A step writes a weight that gradients of leaves before it still read."""
    torch = pytest.importorskip("torch")
    found = []
    for library in (torch, picograd):
        weights = [library.tensor(X[:, :2] / 5, requires_grad=True) for _ in range(3)]
        optimizers = {id(w): library.optim.Adam([w], lr=0.01) for w in weights}

        def step(weight: Any, optimizers: Any = optimizers) -> None:
            optimizers[id(weight)].step()
            optimizers[id(weight)].zero_grad()

        for weight in weights:
            weight.register_post_accumulate_grad_hook(step)
        losses = []
        for number in range(12):
            x = library.tensor(X[:, :2] * (1 + number % 3))
            for weight in weights:
                x = (x @ weight).tanh()
            loss = (x - 0.3).square().mean()
            loss.backward()
            losses.append(loss.item())
        assert all(weight.grad is None for weight in weights)
        found.append(losses)
    assert np.allclose(*found)


def test_hooks_of_what_computed_a_tensor() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    step = y.grad_fn
    assert type(step).__name__ == "MulBackward0"
    seen = []
    handles = [
        step.register_prehook(lambda outer: (outer[0] * 3,)),
        step.register_hook(
            lambda inner, outer: seen.append((inner[0].tolist(), outer[0].tolist()))
        ),
        step.register_hook(lambda inner, outer: tuple(each * 10 for each in inner)),
        step.next_functions[0][0].register_prehook(lambda outer: (outer[0] + 1,)),
        step.next_functions[0][0].register_hook(
            lambda inner, outer: seen.append(outer[0].tolist())
        ),
    ]
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [61.0, 121.0]
    assert seen == [([3.0, 6.0], [3.0, 3.0]), [61.0, 121.0]]
    for each in handles:
        each.remove()
    y.sum().backward()
    assert x.grad.tolist() == [63.0, 125.0]


def test_hooks_of_a_tensor_come_before_those_of_its_step() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    seen: list[Any] = []
    y.retain_grad()
    step: Any = y.grad_fn
    step.register_prehook(lambda outer: (outer[0] * 3,))
    y.register_hook(lambda gradient: seen.append(gradient.tolist()))
    y.sum().backward()
    assert y.grad is not None and x.grad is not None
    assert seen == [[1.0, 1.0]] and y.grad.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [6.0, 6.0]


def test_hooks_stay_with_the_value_that_a_write_replaces() -> None:
    x = leaf()
    y = x * 2
    y.register_hook(lambda g: g * 5)
    y.mul_(3)
    y.register_hook(lambda g: g + 1)  # is called first: it sees the gradient of the new value
    (y * y).sum().backward()
    assert np.allclose(x.grad.numpy(), ((12 * X + 1) * 3 * 5) * 2)


def test_retained_gradients_are_those_of_the_last_value() -> None:
    x = leaf()
    y = x * 2
    y.register_hook(lambda g: g)
    assert not y.retains_grad
    y.retain_grad()
    y.mul_(3)
    y.retain_grad()
    assert y.retains_grad
    (y * y).sum().backward()
    assert np.allclose(y.grad.numpy(), 12 * X)
    assert np.allclose(x.grad.numpy(), 72 * X)


def test_a_handle_is_a_context() -> None:
    """Left as a context, a hook is called no more."""
    x, seen = Tensor([1.0], requires_grad=True), []
    with x.register_hook(seen.append) as handle:
        assert isinstance(handle.id, int)
        x.sum().backward()
    x.sum().backward()
    assert len(seen) == 1


def test_grad_asks_the_hooks_of_leaves() -> None:
    x, other = Tensor([1.0, 2.0], requires_grad=True), Tensor(1.0, requires_grad=True)
    seen: list[str] = []
    handle = x.register_hook(lambda gradient: gradient * 2)
    x.register_hook(lambda gradient: seen.append("before"))
    x.register_post_accumulate_grad_hook(lambda x: seen.append("after"))
    assert picograd.grad((x * x).sum(), x)[0].tolist() == [4.0, 8.0]
    assert picograd.grad((x * other).sum(), other)[0].item() == 3.0
    assert seen == ["before"]
    handle.remove()
    assert picograd.grad((x * x).sum(), x, create_graph=True)[0].tolist() == [2.0, 4.0]


def test_hooks_of_what_was_computed_of_a_leaf_that_is_gone() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True) * 2
    x.retain_grad()
    seen: list[Any] = []
    x.register_hook(seen.append)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and seen[0].tolist() == [3.0, 3.0]


def test_a_write_of_no_elements_leaves_the_hooks_of_a_leaf() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    x.register_hook(lambda gradient: -gradient)
    with picograd.no_grad():
        x[0:0].mul_(2)
        x.data[0, 2:] *= 0
    (x * 3).sum().backward()
    assert x.grad.tolist() == [[-3.0, -3.0], [-3.0, -3.0]]


@pytest.mark.parametrize("place", ["leaf", "computed", "retained"])
def test_what_a_hook_writes_over_a_gradient_is_differentiable(place: str) -> None:
    """As in PyTorch; second derivatives lacked what went through the gradient, without a word."""
    asked: list[bool] = []

    def masked(gradient: Tensor) -> Tensor:
        asked.append(gradient.requires_grad)
        found = gradient.clone()
        found[0] = 0.0
        found *= 2.0
        return found

    x = Tensor([0.5, -2.0], dtype="float64", requires_grad=True)
    y = x * 3.0
    if place == "retained":
        y.retain_grad()
        (y**3).sum().backward(create_graph=True)
        found = picograd.grad(masked(y.grad).sum(), x)[0].tolist()
        assert found == [0.0, 2 * 6 * 9 * -2.0]
        return
    (x if place == "leaf" else y).register_hook(masked)
    (slope,) = picograd.grad((y**3).sum(), x, create_graph=True)  # 81 x^2, doubled but for x[0]
    assert slope.tolist() == [0.0, 2 * 81 * 4.0]
    assert picograd.grad(slope.sum(), x)[0].tolist() == [0.0, -1296.0]  # the hook sees it, too
    (y**3).sum().backward()
    assert asked[0] and not asked[-1]


@pytest.mark.parametrize("kind", ["register_hook", "register_post_accumulate_grad_hook"])
def test_a_leaf_without_hooks_is_as_one_that_never_had_any(kind: str) -> None:
    x = leaf()
    seen: list[int] = []
    first, second = [getattr(x, kind)(lambda _: seen.append(1)) for _ in range(2)]
    first.remove()
    (x * 3).sum().backward()
    assert seen == [1]
    second.remove()
    assert x._hooks is None  # what steps quickly asks for no more
    first.remove()
    handle = x.register_hook(lambda gradient: gradient * 2)
    second.remove()
    (x * 3).sum().backward()
    assert np.allclose(x.grad.numpy(), 9) and seen == [1]
    handle.remove()


def test_a_hook_that_takes_itself_away() -> None:
    x = leaf()
    handle = x.register_hook(lambda gradient: handle.remove())
    for times in 3, 6:
        (x * 3).sum().backward()
        assert np.allclose(x.grad.numpy(), times) and x._hooks is None

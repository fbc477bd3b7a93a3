"""What a function on nodes recorded once is stamped out: when, and when it must not be."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.engine.plan_cache import PLANS
from picograd.errors import AxisError, DTypeError, InternalError
from picograd.graph.node import Node
from picograd.nn import functional as F
from picograd.tensor.core.recording import apply, apply_all
from picograd.tensor.core.repeated import repeated
from picograd.tensor.indexing import selecting
from picograd.tensor.math.elementwise import arithmetic
from picograd.tensor.shaping.movement import cat


def tensor(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32)).realize()


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As programs run: what is stamped out is not recorded beside it."""
    monkeypatch.setattr(picograd.config, "verify", 0)
    yield


class Counted:
    """A function on nodes, and how often it ran."""

    def __init__(self, function: Any) -> None:
        self.runs = 0

        def counted(*operands: Any) -> Any:
            self.runs += 1
            return function(*operands)

        self.recorded = repeated(counted)

    def __call__(self, *operands: Any) -> Any:
        return apply(self.recorded, *operands)


def total(a: Node, b: Any) -> Node:
    return arithmetic("add", arithmetic("mul", a, b), 1.0)


def test_the_third_call_is_stamped_out(unchecked: None) -> None:
    counted = Counted(total)
    for shape, runs in ((3,), 1), ((3,), 2), ((3,), 2), ((4,), 3), ((3,), 3), ((4,), 4), ((4,), 4):
        a, b = tensor(*shape), tensor(*shape) + 1
        np.testing.assert_allclose(counted(a, b).numpy(), a.numpy() * b.numpy() + 1, rtol=1e-6)
        assert counted.runs == runs


@pytest.mark.usefixtures("unchecked")
def test_which_inputs_are_the_same_counts() -> None:
    counted = Counted(lambda a, b: a - b if a is not b else a.const_like(7.0))
    x, y = tensor(3), tensor(3)
    for _ in range(3):
        assert counted(x, x).tolist() == [7.0] * 3 and counted(x, y).tolist() == [0.0] * 3


@pytest.mark.usefixtures("unchecked")
def test_constants_and_views_count() -> None:
    counted = Counted(lambda a, b: (a + b).permute((1, 0)).reshape((6,)))
    x = tensor(2, 3)
    pairs = [x, x.reshape(3, 2).reshape(2, 3), x.T.T, picograd.zeros(2, 3), picograd.ones(2, 3)]
    for _ in range(3):
        for other in pairs:
            wanted = (x.numpy() + other.numpy()).T.reshape(6)
            np.testing.assert_array_equal(counted(x, other).numpy(), wanted)
    for value in 0.0, -0.0, float("nan"):
        found = 1.0 / counted(picograd.full((2, 3), value), picograd.full((2, 3), value))
        with np.errstate(divide="ignore"):
            wanted = np.full(6, 1.0 / np.float32(2 * value))
        np.testing.assert_array_equal(found.numpy(), wanted)


def test_many_views_of_views_are_no_recursion() -> None:
    x = Tensor([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    for _ in range(601):
        x = x.reshape(2, 3).t().reshape(6)  # the fourth is x again
    assert x.tolist() == [0, 3, 1, 4, 2, 5]


def test_given_numbers_stay_arguments_of_one_plan(unchecked: None) -> None:
    x = tensor(4, 6, 3)
    weight = tensor(3)
    for function in (
        lambda t: x[:, t],
        lambda t: F.layer_norm(x, (3,), weight, eps=0.5 + t),
        lambda t: x.clamp(-0.5 - t, 0.25 + t),
    ):
        wanted = {t: (function(t) * 1.5).numpy() for t in (1, 2, 3, 4, 5)}
        made = len(PLANS)
        for t in (2, 2, 3, 2, 2, 4, 4, 4, 5, 1):
            np.testing.assert_array_equal((function(t) * 1.5).numpy(), wanted[t])
        assert len(PLANS) == made


@pytest.mark.usefixtures("unchecked", "on_host")
def test_what_looks_at_values_is_recorded_each_time() -> None:
    x, good, bad = tensor(4, 3), Tensor([[1], [2]]).realize(), Tensor([[1], [9]]).realize()
    for _ in range(3):
        assert x.gather(1, good).shape == (2, 1)
        assert x[good[:, 0]].shape == (2, 3)
    with pytest.raises(IndexError, match="9"):
        x.gather(1, bad)
    with pytest.raises(IndexError, match="9"):
        x[bad[:, 0]]


@pytest.mark.usefixtures("unchecked")
def test_what_draws_numbers_is_recorded_each_time() -> None:
    x = tensor(64)
    masks = {tuple(F.dropout(x, 0.5).ne(0).tolist()) for _ in range(6)}
    assert len(masks) == 6


@pytest.mark.usefixtures("unchecked")
def test_settings_count() -> None:
    counted = Counted(lambda a: a.cast(picograd.get_default_dtype()))
    x = Tensor([1, 2]).realize()
    for _ in range(3):
        assert counted(x).dtype == picograd.float32
    picograd.set_default_dtype(picograd.float64)
    try:
        assert counted(x).dtype == picograd.float64
    finally:
        picograd.set_default_dtype(picograd.float32)


def test_gradients_flow_as_through_what_was_recorded(unchecked: None) -> None:
    a, b = tensor(2, 3).requires_grad_(), tensor(2, 3).requires_grad_()
    found = []
    for _ in range(4):
        a.grad = b.grad = None
        parts = picograd.cat([a[:, :2], a * b, b], 1).clamp(-1.0, 1.0).var(1, keepdim=True)
        (F.layer_norm(parts + a, (3,)) * b).norm().backward()
        found.append((a.grad.tolist(), b.grad.tolist()))
    assert all(each == found[0] for each in found)


def test_lists_and_options_come_back_as_they_are(unchecked: None) -> None:
    halves = repeated(lambda x, n: [x.slice(((0, n, 1),)), x.slice(((n, 4, 1),))])
    node = tensor(4).node
    for _ in range(3):
        low, high = halves(node, 2)
        assert low.shape == high.shape == (2,) and low.inputs == high.inputs == (node,)
    joined = [apply_all(cat, [tensor(2, 2), tensor(2, 2)], axis).shape for axis in (0, 1, -1)]
    assert joined == [(4, 2), (2, 4), (2, 4)]
    with pytest.raises(DTypeError):  # equal to 1, and no axis
        apply_all(cat, [tensor(2, 2), tensor(2, 2)], True)


def test_nothing_is_kept_alive(unchecked: None) -> None:
    x = tensor(5, 5)
    for _ in range(3):
        picograd.cat([x, x[1:], x.T.T], 0).clamp(0.0, 1.0)
    gone = weakref.ref(x.node.arg.buffer)
    del x
    gc.collect()
    assert gone() is None


def test_verifying_finds_what_is_not_the_same_each_time() -> None:
    numbers = iter(range(100))
    counted = Counted(lambda a: arithmetic("mul", a, 2 + next(numbers)))
    x = tensor(3)
    counted(x), counted(x)
    with pytest.raises(InternalError, match="recorded"):
        counted(x)


def test_traces_record(unchecked: None) -> None:
    counted = Counted(total)
    x, y = tensor(3), tensor(3)
    counted(x, y), counted(x, y), counted(x, y)
    jitted = picograd.jit(lambda a, b: counted(a, b))
    jitted(x, y)
    assert counted.runs == 3


@pytest.mark.usefixtures("unchecked")
def test_gradients_and_values_are_those_of_the_first_call() -> None:
    def run(scale: float) -> list[np.ndarray]:
        x, w = tensor(3, 4).requires_grad_(), tensor(4).requires_grad_()
        y = F.layer_norm(x, (4,), w, eps=scale)
        (y * y * x).sum().backward()
        return [y.numpy(), x.grad.numpy(), w.grad.numpy()]  # type: ignore[union-attr]

    first = run(1e-5)
    for _ in range(4):
        for found, wanted in zip(run(1e-5), first, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert not np.allclose(run(3.0)[0], first[0])


@pytest.mark.usefixtures("unchecked")
def test_what_is_demanded_of_an_index_is_demanded_of_the_next() -> None:
    x = Tensor(np.arange(12, dtype=np.float32).reshape(4, 3), device="cpu")

    def run(numbers: list[int]) -> list[Tensor]:
        index = Tensor(numbers, device="cpu").realize()
        wide = index.reshape(-1, 1)
        source = Tensor(np.ones((len(numbers), 1), np.float32))
        return [
            x[index], x.gather(0, wide), x.index_select(0, index), F.embedding(index, x),
            x.scatter_add(0, wide, source), x.take(index), F.one_hot(index, 4),
        ]  # fmt: skip

    calls = [run([0, 3]), run([1, 2]), run([2, 2])]
    for numbers, made in zip(([0, 3], [1, 2], [2, 2]), calls, strict=True):
        np.testing.assert_array_equal(made[0].numpy(), x.numpy()[numbers])
        np.testing.assert_array_equal(made[3].numpy(), x.numpy()[numbers])
    for function in (
        lambda index: x[index],
        lambda index: x.gather(0, index.reshape(-1, 1)),
        lambda index: x.index_select(0, index),
        lambda index: F.embedding(index, x),
        lambda index: x.scatter_add(0, index.reshape(-1, 1), x[:2, :1]),
        lambda index: F.one_hot(index, 4),
    ):
        for _ in range(3):
            function(Tensor([0, 3], device="cpu").realize())
        with pytest.raises(AxisError):
            function(Tensor([0, 4], device="cpu").realize())


@pytest.mark.usefixtures("unchecked")
def test_reading_by_another_index_makes_no_checks_again() -> None:
    x, recordings = Tensor(np.ones((4, 3), np.float32), device="cpu"), []
    run = repeated(
        lambda node, index: recordings.append(1) or selecting.index_select(node, 0, index)
    )
    for numbers in ([0, 3], [1, 2], [2, 2], [3, 0]):
        run(x.node, Tensor(numbers, device="cpu").realize().node)
    assert len(recordings) == 2

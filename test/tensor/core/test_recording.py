"""Reads and writes that are recorded: in which order they are seen, and what is freed."""

import gc
from collections import OrderedDict

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine import pending
from picograd.engine import sizes as engine_sizes
from picograd.engine.plan_cache import PLANS


def test_reader_recorded_before_a_write_sees_the_old_value(device: str) -> None:
    x = Tensor([1.0, 2.0, 3.0], device=device)
    before = x * 2
    alias, view, copy = x.detach(), x[1:], x[1:] * 1
    x += 1
    after = x * 2
    x *= 10
    assert x.tolist() == [20, 30, 40]
    assert before.tolist() == [2, 4, 6] and after.tolist() == [4, 6, 8]
    assert alias.tolist() == [20, 30, 40] and view.tolist() == [30, 40]
    assert copy.tolist() == [2, 3]


def test_write_order_does_not_depend_on_who_is_realized(device: str) -> None:
    a, b = Tensor([1.0], device=device), Tensor([10.0], device=device)
    a.assign(a + b)  # 11
    b.assign(b + a)  # 21, reads the new a
    assert b.tolist() == [21] and a.tolist() == [11]
    a, b = Tensor([1.0], device=device), Tensor([10.0], device=device)
    old = a * 1
    b.assign(b + a)
    a.assign(a * 0)
    assert a.tolist() == [0] and b.tolist() == [11] and old.tolist() == [1]


def test_writes_keep_the_buffer(device: str) -> None:
    x = Tensor([1.0, 2.0], device=device)
    buffer = pending.leaf_buffer(x.node)
    for _ in range(3):
        x += 1
        x.realize()
    assert pending.leaf_buffer(x.node).address == buffer.address  # type: ignore[union-attr]
    assert x.tolist() == [4, 5]


def test_same_value_twice_is_not_one_tensor(device: str) -> None:
    x = Tensor([1.0, 2.0], device=device)
    y, z = x + 0, x.T.T  # a copy and a view
    x += 1
    assert (x.tolist(), y.tolist(), z.tolist()) == ([2, 3], [1, 2], [2, 3])
    p = x * 2
    q = p.reshape(2)
    p.realize(q)
    p += 1
    assert p.tolist() == [5, 7] and q.tolist() == [5, 7]


def test_overlapping_writes(device: str) -> None:
    x = Tensor.arange(6, device=device).realize()
    with pytest.raises(RuntimeError, match="shares some of its memory"):
        x[1:] = x[:-1]
    x[1:] = x[:-1].clone()
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    x[:] = x.flip(0)
    assert x.tolist() == [4, 3, 2, 1, 0, 0]
    x[[0, 1]] = x[[1, 0]]
    assert x.tolist() == [3, 4, 2, 1, 0, 0]


def test_lazy_loop_has_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "BUDGET", 50)
    pending.realize_all()
    x = Tensor([0.0])
    for _ in range(220):
        x = x + 1
    from picograd.graph.node import toposort

    assert len(toposort([x.node])) < 150
    assert x.item() == 220


def test_graphs_are_freed() -> None:
    x = Tensor([1.0])
    for _ in range(5):
        x = (x + 1).realize()
    gc.collect()
    assert x.node.op == "buffer" and x.item() == 6


def test_data_that_is_written_in_place_stays_where_it_is() -> None:
    """`weight.data -= ...` gives a view back to the tensor that it shows."""
    weight = nn.Parameter(Tensor([3.0]))
    for number in (2.0, 1.0):
        weight.data -= 1
        assert weight.tolist() == [number] and weight._view is None and weight.is_leaf


def test_data_of_a_computed_tensor_keeps_its_gradient() -> None:
    """`y.data = values` changes what is read later, not where the gradient of `y` goes."""
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = (x * 3).exp()
    y.retain_grad()
    y.data = Tensor([5.0, 7.0])
    (y * y).sum().backward()
    assert y.grad.tolist() == [10.0, 14.0] and not y.is_leaf
    np.testing.assert_allclose(x.grad.numpy(), [30, 42] * np.exp([3.0, 6.0]), rtol=1e-6)
    assert y.grad_fn.name() == "ExpBackward0"


def test_a_view_names_the_tensor_whose_memory_it_shows() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    row = x[0]
    assert row._is_view() and row._base is x and row[1:]._base is x
    assert not x._is_view() and x._base is None
    assert not (x + 1)._is_view() and not x[[0]]._is_view()


@pytest.mark.usefixtures("cpu_by_default")
def test_an_index_that_is_one_number_at_hand_is_that_number() -> None:
    counts, places = Tensor.zeros(3, 3).realize(), Tensor([2, -1, 0]).realize()
    for number in (0, 1):
        counts[places[number], places[number + 1]] += 1
    shown = counts[places[0]]
    assert [step.op for step in shown._view.steps()] == ["slice", "reshape"]
    places[0] = 0  # the view stays where it is
    shown += 1
    assert counts.tolist() == [[0, 0, 0], [0, 0, 0], [2, 1, 2]]
    later = (places * 0)[0]  # it is not computed yet
    assert counts[later].tolist() == [0, 0, 0]


def test_sizes_and_places_of_numpy_are_plain_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels, and what binds plans to sizes, are told by whole numbers of Python alone."""
    # rows of other lengths, of other tests, would have one plan more for all
    monkeypatch.setattr(engine_sizes, "FAMILIES", OrderedDict())
    x, one, two = Tensor(np.arange(12, dtype=np.float32).reshape(4, 3)), np.int64(1), np.int32(2)
    for found, wanted in (
        (x.narrow(0, one, two), x[1:3]),
        (x.repeat_interleave(two, 0), x[[0, 0, 1, 1, 2, 2, 3, 3]]),
        (x.select(one, two), x[:, 2]),
        (x[one:two, np.uint8(1)], x[1:2, 1]),
        (picograd.scan(lambda c, _: (c + 1, c), x[0], None, length=two)[1], x[[0, 0]] + x[:2] * 0),
    ):
        assert {type(size) for size in found._node.shape} == {int}
        assert found.shape == wanted.shape
    assert x.repeat_interleave(two, 0).tolist() == x[[0, 0, 1, 1, 2, 2, 3, 3]].tolist()
    plans = len(PLANS)
    for at in np.arange(4):
        assert (x[at] * 3).tolist() == [9.0 * at, 9.0 * at + 3, 9.0 * at + 6]
    assert len(PLANS) <= plans + 1

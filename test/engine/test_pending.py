"""Pending work: what must run with a write, what is counted, what is freed."""

import gc

import pytest

import picograd
from picograd import Tensor
from picograd.engine import pending


def test_readers_join_the_plan_of_a_write() -> None:
    x, other = Tensor([1.0, 2.0]), Tensor([5.0])
    reader, stranger = x * 2, other * 2
    x += 1
    roots = pending.with_readers([x.node])
    assert reader.node in roots and x.node in roots and stranger.node not in roots
    assert pending.with_readers([stranger.node]) == [stranger.node]
    after = x * 3
    assert after.node not in pending.with_readers([x.node])
    assert reader.tolist() == [2, 4] and after.tolist() == [6, 9]


def test_dead_tensors_are_forgotten() -> None:
    x = Tensor([1.0])
    y = x * 2
    node = y.node
    assert pending.owner(node) is y
    del y
    gc.collect()
    assert pending.owner(node) is None


def test_flush_assigns_runs_all_writes() -> None:
    a, b = Tensor([1.0]), Tensor([2.0])
    a += 1
    b += a
    pending.flush_assigns()
    assert not pending.pending_writes()
    assert (a.tolist(), b.tolist()) == ([2], [4])


def test_reading_what_was_overwritten_is_an_error() -> None:
    w, x = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 4.0])
    loss = (w * x).sum()
    x += 1
    x.realize()
    assert loss.item() == 11
    with pytest.raises(RuntimeError, match="at version 1; expected version 0"):
        loss.backward()
    assert w.grad is None
    old = Tensor([1.0, 2.0]).realize()
    stale, kept = old.node, old
    kept += 1
    kept.realize()
    with pytest.raises(RuntimeError, match="overwritten in place before it was computed: it is at"):
        Tensor.from_node(stale.unary("neg")).tolist()


def test_a_computed_write_is_the_leaf_of_its_storage() -> None:
    x = Tensor([1.0, 2.0]).realize()
    first = x.node
    x += 1
    x += 1
    second, inner = x.node, x.node.inputs[0]
    y = x + 0
    del x  # nobody but the graph holds the writes
    assert y.tolist() == [3, 4]
    assert [node.op for node in (first, inner, second)] == ["buffer"] * 3
    assert second.arg.version == 2 and second.arg.buffer is not None
    assert [first.arg.describe(), inner.arg.describe()] == [
        "is at version 2; expected version 0",
        "is at version 2; expected version 1",
    ]
    assert not pending.pending_writes()


def test_tracing_does_not_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "BUDGET", 5)

    @picograd.jit
    def many(x: Tensor) -> Tensor:
        for _ in range(20):
            x = x + 1
        return x

    assert many(Tensor([0.0])).tolist() == [20] and many(Tensor([1.0])).tolist() == [21]

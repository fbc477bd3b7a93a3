"""The table of live tensors: what is gone is never handed out, and let go in time."""

import gc
import weakref
from typing import Any

import numpy as np

import picograd
from picograd import Tensor
from picograd.engine import pending
from picograd.engine.live import LiveTable, pairs_of


def test_a_table_forgets_what_is_gone():
    table, kept = LiveTable(), Tensor([1.0])
    table.limit = 2
    gone = [Tensor([0.0]) for _ in range(5)]
    nodes = [each.node for each in (*gone, kept)]
    for node, tensor in zip(nodes, (*gone, kept), strict=True):
        table.set(node, tensor)
    del gone, tensor
    key = id(kept.node)
    assert table.identities() == [key] and table.tensors() == [kept]
    assert key in table and id(nodes[0]) not in table
    table.sweep()
    assert list(table.data) == [key] and len(table) == 1
    table.drop(key)
    assert table.get(key) is None


def test_those_that_wait_are_listed_apart():
    table, held = LiveTable(), [Tensor([1.0]).realize() for _ in range(50)]
    waiting = [held[0] + 1, held[1] * 2, held[2] - 3]
    for each in (*held, *waiting):
        table.set(each.node, each)
    assert table.pending() == [each.node for each in waiting] and len(table) == 53
    waiting[1].realize()
    del waiting[0], each
    assert table.pending() == [waiting[1].node] and len(table.waiting) == 1
    table.drop(id(waiting[1].node))
    assert not table.pending()


def test_a_computation_does_not_look_at_what_is_computed(monkeypatch):
    """However many tensors a program holds: a data set, a buffer of past steps."""
    held = [Tensor([1.0]).realize() for _ in range(100)]
    weight = Tensor([1.0], requires_grad=True)
    asked = []
    monkeypatch.setattr(pending.LIVE.__class__, "tensors", lambda self: asked.append(self))
    for each in held[:3]:
        (weight * each).sum().backward()
        with picograd.no_grad():
            weight -= 0.1 * weight.grad
        weight.grad = None
    np.testing.assert_allclose(weight.tolist(), [0.7], rtol=1e-6)
    assert not asked


def test_the_collector_may_empty_a_table_that_is_listed():
    class Value:
        itself: Any

    table: weakref.WeakKeyDictionary[Value, int] = weakref.WeakKeyDictionary()
    for number in range(200):
        value = Value()
        value.itself = value  # only the collector lets it go
        table[value] = number
    del value
    usual = gc.get_threshold()
    gc.set_threshold(1)
    try:
        pairs = list(pairs_of(table.data))
    finally:
        gc.set_threshold(*usual)
    assert len(pairs) in {0, 200} and len(table) < 200

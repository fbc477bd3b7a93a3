"""What waiting tensors read is known, and what they cost a computation is little."""

import time

import numpy as np

from picograd import Tensor, nn
from picograd.engine import pending
from picograd.engine.below import KNOWN, below, look_below, readers_among


def test_what_a_node_is_made_of():
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    z = (x + 1).exp() * y
    found = below(z._node)
    assert {node.op for node in found.inner} == {"add", "exp"}
    assert set(found.memory) == {x._node, y._node}
    assert below(z._node) is found
    assert readers_among([z._node], {x._node}, set()) == [z._node]
    assert readers_among([z._node], {z._node}, set()) == []
    assert readers_among([z._node], set(), {id(y._node.arg.buffer)}) == [z._node]


def test_what_was_computed_meanwhile_is_memory():
    x = Tensor([1.0, 2.0])
    y = x + 1
    z = y.exp() * 2
    before = below(z._node)
    inner = y._node
    y.realize()
    assert not before.is_present()
    found = below(z._node)
    assert inner in found.memory and x._node not in found.memory
    y += 1  # over the memory that z reads
    np.testing.assert_allclose(z.numpy(), 2 * np.exp([2.0, 3.0]), rtol=1e-6)


def test_a_reader_of_a_write_is_no_reader_of_what_is_written():
    x = Tensor([1.0, 2.0]).realize()
    old = x._node
    x += 1
    y = x * 2
    assert x._node in look_below(y._node).memory and old not in look_below(y._node).memory


def test_waiting_tensors_are_looked_at_once(monkeypatch, on_host):
    others = [nn.Linear(3, 3) for _ in range(30)]
    x, total = Tensor([1.0, 2.0]), Tensor([0.0, 0.0]).realize()

    def step():
        nonlocal total
        total += (x * 2).relu()
        total.realize()

    step()
    calls = []
    monkeypatch.setattr(pending, "walk_pending", lambda *args: calls.append(args) or [])
    known = len(KNOWN)
    for _ in range(3):
        step()
    assert not calls and len(KNOWN) <= known + 3
    assert total.tolist() == [8.0, 16.0] and len(others) == 30


def test_many_waiting_tensors_cost_little():
    x = Tensor([1.0, 2.0]).realize()

    def seconds():
        found = []
        for _ in range(20):
            start = time.thread_time()
            x.add_(1.0)
            x.realize()
            found.append(time.thread_time() - start)
        return min(found)

    seconds()
    few = seconds()
    others = [(Tensor([float(n)]) + 1).exp() * 2 for n in range(300)]
    seconds()
    assert seconds() < few + 2e-3 and len(others) == 300

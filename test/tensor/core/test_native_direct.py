"""Operations over memory by machine code: as the long way, whatever happens around them."""

import gc
import signal
import sys
import time

import numpy as np
import pytest
from thread_support import run_in_threads

import picograd
from picograd import Tensor
from picograd.engine import carried, direct, pending
from picograd.engine.native_calls import CALLS
from picograd.engine.plan_cache import PLANS
from picograd.runtime.python_layout import is_possible
from picograd.tensor.core.recording import VERSIONS

pytestmark = [
    pytest.mark.usefixtures("cpu_by_default"),
    pytest.mark.skipif(not is_possible(), reason="another interpreter"),
]
RUNS = 24  # until native code is made, and some more


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    """Let nothing be known, and count what machine code computed."""
    for table in (carried.NEW, carried.LINES, carried.PASSED, carried.WAITING, VERSIONS):
        table.clear()  # values written to that live on keep machine code away
    direct.KNOWN.clear()
    native, found = CALLS.find("picograd_direct"), []

    def counting(node, origin):
        done = native(node, origin)
        found.append(done)
        return done

    monkeypatch.setattr(direct.CODED, "compute", counting)
    with picograd.config.override(dynamic=0):  # each size has a plan
        yield found


def leaf(seed, shape=(3, 3), **options):
    return Tensor(np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32), **options)


FUNCTIONS = [
    lambda a, b: a + b,
    lambda a, b: b - a,
    lambda a, b: a / a,
    lambda a, b: a @ b,
    lambda a, b: a.exp(),
    lambda a, b: a.sum(1),
    lambda a, b: a.sum(),
    lambda a, b: a > b,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_computes_what_the_long_way_does(function, counted):
    a, b = leaf(1), leaf(2)
    wanted = function(a, b).numpy()
    for number in range(RUNS):
        x, y = leaf(number), leaf(number + 100)
        found = function(x, y).realize()
        with picograd.config.override(debug=-1):  # somebody watches: the long way
            again = function(x, y).numpy()
        assert np.array_equal(found.numpy(), again)
        assert found._node.op == "buffer"
        assert pending.owner(found._node) is found
    for _ in range(3):
        function(a, b).realize()
    assert counted[-1]
    assert np.array_equal(function(a, b).numpy(), wanted)


def test_gradients_by_formula(counted):
    a = leaf(3)
    for number in range(RUNS):
        w = leaf(number, requires_grad=True)
        (a @ w).sum().backward()
        w.grad.realize()
        wanted = a.numpy().sum(0)[:, None].repeat(3, 1)
        np.testing.assert_allclose(w.grad.numpy(), wanted, rtol=1e-5)
    assert counted[-1]


def test_a_gradient_beside_another_that_is_alive(counted):
    a = leaf(3)
    for _ in range(RUNS):
        v, w = leaf(4, requires_grad=True), leaf(5, requires_grad=True)
        (a @ v * w).sum().backward()
        found = w.grad.numpy(), v.grad.numpy()
        np.testing.assert_allclose(found[0], a.numpy() @ v.numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found[1], a.numpy().T @ w.numpy(), rtol=1e-5, atol=1e-6)


def test_it_can_be_differentiated_afterwards():
    for _ in range(RUNS):
        a, b = leaf(1), leaf(2)
        c = (a * b).sum().realize()
        c.backward()  # from what it was computed of
        assert np.array_equal(a.grad.numpy(), b.numpy())
        d = leaf(1, requires_grad=True)
        e = (d + d).realize()
        e.sum().backward()
        assert d.grad.tolist() == [[2.0] * 3] * 3


def test_writes_that_wait_come_first(counted):
    a, b = leaf(1), leaf(2)
    for _ in range(RUNS):
        (a + b).realize()
    before, c = a.numpy(), a + b
    a += 1
    found = (a + b).realize()
    assert counted[-1] is None
    assert np.array_equal(c.numpy(), before + b.numpy())
    assert np.array_equal(found.numpy(), (before + 1) + b.numpy())


def test_memory_and_references_stay_flat(counted):
    a, b = leaf(1), leaf(2)
    for _ in range(RUNS):
        (a + b).realize()
    objects = (None, True, False, 0, "", Tensor, picograd.float32, a, a._node, a._node.arg.buffer)
    gc.collect()
    stats, before = picograd.memory_stats(), [sys.getrefcount(each) for each in objects]
    lived = len(pending.LIVE.data)
    for _ in range(50_000):
        (a + b).realize()
    del counted[:]
    after = [sys.getrefcount(each) for each in objects]
    assert max(abs(x - y) for x, y in zip(before, after, strict=True)) < 20
    assert picograd.memory_stats()["in_use"] == stats["in_use"]
    assert len(pending.LIVE.data) < lived + 3000


def test_wrong_arguments():
    native = CALLS.find("picograd_direct")
    for wrong in (1, None, "node", Tensor, leaf(1)):
        assert native(wrong, "") is None
    with pytest.raises(TypeError, match="direct takes a node"):
        native(None)


def test_a_plan_that_fell_out_is_made_again():
    a, b = leaf(1), leaf(2)
    for _ in range(RUNS):
        (a + b).realize()
    PLANS.clear()
    assert np.array_equal((a + b).numpy(), a.numpy() + b.numpy())


def test_the_line_of_the_user_is_noted():
    a, b = leaf(1), leaf(2)
    for _ in range(RUNS):
        (a + b).realize()
    assert __file__ in (a + b).realize()._node.arg.buffer.origin


class Stopped(Exception):
    """What a handler raises."""


@pytest.mark.parametrize("is_raised", [False, True])
def test_handlers_of_signals_may_raise_and_compute(is_raised):
    a, b, calls = leaf(1), leaf(2), []
    wanted, inside, caught = a.numpy() + b.numpy(), [], []
    for _ in range(RUNS):
        (a + b).realize()

    def handler(*_):
        if inside:
            return
        inside.append(True)
        calls.append((a + b).realize())
        inside.clear()
        if is_raised and caught:
            caught.clear()  # no second one, while the first is caught
            raise Stopped

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        try:
            caught.append(True)
            found = (a + b).realize()
            assert (found.numpy() == wanted).all()
            caught.clear()
        except Stopped:
            caught.clear()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    assert len(calls) > 5
    assert all(np.array_equal(each.numpy(), wanted) for each in calls)
    assert np.array_equal((a + b).numpy(), wanted)


def test_threads():
    errors = []

    def work(number):
        a, b = leaf(number), leaf(number + 50)
        wanted = a.numpy() + b.numpy()
        errors.extend(
            1 for _ in range(500) if not np.array_equal((a + b).realize().numpy(), wanted)
        )

    run_in_threads(work, 4)
    assert not errors

"""One operation over memory: the direct way finds the plan of the long way, or steps aside."""

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.engine import carried, direct, pending, small
from picograd.engine.carried import entries
from picograd.engine.plan_cache import PLANS

pytestmark = pytest.mark.usefixtures("cpu_by_default")


@pytest.fixture(autouse=True)
def nothing_carried():
    """Let nothing of other tests be known, nor carried over."""
    for table in (carried.NEW, carried.LINES, carried.PASSED, carried.WAITING):
        table.clear()
    direct.KNOWN.clear()
    small.KNOWN.clear()


@pytest.fixture
def plans(monkeypatch):
    """List the plan of every computation, by either way."""
    found, touch = [], PLANS.touch

    def noted(plan):
        found.append(plan)
        return touch(plan)

    monkeypatch.setattr(PLANS, "touch", noted)
    return found


@pytest.fixture
def small_ways(monkeypatch):
    """Count the keys of small graphs, which the direct way does not make."""
    made, key = [], small.small_graph

    def counted(root):
        made.append(root)
        return key(root)

    monkeypatch.setattr(small, "small_graph", counted)
    return made


def leaf(seed, shape=(3, 3), dtype="float64"):  # a dtype of its own: sizes share plans
    return Tensor(np.random.default_rng(seed).normal(0, 9, shape), dtype=dtype)


FUNCTIONS = [
    lambda a, b: a + b,
    lambda a, b: b - a,
    lambda a, b: a / a,
    lambda a, b: a @ b,
    lambda a, b: a.exp(),
    lambda a, b: a.sum(1),
    lambda a, b: a < b,
    lambda a, b: a.float(),
    lambda a, b: a.T.contiguous(),
    lambda a, b: a.maximum(b),
    lambda a, b: a.half(),
    lambda a, b: a.sort()[0],
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_the_plan_of_the_long_way_with_the_same_values(function, plans):
    a, b = leaf(1), leaf(2)
    function(a, b).realize()
    wanted = function(a, b).numpy()
    known = {id(plan) for plan in plans}
    for _ in range(2):
        result = function(a, b)
        assert np.array_equal(result.numpy(), wanted) and result.dtype == function(a, b).dtype
    assert {id(plan) for plan in plans} == known and len(known) == 1


@pytest.mark.parametrize("function", [FUNCTIONS[n] for n in (0, 1, 2, 3, 4, 6, 9)])
def test_the_third_time_no_key_of_a_graph_is_made(function, small_ways):
    for number in range(2):
        function(leaf(number), leaf(number + 5)).realize()
    del small_ways[:]
    a, b = leaf(7), leaf(8)
    found = function(a, b).numpy()
    assert not small_ways
    result = function(a, b)
    pending.compute_all([result._node], None)
    assert np.array_equal(found, result.numpy())


def test_what_differs_is_another_key():
    a, b = leaf(1), leaf(2)
    for x, y in [(a, b), (a, a), (b, a)]:
        for _ in range(3):
            assert np.array_equal((x - y).numpy(), x.numpy() - y.numpy())
    row, wide = leaf(3, (1, 3)), leaf(4, (4, 3))
    for x, y in [(row, row), (wide, wide), (leaf(5, (3,), "int32"), leaf(6, (3,), "int32"))]:
        for _ in range(3):
            assert np.array_equal((x - y).numpy(), x.numpy() - y.numpy())


def test_pending_writes_views_and_numbers_take_the_other_ways(small_ways):
    a, b = leaf(1), leaf(2)
    for _ in range(3):
        (a + b).realize()
    before = a.numpy().copy()
    total = a + b
    a += 1
    assert np.array_equal(total.numpy(), before + b.numpy())
    assert np.array_equal((a + b).numpy(), before + 1 + b.numpy())
    assert np.array_equal((a[1:] + b[1:]).numpy(), (before + 1 + b.numpy())[1:])
    del small_ways[:]
    for number in (2.5, 3.5):
        assert np.array_equal((b * number).numpy(), b.numpy() * number)
    assert small_ways


def test_a_graph_that_holds_a_changed_value_is_in_nobodys_way(small_ways):
    """It was changed before it had memory, and its node lives as long as what reads it."""
    weight, changed = leaf(1).requires_grad_(), picograd.zeros(3, 3, dtype=picograd.float64)
    changed += 1.0
    kept = (changed * weight).sum()
    kept.realize()
    a, b = leaf(2), leaf(3)
    for _ in range(3):
        (a + b).realize()
    del small_ways[:]
    (a + b).realize()
    assert not small_ways and not entries(pending.CHANGED)
    kept.backward()
    assert weight.grad.tolist() == [[1.0] * 3] * 3


def test_autocast_and_hooks_are_followed():
    a, b = leaf(1, (3, 3), "float32"), leaf(2, (3, 3), "float32")
    for _ in range(3):
        (a @ b).realize()
    with picograd.autocast("cpu", dtype=picograd.bfloat16):
        assert (a @ b).dtype == picograd.bfloat16
    seen = []
    weight = leaf(3, (3, 3), "float32").requires_grad_()
    weight.register_hook(lambda gradient: seen.append(gradient.shape))
    for _ in range(2):
        (a + weight).sum().backward()
    assert seen == [(3, 3)] * 2


def test_a_profile_and_debug_see_the_run():
    a, b = leaf(1), leaf(2)
    for _ in range(3):
        (a + b).realize()
    with picograd.profile() as profile:
        (a + b).realize()
    assert "map_add" in str(profile)


def test_a_plan_that_fell_out_is_made_again():
    a, b = leaf(1), leaf(2)
    for _ in range(3):
        (a + b).realize()
    PLANS.clear()
    assert np.array_equal((a + b).numpy(), a.numpy() + b.numpy())


def test_a_value_that_passed_takes_the_long_way():
    a, b = leaf(1), leaf(2)
    for _ in range(3):
        (a + b).realize()
    kept = a + b
    (kept * 2).sum().realize()
    assert kept._node in carried.PASSED
    assert np.array_equal(kept.numpy(), a.numpy() + b.numpy())

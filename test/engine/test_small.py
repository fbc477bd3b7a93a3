"""Small graphs seen before take the short way; what the long way looks for sends them there."""

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.engine import carried, pending, small
from picograd.engine.carried import entries
from picograd.engine.plan_cache import PLANS

pytestmark = pytest.mark.usefixtures("cpu_by_default")


@pytest.fixture
def long_way(monkeypatch):
    """Count the computations that took the long way; nothing is carried over from other tests."""
    for table in (carried.NEW, carried.SPOTS, carried.PASSED, carried.WAITING, carried.GRADIENTS):
        table.clear()
    taken = []
    whole = pending.compute_all

    def counted(*args):
        taken.append(args)
        whole(*args)

    monkeypatch.setattr(pending, "compute_all", counted)
    with picograd.config.override(dynamic=0):  # whether a plan serves many hangs on other tests
        yield taken


def leaf(value, shape=(2, 3)):
    return Tensor(np.full(shape, value, np.float32))


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a + b,
        lambda a, b: a + a,
        lambda a, b: (a * b).relu(),
        lambda a, b: a * 2.5,
        lambda a, b: a.sum(),
        lambda a, b: a.reshape(3, 2) @ b,
    ],
)
def test_the_second_time_is_short_and_right(function, long_way):
    function(leaf(1.0), leaf(2.0)).realize()
    del long_way[:]
    for x, y in ((3.0, 4.0), (-1.0, 0.5)):
        found = function(leaf(x), leaf(y)).numpy()
        values = np.full((2, 3), x, np.float32), np.full((2, 3), y, np.float32)
        with np.errstate(all="ignore"):
            wanted = function(*map(Tensor, values))
        pending.compute_all([wanted._node], None)
        assert np.array_equal(found, wanted.numpy())
    assert len(long_way) == 2  # those asked for here


def test_which_operands_are_one_is_part_of_the_key():
    a, b = leaf(3.0), leaf(4.0)
    (a + b).realize()
    assert small.small_graph((a + a)._node).key != small.small_graph((a + b)._node).key
    assert (a + a).numpy()[0, 0] == 6.0 and (b + a).numpy()[0, 0] == 7.0


def test_numbers_are_arguments_and_their_values_are_not_in_the_key():
    a = leaf(1.0)
    assert (a * 2.5).numpy()[0, 0] == 2.5
    assert (a * 3.5).numpy()[0, 0] == 3.5
    assert small.small_graph((a * 2.5)._node).key == small.small_graph((a * 3.5)._node).key


def test_a_value_that_lives_on_is_remembered(long_way):
    for _ in range(2):
        (leaf(1.0) + 1).exp().realize()
    del long_way[:]
    middle = leaf(1.0) + 1
    middle.exp().realize()
    assert not long_way and middle._node in carried.PASSED
    assert np.array_equal(middle.numpy(), np.full((2, 3), 2.0, np.float32))


def test_a_number_that_lives_on_is_not_stored(long_way):
    ones = picograd.ones(3)
    for x in (1.0, 2.0, 3.0):
        assert (leaf(x) + ones).tolist() == [[x + 1] * 3] * 2
        graph = small.small_graph((leaf(x) + ones)._node)
        assert small.is_alone(graph, pending.LIVE)
    assert len(long_way) == 1 and ones._node.realized is None


def test_writes_that_wait_are_run(long_way):
    a, b = leaf(1.0), leaf(2.0)
    (a + b).realize()
    a += 1
    assert (a + b).numpy()[0, 0] == 4.0


def test_gradients_pass_what_was_computed_the_short_way():
    for _ in range(2):
        a, b = leaf(3.0), leaf(4.0)
        product = a * b
        product.realize()
        product.backward(leaf(1.0))
        assert a.grad.numpy()[0, 0] == 4.0


def test_what_a_line_carries_on_is_stored_by_the_short_way(long_way):
    state = leaf(0.0)
    for step in range(9):
        state = (state + 1).exp().log()
        shown = (state * 2).sum().item()
        assert abs(shown - 12 * (step + 1)) < 1e-3
        if step == 5:
            del long_way[:]
    assert not long_way and state._node.op == "buffer"


def test_what_waits_beside_a_small_graph_is_stored_by_the_short_way(long_way):
    state = leaf(0.5)
    for step in range(9):
        near = (state * 0.5).exp()
        state = (near + 1).log()  # nobody asks for it; the next round reads it
        assert near.sum().item() > 0
        if step == 5:
            del long_way[:]
    assert not long_way and state._node.op == "buffer"


@pytest.mark.parametrize("is_asked", [False, True])
def test_gradients_beside_a_loss_are_roots(is_asked, long_way):
    """What waits for the graph of a loss is stored with it, asked for or not."""
    weight = leaf(2.0, (3, 3)).realize().requires_grad_()
    for number in range(4):
        del long_way[:]
        weight.grad = None
        x = leaf(0.1 * number).realize()
        loss = (x @ weight).exp().sum()
        loss.backward()
        found = weight.grad
        loss.realize(found) if is_asked else loss.realize()
        is_there = found._node.realized is not None or found._node.op == "buffer"
        assert is_there or not number  # there is a formula from the second time on
        value = np.exp(0.6 * number)
        assert np.isclose(loss.item(), 6 * value)
        assert np.allclose(found.numpy(), np.full((3, 3), 0.2 * number * value))
        assert not carried.GRADIENTS
    assert not long_way


def test_roots_are_part_of_the_key():
    a = leaf(1.0)
    middle = a + 1
    end = middle.exp()
    keys = [small.small_graph(*each).key for each in ((end._node,), (end._node, middle._node))]
    assert keys[0] != keys[1]
    assert keys[1] != small.small_graph(middle._node, end._node).key
    assert keys[1] == small.small_graph(end._node, middle._node, end._node).key
    graph = small.small_graph(end._node)
    assert graph.add([middle._node]) and graph.key not in keys
    assert graph.roots == [middle._node, end._node] and graph.asked == 1


def test_several_that_are_asked_for_together(long_way):
    for number in range(3):
        del long_way[:]
        a = leaf(1.0 + number)
        x, y = a + 1, (a * 3).exp()
        x.realize(y, x)
        assert x.numpy()[0, 0] == 2.0 + number
        assert np.allclose(y.numpy(), np.exp(3 * (1.0 + number)))
    assert not long_way


@pytest.fixture
def plans(monkeypatch):
    """List the plan of every computation, by either way."""
    found, touch = [], PLANS.touch

    def noted(plan):
        found.append(plan)
        return touch(plan)

    monkeypatch.setattr(PLANS, "touch", noted)
    return found


def drawn(seed, shape=(3, 3), dtype="float64"):  # a dtype of its own: sizes share plans
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
def test_it_is_the_plan_of_the_long_way_with_the_same_values(function, plans, long_way):
    a, b = drawn(1), drawn(2)
    function(a, b).realize()
    wanted = function(a, b).numpy()
    known = {id(plan) for plan in plans}
    for _ in range(2):
        result = function(a, b)
        assert np.array_equal(result.numpy(), wanted) and result.dtype == function(a, b).dtype
    assert {id(plan) for plan in plans} == known and len(known) == 1


def test_what_differs_is_another_key():
    a, b = drawn(1), drawn(2)
    for x, y in [(a, b), (a, a), (b, a)]:
        for _ in range(3):
            assert np.array_equal((x - y).numpy(), x.numpy() - y.numpy())
    row, wide = drawn(3, (1, 3)), drawn(4, (4, 3))
    for x, y in [(row, row), (wide, wide), (drawn(5, (3,), "int32"), drawn(6, (3,), "int32"))]:
        for _ in range(3):
            assert np.array_equal((x - y).numpy(), x.numpy() - y.numpy())


def test_pending_writes_views_and_numbers_take_the_other_ways(long_way):
    a, b = drawn(1), drawn(2)
    for _ in range(3):
        (a + b).realize()
    before = a.numpy().copy()
    total = a + b
    a += 1
    assert np.array_equal(total.numpy(), before + b.numpy())
    assert np.array_equal((a + b).numpy(), before + 1 + b.numpy())
    assert np.array_equal((a[1:] + b[1:]).numpy(), (before + 1 + b.numpy())[1:])
    del long_way[:]
    for number in (2.5, 3.5):
        assert np.array_equal((b * number).numpy(), b.numpy() * number)
    assert len(long_way) <= 1  # the first of these numbers


def test_a_graph_that_holds_a_changed_value_is_in_nobodys_way(long_way):
    """It was changed before it had memory, and its node lives as long as what reads it."""
    weight, changed = drawn(1).requires_grad_(), picograd.zeros(3, 3, dtype=picograd.float64)
    changed += 1.0
    kept = (changed * weight).sum()
    kept.realize()
    a, b = drawn(2), drawn(3)
    for _ in range(3):
        (a + b).realize()
    del long_way[:]
    (a + b).realize()
    assert not long_way and not entries(pending.CHANGED)
    kept.backward()
    assert weight.grad.tolist() == [[1.0] * 3] * 3


def test_autocast_and_hooks_are_followed():
    a, b = drawn(1, (3, 3), "float32"), drawn(2, (3, 3), "float32")
    for _ in range(3):
        (a @ b).realize()
    with picograd.autocast("cpu", dtype=picograd.bfloat16):
        assert (a @ b).dtype == picograd.bfloat16
    seen = []
    weight = drawn(3, (3, 3), "float32").requires_grad_()
    weight.register_hook(lambda gradient: seen.append(gradient.shape))
    for _ in range(2):
        (a + weight).sum().backward()
    assert seen == [(3, 3)] * 2


def test_a_profile_and_debug_see_the_run():
    a, b = drawn(1), drawn(2)
    for _ in range(3):
        (a + b).realize()
    with picograd.profile() as profile:
        (a + b).realize()
    assert "map_add" in str(profile)


def test_a_plan_that_fell_out_is_made_again():
    a, b = drawn(1), drawn(2)
    for _ in range(3):
        (a + b).realize()
    PLANS.clear()
    assert np.array_equal((a + b).numpy(), a.numpy() + b.numpy())


def test_a_value_that_passed_takes_the_long_way():
    a, b = drawn(1), drawn(2)
    for _ in range(3):
        (a + b).realize()
    kept = a + b
    (kept * 2).sum().realize()
    assert kept._node in carried.PASSED
    assert np.array_equal(kept.numpy(), a.numpy() + b.numpy())


def test_a_plan_for_many_sizes_is_found_in_one_look_too(long_way):
    with picograd.config.override(dynamic=1):
        for n in (37, 41, 45):
            (leaf(1.0, (n, 3)) * 2).sum(0).realize()
        del long_way[:]
        for n in (45, 41):
            found = (leaf(3.0, (n, 3)) * 2).sum(0).numpy()
            assert found.tolist() == [6.0 * n] * 3
    assert not long_way

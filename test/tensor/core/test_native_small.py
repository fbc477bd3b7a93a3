"""Small graphs by machine code: as the long way, whatever happens around them."""

import gc
import signal
import sys
import time
import weakref

import numpy as np
import pytest
from thread_support import run_in_threads

import picograd
from picograd import Tensor, nn
from picograd.buffer import RuntimeScalar
from picograd.engine import carried, followed, native_calls, pending, small
from picograd.engine.carried import entries
from picograd.engine.followed import EVENTS
from picograd.engine.native_calls import CALLS, NATIVE_AFTER
from picograd.engine.plan_cache import PLANS
from picograd.engine.plan_key import leaf_buffer
from picograd.number import GivenInt
from picograd.runtime.python_layout import is_possible
from picograd.tensor.core import following

pytestmark = [
    pytest.mark.usefixtures("cpu_by_default"),
    pytest.mark.skipif(not is_possible(), reason="another interpreter"),
]
RUNS = NATIVE_AFTER + 8  # until native code is made, and some more


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    """Let nothing be known or followed, and count what machine code computed."""
    followed.stop()
    EVENTS.after = None
    monkeypatch.setattr(followed, "FIRST", 1 << 30)
    monkeypatch.setattr(following, "KNOWN", weakref.WeakKeyDictionary())
    for table in (carried.NEW, carried.SPOTS, carried.PASSED, carried.WAITING, carried.GRADIENTS):
        table.clear()
    small.KNOWN.clear()
    native, found = CALLS.find("picograd_small"), []

    def counting(nodes, origin):
        done = native(nodes, origin)
        found.append(done)
        return done

    monkeypatch.setattr(native_calls.CODED, "compute", counting)
    with picograd.config.override(dynamic=0):  # each size has a plan
        yield found


def leaf(seed, shape=(3, 3), **options):
    return Tensor(np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32), **options)


FUNCTIONS = [
    lambda a, b, n: [a + b],
    lambda a, b, n: [b - a],
    lambda a, b, n: [a / a],
    lambda a, b, n: [a @ b],
    lambda a, b, n: [a.exp()],
    lambda a, b, n: [a.sum(1)],
    lambda a, b, n: [a.sum()],
    lambda a, b, n: [a > b],
    lambda a, b, n: [(a @ b).exp().sum()],
    lambda a, b, n: [(a * a + b * a).tanh()],
    lambda a, b, n: [a * (0.5 + n) - (b + n) / 3.0],
    lambda a, b, n: [(c := (a @ b).exp()), c.sum()],
    lambda a, b, n: [(c := (a > b).float() + 1).sum(), (c @ b).reshape(9).softmax(0)],
    lambda a, b, n: [a + picograd.arange(3) * (1 + n)],
    lambda a, b, n: [a[n % 2 : n % 2 + 2] + b[1:, n % 3][:, None] * a[n % 3]],
    lambda a, b, n: [picograd.full((3, 3), 2.0) * 3 + picograd.zeros(3), a],
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_computes_what_the_long_way_does(function, counted):
    for number in range(RUNS):
        x, y = leaf(number), leaf(number + 100)
        found = function(x, y, number)
        del counted[:]
        found[0].realize(*found[1:])
        is_native = counted[0]
        with picograd.config.override(debug=-1):  # somebody watches: the long way
            again = function(x, y, number)
            wanted = [each.numpy() for each in (again[0].realize(*again[1:]), *again[1:])]
        for tensor, values in zip(found, wanted, strict=True):
            assert np.array_equal(tensor.numpy(), values)
            assert tensor._node.op == "buffer" and pending.owner(tensor._node) is tensor
    assert is_native or found[-1] is x  # what is memory already goes the long way


def test_constants_that_are_equal_are_apart(counted):
    for _ in range(RUNS):
        a = leaf(1)
        for value in (0.0, -0.0):
            found = picograd.full((3, 3), value).copysign(a) * a
            assert np.array_equal(found.numpy(), np.copysign(value, a.numpy()) * a.numpy())


def learn(a, w):
    loss = (a @ w).exp().sum()
    loss.backward()
    return loss


@pytest.mark.parametrize("is_asked", [False, True])
def test_a_loss_and_its_gradient(is_asked, counted):
    a, w = leaf(3), leaf(4, requires_grad=True)
    value = np.exp(a.numpy() @ w.numpy())
    for _ in range(RUNS):
        w.grad = None
        loss = learn(a, w)
        loss.realize(w.grad) if is_asked else loss.realize()
        np.testing.assert_allclose(loss.item(), value.sum(), rtol=1e-5)
        np.testing.assert_allclose(w.grad.numpy(), a.numpy().T @ value, rtol=1e-5)
        assert not carried.GRADIENTS
    assert bool(counted[-1]) == is_asked  # a gradient that nobody asked for: Python adds the root


def test_another_gradient_that_waits_is_stored_beside(counted):
    a, v, w = leaf(3), leaf(4, requires_grad=True), leaf(5, requires_grad=True)
    for _ in range(RUNS):
        v.grad = w.grad = None
        loss = (a @ v * w).sum()
        loss.backward()
        loss.realize(w.grad)
        np.testing.assert_allclose(w.grad.numpy(), a.numpy() @ v.numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(v.grad.numpy(), a.numpy().T @ w.numpy(), rtol=1e-5, atol=1e-6)


def test_what_lives_on_and_was_missed_is_stored_where_it_was_asked_for(counted):
    for number in range(RUNS):
        a = leaf(number)
        middle, other = a * 2.0, a + 1
        end = (middle.exp() + other).realize()
        is_native, is_stored = counted[-1], middle._node.op == "buffer"
        assert is_stored == bool(number)  # missed the first time
        assert np.array_equal(middle.numpy(), a.numpy() * 2)
        assert np.array_equal(other.numpy(), a.numpy() + 1)
        np.testing.assert_allclose(end.numpy(), np.exp(middle.numpy()) + other.numpy(), rtol=1e-6)
        assert [pending.owner(each._node) for each in (middle, other)] == [middle, other]
    assert is_native


def test_what_lives_on_and_nobody_reads_is_noted(counted):
    for number in range(RUNS):
        a = leaf(number)
        middle = a * 2.0
        end = middle.exp().sum().realize()
        assert middle._node in carried.PASSED and not carried.SPOTS
    assert counted[-1]
    assert np.array_equal(middle.numpy(), a.numpy() * 2)
    assert carried.SPOTS and end.item() == pytest.approx(np.exp(middle.numpy()).sum(), 1e-6)


def test_values_that_are_of_gradients_views_or_hold_a_view_are_left_to_python(counted):
    for number in range(RUNS):
        a, w = leaf(number), leaf(number + 1, requires_grad=True)
        scaled = a * w
        scaled.exp().realize()
        doubled = a * 2
        turned = doubled.T
        del doubled
        turned.exp().realize()
        assert not any(counted[-2:])
        scaled.sum().backward()
        assert np.array_equal(w.grad.numpy(), a.numpy())
        assert np.array_equal(turned.numpy(), a.numpy().T * 2)


@pytest.mark.parametrize("is_missed", [False, True])
def test_a_view_that_lives_on_of_a_value_on_the_way(is_missed, counted):
    """What it shows is stored, once it was missed, or noted; not the view."""
    for number in range(RUNS):
        a = leaf(number)
        best, places = picograd.topk(a[1], 2)
        shown = places._node.inputs[0]
        row = np.sort(a.numpy()[1])[::-1]
        assert best.tolist() == row[:2].tolist()
        is_native = counted[-1]
        assert (shown.realized is not None) == (is_missed and number > 0)
        assert shown in carried.PASSED or is_missed
        if is_missed:
            assert a.numpy()[1][places.numpy()].tolist() == row[:2].tolist()
        del best, shown
    assert is_native
    assert np.array_equal(places.numpy(), np.argsort(-a.numpy()[1], kind="stable")[:2])


def test_several_views_of_one_value_and_of_what_is_asked_for(counted):
    for number in range(RUNS):
        a = leaf(number)
        middle = a * 2.0
        turned, row = middle.T, middle[0]
        del middle
        end = (turned + 1.0).sum() + row.sum()
        flat = end.reshape(1)
        assert end.item() == pytest.approx((a.numpy() * 2 + 1).sum() + a.numpy()[0].sum() * 2)
        assert np.array_equal(turned.numpy(), a.numpy().T * 2)
        assert np.array_equal(row.numpy(), a.numpy()[0] * 2)
        assert flat.tolist() == [end.item()]
        with picograd.no_grad():
            row[0] = 5.0  # a view of what is in memory, or waits, all the same
        assert turned[0, 0].item() == 5.0


def test_a_view_of_a_value_that_tracks_is_left_to_python(counted):
    for number in range(RUNS):
        w = leaf(number, requires_grad=True)
        middle = w * 2.0
        turned, cut = middle.T, middle.detach()
        turned.exp().realize()
        assert not counted[-1]
        turned.sum().backward()
        assert np.array_equal(w.grad.numpy(), np.full(w.shape, 2.0))
        assert np.array_equal(cut.numpy(), w.detach().numpy() * 2)


def test_a_value_that_passed_is_in_nobodys_way_once_it_is_stored(counted):
    middle = leaf(1) * 2
    middle.exp().realize()
    assert middle._node in carried.PASSED
    for number in range(RUNS):
        (leaf(number) + 1).exp().realize()
    assert counted[-1]  # it reads nothing of that
    node = middle._node
    middle.realize()
    assert node in carried.PASSED and carried.SPOTS
    for number in range(RUNS):
        (leaf(number) + 1).exp().realize()
    assert counted[-1]


@pytest.mark.parametrize("many", [1, 20])
def test_values_that_nobody_reads_yet_are_in_nobodys_way(many, counted):
    x = leaf(9)
    apart = [(x + number).tanh() for number in range(many)]
    for number in range(RUNS):
        a = leaf(number)
        end = (a * 2.0).exp().sum()
        np.testing.assert_allclose(end.item(), np.exp(a.numpy() * 2).sum(), rtol=1e-5)
        apart.append(a * 3.0)
        made = apart[-1] if number % 2 else apart.pop(0)
        assert made._node.realized is None
    assert counted.count(True) > 3
    for number, each in enumerate(apart[-3:], RUNS - 3):
        assert np.array_equal(each.numpy(), leaf(number).numpy() * 3)
    node = apart[0]._node
    assert id(node) in carried.NEW or weakref.ref(node) in entries(carried.WAITING)


def test_a_value_that_waits_and_reads_what_is_computed_is_left_to_python(counted):
    for number in range(RUNS):
        a = leaf(number)
        middle = a * 2.0
        waits = (middle + 1.0).exp()
        end = middle.exp().sum()
        carried.SPOTS.clear()
        end.item()
        assert not counted[-1] and waits._node in carried.PASSED
        np.testing.assert_allclose(waits.numpy(), np.exp(a.numpy() * 2 + 1), rtol=1e-5)


def test_values_that_wait_are_stored_beside_once_they_were_missed(counted):
    """Those that read what is computed, in the order of their making; not what is apart."""
    for number in range(RUNS):
        a = leaf(number)
        middle = a * 2.0
        first, second = (middle + 1.0).exp(), middle.sum(1)
        third, apart = second - a[0], a + 4.0
        end = middle.exp().sum()
        wanted = np.exp(a.numpy() * 2).sum()
        assert end.item() == pytest.approx(wanted, rel=1e-5)
        is_native, together = counted[-1], (middle, first, second, third)
        assert all(each._node.op == "buffer" for each in together) == bool(number)
        assert apart._node.realized is None
        assert not is_native or id(apart._node) in carried.NEW
        np.testing.assert_allclose(first.numpy(), np.exp(a.numpy() * 2 + 1), rtol=1e-5)
        rows = (a.numpy() * 2).sum(1)
        np.testing.assert_allclose(second.numpy(), rows, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(third.numpy(), rows - a.numpy()[0], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(apart.numpy(), a.numpy() + 4)
        assert [pending.owner(each._node) for each in together] == [*together]
    assert is_native


def test_what_reads_what_was_asked_for_alone_waits_on(counted):
    for number in range(RUNS):
        a = leaf(number)
        mean = a.mean()
        spread = ((a - mean) ** 2).mean()
        assert mean.item() == pytest.approx(a.numpy().mean(), abs=1e-6)
        is_native = counted[-1]
        assert spread._node.realized is None and spread._node not in carried.PASSED
        assert spread.item() == pytest.approx(a.numpy().var(), rel=1e-5)
    assert is_native and not carried.SPOTS


def test_the_past_of_what_waits_on_is_let_go(counted):
    """A loop whose next value reads the one that is asked for: nodes of long ago are gone."""
    x, nodes = leaf(1), []
    for _ in range(4 * RUNS):
        y = x * 0.5
        x = y + 1.0
        nodes.append(weakref.ref(y._node))
        y.realize()
    del y
    gc.collect()
    assert sum(each() is not None for each in nodes) < RUNS
    np.testing.assert_allclose(x.numpy(), 2.0, rtol=1e-5)


def waiting_otherwise(kind, middle, below, w):
    if kind == "tracks":
        return [middle * w]
    if kind == "view":
        return [(middle + 1.0).T]
    return [below * 2.0, below] if kind == "below" else [middle + float(n) for n in range(12)]


@pytest.mark.parametrize("kind", ["tracks", "view", "below", "many"])
def test_values_that_wait_otherwise_are_left_to_python(kind, counted):
    for number in range(RUNS):
        a, w = leaf(number), leaf(1, requires_grad=True)
        middle = a * 2.0
        kept = waiting_otherwise(kind, middle, (middle + 3.0).tanh(), w)
        assert middle.exp().sum().item() == pytest.approx(np.exp(a.numpy() * 2).sum(), rel=1e-5)
        is_native, doubled = counted[-1], a.numpy() * 2
        wanted = {
            "tracks": doubled * w.detach().numpy(),
            "view": doubled.T + 1,
            "below": np.tanh(doubled + 3) * 2,
            "many": doubled,
        }[kind]
        np.testing.assert_allclose(kept[0].detach().numpy(), wanted, rtol=1e-5, atol=1e-6)
        assert middle.numpy().tolist() == doubled.tolist()
    assert carried.SPOTS
    assert not is_native or kind == "below"  # what is below is new, too, and stored


def test_views_of_memory_that_are_alive(counted):
    """They cost nothing to make again; a cut of the graph is looked at by Python."""
    a, b = leaf(1, (5, 3)), leaf(2)
    rows = list(a)
    for number in range(RUNS):
        row = rows[number % 5]
        found = (row[None] @ b).exp().realize()
        wanted = np.exp(a.numpy()[number % 5 : number % 5 + 1] @ b.numpy())
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5)
    assert counted[-1]
    weight = Tensor(b.numpy(), requires_grad=True)  # it was never computed: a cut of memory
    for _ in range(RUNS):
        (row[None] @ weight).exp().realize()
    assert counted[-1]
    cut = (weight * 2).realize().detach()  # lets go what it is made of
    assert native_calls.CODED.compute([(row[None] @ cut).exp()._node], "") is None


def test_numbers_that_are_alive(counted):
    """They cost nothing to compute again, whoever has them: nothing is stored beside."""
    ones, row = picograd.ones(3), picograd.full((5, 3), 2.0)[1:2].T
    for number in range(RUNS):
        a = leaf(number)
        found = ((a + ones) @ row).numpy()
        np.testing.assert_allclose(found[:, 0], 2 * (a.numpy() + 1).sum(1), rtol=1e-5)
    assert counted[-1] and ones._node.realized is None and not entries(carried.PASSED)
    weight = picograd.ones(3, requires_grad=True)  # the first computation stores it
    np.testing.assert_allclose((a * weight).sum().item(), a.numpy().sum(), rtol=1e-5)
    assert leaf_buffer(weight._node) is not None


def test_writes_that_wait_come_first(counted):
    a, b = leaf(1), leaf(2)
    for _ in range(RUNS):
        (a + b).exp().realize()
    assert counted[-1]
    before, c = a.numpy(), (a + b).exp()
    a += 1
    found = (a + b).exp().realize()
    assert counted[-1] is None
    np.testing.assert_allclose(c.numpy(), np.exp(before + b.numpy()), rtol=1e-6)
    np.testing.assert_allclose(found.numpy(), np.exp(before + 1 + b.numpy()), rtol=1e-6)


def test_it_can_be_differentiated_afterwards():
    for _ in range(RUNS):
        a, b = leaf(1), leaf(2)
        c = (a * b).sum().realize()
        c.backward()  # from what it was computed of
        assert np.array_equal(a.grad.numpy(), b.numpy())
        d = leaf(1, requires_grad=True)
        e = (d + d).exp().realize()
        e.sum().backward()
        np.testing.assert_allclose(d.grad.numpy(), 2 * np.exp(2 * d.numpy()), rtol=1e-5)


def test_pads_are_computed(counted):
    a = leaf(1)
    pairs = ((0, 0),) * (a.ndim - 1)
    for pair in ((1, 2), (0, 1)):
        for _ in range(RUNS):
            found = nn.functional.pad(a, pair, value=0.5).realize()
            wanted = np.pad(a.numpy(), (*pairs, pair), constant_values=0.5)
            assert np.array_equal(found.numpy(), wanted)
        assert counted[-1]


@pytest.mark.parametrize("kind", ["pad", "large", "twice", "traced", "off", "watched"])
def test_the_unusual_is_left_to_python(kind, counted):
    a = leaf(1)
    for _ in range(RUNS):
        (a + 1).exp().realize()
    assert counted[-1]
    x = (a + 1).exp()
    nodes = [x._node]
    if kind == "pad":
        rest = ((0, 0),) * (a.ndim - 1)
        for _ in range(RUNS):
            picograd.nn.functional.pad(a, (0, 0) * (a.ndim - 1) + (5, 2)).realize()
        nodes = [a._node.pad(((GivenInt(5), 2), *rest))]
    if kind == "large":
        for _ in range(small.LIMIT):
            x = x.exp()
        nodes = [x._node]
    if kind == "twice":
        nodes = [x._node, x._node]
    settings = {"off": {"native": 0}, "watched": {"debug": -1}}.get(kind, {})
    with picograd.config.override(**settings):
        if kind == "traced":
            picograd.jit(lambda: counted.append(native_calls.CODED.compute(nodes, "")) or a + 1)()
            assert None in counted[-4:]
        else:
            assert native_calls.CODED.compute(nodes, "") is None
    assert x._node.realized is None


@pytest.mark.parametrize("given", [(), ([],), ([], "", 0), ([None], ""), ((), ""), (None, "")])
def test_wrong_arguments(given):
    native = CALLS.find("picograd_small")
    if len(given) == 2:
        assert native(*given) is None
    else:
        with pytest.raises(TypeError, match="small takes nodes and a line"):
            native(*given)


def test_memory_and_references_stay_flat(counted):
    a, w = leaf(3), leaf(4, requires_grad=True)

    def run():
        w.grad = None
        loss = learn(a, w)
        loss.realize(w.grad)
        (a * 0.5 + 1).realize()
        del counted[:]

    for _ in range(RUNS):
        run()
    gc.collect()
    objects = (None, True, False, 0, 1, "reduce", a._node, a._node.arg.buffer, a._node.dtype)
    before = [sys.getrefcount(each) for each in objects]
    for _ in range(500):
        run()
    gc.collect()
    after = [sys.getrefcount(each) for each in objects]
    assert max(abs(x - y) for x, y in zip(before, after, strict=True)) < 50


class Stopped(Exception):
    """What the handler of a signal raises."""


def test_an_error_between_two_numbers_is_the_one_that_is_raised(monkeypatch):
    a = leaf(1)

    def step():
        return picograd.rand(a.shape[1]) + a[1:2]

    for _ in range(RUNS):
        step().realize()
    made = step()

    def interrupted(number):
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(RuntimeScalar, "value", property(interrupted))
        with pytest.raises(Stopped):
            native_calls.CODED.compute([made.node], None)
    drawn = made.numpy() - a.numpy()[1:2]
    assert (drawn > -1e-6).all() and (drawn < 1.0).all()


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


def test_it_can_be_differentiated_afterwards_of_one_operation():
    for _ in range(RUNS):
        a, b = leaf(1), leaf(2)
        c = (a * b).sum().realize()
        c.backward()  # from what it was computed of
        assert np.array_equal(a.grad.numpy(), b.numpy())
        d = leaf(1, requires_grad=True)
        e = (d + d).realize()
        e.sum().backward()
        assert d.grad.tolist() == [[2.0] * 3] * 3


def test_writes_that_wait_come_first_of_one_operation(counted):
    a, b = leaf(1), leaf(2)
    for _ in range(RUNS):
        (a + b).realize()
    before, c = a.numpy(), a + b
    a += 1
    found = (a + b).realize()
    assert counted[-1] is None
    assert np.array_equal(c.numpy(), before + b.numpy())
    assert np.array_equal(found.numpy(), (before + 1) + b.numpy())


def test_memory_and_references_stay_flat_of_one_operation(counted):
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
    line = sys._getframe().f_lineno + 1
    assert (a + b).realize()._node.arg.buffer.line == f"{__file__}:{line}"


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


def test_what_was_detached_lets_a_value_go_that_nobody_else_has(counted):
    w, x = leaf(1, requires_grad=True), leaf(2)
    wanted = w.detach().numpy() * x.numpy()
    for _ in range(RUNS):
        np.testing.assert_allclose((w * x).detach().numpy(), wanted, 1e-6)
    assert counted[-1] is True
    product = w * x
    shown = product.detach()
    np.testing.assert_allclose(shown.numpy(), wanted, 1e-6)
    assert shown._view is not None  # somebody has what it shows
    product.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), x.numpy(), 1e-6)
    with picograd.no_grad():
        product.mul_(2.0)
    np.testing.assert_allclose(shown.numpy(), 2 * wanted, 1e-6)
    gone = weakref.ref(product)
    del product
    assert gone() is not None  # a write may still reach it
    shown.add_(1.0)
    np.testing.assert_allclose(shown.numpy(), 2 * wanted + 1, 1e-6)


def test_memory_that_is_asked_for_is_there(counted):
    a, b = leaf(1).realize(), leaf(2).realize()
    a.realize()
    assert counted[-1] is True
    with picograd.no_grad():
        b.add_(1.0)
    before = b._node
    a.realize()  # and what was written before it
    assert before.op == "buffer"

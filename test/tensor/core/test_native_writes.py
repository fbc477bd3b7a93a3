"""Writes to memory by machine code: as the long way, whatever reads beside them."""

import weakref

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.engine import carried, followed, native_calls, pending, small
from picograd.engine.carried import entries
from picograd.engine.followed import EVENTS
from picograd.engine.native_calls import CALLS, NATIVE_AFTER
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


def add(a, b, n):
    a.add_(b)


def scale(a, b, n):
    a *= n


def twice(a, b, n):
    a.mul_(0.5).add_(b, alpha=n)


def both(a, b, n):
    a.add_(b)
    b.mul_(0.9)


def zero(a, b, n):
    a.zero_()


def over(a, b, n):
    a.copy_(b)


def part(a, b, n):
    a[..., int(n) % 3] = b[..., 0]


def rows(a, b, n):
    a[int(n) % 2 :, 1:] = n


def chosen(a, b, n):
    a[picograd.tensor([2, 0])] = n


PARTS = [part, rows, chosen]
WRITES = [add, scale, twice, both, zero, over, *PARTS, lambda a, b, n: a.clamp_(-n, n)]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("shape", [(3, 3), (), (0, 3)])
def test_writes_to_memory_are_computed_by_machine_code(counted, write, shape):
    a, b = leaf(0, shape).realize(), leaf(1, shape).realize()
    x, y = Tensor(a.numpy()), Tensor(b.numpy())
    if write in PARTS and (0 in shape or not shape):
        pytest.skip("it has no such part")
    for step in range(6 * RUNS):
        memory, version = a._node.arg.buffer, a._version
        write(a, b, 0.5 + step)
        a.realize()
        assert a._version > version and a._node.arg.buffer is memory
        with picograd.config.override(native=0):
            write(x, y, 0.5 + step)
        np.testing.assert_allclose(a.numpy(), x.numpy(), 1e-5)
        np.testing.assert_allclose(b.numpy(), y.numpy(), 1e-5)
    assert not entries(pending.WRITES)
    assert write in (part, rows) or not a.numel() or counted[-1] is True  # of those a way is told


def reads_before(a, b):
    """Who read before the write sees what was there."""
    kept = a + b
    a.add_(b)
    return [a, kept, a * 2]


def reads_through_a_view(a, b):
    shown = a.T[1:]
    old = shown * 1.0
    a.mul_(b)
    return [shown, old, a]


def writes_through_a_view(a, b):
    row = a[1]
    row.add_(b[0])
    row.mul_(0.5)
    return [a, row]


def reads_computed(a, b):
    """What was computed is read in the memory that is written."""
    made = (a * 2).realize()
    kept = made + 1
    made.add_(b)
    return [made.sum(), kept]


def writes_in_turn(a, b):
    a.add_(b)
    b.copy_(a)
    a.sub_(b)
    return [b, a]


def detached(a, b):
    shown = a.detach()
    a.add_(1.0)
    shown.mul_(b)
    return [a, shown]


READS = [
    reads_before, reads_through_a_view, writes_through_a_view, reads_computed, writes_in_turn,
    detached,
]  # fmt: skip


@pytest.mark.parametrize("program", READS)
@pytest.mark.parametrize("is_first", [True, False])
def test_who_reads_beside_a_write_sees_what_was_there(program, is_first, counted):
    a, b = leaf(0), leaf(1)
    for _ in range(3 * RUNS):  # alone, so that machine code knows each
        a.add_(b).realize().mul_(b).realize().clamp_(-1.0, 1.0)
    assert True in counted
    x, y = Tensor(a.numpy()), Tensor(b.numpy())
    for _ in range(4 * RUNS):
        found = program(a, b)
        found[0 if is_first else -1].realize()
        with picograd.config.override(native=0):
            wanted = [each.numpy() for each in program(x, y)]
        for mine, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine.numpy(), other, 1e-5)
        a.clamp_(-2.0, 2.0)
        x.clamp_(-2.0, 2.0)


def test_what_gradients_pass_through_keeps_its_value_beside_a_write():
    w, mask = leaf(0, requires_grad=True), leaf(1)
    for _ in range(3 * RUNS):
        w.grad = None
        before = mask.numpy()
        loss = (w * (mask * 1.0)).sum()
        mask.add_(1.0)
        loss.realize()
        loss.backward()
        np.testing.assert_allclose(w.grad.numpy(), before, 1e-5)
        np.testing.assert_allclose(mask.numpy(), before + 1, 1e-5)


def test_an_overwritten_leaf_says_so_after_machine_code_wrote(counted):
    a, b = leaf(0), leaf(1)
    for _ in range(3 * RUNS):
        old = a._node
        a.add_(b).realize()
    assert counted[-1] is True
    with pytest.raises(picograd.errors.GradientError, match="overwritten in place"):
        pending.compute([old + 1.0])


def test_writes_by_machine_code_leave_nothing_behind():
    a, b = leaf(0), leaf(1)
    for _ in range(4 * RUNS):
        a.add_(b).realize()
    sizes = [len(each) for each in (pending.LIVE.data, pending.LIVE.waiting, carried.NEW)]
    for _ in range(4 * RUNS):
        a.add_(b).realize()
    after = [len(each) for each in (pending.LIVE.data, pending.LIVE.waiting, carried.NEW)]
    assert after == sizes and not entries(pending.WRITES)


UPDATES = [
    lambda a, b, n: a.__iadd__(b), lambda a, b, n: a.add_(b, alpha=0.5), lambda a, b, n: a.mul_(n),
    lambda a, b, n: a.sub_(b[0]), lambda a, b, n: a.div_(b), lambda a, b, n: a.pow_(2.0),
    lambda a, b, n: a.add_(a), lambda a, b, n: a.sub_(a[0] * 1.0), lambda a, b, n: a.clamp_(-n, n),
    lambda a, b, n: a.lerp_(b, 0.25), lambda a, b, n: a.zero_(), lambda a, b, n: a.fill_(2.5),
    lambda a, b, n: a.fill_(b.sum()), lambda a, b, n: a.add_(b.double()),
]  # fmt: skip


@pytest.fixture
def updated(monkeypatch):
    """Count what is updated by one call of machine code."""
    native, found = CALLS.find("picograd_update"), []

    def counting(*given):
        made = native(*given)
        found.append(made)
        return made

    monkeypatch.setattr(native_calls.CODED, "update", counting)
    monkeypatch.setattr(native_calls.CODED, "record", CALLS.find("picograd_record"))
    with picograd.config.override(verify=0):
        yield found


@pytest.mark.parametrize("update", UPDATES)
def test_operators_in_place_are_those_of_python(update, updated):
    a, b = leaf(0).realize(), leaf(1).realize()
    x, y = Tensor(a.numpy()), Tensor(b.numpy())
    for step in range(8):
        version = a._version
        assert update(a, b, 0.5 + step) is a
        with picograd.config.override(native=0):
            update(x, y, 0.5 + step)
        assert a._version == version + 1
        assert [a._node.inputs[1].op, a._tracks] == [x._node.inputs[1].op, False]
        np.testing.assert_array_equal(a.numpy(), x.numpy())
    assert not updated or True in updated or update in (UPDATES[-1], UPDATES[7])


def test_operators_in_place_that_python_looks_at(updated):
    a, b, w = leaf(0).realize(), leaf(1).realize(), leaf(2, requires_grad=True).realize()
    for _ in range(4):
        a.add_(b).realize()
    assert updated[-1] is True
    first = a.numpy()
    row = a[1]
    a.add_(b)  # what shows a part of it shows what is new
    np.testing.assert_array_equal(row.numpy(), (first + b.numpy())[1])
    with pytest.raises(picograd.errors.ShapeError, match="shares some of its memory"):
        a[1:].add_(a[:-1])
    with pytest.raises(picograd.errors.GradientError, match="in place"):
        w.add_(b)
    with pytest.raises(picograd.errors.ShapeError):
        a.add_(leaf(3, (2, 3, 3)))
    kept = a.numpy()
    with pytest.raises(picograd.errors.DTypeError):
        picograd.ones(3, dtype=picograd.int64).add_(a[0])
    a.add_(w)  # gradients pass now
    a.sum().backward()
    assert w.grad.tolist() == [[1.0] * 3] * 3 and True not in updated[-1:]
    np.testing.assert_array_equal(a.detach().numpy(), kept + w.detach().numpy())
    with picograd.no_grad():
        c = leaf(4).realize()
        for _ in range(4):
            before = c.numpy()
            c.mul_(0.5).add_(w)
            np.testing.assert_array_equal(c.numpy(), before * np.float32(0.5) + w.numpy())
    assert updated[-1] is True and c._version == 8 and not c.requires_grad


def test_what_tracks_gradients_is_added_with_them_each_time(updated):
    w = leaf(2, requires_grad=True).realize()
    for _ in range(6):
        a, w.grad = leaf(0).realize(), None
        a.add_(w)
        a.sum().backward()
        assert w.grad.tolist() == [[1.0] * 3] * 3
    assert True not in updated


def test_a_long_chain_of_operators_is_computed(updated):
    a, b = leaf(0).realize(), leaf(1).realize()
    wanted = a.numpy()
    for _ in range(3 * pending.CHAIN):
        a.add_(b)
        wanted = wanted + b.numpy()
    assert updated.count(True) > pending.CHAIN and len(entries(pending.WRITES)) < pending.CHAIN
    np.testing.assert_allclose(a.numpy(), wanted, 1e-4)


def test_machine_code_stops_where_it_is_not_wanted():
    a, b = leaf(0).realize(), leaf(1).realize()
    a.add_(b).realize()
    arithmetic, call = picograd.tensor.math.elementwise.arithmetic, ("add", a, b)
    calls = {
        "record": (arithmetic, call), "update": (a, arithmetic, call), "row": (b, 1),
        "number": (b[0, 0]._node,), "assign": (a, (b * 2.0)._node),
        "wrap": ((b + 1.0)._node + 1.0, False),
    }  # fmt: skip
    for name, given in calls.items():
        native = CALLS.find(f"picograd_{name}")
        with picograd.config.override(native=0):
            assert native(*given) is None and native(*given) is None, name
        with picograd.config.override(verify=0):
            found = native(*given)
            assert found is not None or native(*given) is not None, name


CHOICES = [
    lambda a, b, n: a.__setitem__(picograd.tensor([2, 0]), n),
    lambda a, b, n: a.__setitem__(picograd.tensor([1, 1]), b[:2] * 1.0),
    lambda a, b, n: a.__setitem__(a > n, 0.5), lambda a, b, n: a.__setitem__(b < 0, 2),
    lambda a, b, n: a.__setitem__(b[0] > 0, b[0] * 2.0),
]  # fmt: skip


@pytest.mark.parametrize("choose", CHOICES)
def test_what_an_index_chooses_is_written_as_by_python(choose, updated):
    a, b = leaf(0).realize(), leaf(1).realize()
    x, y = Tensor(a.numpy()), Tensor(b.numpy())
    for step in range(8):
        version = a._version
        choose(a, b, 0.25 * step)
        a.add_(0.125)
        with picograd.config.override(native=0):
            choose(x, y, 0.25 * step)
            x.add_(0.125)
        np.testing.assert_array_equal(a.numpy(), x.numpy())
        assert a._version == version + 2
    assert updated.count(True) > 4
    with pytest.raises(picograd.errors.PicogradError, match="3"):
        a[picograd.tensor([0, 3])] = 1.0
        a.realize()
    np.testing.assert_array_equal(leaf(1).numpy(), b.numpy())

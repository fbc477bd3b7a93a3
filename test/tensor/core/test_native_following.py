"""Ways that machine code follows give what Python gives that follows them, and what is recorded."""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from followed_loops import Loop, carried_on, counted, pieces, reads, start

import picograd
from picograd import Tensor
from picograd.engine import followed
from picograd.engine import sizes as engine_sizes
from picograd.engine.followed import EVENTS
from picograd.engine.native_calls import CALLS, CODED
from picograd.runtime.python_layout import is_possible
from picograd.tensor.core import following, native_following, ways
from picograd.tensor.core.autograd import WALKS
from picograd.tensor.core.pieces import IS, MADE, MANY, MET, NAMED

pytestmark = [
    pytest.mark.usefixtures("cpu_by_default"),
    pytest.mark.skipif(not is_possible(), reason="another interpreter"),
]
STEPS = 24
NATIVE = "first", "follow", "finish"


def numbers(step: int, state: list[Any]) -> Any:
    """Floats of all kinds where there was one."""
    kinds = [0.75, 0.0, 1.0, -1.0, -0.0, 2, True, 1e-3, float("inf"), float("nan"), 4e38]
    factor: Any = kinds[step % 11] if step > 8 else 0.5 + step
    x = (state[1] * factor + state[1]).tanh() + factor
    return [x.tolist(), (x.exp() * 0.5).sum().item()]


def several(step: int, state: list[Any]) -> Any:
    """Events of several results, lists and tuples, options in another order."""
    best, at = state[0].max(1)
    value, _ = state[2].sort(descending=bool(step % 7 == 6), dim=1)
    joined = picograd.cat([best, state[1]] if step % 5 else (best, state[1]))
    summed = state[0].sum(dim=0, keepdim=True) if step % 4 else state[0].sum(keepdim=True, dim=0)
    return [joined.tolist(), at.tolist(), (value.sum(0) + summed).tolist()]


def shapes(step: int, state: list[Any]) -> Any:
    """Another shape, dtype or leaf where there was one."""
    x = state[1] if step % 6 else state[2]
    x = x.double() if step % 8 == 7 else x
    y = Tensor(np.float32(step)).realize() if step % 5 else Tensor([float(step)]).realize()
    return [((x + 1.0) * 0.5 + y).sum().item(), x.dtype.name]


def gradients(step: int, state: list[Any]) -> Any:
    """Leaves that ask, `no_grad` around some, and gradients that nobody steps by."""
    w = state[4] if len(state) > 4 else state[0].clone().detach().requires_grad_()
    state[3:] = [None, w]
    loss = ((state[2] @ w).tanh() ** 2).mean()
    if step % 4 == 3:
        with picograd.no_grad():
            return (w * 2.0).sum().item() + loss.item()
    (slope,) = picograd.autograd.grad(loss, w)
    return [loss.item(), (slope * 2.0).sum().item()]


def writes(step: int, state: list[Any]) -> Any:
    """Writes of rows and cells between events, and into what an event made."""
    table, x = state[2], state[1].clone()
    table[step % 3, step % 6] += 0.5 * (1.0 - table[step % 3].max())
    x[1:3] = x[1:3].flip(0)
    x[step % 6] = 0.25
    return [(table + x).tolist(), x.sum().item()]


def tied(step: int, state: list[Any]) -> Any:
    """One tensor in the place of two: a leaf that gets gradients, and memory that is written."""
    if len(state) < 5:
        leaves = [state[0].clone().detach().requires_grad_() for _ in range(2)]
        state[3:] = [leaves, [state[1].clone().realize(), state[1].clone().realize()]]
    (one, two), (read, written) = state[3:5]
    if step in (9, 14, 19):
        two, written = one, read
    ((state[2] @ one).tanh() + state[2] @ two).square().mean().backward()
    found = [leaf.grad.tolist() for leaf in (one, two)]
    one.grad = two.grad = None
    twice = read * 2.0
    written.add_(twice, alpha=0.1)
    return [found, (read + written).tolist()]


def histories(step: int, state: list[Any]) -> Any:
    """Writes into what was computed, and gradients of what it was computed from."""
    y = (state[1] * 2.0).sum()
    found: Any = [y.item()]
    if step % 7 != 6:
        y.add_(1.0)
    found.append((y * 2.0).item())
    try:
        if step > 15:  # an error ends what is learnt
            y.backward()
        found.append(repr(state[1].grad))
    except picograd.errors.GradientError as error:
        found.append(str(error))
    state[1].grad = None
    return found


LOOPS = [histories, tied, numbers, pieces, several, carried_on, reads, shapes, gradients, writes]


@pytest.fixture(autouse=True)
def _as_if_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if CODED.compute is None:
        CODED.begin()
    monkeypatch.setattr(picograd.config, "verify", 0)
    monkeypatch.setattr(engine_sizes, "FAMILIES", OrderedDict())
    monkeypatch.setattr(following, "KNOWN", weakref.WeakKeyDictionary())
    monkeypatch.setattr(followed, "FIRST", 1)
    monkeypatch.setattr(followed, "SHORTS", 1 << 30)
    monkeypatch.setattr(following.Known, "miss", lambda known, *_: setattr(known, "waits", 0))
    yield
    followed.stop()
    EVENTS.after = None


def run(loop: Loop, count: int = STEPS) -> list[Any]:
    state = start()
    return [repr(loop(step, state)) for step in range(count)]


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_machine_code_follows_as_python_does(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = run(loop)
    for name in NATIVE:
        monkeypatch.setattr(CODED, name, None)
    monkeypatch.setattr(following, "KNOWN", weakref.WeakKeyDictionary())
    by_python = run(loop)
    monkeypatch.setattr(followed, "FIRST", 1 << 30)
    monkeypatch.setattr(following, "KNOWN", weakref.WeakKeyDictionary())
    assert mine == by_python == run(loop)


def facts_of(tensor: Tensor) -> Any:
    return [tensor.requires_grad, tensor.is_leaf, tensor.dtype.name, tensor.shape]


def told(tensor: Tensor) -> Any:
    return tensor.tolist(), np.signbit(tensor.numpy()).tolist()


def body(step: int, state: list[Any], other: str) -> Any:
    """A loop that comes the same way each time, but for one thing, once."""
    variants = state[5]
    a, b, c, w = state[1], state[3], variants["piece"], state[4]
    if other == "shape":
        a = b = c = variants["longer"]
    if other == "dtype":
        a = variants["whole"]
    if other == "view":
        b = variants["column"]
    if other == "another view":
        c = variants["stepped"]
    if other == "elsewhere":
        c = variants["later"]
    if other == "one tensor":
        b = a
    if other == "no leaf":
        w = variants["frozen"]
    square = state[0].T if other == "turned" else state[0]
    with picograd.no_grad() if other == "no_grad" else picograd.enable_grad():
        x = (a * 0.5 + b) * (1 if other == "int" else -0.0 if other == "sign" else 0.0)
        x = x + c + (a.clamp(max=0.25) if other == "name" else a.clamp(min=0.25))
        y = (square @ square).sum(1 if other == "axis" else 0) * 2.0
        z = picograd.cat((x, y) if other == "tuple" else [x, y]) * w.sum()
        u = z + 1.0 if other == "more" else z
        if other == "kept":
            state.append(y)
        if other == "error":
            with pytest.raises(picograd.errors.PicogradError):
                a @ state[2]
        total = (u * u).mean()
    if other == "signs":
        state.append(x - x)
    facts = facts_of(z), facts_of(total)
    del x, y, z, u
    return [total.item(), facts, [told(each) for each in state[6:]]]


DISTURBED = [
    "", "shape", "dtype", "view", "another view", "elsewhere", "one tensor", "no leaf", "turned",
    "no_grad", "int", "sign", "name", "axis", "tuple", "more", "kept", "error", "signs",
]  # fmt: skip


def disturbed(other: str) -> list[str]:
    state = start()
    state.append((state[1] * 3.0).realize())
    state.append(Tensor(np.ones(3, np.float32), requires_grad=True).realize())
    row = Tensor(np.arange(12, dtype=np.float32)).realize()
    variants = {"piece": row[2:8], "later": row[5:11], "stepped": row[::2], "longer": row}
    variants["column"], variants["whole"] = state[0][:, 2], Tensor(np.arange(6)).realize()
    variants["frozen"] = Tensor(np.ones(3, np.float32)).realize()
    state.append(variants)
    places = 16, 17, 21
    return [repr(body(step, state, other if step in places else "")) for step in range(24)]


@pytest.mark.parametrize("other", DISTURBED)
def test_what_comes_otherwise_once(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = counted("finish", monkeypatch)
    mine = disturbed(other)
    assert found.count(True) >= 8
    monkeypatch.setattr(followed, "FIRST", 1 << 30)
    monkeypatch.setattr(following, "KNOWN", weakref.WeakKeyDictionary())
    assert mine == disturbed(other)


def test_what_machine_code_leaves_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes are awaited by the next computation, and walks for gradients are counted."""
    by_python: list[int] = []

    def follow(*given: Any) -> Any:
        by_python.append(1)
        return by_python_alone(*given)

    by_python_alone = following.Follower.follow
    monkeypatch.setattr(following.Follower, "follow", follow)
    state = start()
    leaf = Tensor(state[0].numpy(), requires_grad=True).realize()
    for _ in range(STEPS):
        by_python.clear()
        walks = WALKS.count
        (state[2] @ leaf).tanh().sum().backward()
        assert WALKS.count == walks + 1
        state[1].mul_(0.5)
        record = EVENTS.record
        assert record is None or record.is_awaited
        state[1].sum().item()
        leaf.grad = None
    assert record is not None and not by_python


def test_another_thread_ends_a_way() -> None:
    state, found = start(), []
    for step in range(20):
        carried_on(step, state)

    def other() -> None:
        found.append((state[0] * 2.0 + state[1]).sum().item())

    vector = state[0] @ state[1]
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    wanted = (state[0].numpy() * 2.0 + state[1].numpy()).sum()
    assert found == [pytest.approx(wanted, rel=1e-5)]
    assert np.allclose(vector.numpy(), state[0].numpy() @ state[1].numpy(), atol=1e-5)


def test_wrong_arguments_are_a_type_error() -> None:
    for name, text in ("first", "first takes"), ("follow", "take takes"):
        with pytest.raises(TypeError, match=text):
            CALLS.find(f"picograd_{name}")(1)
    assert CALLS.find("picograd_first")(len, (), {}) is None


def test_words_of_doubles() -> None:
    assert native_following.word_of(0.0) == 0
    assert native_following.word_of(1.0) == 0x3FF << 52


def test_events_that_are_simple() -> None:
    mode = True, {}, 0
    event = ways.Event(len, [], [], mode, (MADE, 3), [3])
    assert event.is_alone()
    assert ways.Event(len, [], [], mode, (MET, 0), []).is_alone()
    assert not ways.Event(len, [], [], mode, (MET, 0), [3]).is_alone()
    assert not ways.Event(len, [], [], mode, (NAMED, {}), []).is_alone()
    event.gradients, event.made = [(0, 4, (IS, None))], [3, 4]
    assert event.is_alone()
    event.gradients = [(0, 4, (MET, 1))]
    assert not event.is_alone()
    event.gradients, event.made = [], [3]
    pair = MANY, (tuple, [(MADE, 3), (MADE, 4)])
    assert ways.Event(len, [], [], mode, pair, [3, 4]).is_alone()
    assert not ways.Event(len, [], [], mode, pair, [3]).is_alone()
    event.advance = 1
    assert not event.is_alone()

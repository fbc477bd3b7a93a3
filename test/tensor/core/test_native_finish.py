"""Ways end by machine code as they do by Python, and nothing is held behind them."""

import gc
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.engine import followed
from picograd.engine import sizes as engine_sizes
from picograd.engine.followed import EVENTS
from picograd.engine.native_calls import CALLS, CODED
from picograd.runtime.python_layout import is_possible
from picograd.tensor.core import following

pytestmark = [
    pytest.mark.usefixtures("cpu_by_default"),
    pytest.mark.skipif(not is_possible(), reason="another interpreter"),
]


Loop = Callable[[int, list[Any]], Any]


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


def start() -> list[Any]:
    drawn = np.random.default_rng(2)
    return [
        Tensor(drawn.standard_normal(shape).astype(np.float32)).realize()
        for shape in ((6, 6), (6,), (3, 6))
    ]


def carried_on(step: int, state: list[Any]) -> Any:
    """Values that live on, are read later, and are dropped in the middle."""
    vector = state[0] @ state[1]
    state[1] = vector / vector.norm()
    older = state[3] if len(state) > 3 else state[1]
    state[3:] = [state[1] * 2.0] if step % 3 else []
    first = (state[1] @ state[0] @ state[1]).item()
    return [first, older.sum().item(), (state[1] - older).abs().max().item()]


def reads(step: int, state: list[Any]) -> Any:
    """What is read decides what comes next."""
    x, found = state[0], []
    for number in range(4):
        x = (x @ state[0]).tanh() + 0.1 * number
        size = x.norm()
        found.append(size.item())
        if found[-1] > 2.0 + step % 2:
            x = x / size
    return [*found, x.mean().item()]


def pieces(step: int, state: list[Any]) -> Any:
    """Rows, columns and ranges that begin elsewhere each time, of memory and of what is made."""
    at = step % 5
    matrix = state[0] * 0.5
    row = state[0][at] + state[0][:, at] * state[0][-1 - at]
    part = state[0][at : at + 2].sum(0) + matrix[at] + matrix[at : at + 1, 1:].sum()
    last = state[2][..., 1:][step % 3]
    return [(row * part).tolist(), last.sum().item(), (matrix[1] + row).sum().item()]


def run(loop: Loop, count: int) -> list[Any]:
    state = start()
    return [repr(loop(step, state)) for step in range(count)]


def counted(name: str, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether machine code did what it was asked for."""
    native, found = getattr(CODED, name), []

    def noted(*given: Any) -> Any:
        result = native(*given)
        found.append(result is not None)
        return result

    inside = noted.__code__.replace(co_filename=following.__file__)  # no line of the program's
    noted.__code__ = inside
    monkeypatch.setattr(CODED, name, noted)
    return found


@pytest.mark.parametrize("loop", [carried_on, reads, pieces], ids=lambda loop: loop.__name__)
def test_ways_end_by_machine_code(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    found = counted("finish", monkeypatch)
    run(loop, 60)
    assert found.count(True) > 2


def test_nothing_is_held_behind_a_way() -> None:
    state = start()
    for step in range(40):
        carried_on(step, state)
    gc.collect()
    gc.disable()
    try:
        shape = state[1]._node.shape
        held = sys.getrefcount(shape), sys.getrefcount(state[0]._node), sys.getrefcount(None)
        older = []
        for step in range(30):
            carried_on(step, state)
            older.append(weakref.ref(state[1]._node))
        assert all(each() is None for each in older[:-3])
        assert abs(sys.getrefcount(state[0]._node) - held[1]) <= 2
        assert abs(sys.getrefcount(None) - held[2]) < 200
    finally:
        gc.enable()


def test_a_value_is_stored_once_for_all_that_read_it() -> None:
    state = start()
    for step in range(30):
        x = (state[0] @ state[1]).tanh()
        y = x * 2.0 + 1.0
        first = (x + y).sum().item()
        kept = x if step % 2 else y
        assert first == pytest.approx((x.numpy() + y.numpy()).sum(), rel=1e-5)
        assert kept._node.op == "buffer" and kept.tolist() == kept.numpy().tolist()
        assert y.tolist() == pytest.approx((x.numpy() * 2.0 + 1.0).tolist())


def test_wrong_arguments_are_a_type_error() -> None:
    finish = CALLS.find("picograd_finish")
    with pytest.raises(TypeError, match="finish takes"):
        finish(1)
    assert finish(None, [], "", None) is None

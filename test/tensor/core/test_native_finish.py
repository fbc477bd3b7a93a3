"""Ways end by machine code as they do by Python, and nothing is held behind them."""

import gc
import sys
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import pytest
from followed_loops import Loop, carried_on, counted, pieces, reads, start

import picograd
from picograd.engine import followed
from picograd.engine import sizes as engine_sizes
from picograd.engine.followed import EVENTS
from picograd.engine.native_calls import CALLS, CODED
from picograd.graph.node import Node
from picograd.runtime.python_layout import is_possible
from picograd.tensor.core import following

pytestmark = [
    pytest.mark.usefixtures("cpu_by_default"),
    pytest.mark.skipif(not is_possible(), reason="another interpreter"),
]


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


def run(loop: Loop, count: int) -> list[Any]:
    state = start()
    return [repr(loop(step, state)) for step in range(count)]


@pytest.mark.parametrize("loop", [carried_on, reads, pieces], ids=lambda loop: loop.__name__)
def test_ways_end_by_machine_code(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    found = counted("finish", monkeypatch)
    run(loop, 60)
    assert found.count(True) > 2


def test_what_was_met_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor has another node than the one that was met: Python looks."""
    finish, state, found = CODED.finish, start(), []

    def looked(*given: Any) -> Any:
        target = given[0].met[0]
        leaf = target._node
        target._node = Node(leaf.op, (), leaf.arg, leaf.shape, leaf.dtype, leaf.device)
        assert finish(*given) is None
        target._node = leaf
        found.append(finish(*given))
        return found[-1]

    looked.__code__ = looked.__code__.replace(co_filename=following.__file__)
    monkeypatch.setattr(CODED, "finish", looked)
    for step in range(60):
        carried_on(step, state)
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

"""Descending into expressions: arguments first, from left to right, guards under their masks."""

import sys
from collections.abc import Iterator

import pytest

from picograd import Tensor
from picograd.codegen.emit import Emitter
from picograd.dtype import float32, int64
from picograd.schedule.index import Axis, Dynamic, Index, atom_index, axis_index
from picograd.schedule.loop import Expr, Kernel, Slot, const

I = Axis("i", 8)  # noqa: E741
SLOTS = (Slot(float32, 64, "in"), Slot(int64, 64, "in"))
DEPTH = 10_000


def emitter() -> Emitter:
    return Emitter(Kernel("k", "map", SLOTS, (), ()), {}, lambda e, x: 0)


def load(index: Index) -> Expr:
    return Expr("load", (), (0, index), float32)


@pytest.fixture(autouse=True)
def little_stack() -> Iterator[None]:
    """Leave room for 200 calls: what recurses fails on small expressions already."""
    limit, frame, depth = sys.getrecursionlimit(), sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(depth + 200)
    yield
    sys.setrecursionlimit(limit)


def test_arguments_come_first_from_left_to_right() -> None:
    made = emitter()
    with made.axis_loop(I):
        value = load(axis_index(I))
        made.value(Expr("add", (Expr("neg", (value,), None, float32), value), None, float32))
    ops = [instr.op for instr in made.instructions]
    assert ops[-4:] == ["load", "neg", "add", "end"]


def test_a_deep_chain() -> None:
    made, expr = emitter(), const(1.0, float32)
    for _ in range(DEPTH):
        expr = Expr("neg", (expr,), None, float32)
    made.value(expr)
    assert sum(instr.op == "neg" for instr in made.instructions) == DEPTH
    assert made.axes(expr) == set()


def test_deep_guards_have_their_masks() -> None:
    made = emitter()
    with made.axis_loop(I):
        expr = load(axis_index(I))
        for lo in range(300):
            test = (axis_index(I) + 1, 2 + lo % 3, 7)
            fill = const(float(lo), float32)
            expr = Expr("guard", (Expr("neg", (expr,), None, float32), fill), (test,), float32)
        made.value(expr)
    ops = [instr.op for instr in made.instructions]
    assert ops.count("neg") == ops.count("where") == 300 and ops.count("load") == 1
    assert len(made.instructions[ops.index("load")].args) == 3  # pointer, index, mask
    assert made.scopes[-1].mask is None


def test_deep_run_time_indices() -> None:
    made = emitter()
    with made.axis_loop(I):
        index = axis_index(I)
        for _ in range(300):
            index = atom_index(Dynamic(Expr("load", (), (1, index), int64), 0, 63))
        made.value(load(index))
    assert sum(instr.op == "load" for instr in made.instructions) == 301


@pytest.mark.parametrize("count", [100, 345, 380])
def test_a_loop_of_additions(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sys.setrecursionlimit(sys.getrecursionlimit() + 400)  # the engine and llvmlite want some
    x = Tensor([0.0])
    for _ in range(count):
        x = x + 1
    assert x.item() == count
    assert sum(Tensor([float(n)]).realize() for n in range(count)).item() == sum(range(count))

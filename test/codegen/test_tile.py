"""Tile IR: what verify refuses, by its text; every step prints."""

from dataclasses import replace

import pytest
from structured import STRUCTURED, softmax

from picograd.codegen.layout import Blocked, format_layout
from picograd.codegen.pipeline import tile
from picograd.codegen.tile import (
    Accumulate,
    Assign,
    Barrier,
    For,
    Store,
    Tile,
    TileKernel,
    When,
    format_step,
    verify,
)
from picograd.dtype import float32
from picograd.errors import InternalError
from picograd.schedule.index import Axis, axis_index, constant
from picograd.schedule.loop import Expr, const
from picograd.target import cuda_target

I, J = Axis("i", 4), Axis("j", 8)  # noqa: E741
ONE = const(1.0, float32)
READ = Expr("tile", (), ("t", (axis_index(I),)), float32)


def with_step(step) -> TileKernel:
    kernel = tile(softmax().kernel, cuda_target("sm_90a"))
    made = Tile("t", (4,), float32, "register", Blocked((4,), (4,), (1,)))
    part = replace(kernel.parts[0], tiles=(made,), steps=(step,))
    return replace(kernel, parts=(part,))


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (Assign("u", (I,), ONE), "u is no tile"),
        (Assign("t", (J,), ONE), r"t of \(4,\) is written over \(j:8,\)"),
        (Store(1, axis_index(I), (I,), ONE, ((axis_index(J), 0, 3),)), "not bound"),
        (Store(1, axis_index(J), (I,), ONE), "not bound"),
        (For(I, (Store(1, axis_index(J), (), ONE),)), "not bound"),
        (Store(1, axis_index(I), (I,), Expr("tile", (), ("t", ()), float32)), "bad read of tile t"),
    ],
)
def test_verify_refuses(step, problem: str) -> None:
    with pytest.raises(InternalError, match=problem):
        verify(with_step(step))


@pytest.mark.parametrize(
    "step",
    [
        Assign("t", (I,), ONE),
        For(J, (Accumulate("t", (I,), (), "sum", READ, False),)),
        Store(1, axis_index(I), (I,), READ, ((axis_index(I), 0, 2),)),
        Barrier(),
        When(((constant(0), 0, 1),), (Barrier(),)),
    ],
)
def test_what_is_whole_passes_and_prints(step) -> None:
    kernel = with_step(step)
    assert verify(kernel) is kernel
    assert all(line in repr(kernel) for line in format_step(step, 2))


@pytest.mark.parametrize("name", STRUCTURED)
def test_templates_make_what_verify_accepts(name: str) -> None:
    kernel = STRUCTURED[name]().kernel
    text = repr(verify(tile(kernel, cuda_target("sm_90a"))))
    assert kernel.name in text and "grid" in text


def test_layouts_print_in_short() -> None:
    assert "(2, 8)" in format_layout(Blocked((4, 8), (2, 8), (1, 1)))


def test_a_launch_has_registers_for_the_blocks_of_a_part_that_wait() -> None:
    kernel = tile(softmax().kernel, cuda_target("sm_90a"))
    (part,) = kernel.parts
    two = replace(part, together=2)
    three = replace(part, together=3, ahead=(part,))
    assert replace(kernel, parts=(two, three, part)).together == 3
    assert replace(kernel, parts=(two,)).together == 2
    assert replace(kernel, parts=(two, two)).together == 2
    assert replace(kernel, parts=(two, part)).together == 0, "others want other registers"

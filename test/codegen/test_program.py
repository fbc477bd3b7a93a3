"""The verifiers of Program and Tile IR refuse broken IR by name."""

from dataclasses import replace

import pytest
from harness import TARGET
from structured import softmax

from picograd.codegen.pipeline import linearize, tile
from picograd.codegen.program import Instr, Program, verify
from picograd.codegen.tile import Assign
from picograd.codegen.tile import verify as verify_tiles
from picograd.dtype import float32, int64
from picograd.errors import InternalError
from picograd.schedule.index import Axis, axis_index, constant
from picograd.schedule.loop import Expr


def program(*instructions: Instr) -> Program:
    return Program("broken", instructions, ((float32, "in"),))


ZERO = Instr("const", int64, arg=0)


@pytest.mark.parametrize(
    ("instructions", "problem"),
    [
        ([Instr("neg", float32, (1,)), ZERO], "%0 uses %1 before its definition"),
        (
            [ZERO, Instr("loop", int64, (0, 0), (1, False)), Instr("neg", int64, (1,)),
             Instr("end", None), Instr("neg", int64, (2,))],
            "%4 uses %2 outside its scope",
        ),
        ([Instr("end", None)], "%0 ends nothing"),
        ([ZERO, Instr("loop", int64, (0, 0), (1, False))], "is not closed"),
        (
            [Instr("param", float32, arg=0), ZERO, Instr("store", float32, (0, 1, 1))],
            "%2 stores to an input",
        ),
        (
            [ZERO, Instr("splat", int64, (0,), lanes=4), Instr("add", int64, (0, 1))],
            "differ in lanes",
        ),
    ],
)  # fmt: skip
def test_verify_refuses(instructions: list[Instr], problem: str) -> None:
    with pytest.raises(InternalError, match=problem):
        verify(program(*instructions))


def test_verify_tiles_refuses() -> None:
    tiles = tile(softmax().kernel, TARGET)
    part = tiles.parts[0]
    stray = Assign(part.tiles[0].name, (), Expr("index", (), axis_index(Axis("x", 4)), int64))
    with pytest.raises(InternalError, match="is not bound"):
        verify_tiles(replace(tiles, parts=(replace(part, steps=(stray,)),)))
    stray = Assign("nowhere", (), Expr("index", (), constant(0), int64))
    with pytest.raises(InternalError, match="nowhere is no tile"):
        verify_tiles(replace(tiles, parts=(replace(part, steps=(stray,)),)))


def test_every_name_of_softmax_is_printed() -> None:
    text = repr(linearize(tile(softmax().kernel, TARGET), TARGET))
    assert "program softmax" in text
    assert "loop" in text

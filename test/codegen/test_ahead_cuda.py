"""Parts that blocks run together before their own: each point once, and nobody goes on before."""

from dataclasses import replace

import numpy as np
import pytest

from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.layout import Blocked
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.linearize_cuda_roles import power_below
from picograd.codegen.program import verify as verify_program
from picograd.codegen.render.cuda import render
from picograd.codegen.tile import Accumulate, Store, Tile, TileKernel, TilePart, verify
from picograd.dtype import int32
from picograd.errors import InternalError
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot
from picograd.target import cuda_target

TARGET = cuda_target("sm_90a", multiprocessors=3)
ROWS, COLUMNS, BLOCKS = 5, 40, 4


def load(slot, index):
    return Expr("load", (), (slot, index), int32)


def reversed_sums(threads):
    """Sums of rows ahead; then each block stores all of them, the last one first."""
    row, column, block, place = (
        Axis("r", ROWS),
        Axis("c", COLUMNS),
        Axis("b", BLOCKS),
        Axis("p", ROWS),
    )
    count = power_below(threads)
    wide = Blocked((COLUMNS,), (count,), (1,))
    body = load(0, axis_index(row) * COLUMNS + axis_index(column))
    total = Expr("tile", (), ("sum", ()), int32)
    ahead = TilePart(
        (row,),
        (Tile("sum", (), int32, "register", Blocked((), (), ())),),
        (
            Accumulate("sum", (), (column,), "sum", body, True, wide),
            Store(1, axis_index(row), (), total, (), Blocked((), (), ())),
        ),
    )
    value = load(1, axis_index(place) * -1 + (ROWS - 1))
    at = axis_index(block) * ROWS + axis_index(place)
    own = TilePart((block,), (), (Store(2, at, (place,), value),), ahead=(ahead,))
    slots = (
        Slot(int32, ROWS * COLUMNS, "in"),
        Slot(int32, ROWS, "out"),
        Slot(int32, BLOCKS * ROWS, "out"),
    )
    part = Part((block,), (Compute((block,), (), None, value, int32),))
    return TileKernel(Kernel("sums", "attention", slots, (), (part,)), (own,), threads)


def arrays():
    given = np.arange(ROWS * COLUMNS, dtype=np.int32)
    wanted = np.tile(given.reshape(ROWS, COLUMNS).sum(1)[::-1], BLOCKS)
    return [given, np.zeros(ROWS, np.int32), np.zeros(BLOCKS * ROWS, np.int32)], wanted


@pytest.mark.parametrize("is_reversed", [False, True])
def test_tiles(is_reversed):
    slots, wanted = arrays()
    interpret_tile.interpret(verify(reversed_sums(128)), slots, (), is_reversed)
    np.testing.assert_array_equal(slots[2], wanted)


@pytest.mark.parametrize("threads", [128, 384])
@pytest.mark.parametrize("order", [None, [3, 0, 2, 1]])
def test_programs(threads, order):
    """Whichever block comes first; the cells are zero in the end, or the interpreter complains."""
    slots, wanted = arrays()
    program = verify_program(linearize(reversed_sums(threads), TARGET))
    interpret_program.interpret(program, slots, (), order)
    np.testing.assert_array_equal(slots[2], wanted)
    assert program.workspaces == ((12, True),)


def test_a_block_that_is_missing_is_noticed():
    program = verify_program(linearize(reversed_sums(128), TARGET))
    with pytest.raises(InternalError, match="not left zero"):
        interpret_program.interpret(program, arrays()[0], (), [0, 1, 2])


def test_nobody_goes_on_before_all_is_done():
    program = linearize(reversed_sums(128), TARGET)
    more = [
        replace(each, arg=(ROWS + 1, BLOCKS)) if each.op == "claims_wait" else each
        for each in program.instructions
    ]
    with pytest.raises(InternalError, match="is not done"):
        interpret_program.interpret(replace(program, instructions=tuple(more)), arrays()[0])


def test_who_waits_has_published_what_it_did():
    """Fences stand between what a block stored and its count, and before others read."""
    text = render(linearize(reversed_sums(128), TARGET))
    claim = text[text.index("int claim(") : text.index("void claims_wait(")]
    assert claim.index("__syncthreads") < claim.index("__threadfence") < claim.index("cells + 1")
    assert "ld.acquire.gpu" in text


def test_powers():
    assert [power_below(n) for n in (128, 256, 384, 512)] == [128, 256, 256, 512]

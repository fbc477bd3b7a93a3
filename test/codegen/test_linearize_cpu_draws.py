"""Random bits ahead of loops: the same as one by one, and a block for eight of them."""

import math

import numpy as np
import pytest

from picograd.codegen import interpret_program
from picograd.codegen.linearize_cpu import linearize
from picograd.codegen.linearize_cpu_draws import PIECE
from picograd.codegen.program import Program
from picograd.codegen.tile import Assign, Store, Tile, TileKernel, TilePart
from picograd.dtype import uint32, uint64
from picograd.graph.random import random_halves
from picograd.schedule.draws import half_drawn
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Expr, Kernel, Part, Slot, const
from picograd.target import Target

TARGET = Target("llvm", "generic", 64)
SEED, FIRST = (9 << 32) + 3, (5 << 32) + 7
ROW, COLUMN = Axis("row", 40), Axis("column", 100)


def program_of(place: Index, dims: tuple[Axis, ...]) -> Program:
    """s0[dims] = bits[place] + 1, by a tile that nobody else reads."""
    bits = half_drawn(const(SEED, uint64), const(FIRST, uint64), place)
    more = Expr("add", (bits, const(1, uint32)), None, uint32)
    flat = axis_index(dims[0]) * math.prod(axis.size for axis in dims[1:])
    flat += axis_index(dims[1]) if len(dims) > 1 else 0
    here = tuple(map(axis_index, dims))
    tile = Tile("t", tuple(axis.size for axis in dims), uint32, "register")
    read = Expr("tile", (), ("t", here), uint32)
    steps = Assign("t", dims, more), Store(0, flat, dims, read)
    size = math.prod(tile.shape)
    kernel = Kernel("draw", "map", (Slot(uint32, size, "out"),), (), (Part((), ()),))
    return linearize(TileKernel(kernel, (TilePart((), (tile,), steps),), 1), TARGET)


def check(
    place: Index, dims: tuple[Axis, ...], wide: int, moved: int, turn: tuple[int, ...]
) -> Program:
    """Run it; `wide` are the places of a row, of which those from `moved` on are read."""
    program = program_of(place, dims)
    found = np.zeros(math.prod(axis.size for axis in dims), np.uint32)
    interpret_program.interpret(program, [found], ())
    rows = {axis.name: axis.size for axis in dims}.get("row", 1)
    whole = random_halves(np.array(SEED), np.array(FIRST), (rows * wide + moved,))
    used = whole[moved:].reshape(rows, wide)[:, : COLUMN.size]
    np.testing.assert_array_equal(found - 1, used.transpose(turn).ravel())
    return program


def blocks_of(program: Program) -> int:
    """Count the blocks that are computed: products of ten rounds, in loops of so many rounds."""
    blocks, inside = 0, [1]
    constants = {n: i.arg for n, i in enumerate(program.instructions) if i.op == "const"}
    for instr in program.instructions:
        if instr.op == "loop":
            low, high = (constants.get(arg) for arg in instr.args)
            is_known = low is not None and high is not None
            count = -(-(high - low) // instr.arg[0]) if is_known else PIECE
            inside.append(inside[-1] * count)
        elif instr.op == "end":
            inside.pop()
        elif instr.op == "mul" and instr.dtype is uint64:
            blocks += inside[-1]
    return blocks // 20


@pytest.mark.parametrize("wide, moved", [(128, 0), (100, 0), (101, 7), (128, 31)])
def test_rows_that_begin_anywhere(wide: int, moved: int) -> None:
    place = axis_index(ROW) * wide + axis_index(COLUMN) + moved
    program = check(place, (ROW, COLUMN), wide, moved, (0, 1))
    assert blocks_of(program) <= ROW.size * 20, (
        "five counters of four blocks, of at most 131 places"
    )


def test_rows_of_several_pieces() -> None:
    long = Axis("column", 2 * PIECE + 8)
    program = program_of(axis_index(long) + 9, (long,))
    found = np.zeros(long.size, np.uint32)
    interpret_program.interpret(program, [found], ())
    whole = random_halves(np.array(SEED), np.array(FIRST), (long.size + 9,))
    np.testing.assert_array_equal(found - 1, whole[9:])
    assert blocks_of(program) <= 3 * 17 * 4, "three pieces"


def test_columns_around_rows() -> None:
    """Bits lie along the loop around: blocks are computed for all rows of the inner one."""
    place = axis_index(ROW) * 128 + axis_index(COLUMN)
    program = check(place, (COLUMN, ROW), 128, 0, (1, 0))
    assert blocks_of(program) == ROW.size * 16, "four counters of four blocks"


def test_others_are_drawn_one_by_one() -> None:
    place = axis_index(ROW) * 101 + axis_index(COLUMN)
    program = check(place, (COLUMN, ROW), 101, 0, (1, 0))
    assert blocks_of(program) == ROW.size * COLUMN.size

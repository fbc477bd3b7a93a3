"""Turning tiles round with vectors."""

from dataclasses import replace

import numpy as np
import pytest

from picograd import Tensor
from picograd.codegen.linearize_cpu import linearize
from picograd.codegen.linearize_cpu_pack import is_turn
from picograd.codegen.tile import Assign, Store, Tile, TileKernel, TilePart
from picograd.dtype import DType, float32, float64
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr, Kernel, Slot
from picograd.target import Target

ROW, ELEMENT = Axis("row", 16), Axis("element", 19)
PLACE = axis_index(ELEMENT), axis_index(ROW)
MEMORY = axis_index(ROW) * 19 + axis_index(ELEMENT)


def steps(dtype: DType = float32) -> tuple[Assign, Store]:
    """Rows of 19 elements to a tile, and back."""
    load = Expr("load", (), (0, MEMORY), dtype)
    into = Assign("t", (ROW, ELEMENT), load, PLACE)
    out = Store(1, MEMORY, (ROW, ELEMENT), Expr("tile", (), ("t", PLACE), dtype))
    return into, out


def test_only_copies_between_rows_and_columns_turn() -> None:
    into, out = steps()
    assert is_turn(into) and is_turn(out)
    assert not is_turn(replace(into, index=PLACE[::-1]))
    assert not is_turn(replace(into, expr=Expr("neg", (into.expr,), None, float32)))
    assert not is_turn(replace(out, conditions=((axis_index(ROW), 0, 3),)))
    assert not is_turn(replace(out, index=axis_index(ROW) + axis_index(ELEMENT) * 16))


def test_copies_turn_from_memory_to_memory() -> None:
    into, _ = steps()
    column = axis_index(ELEMENT) * 16 + axis_index(ROW)
    copy = Store(1, column, (ROW, ELEMENT), into.expr)
    assert is_turn(copy)
    assert not is_turn(replace(copy, dims=(ELEMENT, ROW)))
    assert not is_turn(replace(copy, index=column * 2))
    assert not is_turn(replace(copy, dims=(Axis("row", 7), ELEMENT)))


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (65, 130), (83, 100), (16, 300)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8"])
def test_ragged_squares_turn(rows: int, columns: int, dtype: str) -> None:
    values = np.arange(3 * rows * columns).reshape(3, rows, columns).astype(dtype)
    x = Tensor(values).realize()
    assert np.array_equal(x.permute(0, 2, 1).contiguous().numpy(), values.transpose(0, 2, 1))
    more = np.arange(rows * columns * 3).reshape(3, columns, rows).astype(dtype)
    found = (x.permute(0, 2, 1) + Tensor(more)).numpy()
    assert np.array_equal(found, values.transpose(0, 2, 1) + more)


@pytest.mark.parametrize(("dtype", "lanes"), [(float32, 16), (float64, 8)])
def test_a_vector_is_no_wider_than_the_target_has(dtype: DType, lanes: int) -> None:
    slots = Slot(dtype, 16 * 19, "in"), Slot(dtype, 16 * 19, "out")
    part = TilePart((), (Tile("t", (19, 16), dtype, "shared"),), steps(dtype))
    tiles = TileKernel(Kernel("turn", "map", slots, (), ()), (part,))
    for width in (64, 32):
        program = linearize(tiles, Target("llvm", "host", width))
        found = [each for each in program.instructions if each.op in ("load", "store")]
        assert {each.lanes for each in found} == {lanes * width // 64}
        masked = [each for each in found if len(each.args) == (3 if each.op == "load" else 4)]
        assert len(masked) == 2 * lanes * width // 64  # one block of the last elements, each way

"""Turning tiles round with vectors."""

from dataclasses import replace

import pytest

from picograd.codegen.linearize_cpu import linearize
from picograd.codegen.linearize_cpu_turn import is_turn
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

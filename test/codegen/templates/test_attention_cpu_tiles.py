"""Tiles of a task: sums of rows that are no scores lie in lanes before they are added."""

from picograd.codegen.operands import role
from picograd.codegen.templates.attention_cpu_tiles import Tiles, turned_sum
from picograd.codegen.tile import Accumulate, Assign
from picograd.dtype import float32
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Compute, Expr


def test_rows_are_turned_and_summed():
    row, column = Axis("row", 10), Axis("r", 6)
    panel, lane = Axis("panel", 2), Axis("lane", 8)
    place = axis_index(row) * 6 + axis_index(column)
    load = Expr("load", (), (0, place), float32)
    compute = Compute((row,), (column,), "sum", load, float32)
    rows = role((row,), axis_index(panel) * 8 + axis_index(lane))
    tiles = Tiles()
    turn, total = turned_sum(tiles, 3, compute, rows, (panel, lane))
    assert isinstance(turn, Assign) and isinstance(total, Accumulate)
    assert tiles.every["early3"].shape == (2, 6, 8) and tiles.every["value3"].shape == (2, 8)
    assert turn.expr.op == "guard" and total.tile == "value3"  # rows end within a panel

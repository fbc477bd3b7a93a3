"""Masks of scores by position, as expressions of Loop IR: what the tests of masks begin with."""

from typing import Any

from picograd.dtype import DType, bool_, float32, int64
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr, const

DOWN, ACROSS = Axis("i", 7), Axis("j", 9)
ROW, COLUMN = (Expr("index", (), axis_index(axis), int64) for axis in (DOWN, ACROSS))
SCORE = Expr("load", (), (0, axis_index(DOWN) * 9 + axis_index(ACROSS)), float32)


def op(name: str, *args: Any, dtype: DType = bool_) -> Expr:
    return Expr(name, args, None, dtype)


BEFORE = op("less_equal", COLUMN, ROW)
NEAR = op("less", op("sub", ROW, const(3, int64), dtype=int64), COLUMN)

"""Loop expressions with operators."""

import numpy as np

from picograd.codegen.terms import Term, as_term, position, tile_at
from picograd.dtype import bool_, float32, int32
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import format_expr


def test_operators_are_rows_of_the_op_table() -> None:
    x, row = tile_at("x", (axis_index(Axis("i", 4)),), float32), position(Axis("j", 8))
    assert (
        format_expr((x * 2.0 - x / 4.0 + 1.0).expr)
        == "add(sub(mul(x[i], 2.0), div(x[i], 4.0)), 1.0)"
    )
    test = (row < 3) & ~row.is_at(1) & (row <= 2)
    assert test.dtype is bool_ and row.dtype is int32
    chosen = test.where(x.of("abs"), 0.0)
    assert chosen.dtype is float32 and format_expr(chosen.expr).endswith("abs(x[i]), 0.0)")
    assert repr((row % 4 // 2).index(2)) == "[floordiv(mod(index(j), 4), 2)]"
    assert (row.cast(float32)).dtype is float32


def test_numbers_have_the_dtype_of_the_term_beside_them() -> None:
    made = as_term(np.pi, float32)
    assert isinstance(made, Term) and (made + 1.0).expr.args[1].dtype is float32

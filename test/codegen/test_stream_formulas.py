"""Formulas of streams with fewer operations."""

import pytest

from picograd.codegen.stream_masks import gathered
from picograd.dtype import bfloat16, float32, float64
from picograd.schedule.loop import Expr, const, rewrite

X, Y = (Expr("ref", (), number, float32) for number in (0, 1))


def made(op, a, b, dtype=float32):
    a, b = (x if isinstance(x, Expr) else const(x, dtype) for x in (a, b))
    return Expr(op, (a, b), None, dtype)


@pytest.mark.parametrize(
    "expr, text",
    [
        (made("div", X, 8.0), "mul(%0, 0.125)"),
        (made("div", made("mul", X, 4.0), 8.0), "mul(%0, 0.5)"),
        (made("mul", made("mul", X, 20.0), made("div", Y, 8.0)), "mul(mul(%0, %1), 2.5)"),
        (made("mul", 3.0, X), "mul(%0, 3.0)"),
        (made("div", 1.0, X), "div(1.0, %0)"),
        (made("div", X, 0.0), "div(%0, 0.0)"),
        (made("add", X, 2.0), "add(%0, 2.0)"),
    ],
)
def test_numbers_are_gathered(expr, text):
    assert str(rewrite(expr, {}, gathered)) == text


def test_narrow_floats_are_computed_in_float32_and_wide_ones_left_alone():
    narrow, wide = (Expr("ref", (), 0, dtype) for dtype in (bfloat16, float64))
    assert str(rewrite(made("div", narrow, 8.0, bfloat16), {}, gathered)) == "mul(%0, 0.125)"
    assert str(rewrite(made("div", wide, 8.0, float64), {}, gathered)) == "div(%0, 8.0)"

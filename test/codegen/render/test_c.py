"""The C spelling: literals have exactly their dtype, conversions and every op of the table."""

import math
import re

import numpy as np
import pytest

from picograd.codegen.render.c import SPELLING, convert, elementwise, half_bits, literal, type_name
from picograd.dtype import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int32,
    int64,
    uint8,
    uint32,
)
from picograd.errors import InternalError
from picograd.graph.elementwise import ELEMENTWISE


@pytest.mark.parametrize(
    ("value", "dtype", "wanted"),
    [
        (True, bool_, "true"),
        (3, int32, "3"),
        (-1, uint32, "4294967295u"),
        (-(2**31), int32, "(int)(-2147483647 - 1)"),
        (-(2**63), int64, "(int64)(-9223372036854775807ll - 1)"),
        (-1, int64, "(int64)(0ll - 1)"),
        (300, uint8, "(uint8)44"),
        (0.5, float32, "0.5f"),
        (-0.5, float32, "(-0.5f)"),
        (0.1, float64, "0.1"),
        (math.inf, float32, "__int_as_float(0x7f800000)"),
        (1e300, float32, "__int_as_float(0x7f800000)"),
        (1.0, float16, "half{0x3c00}"),
        (1.0, bfloat16, "bfloat16{0x3f80}"),
    ],
)
def test_literal(value: object, dtype: DType, wanted: str) -> None:
    found = literal(value, dtype)
    assert found.replace("int32", "int") == wanted


def test_half_bits_round_to_nearest_even() -> None:
    for value in (0.1, 65519.0, 65520.0, 1e-8, math.inf, math.nan):
        with np.errstate(over="ignore"):
            wanted = np.float16(value).view(np.uint16)
        assert int(half_bits(value, float16), 16) == wanted
    assert half_bits(1 + 2**-8, bfloat16) == "0x3f80", "a tie goes to even"
    assert half_bits(1 + 3 * 2**-8, bfloat16) == "0x3f82"
    assert half_bits(math.nan, bfloat16) == "0x7fc0"


def test_conversions() -> None:
    assert convert("x", float32, float32) == "x"
    assert convert("x", float16, float32) == "to_float(x)"
    assert convert("x", int32, bool_) == "(x != 0)"
    assert "round_to<bfloat16>" in convert("x", float64, bfloat16)


@pytest.mark.parametrize("op", sorted(SPELLING))
def test_every_spelling_takes_its_arguments(op: str) -> None:
    count = len(set(re.findall(r"{\d}", SPELLING[op])))
    args = [f"arg{n}" for n in range(count)]
    text = elementwise(op, args, [float32] * count, float32)
    assert all(name in text for name in args) and "{" not in text


def test_every_op_of_the_table_can_be_written() -> None:
    rows = [row for name, row in ELEMENTWISE.items() if name not in ("cast", "bitcast")]
    for row in rows:
        args = [f"arg{n}" for n in range(row.arity)]
        text = elementwise(row.name, args, [float32] * row.arity, float32)
        assert all(name in text for name in args)
    assert elementwise("erf", ["x"], [float16], float32) == "erf(to_float(x))"
    with pytest.raises(InternalError, match="'fly' has no spelling in C"):
        elementwise("fly", [], [], float32)


def test_narrow_integers_wrap_and_integers_do_not_round() -> None:
    both = [uint8, uint8]
    assert elementwise("add", ["a", "b"], both, uint8).startswith("(uint8)")
    assert elementwise("floor", ["a"], [int32], int32) == "a"


def test_vector_types() -> None:
    assert type_name(float32) == "float"
    assert type_name(float32, 4) == "Vector<float, 4>"

"""Values with operators append the instructions they spell, and compute them."""

import numpy as np
import pytest

from picograd.codegen.emit import Emitter
from picograd.codegen.value import Value
from picograd.dtype import bool_, float32, int32
from picograd.schedule.loop import Kernel


def emitter() -> Emitter:
    return Emitter(Kernel("k", "map", (), (), ()), {}, lambda e, x: 0)


def value(number: float, dtype=float32) -> Value:
    made = emitter()
    return Value(made, made.const(number, dtype))


@pytest.mark.parametrize(
    ("make", "op", "dtype"),
    [
        (lambda x: x + 1.0, "add", float32), (lambda x: x - 1.0, "sub", float32),
        (lambda x: x * 2.0, "mul", float32), (lambda x: x / 2.0, "div", float32),
        (lambda x: -x, "neg", float32), (lambda x: x < 1.0, "less", bool_),
        (lambda x: x <= 1.0, "less_equal", bool_), (lambda x: x.is_equal(1.0), "equal", bool_),
        (lambda x: ~(x < 1.0), "not", bool_), (lambda x: x.fma(2.0, 3.0), "fma", float32),
        (lambda x: (x < 1.0) & (x < 2.0), "and", bool_),
        (lambda x: (x < 1.0) | (x < 2.0), "or", bool_),
        (lambda x: (x < 1.0).where(x, 0.0), "where", float32),
        (lambda x: x.cast(int32), "cast", int32), (lambda x: x.bitcast(int32), "bitcast", int32),
    ],
)  # fmt: skip
def test_operator(make, op: str, dtype) -> None:
    found = make(value(0.5))
    last = found.emitter.instructions[-1]
    assert (last.op, last.dtype, found.dtype) == (op, dtype, dtype)
    assert found.position == len(found.emitter.instructions) - 1


def test_integers_use_bits_where_bools_use_logic() -> None:
    number = value(6, int32)
    assert (number & 3).emitter.instructions[-1].op == "bitwise_and"
    assert (number | 3).emitter.instructions[-1].op == "bitwise_or"


def test_numbers_become_constants_of_the_same_dtype_once() -> None:
    x = value(0.5)
    assert x.lift(x) == x.position and x.constant(2.0).dtype is float32
    assert x.lift(2.0) == x.lift(2.0)
    assert np.float32(x.emitter.instructions[x.lift(2.0)].arg) == 2


def test_casting_to_the_same_dtype_appends_nothing() -> None:
    x = value(0.5)
    assert x.cast(float32).position == x.position

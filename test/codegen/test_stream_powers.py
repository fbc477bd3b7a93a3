"""Exponentials in weights as powers of 2."""

import math

from picograd.codegen.stream_masks import (
    exponentials_of,
    is_multiple,
    parts_of,
    power_of,
    refs_of,
    without_factor,
)
from picograd.dtype import float32
from picograd.schedule.loop import Expr, const

SCORE, PEAK, TOTAL, OTHER = (Expr("ref", (), number, float32) for number in range(4))


def made(op, *args):
    return Expr(op, args, None, float32)


EXPONENTIAL = made("exp", made("sub", SCORE, PEAK))
WEIGHT = made("div", EXPONENTIAL, TOTAL)


def test_an_exponential_is_read_with_what_divides_it():
    assert parts_of(EXPONENTIAL) == (SCORE, PEAK, None, math.e)
    assert parts_of(WEIGHT) == (SCORE, PEAK, TOTAL, math.e)
    assert parts_of(SCORE) is None


def test_it_becomes_a_power_of_2_with_one_number_a_row():
    text = str(power_of(WEIGHT))
    assert text.startswith("quick_exp2(sub(mul(%0, 1.44269") and "log(%2)" in text
    assert power_of(SCORE) is None


def test_weights_are_multiples_of_their_exponential():
    weight = made("mul", made("sub", OTHER, PEAK), WEIGHT)
    assert exponentials_of([weight]) == {WEIGHT}
    assert is_multiple(weight, {WEIGHT}) and not is_multiple(OTHER, {WEIGHT})
    assert refs_of([weight]) == {0, 1, 2, 3}


def test_the_numbers_of_a_weight_are_those_of_its_result():
    weight = made("mul", made("mul", WEIGHT, const(2.0, float32)), const(0.25, float32))
    assert without_factor(weight) == (WEIGHT, 0.5)

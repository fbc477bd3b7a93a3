"""Numbers that a user gave stay marked through Python's arithmetic, and are floats and ints."""

import math

import pytest

from picograd.number import Given, GivenInt, given, is_given, like


@pytest.mark.parametrize(
    "compute",
    [
        lambda v: v + 1, lambda v: 1 - v, lambda v: v * 2.0, lambda v: 3 / v, lambda v: v // 0.1,
        lambda v: v % 0.2, lambda v: v**2, lambda v: 2.0**v, lambda v: -v, abs, lambda v: +v,
        lambda v: v * v,
    ],
)  # fmt: skip
def test_what_is_computed_from_a_given_number_is_given(compute) -> None:
    found = compute(given(0.3))
    assert type(found) is Given and found == compute(0.3)


def test_what_python_looks_at_is_plain() -> None:
    value = given(0.25)
    assert not is_given(float(value)) and not is_given(math.sqrt(value)) and not is_given(value > 0)
    assert repr(value) == "0.25" and isinstance(value, float) and value.value == 0.25


def test_named_ints_and_what_no_float32_holds_stay_plain() -> None:
    for value in (0, 1, -1, True, False, math.inf, -math.inf, 1e39, None, "mean"):
        assert given(value) is value
    assert given(math.nan) != given(math.nan) and not is_given(given(math.nan))
    assert type(given(7)) is GivenInt and given(7).value == 7
    assert not is_given(given(3e38) * 10)


def test_like_marks_what_another_function_computed() -> None:
    assert is_given(like(0.5, given(0.25))) and not is_given(like(0.5, 0.25))

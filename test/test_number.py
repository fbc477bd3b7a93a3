"""Numbers that a user gave stay marked through Python's arithmetic, and are floats and ints."""

import math

import pytest

from picograd.number import (
    Given,
    GivenInt,
    converted,
    derivation,
    given,
    is_given,
    like,
    made_of,
    note,
    noting,
)


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


def test_numbers_are_computed_of_others_as_they_were() -> None:
    share, rate = given(0.25), given(2.0)
    with noting({}) as table:
        wanted = [converted(float, (1 - share) * rate), -share, share / rate * share]
    made, places = derivation(made_of(wanted, {id(share), id(rate)}, table), [share, rate])
    found = made.numbers([given(0.5), given(8.0)])
    assert found is not None and all(type(each) is Given for each in found)
    assert [found[places[id(each)]] for each in wanted] == [4.0, -0.5, 0.03125]
    assert made.numbers([given(0.5), given(0.0)]) is None  # as Python would, recording raises
    assert made.numbers([given(1e300), given(8.0)]) is None  # no argument of a plan


def test_numbers_of_another_origin_are_not_computed() -> None:
    share, other, plain = given(0.25), given(3.0), 0.5
    unnoted = share * plain
    with noting({}) as table:
        wanted = [share * other, unnoted + share, note(given(2.0), float, 2.0)]
    told = [number for number, _, _ in made_of(wanted, {id(share)}, table)]
    assert told == [2.0]
    with noting({}) as outer, noting({}) as inner:
        assert inner is outer  # who asked first hears of all
    assert (share * plain) == 0.125 and not outer


def test_a_long_chain_of_numbers_is_walked_without_recursion() -> None:
    first = number = given(1.0)
    with noting({}) as table:
        for _ in range(5000):
            number = number * 1.0001
    made, places = derivation(made_of([number], {id(first)}, table), [first])
    found = made.numbers([given(1.0)])
    assert found is not None and found[places[id(number)]] == number

import math
import operator
from typing import Any

import pytest

from picograd.number_code import compiled


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and repr(a) == repr(b)


STEPS = [
    (2, operator.add, (0, 1), int),
    (3, operator.lt, (2, 4), bool),
    (5, max, (2, 1), int),
    (6, math.sqrt, (5,), float),
]
GUARDS = [(3, True), (1, 2)]


def test_slots_are_filled_in_by_their_operations() -> None:
    slots: list[Any] = [3, 2, 0, False, 10, 0, 0.0]
    assert compiled(STEPS, GUARDS, same)(slots)
    assert slots == [3, 2, 5, True, 10, 5, math.sqrt(5)]


@pytest.mark.parametrize(
    "slots",
    [
        [30, 2, 0, False, 10, 0, 0.0],  # a comparison has another outcome
        [3, 1, 0, False, 10, 0, 0.0],  # a number that was read is another
        [3, 2.0, 0, False, 10, 0, 0.0],  # of another class
        [0.5, 2, 0, False, 10, 0, 0.0],  # and so is a result
    ],
)
def test_a_difference_is_found(slots: list[Any]) -> None:
    assert not compiled(STEPS, GUARDS, same)(slots)


def test_floats_are_told_apart_as_guards_do() -> None:
    evaluate = compiled([], [(0, math.nan), (1, 0.0)], same)
    assert evaluate([math.nan, 0.0]) and not evaluate([math.nan, -0.0])

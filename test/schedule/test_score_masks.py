"""Conditions of masks: where they hide scores, and what they say of positions."""

import itertools

import pytest
from mask_support import ACROSS, BEFORE, COLUMN, DOWN, NEAR, ROW, SCORE, op

from picograd.dtype import bool_, float32, int64
from picograd.schedule.index import axis_index, evaluate
from picograd.schedule.loop import Expr, const
from picograd.schedule.score_masks import (
    affine,
    conjuncts,
    hidden_where,
    hiding,
    needed_where,
    seen_where,
    weighing,
)

CASES = {
    "causal": (BEFORE, lambda i, j: j <= i),
    "less": (op("less", COLUMN, ROW), lambda i, j: j < i),
    "both": (op("logical_and", BEFORE, NEAR), lambda i, j: j <= i and j > i - 3),
    "bits": (op("bitwise_and", BEFORE, NEAR), lambda i, j: j <= i and j > i - 3),
    "not": (op("logical_not", BEFORE), lambda i, j: j > i),
    "neither": (
        op("logical_not", op("logical_or", BEFORE, op("less", const(6, int64), COLUMN))),
        lambda i, j: not (j <= i or j > 6),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_indices_say_where_a_condition_holds(name):
    condition, meaning = CASES[name]
    found = seen_where(condition)
    for i, j in itertools.product(range(7), range(9)):
        at = [evaluate(index, {DOWN: i, ACROSS: j}, None) for index in found]
        assert (min(at) >= 0) == meaning(i, j)


def test_what_is_not_known():
    data = Expr("load", (), (1, axis_index(ACROSS)), bool_)
    assert seen_where(data) is None and hidden_where(data) is None
    assert seen_where(op("logical_or", BEFORE, NEAR)) is None
    assert hidden_where(op("logical_and", BEFORE, NEAR)) is None
    assert affine(op("mul", ROW, COLUMN, dtype=int64)) is None


def test_a_factor_that_is_an_exponential_hides_nothing():
    learned = op("exp", Expr("load", (), (1, axis_index(ACROSS)), float32), dtype=float32)
    assert weighing(op("mul", SCORE, learned, dtype=float32)) == []


def test_a_part_of_a_condition_may_be_needed_alone():
    data = Expr("load", (), (1, axis_index(ACROSS)), bool_)
    every = op("bitwise_and", op("bitwise_and", BEFORE, data), NEAR)
    assert needed_where(every) == [*seen_where(BEFORE), *seen_where(NEAR)]
    none = op("logical_not", op("bitwise_or", data, op("bitwise_not", BEFORE)))
    assert needed_where(none) == seen_where(BEFORE)
    assert needed_where(op("bitwise_or", BEFORE, data)) == needed_where(data) == []
    hidden = op("where", every, SCORE, const(float("-inf"), float32), dtype=float32)
    assert hiding(hidden) == [every] and len(conjuncts(every)) == 3


def test_weights_are_zero_where_their_scores_are_hidden():
    hidden = op("where", BEFORE, SCORE, const(float("-inf"), float32), dtype=float32)
    less = op("sub", hidden, SCORE, dtype=float32)
    assert weighing(op("exp", less, dtype=float32)) == [BEFORE]
    swapped = op("where", op("logical_not", BEFORE), const(0.0, float32), SCORE, dtype=float32)
    assert [each for part in weighing(swapped) for each in conjuncts(part)] == [BEFORE]
    assert needed_where(weighing(swapped)[0]) == seen_where(BEFORE)


def test_a_sum_is_0_where_all_of_it_is():
    masked, other = (
        op("where", BEFORE, each, const(0.0, float32), dtype=float32)
        for each in (SCORE, op("exp", SCORE, dtype=float32))
    )
    assert weighing(op("add", masked, other, dtype=float32)) == [BEFORE]
    assert weighing(op("add", masked, SCORE, dtype=float32)) == []


@pytest.mark.parametrize("depth", [12, 300])
def test_masks_whose_parts_are_shared_are_read_in_linear_time(depth):
    """There are 4 ** depth paths, and more calls inside each other than Python has frames for."""
    place, lowest = ROW, const(float("-inf"), float32)
    every, none, score = BEFORE, op("logical_not", BEFORE), SCORE
    for number in range(1, depth + 1):
        twice = op("add", place, place, dtype=int64)
        place = op("sub", twice, place, dtype=int64)
        near = op("less_equal", COLUMN, op("add", ROW, const(number, int64), dtype=int64))
        every = op("logical_and", op("logical_and", every, near), op("logical_and", every, BEFORE))
        none = op("logical_or", op("logical_or", none, op("logical_not", near)), none)
        hidden = op("where", near, score, lowest, dtype=float32)
        score = op("add", hidden, score, dtype=float32)
    assert affine(place) == affine(ROW)
    assert len(seen_where(every)) == len(conjuncts(every)) == depth + 1
    assert {*needed_where(every)} == {*seen_where(every)}
    assert len(hidden_where(none)) == depth + 1
    assert len(hiding(score)) == len(weighing(op("exp", score, dtype=float32))) == depth + 1

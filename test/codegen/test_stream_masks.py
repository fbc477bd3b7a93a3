"""Masks by position: where they hide scores, and bounds over blocks."""

import itertools

import numpy as np
import pytest

from picograd.codegen.stream_masks import (
    FARTHEST,
    affine,
    choices,
    extreme,
    hidden_scores,
    hidden_where,
    hiding,
    minimum_of,
    needed_where,
    seen_where,
    settled,
    unmasked,
    zero_where,
)
from picograd.dtype import bool_, float32, int64
from picograd.schedule.index import Axis, axis_index, constant, evaluate, substitute
from picograd.schedule.loop import Expr, const

DOWN, ACROSS = Axis("i", 7), Axis("j", 9)
ROW, COLUMN = (Expr("index", (), axis_index(axis), int64) for axis in (DOWN, ACROSS))
SCORE = Expr("load", (), (0, axis_index(DOWN) * 9 + axis_index(ACROSS)), float32)


def op(name, *args, dtype=bool_):
    return Expr(name, args, None, dtype)


BEFORE = op("less_equal", COLUMN, ROW)
NEAR = op("less", op("sub", ROW, const(3, int64), dtype=int64), COLUMN)
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


def test_a_part_of_a_condition_may_be_needed_alone():
    data = Expr("load", (), (1, axis_index(ACROSS)), bool_)
    every = op("bitwise_and", op("bitwise_and", BEFORE, data), NEAR)
    assert needed_where(every) == [*seen_where(BEFORE), *seen_where(NEAR)]
    none = op("logical_not", op("bitwise_or", data, op("bitwise_not", BEFORE)))
    assert needed_where(none) == seen_where(BEFORE)
    assert needed_where(op("bitwise_or", BEFORE, data)) == needed_where(data) == []
    hidden = op("where", every, SCORE, const(float("-inf"), float32), dtype=float32)
    assert hidden_scores(hidden) == needed_where(every) and not choices(hidden)


def test_numbers_in_memory_are_positions():
    """Those far away are as far as any position."""
    length = Expr("load", (), (1, axis_index(DOWN)), int64)
    (index,) = seen_where(op("less", COLUMN, length))
    for value, seen in ((4, 4), (1 << 40, 9), (-(1 << 40), 0)):
        near = np.clip(value, -FARTHEST, FARTHEST)
        rest = substitute(index, {DOWN: constant(0)})
        found = [evaluate(rest, {ACROSS: j}, lambda expr, near=near: near) for j in range(9)]
        assert sum(each >= 0 for each in found) == seen
    most = extreme(index, {}, {ACROSS}, True)
    assert most.hi - most.lo >= FARTHEST, "it is known once the row is"
    assert not extreme(index, {}, {ACROSS, DOWN}, True).terms


def test_choices_are_settled_where_all_is_seen():
    hidden = op("where", BEFORE, SCORE, const(float("-inf"), float32), dtype=float32)
    (choice,) = choices(hidden)
    assert choice.shown is SCORE and settled(hidden) is SCORE
    swapped = op("where", op("logical_not", BEFORE), const(0.0, float32), SCORE, dtype=float32)
    assert settled(swapped) is SCORE
    assert zero_where(swapped) == seen_where(BEFORE)


def test_masks_of_weights_that_scores_have_are_left_out():
    hidden = op("where", BEFORE, SCORE, const(float("-inf"), float32), dtype=float32)
    weight = op("where", BEFORE, op("exp", hidden, dtype=float32), const(0.0, float32),
                dtype=float32)  # fmt: skip
    assert unmasked(weight, hiding(hidden)) == op("exp", hidden, dtype=float32)
    other = op("where", NEAR, SCORE, const(0.0, float32), dtype=float32)
    assert unmasked(other, hiding(hidden)) == other


def test_bounds_over_a_block():
    block = Axis("block", 3)
    values = {ACROSS: axis_index(block) * 3 + axis_index(Axis("place", 3))}
    place = next(atom for atom, _ in values[ACROSS].terms if atom is not block)
    index = axis_index(DOWN) - axis_index(ACROSS)
    for is_most, pick in ((True, np.max), (False, np.min)):
        found = extreme(index, values, {place}, is_most)
        for i, b in itertools.product(range(7), range(3)):
            every = [i - (3 * b + p) for p in range(3)]
            assert evaluate(found, {DOWN: i, block: b}, None) == pick(every)


def test_the_least_of_indices_is_one():
    first, second = axis_index(DOWN) - 3, axis_index(ACROSS) * -1 + 4
    both = minimum_of([first, second])
    assert (both.lo, both.hi) == (-4, 3) and minimum_of([first]) is first

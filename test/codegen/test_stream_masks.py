"""Masks by position: where they hide scores, and bounds over blocks."""

import itertools

import numpy as np
import pytest
from mask_support import ACROSS, BEFORE, COLUMN, DOWN, NEAR, SCORE, op

from picograd.codegen.stream_masks import (
    choices,
    extreme,
    is_multiple,
    minimum_of,
    outermost,
    settled,
    unmasked,
    unrounded_sum,
)
from picograd.dtype import bfloat16, bool_, float32, int32, int64
from picograd.schedule.index import (
    Axis,
    Dynamic,
    atom_index,
    axis_index,
    constant,
    evaluate,
    substitute,
)
from picograd.schedule.loop import Expr, const
from picograd.schedule.score_masks import FARTHEST, hiding, seen_where


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


@pytest.mark.parametrize("height", [32, 25])
def test_arrays_are_read_where_rows_of_a_block_are(height):
    """One element for each grain of rows; behind the last one there is none."""
    rows, tile, row = Axis("i", 100), Axis("tile", 4), Axis("row", height)
    found = np.array([3, 1, 4, 1, 5, 9, 2])  # of 16 rows each
    value = Expr("load", (), (0, axis_index(rows) // 16), int32)
    index = axis_index(ACROSS) - atom_index(Dynamic(value, 0, 9)) * 2
    values = {rows: axis_index(tile) * height + axis_index(row)}
    for is_most, pick in ((True, np.min), (False, np.max)):
        bound = extreme(index, values, {row}, is_most)
        for t, j in itertools.product(range(4), range(9)):
            places = {tile: t, ACROSS: j}
            near = found[height * t // 16 : (height * t + height - 1) // 16 + 1]
            assert evaluate(bound, places, Reader(found, places)) == j - 2 * pick(near)


class Reader:
    """Evaluates what indices are made of."""

    def __init__(self, array, places):
        self.array, self.places = array, places

    def __call__(self, expr):
        if expr.op == "index":
            return evaluate(expr.arg, self.places, self)
        if expr.op == "load":
            return self.array[evaluate(expr.arg[1], self.places, self)]
        if expr.op == "guard":
            ((index, low, high),) = expr.arg
            is_there = low <= evaluate(index, self.places, self) <= high
            return self(expr.args[0]) if is_there else expr.args[1].arg
        return {"maximum": max, "minimum": min}[expr.op](*map(self, expr.args))


def test_shared_parts_are_looked_at_once():
    """Random bits are parts of parts that are read twice each: a tree of them has 2^40 leaves."""
    expr, seen = const(1.0, float32), []
    for _ in range(40):
        expr = op("add", expr, expr, dtype=float32)

    def find(each):
        seen.append(each)
        assert len(seen) < 100

    assert outermost(expr, find).op == "add"
    assert len(seen) == 41


def test_sums_of_multiples_are_multiples():
    power, other = op("exp", SCORE, dtype=float32), op("tanh", SCORE, dtype=float32)
    scaled = op("mul", power, other, dtype=float32)
    for parts, wanted in (((power, scaled), True), ((scaled, other), False)):
        assert is_multiple(op("add", *parts, dtype=float32), {power}) is wanted


def test_weights_are_rounded_once_where_dropout_scales_them():
    """bfloat16(where(kept, bfloat16(w) * n, 0)) -> where(kept, w * n, 0), n a number given."""
    weight = Expr("load", (), (0, axis_index(Axis("i", 8))), float32)
    number = Expr("scalar", (), 0, bfloat16)
    rounded = Expr("cast", (weight,), None, bfloat16)
    multiple = Expr("mul", (rounded, number), None, bfloat16)
    kept = Expr("load", (), (1, axis_index(Axis("i", 8))), bool_)
    masked = Expr("where", (kept, multiple, const(0, bfloat16)), None, bfloat16)
    found = unrounded_sum(Expr("cast", (masked,), None, float32))
    assert found.dtype is float32 and found.args[1].args == (weight, number)
    assert found.args[2] == const(0, float32)

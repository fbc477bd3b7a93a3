"""Reach: no block or stretch with something wanted is left out, and sums stop where they should."""

import itertools

import pytest

from picograd.codegen.cuts import Reach, exist, inside, nested_cut, range_cut, reaches, starts
from picograd.dtype import int64
from picograd.helpers import ceil_div, product
from picograd.schedule.index import (
    Axis,
    Dynamic,
    Index,
    atom_index,
    axis_index,
    evaluate,
    position_over,
)
from picograd.schedule.loop import Condition, Expr

COUNT = Expr("scalar", (), 0, int64)
SHAPES = [((8,), 0), ((8, 3), 0), ((3, 8), 1), ((2, 8, 3), 1), ((5, 4, 8), 2)]


def holds(tests: tuple[Condition, ...], places: dict[Axis, int], count: int) -> bool:
    values = [(evaluate(index, places, lambda expr: count), lo, hi) for index, lo, hi in tests]
    return all(lo <= value <= hi for value, lo, hi in values)


def end_of(axis: Axis) -> Condition:
    index = axis_index(axis) - atom_index(Dynamic(COUNT, 0, axis.size))
    return index, index.lo, -1


@pytest.mark.parametrize("shape, ended", SHAPES, ids=str)
@pytest.mark.parametrize("block, length", [(4, 2), (6, 6), (12, 5), (40, 3)])
@pytest.mark.parametrize("is_range", [True, False])
def test_what_is_wanted_is_not_left_out(
    shape: tuple[int, ...], ended: int, block: int, length: int, is_range: bool
) -> None:
    role = tuple(Axis("abc"[n], size) for n, size in enumerate(shape))
    outer = (Axis("block", ceil_div(product(shape), block)),)
    cut = range_cut(role, block, outer) if is_range else nested_cut(role, block)
    (reach,) = reaches(cut, role, (end_of(role[ended]),))
    for count in (0, 1, 5, 8):
        for place in itertools.product(*(range(axis.size) for axis in cut.outer)):
            check_block(cut, reach, dict(zip(cut.outer, place)), role[ended], count, length)


def check_block(
    cut: object, reach: Reach, outer: dict[Axis, int], axis: Axis, count: int, length: int
) -> None:
    wanted: list[int] = []
    pieces = [piece for piece in cut.pieces if holds(piece.when, outer, count)]  # type: ignore
    for piece in pieces:
        for point in itertools.product(*(range(each.size) for each in piece.dims)):
            places = outer | dict(zip(piece.dims, point))
            at = evaluate(piece.values.get(axis, axis_index(axis)), places, None)
            position = evaluate(piece.position, places, None)
            wanted += [position] if at < count else []
            is_in = holds(inside([reach], cut, piece, False), places, count)
            assert is_in or at >= count
            assert at < count or not is_in or not (reach.limit or reach.cycle)
    assert holds(exist([reach]), outer, count) or not wanted
    if reach.limit is not None:
        limit = evaluate(reach.limit, outer, lambda expr: count)
        assert wanted == list(range(max(min(limit, len(wanted)), 0)))
    group = Axis("group", ceil_div(cut.size, length))  # type: ignore[attr-defined]
    for number in range(group.size):
        first: Index = position_over((group,)) * length
        stretch = range(number * length, (number + 1) * length)
        is_kept = holds(starts([reach], first, length), outer | {group: number}, count)
        assert is_kept or not set(stretch) & set(wanted)


def test_whole_stretches_beyond_a_count_are_left_out() -> None:
    rows, columns = Axis("a", 4), Axis("b", 16)
    cut = range_cut((rows, columns), 64, (Axis("block", 1),))
    (reach,) = reaches(cut, (rows, columns), (end_of(columns),))
    group = Axis("group", 16)
    tests = starts([reach], position_over((group,)) * 4, 4)
    kept = [holds(tests, {group: number}, 5) for number in range(16)]
    assert kept == [True, True, False, False] * 4

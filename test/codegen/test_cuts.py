"""Cuts: every position of a role is visited exactly once, inside its block."""

import itertools

import pytest

from picograd.codegen.cuts import Cut, nested_cut, range_cut, split_outer, split_size
from picograd.helpers import product
from picograd.schedule.index import Axis, evaluate, substitute


def visited(cut: Cut, axes: tuple[Axis, ...], outer: tuple[Axis, ...]) -> list[tuple[int, ...]]:
    """Values of the axes at every point of every block, in order."""
    found = []
    for place in itertools.product(*(range(x.size) for x in outer)):
        known = dict(zip(outer, place, strict=True))

        def holds(conditions: tuple, values: dict) -> bool:  # type: ignore[type-arg]
            tests = [(evaluate(index, values, None), lo, hi) for index, lo, hi in conditions]
            return all(lo <= value <= hi for value, lo, hi in tests)

        if not holds(cut.guard, known):
            continue
        used = set()
        for piece in cut.pieces:
            if not holds(piece.when, known):
                continue
            for point in itertools.product(*(range(x.size) for x in piece.dims)):
                values = known | dict(zip(piece.dims, point, strict=True))
                if not holds(piece.guards, values):
                    continue
                position = evaluate(piece.position, values, None)
                assert 0 <= position < cut.size and position not in used
                used.add(position)
                read = [piece.values.get(x) for x in axes]
                found.append(
                    tuple(
                        evaluate(r, values, None) if r is not None else values.get(x, 0)
                        for x, r in zip(axes, read, strict=True)
                    )
                )
    return found


SHAPES = [(7,), (3, 5), (4, 1, 6), (2, 3, 4), (1, 1), (13, 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("limit", [1, 2, 5, 8, 12, 100])
def test_nested_cut_visits_everything_once(shape: tuple[int, ...], limit: int) -> None:
    axes = tuple(Axis(f"a{n}", size) for n, size in enumerate(shape))
    cut = nested_cut(axes, limit)
    assert cut.size <= limit
    seen = visited(cut, axes, cut.outer)
    assert sorted(seen) == sorted(itertools.product(*map(range, shape)))
    if cut.outer:
        parts, axis = split_outer(cut, 3)
        seen = visited(parts, axes, (axis, *parts.outer))
        assert sorted(seen) == sorted(itertools.product(*map(range, shape)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("block", [1, 2, 5, 8, 100])
@pytest.mark.parametrize("is_guarded", [False, True])
def test_range_cut_visits_everything_once(
    shape: tuple[int, ...], block: int, is_guarded: bool
) -> None:
    axes = tuple(Axis(f"a{n}", size) for n, size in enumerate(shape))
    total = product(shape)
    tasks = Axis("task", -(-total // (2 * block)))
    outer = tasks, Axis("inside", 2)
    seen = visited(range_cut(axes, block, outer, is_guarded), axes, outer)
    assert sorted(seen) == sorted(itertools.product(*map(range, shape)))


def test_whole_role_in_one_block_has_no_tests() -> None:
    axes = Axis("a", 6), Axis("b", 4)
    cut = nested_cut(axes, 24)
    assert cut.outer == () and cut.count == 1 and cut.pieces[0].dims == axes
    assert not cut.pieces[0].when and not cut.pieces[0].guards
    assert substitute(cut.pieces[0].position, {}).hi == 23


def test_split_size_prefers_divisors() -> None:
    assert split_size(128, 13) == 8
    assert split_size(1021, 512) == 511
    assert split_size(12, 12) == 12

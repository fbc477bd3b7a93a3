"""Cuts cover a space exactly once; merging keeps every index."""

import numpy as np
import pytest

from picograd.codegen.templates.grid import (
    Cut,
    balanced,
    cut,
    cut_flat,
    cut_square,
    is_joint,
    merge_part,
)
from picograd.dtype import float32
from picograd.schedule.index import Axis, axis_index, evaluate
from picograd.schedule.loop import Compute, Expr, Part


def covered(space: Cut, axes: list[Axis]) -> list[tuple[int, ...]]:
    """Every point of the old axes that the cut visits."""
    new = [*space.grid, *space.dims]
    values = dict(zip(new, np.indices([axis.size for axis in new]), strict=True))
    shape = [axis.size for axis in new]
    held = np.ones(shape, bool)
    for index, low, high in space.conditions:
        at = evaluate(index, values, lambda e: None)
        held &= np.broadcast_to((at >= low) & (at <= high), shape)
    found = [space.axes.get(axis, axis_index(axis)) for axis in axes]
    grids = [np.broadcast_to(evaluate(i, values, lambda e: None), shape)[held] for i in found]
    return sorted(zip(*(g.tolist() for g in grids), strict=True))


@pytest.mark.parametrize("sizes", [(7, 5, 9), (1, 40), (64, 3)])
@pytest.mark.parametrize(
    "make",
    [lambda axes: cut(axes, 6), lambda axes: cut(axes, 20), lambda axes: cut(axes, 10**6),
     lambda axes: cut_flat(axes, 8), lambda axes: cut_square(axes, axes[0], 4)],
)  # fmt: skip
def test_every_point_once(make, sizes: tuple[int, ...]) -> None:
    axes = [Axis(f"x{n}", size) for n, size in enumerate(sizes)]
    assert covered(make(axes), axes) == list(np.ndindex(*sizes))


def test_lanes_are_neighbours() -> None:
    axes = [Axis("a", 3), Axis("b", 8)]
    space = cut_flat(axes, 4, 2)
    assert space.dims[-1].size == 2 and covered(space, axes) == list(np.ndindex(3, 8))


def test_chunks_of_whole_vectors_where_no_number_divides() -> None:
    axis = Axis("c", 58)
    space = cut([axis], 32, 2)
    assert [each.size for each in (*space.grid, *space.dims)] == [2, 30], "not 29, as they are odd"
    assert covered(space, [axis]) == [(n,) for n in range(58)]


def test_balanced_chunks() -> None:
    assert balanced(100, 64) == 50 and balanced(100, 100) == 100 and balanced(97, 50) == 49


def test_grid_axes_are_put_in_front() -> None:
    outer = Axis("part", 2)
    assert cut([Axis("a", 9)], 3).with_grid([outer]).grid[0] is outer


def test_axes_that_step_as_one_are_merged() -> None:
    a, b, c = Axis("a", 4), Axis("b", 5), Axis("one", 1)
    flat = axis_index(a) * 5 + axis_index(b)
    assert is_joint(flat, a, b) and not is_joint(flat, b, a)
    body = Expr("load", (), (0, flat), float32)
    part = Part((), (Compute((a, b, c), (), None, body, float32, (1, flat)),))
    (compute,) = merge_part(part).computes
    assert [axis.size for axis in compute.axes] == [20]
    swapped = axis_index(b) * 4 + axis_index(a)
    other = Expr("load", (), (0, swapped), float32)
    apart = Part((), (Compute((a, b), (), None, other, float32, (1, flat)),))
    assert len(merge_part(apart).computes[0].axes) == 2

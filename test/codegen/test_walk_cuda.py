"""Walks: all threads together visit every coordinate of a layout, in registers of their own."""

import numpy as np
import pytest

from picograd.codegen.layout import (
    Blocked,
    Layout,
    MmaAccumulator,
    WgmmaAccumulator,
    replicas_of,
    runs_walk,
    walk,
)
from picograd.errors import InternalError
from picograd.schedule.index import Axis, evaluate

LAYOUTS = {
    "row": (Blocked((1, 100), (1, 32), (1, 4)), 32),
    "column": (Blocked((8, 40), (2, 16), (2, 1), True), 32),
    "copied column": (Blocked((8, 40), (2, 8), (2, 1), True), 32),
    "block": (Blocked((8, 40), (2, 16), (2, 1)), 32),
    "replicated": (Blocked((4, 8), (2, 4), (1, 1)), 32),
    "mma": (MmaAccumulator((32, 16), (1, 2)), 64),
    "wgmma": (WgmmaAccumulator(16, 1), 128),
    "stacked wgmma": (WgmmaAccumulator(16, 2, 2), 256),
}


def visits(layout: Layout, threads: int, is_vector: bool):
    """(thread, register, coordinates) of every point the walk visits."""
    thread = Axis("t", threads)
    found = walk(layout, thread, is_vector)
    axes = [thread, *(axis for axis, _ in found.loops)]
    axes += [found.vector[0]] if found.vector else []
    values = dict(zip(axes, np.indices([axis.size for axis in axes]), strict=True))
    shape = [axis.size for axis in axes]
    held = np.ones(shape, bool)
    for index, low, high in found.conditions:
        at = evaluate(index, values, lambda e: None)
        held &= np.broadcast_to((at >= low) & (at <= high), shape)
    rank = len(found.coordinates)
    pieces = [values[thread], found.register(rank), *found.coordinates]
    grids = [
        piece if isinstance(piece, np.ndarray) else evaluate(piece, values, lambda e: None)
        for piece in pieces
    ]
    return np.stack([np.broadcast_to(g, shape)[held] for g in grids], 1)


@pytest.mark.parametrize("is_vector", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
def test_walk_is_the_layout(name: str, is_vector: bool) -> None:
    layout, threads = LAYOUTS[name]
    rows = visits(layout, threads, is_vector)
    replicas = replicas_of(layout, threads)
    for thread, register, *coordinates in rows.tolist():
        is_first = isinstance(layout, Blocked) and layout.is_first_fastest
        own = thread % layout.thread_count if is_first else thread // replicas
        assert tuple(coordinates) == layout.coordinate(own, register)
    points = np.unique(rows[:, 2:], axis=0)
    shape = layout.shape if isinstance(layout, Blocked) else points.max(0) + 1
    assert len(points) == np.prod(shape) and len(rows) == len(points) * replicas
    assert rows[:, 1].max() < layout.register_count


def test_runs_are_all_elements_of_a_fragment_once():
    """Of the rows that threads hold, and eight neighbours at a time."""
    layout, thread = WgmmaAccumulator(64, 2), Axis("t", 256)
    found = runs_walk(layout, thread)
    assert found.vector is not None and found.vector[1] == 8
    axes = [thread, *(axis for axis, _ in found.loops), found.vector[0]]
    values = dict(zip(axes, np.indices([axis.size for axis in axes]), strict=True))
    row, column = (evaluate(index, values, lambda e: None) for index in found.coordinates)
    places = np.sort((row * 64 + column).ravel())
    np.testing.assert_array_equal(places, np.arange(128 * 64))
    own = walk(layout, thread, False)
    axes = [thread, *(axis for axis, _ in own.loops)]
    values = dict(zip(axes, np.indices([axis.size for axis in axes]), strict=True))
    held = evaluate(own.coordinates[0], values, lambda e: None)
    for number in range(256):
        assert set(row[number].ravel()) == set(held[number].ravel())


def test_threads_must_replicate_the_layout() -> None:
    with pytest.raises(InternalError, match="do not replicate"):
        walk(Blocked((4,), (3,), (1,)), Axis("t", 32), False)

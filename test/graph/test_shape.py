"""Shape rules against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from picograd.errors import AxisError, ShapeError
from picograd.graph.shape import (
    Shape,
    broadcast_shapes,
    fold_shape,
    infer_reshape,
    normalise_axes,
    normalise_axis,
    reshape_dimensions,
    window_shape,
)

SHAPES = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@given(SHAPES, SHAPES, SHAPES)
def test_broadcast_equals_numpy(a: Shape, b: Shape, c: Shape) -> None:
    try:
        expected = np.broadcast_shapes(a, b, c)
    except ValueError:
        with pytest.raises(ShapeError):
            broadcast_shapes(a, b, c)
    else:
        assert broadcast_shapes(a, b, c) == expected


@given(SHAPES, st.lists(st.integers(-1, 6), max_size=4).map(tuple))
def test_reshape_equals_numpy(shape: Shape, wanted: Shape) -> None:
    try:
        expected = np.empty(shape).reshape(wanted).shape
    except ValueError:
        with pytest.raises(ShapeError):
            infer_reshape(shape, wanted)
    else:
        assert infer_reshape(shape, wanted) == expected


def test_axes() -> None:
    assert normalise_axes((-1, 0), 3) == (0, 2)
    assert normalise_axes(None, 2) == (0, 1)
    assert normalise_axes(-1, 0) == ()
    assert normalise_axis(-1, 0) == 0
    with pytest.raises(AxisError):
        normalise_axis(1, 0)


def test_fold_undoes_window() -> None:
    windows = ((1, 3, 2, 1), (0, 2, 1, 3))
    shape = window_shape((9, 8, 4), windows)
    assert shape == (6, 3, 4, 3, 2)
    assert fold_shape(shape, windows, (8, 9)) == (9, 8, 4)


def test_reshape_that_moves_sizes_of_one() -> None:
    assert reshape_dimensions((3, 1, 4), (1, 3, 4, 1)) == (-1, 0, 2, -1)
    assert reshape_dimensions((3, 4), (4, 3)) is None
    assert reshape_dimensions((3, 4), (12,)) is None
    assert reshape_dimensions((1, 1), ()) == ()

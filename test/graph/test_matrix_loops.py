"""Loops over panels: how these lie, and what there is room for (results: test_matrix_kernels)."""

from dataclasses import replace

import numpy as np
import pytest
from graph_support import leaf, value

from picograd.graph import matrix_loops
from picograd.target import cuda_target

CUDA = cuda_target("sm_90a")
RANDOM = np.random.default_rng(4)


def test_panels_begin_on_the_diagonal() -> None:
    x = RANDOM.normal(size=(2, 96, 96))
    node = leaf(np.tril(x))
    panels = matrix_loops.moved_up(node, 32)
    assert panels.shape == (3, 2, 96, 32)
    np.testing.assert_array_equal(value(panels)[1][:, :64], np.tril(x)[:, 32:, 32:64])
    np.testing.assert_array_equal(value(matrix_loops.moved_down(panels)), np.tril(x))


def test_ones_on_the_diagonal_that_is_new() -> None:
    x = RANDOM.normal(size=(1, 3, 2))
    found = value(matrix_loops.grown(leaf(x), 2))[0]
    np.testing.assert_array_equal(found[:3, :2], x[0])
    np.testing.assert_array_equal(found[:, 2:], np.eye(5, 2, -3))


@pytest.mark.parametrize("count", [0, 3, 7])
def test_rows_turn(count: int) -> None:
    x = RANDOM.normal(size=(2, 7, 3))
    found = value(matrix_loops.turned_up(leaf(x), count))
    np.testing.assert_array_equal(found, np.roll(x, -count, 1))


@pytest.mark.parametrize(
    ("rows", "width"), [(0, 0), (300, 32), (1024, 32), (1025, 16), (4096, 8), (8192, 4), (8193, 0)]
)
def test_columns_that_a_block_has_room_for(rows: int, width: int) -> None:
    x = leaf(np.ones((1, rows, 1), "f4"))
    assert matrix_loops.width_of(x, CUDA) == width
    small = replace(CUDA, shared_bytes=99 << 10)
    assert matrix_loops.width_of(x, small) <= width

"""Q and R by panels of reflectors: whole, and in pieces of rows."""

from typing import Any

import numpy as np
import pytest
from graph_support import leaf, value

from picograd.graph import reflector_loops

RANDOM = np.random.default_rng(6)
SMALL = 64 * reflector_loops.SIDE * 8  # bytes of a panel of 64 rows of float64


def check(x: Any, columns: int, tolerance: float = 1e-13) -> None:
    """Q has orthonormal columns, R is an upper triangle, and both multiply to what was given."""
    q, r = map(value, reflector_loops.decomposed(leaf(x), columns))
    assert q.shape[2] == r.shape[1] == columns
    assert np.abs(q.transpose(0, 2, 1) @ q - np.eye(columns)).max() < tolerance
    assert not np.tril(r, -1).any()
    assert np.abs(q @ r - x).max() <= tolerance * np.abs(x).max()


@pytest.mark.parametrize(
    "shape", [(2, 3, 3), (1, 40, 33), (2, 9, 50), (1, 50, 70), (1, 1, 4), (1, 100, 70)]
)
@pytest.mark.parametrize("is_complete", [False, True])
def test_matrices_of_any_shape(shape: tuple[int, ...], is_complete: bool) -> None:
    check(RANDOM.normal(size=shape), shape[1] if is_complete else min(shape[1:]))


@pytest.mark.parametrize("shape", [(1, 70, 50), (2, 300, 20), (1, 130, 130), (1, 1500, 40)])
def test_rows_in_pieces(shape: tuple[int, ...], monkeypatch: Any) -> None:
    monkeypatch.setattr(reflector_loops, "PANEL_BYTES", SMALL)
    check(RANDOM.normal(size=shape), shape[2])


def test_a_complete_q_in_pieces(monkeypatch: Any) -> None:
    monkeypatch.setattr(reflector_loops, "PANEL_BYTES", SMALL)
    check(RANDOM.normal(size=(1, 100, 40)), 100)


@pytest.mark.parametrize("shape", [(2, 130, 130), (1, 200, 150), (1, 100, 260)])
@pytest.mark.parametrize("size", [SMALL, 1 << 20])
def test_loops_over_halves(shape: tuple[int, ...], size: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(reflector_loops, "PANEL_BYTES", size)
    monkeypatch.setattr(reflector_loops, "HALVED", 48)
    x = RANDOM.normal(size=shape)
    check(x, min(shape[1:]))
    check(x, shape[1])
    steps, width = reflector_loops.widths(min(shape[1:]))
    loops, _ = reflector_loops.in_panels(leaf(x).pad(((0, 0), (0, 8), (0, 8))), steps, width)
    assert len(loops) > 1


@pytest.mark.parametrize("rows", [60, 150])
def test_columns_that_depend_on_others(rows: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(reflector_loops, "PANEL_BYTES", SMALL)
    whole = RANDOM.normal(size=(1, rows, 40))
    whole[:, :, 7] = whole[:, :, 3]
    few = np.zeros((1, rows, 40))
    few[:, -5:] = RANDOM.normal(size=(5, 40))
    for x in (whole, few, np.ones_like(few), np.zeros_like(few), np.eye(rows, 40)[None]):
        check(x, 40, 3e-14 * 40)


@pytest.mark.parametrize("rows", [45, 150])
def test_what_a_square_is_nearest_to(rows: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(reflector_loops, "PANEL_BYTES", SMALL)
    a, b = RANDOM.normal(size=(2, rows, 40)), RANDOM.normal(size=(2, rows, 3))
    square, right = map(value, reflector_loops.reduced(leaf(a), leaf(b)))
    for number in range(2):
        found = np.linalg.solve(square[number], right[number])
        wanted = np.linalg.lstsq(a[number], b[number], rcond=None)[0]
        np.testing.assert_allclose(found, wanted, atol=1e-12)

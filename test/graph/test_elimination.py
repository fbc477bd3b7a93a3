"""What elimination means: panels say which row is where, and rows below are those of a factor."""

import numpy as np
from graph_support import leaf, value

from picograd.graph.elimination import eliminate

RANDOM = np.random.default_rng(5)


def test_a_panel_tells_the_order_of_its_rows() -> None:
    x = RANDOM.normal(size=(2, 9, 4))
    found = value(eliminate(leaf(x), "panel", 4))
    both, order = found[:, :36].reshape(2, 9, 4), found[:, 40:].astype(int)
    lower = np.tril(both, -1) + np.eye(9, 4)
    rows = np.take_along_axis(x, order[:, :, None], 1)
    np.testing.assert_allclose(lower @ np.triu(both[:, :4]), rows, atol=1e-14)
    assert (np.abs(lower) <= 1).all()


def test_rows_below_a_corner_are_those_of_the_factor() -> None:
    x = RANDOM.normal(size=(11, 11))
    x = x @ x.T + np.eye(11)
    found = value(eliminate(leaf(x[None, :, :4]), "below", 4)).reshape(7, 4)
    np.testing.assert_allclose(found, np.linalg.cholesky(x)[4:, :4], atol=1e-13)

"""Symmetric elimination: pivots of one and of two rows, and what is not read."""

import numpy as np

from picograd.graph.host_ldl import ldl, ldl_solve


def test_a_zero_diagonal_takes_blocks_of_two_rows() -> None:
    x = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 3.0], [1.0, 3.0, 0.5]])
    both, pivots = ldl(x, False)
    assert pivots.tolist() == [-2, -2, 3]
    np.testing.assert_allclose(both, [[0, 0, 0], [2, 0, 0], [1.5, 0.5, -2.5]])
    b = np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(x @ ldl_solve(both, pivots, b, False), b, atol=1e-12)


def test_the_upper_triangle_is_not_read() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(4, 7, 7)) + 1j * random.normal(size=(4, 7, 7))
    x = x + x.conj().swapaxes(-1, -2)
    above = np.triu(np.full((7, 7), np.nan), 1)
    found, want = ldl(np.tril(x) + above, True), ldl(x, True)
    for one, other in zip(found, want, strict=True):
        np.testing.assert_array_equal(one, other)
    b = random.normal(size=(4, 7, 3)) + 0j
    np.testing.assert_allclose(x @ ldl_solve(*want, b, True), b, atol=1e-9)


def test_a_column_of_zeros_is_left() -> None:
    both, pivots = ldl(np.diag([0.0, 3.0]), False)
    assert both.tolist() == [[0.0, 0.0], [0.0, 3.0]] and pivots.tolist() == [1.0, 2.0]

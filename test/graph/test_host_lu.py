"""Elimination, one matrix after the other and all of them together."""

import numpy as np
import pytest

from picograd.graph import host_lu, host_matrices
from picograd.graph.host_lu import MANY, eliminated, lu, permutation, solve_rows
from picograd.graph.host_matrices import MATRICES


@pytest.mark.parametrize("count, size", [(9, 5), (1, 67), (4 * MANY + 1, 4), (3, 0), (0, 3)])
@pytest.mark.parametrize("is_upper", [False, True])
@pytest.mark.parametrize("is_unit", [False, True])
def test_rows_are_solved_from_one_triangle(
    count: int, size: int, is_upper: bool, is_unit: bool
) -> None:
    random = np.random.default_rng(0)
    a = random.normal(size=(count, size, size)) / 8 + 2 * np.eye(size)
    b = random.normal(size=(count, size, 2))
    keep = np.triu if is_upper else np.tril
    used = keep(a) if not is_unit else keep(a, 1 if is_upper else -1) + np.eye(size)
    unread = ~keep(np.ones((size, size), bool), int(is_unit) * (1 if is_upper else -1))
    found = solve_rows(np.where(unread, np.nan, a), b, is_upper, is_unit)
    np.testing.assert_allclose(used @ found, b, atol=1e-9)


def test_a_zero_on_the_diagonal_divides() -> None:
    a, b = np.array([[1.0, 0.0], [3.0, 0.0]]), np.ones((2, 1))
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(solve_rows(a, b, False, False), [[1.0], [-np.inf]])
    np.testing.assert_allclose(solve_rows(a, b, False, True), [[1.0], [-2.0]])


def test_numpy_computes_what_no_library_is_found_for(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    x, b = random.normal(size=(3, 30, 30)) + 9 * np.eye(30), random.normal(size=(3, 30, 2))
    want = [*lu(x), *MATRICES["qr"].numpy(x, "reduced"), solve_rows(x, b, True, False)]
    monkeypatch.setattr(host_matrices, "orthogonal", lambda *args: None)
    for name in ("factored", "substituted"):
        monkeypatch.setattr(host_lu, name, lambda *args: None)
    found = [*lu(x), *MATRICES["qr"].numpy(x, "reduced"), solve_rows(x, b, True, False)]
    for one, other in zip(found, want, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_matrices_are_eliminated_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is one search for all matrices; P L U is each of them, of a singular one too."""
    calls, search = [], np.argmax
    monkeypatch.setattr(np, "argmax", lambda *args: (calls.append(1), search(*args))[1])
    x = np.random.default_rng(0).standard_normal((7, 5, 4))
    x[3] = 0.0
    both, swaps = eliminated(x)
    assert len(calls) == 4
    lower = np.tril(both, -1) + np.eye(5, 4)
    product = permutation(swaps, 5) @ lower @ np.triu(both[:, :4])
    np.testing.assert_allclose(product, x, atol=1e-12)

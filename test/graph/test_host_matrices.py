"""Gradients of functions of matrices where they are delicate."""

from typing import Any

import numpy as np
import pytest
from graph_support import gradients_of

from picograd.graph import host_matrices
from picograd.graph.host_call import host_call, unpacked
from picograd.graph.host_matrices import MANY, MATRICES, eliminated, lu, permutation, solve_rows
from picograd.graph.node import Node


def test_equal_values_have_gradients_as_long_as_vectors_are_not_asked_for() -> None:
    def values(x: Node) -> Node:
        return unpacked(host_call("svd", x), (3, 3), (3,), (3, 3))[1]

    (found,) = gradients_of(values, [np.eye(3)], np.ones(3))
    np.testing.assert_allclose(found, np.eye(3), atol=1e-12)

    def eigenvalues(x: Node) -> Node:
        return unpacked(host_call("eigh", x), (3,), (3, 3))[0]

    (found,) = gradients_of(eigenvalues, [np.eye(3)], np.ones(3))
    np.testing.assert_allclose(found, np.eye(3), atol=1e-12)
    rank_1 = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 1.0])

    def largest(x: Node) -> Node:
        return unpacked(host_call("svd", x), (4, 2), (2,), (2, 2))[1].slice(((0, 1, 1),))

    (found,) = gradients_of(largest, [rank_1], np.ones(1))
    np.testing.assert_allclose(found, rank_1 / np.linalg.norm(rank_1), atol=1e-7)


def test_determinant_of_a_singular_matrix_has_a_gradient() -> None:
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    (found,) = gradients_of(lambda node: host_call("det", node), [x], np.asarray(1.0))
    np.testing.assert_allclose(found, [[4.0, -2.0], [-2.0, 1.0]], atol=1e-12)


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
    x, b = random.normal(size=(3, 4, 4)) + 4 * np.eye(4), random.normal(size=(3, 4, 2))
    want = [*lu(x), *MATRICES["qr"].numpy(x, "reduced"), solve_rows(x, b, True, False)]
    for name in ("factored", "orthogonal", "substituted"):
        monkeypatch.setattr(host_matrices, name, lambda *args: None)
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


def test_the_series_of_an_exponential_takes_few_products() -> None:
    products = []

    class Counted(np.ndarray[Any, Any]):
        def __matmul__(self, other: Any) -> Any:
            products.append(1)
            return np.matmul(self, other)

    small = np.random.default_rng(3).normal(size=(3, 3)) / 40  # which is not halved
    MATRICES["matrix_exp"].numpy(small.view(Counted))
    assert len(products) <= 8

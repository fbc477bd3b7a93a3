"""Gradients of functions of matrices where they are delicate."""

from typing import Any

import numpy as np
from graph_support import gradients_of

from picograd.graph.host_call import host_call, unpacked
from picograd.graph.host_matrices import MATRICES
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


def test_the_series_of_an_exponential_takes_few_products() -> None:
    products = []

    class Counted(np.ndarray[Any, Any]):
        def __matmul__(self, other: Any) -> Any:
            products.append(1)
            return np.matmul(self, other)

    small = np.random.default_rng(3).normal(size=(3, 3)) / 40  # which is not halved
    MATRICES["matrix_exp"].numpy(small.view(Counted))
    assert len(products) <= 8

"""Gather and scatter against NumPy and finite differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import plain_nodes
import pytest
from graph_support import check_both_orders, check_gradients, gradients_of, leaf, value

from picograd.graph.gradient import gradient
from picograd.graph.node import Node

torch = pytest.importorskip("torch")

Array = Any
X = np.random.default_rng(0).normal(size=(4, 3, 5))
ROWS = np.array([[0, 3], [3, 1]])
COLUMNS = np.array([[4, 0], [0, 2]])


def test_gather_one_axis() -> None:
    got = value(plain_nodes.gather(leaf(X), [leaf(ROWS)], (0,)))
    np.testing.assert_array_equal(got, X[ROWS])
    middle = value(plain_nodes.gather(leaf(X), [leaf(ROWS % 3)], (1,)))
    np.testing.assert_array_equal(middle, np.moveaxis(X, 1, 0)[ROWS % 3])


def test_gather_two_axes() -> None:
    got = value(plain_nodes.gather(leaf(X), [leaf(ROWS), leaf(COLUMNS)], (0, 2)))
    np.testing.assert_array_equal(got, X.transpose(0, 2, 1)[ROWS, COLUMNS])


def test_gather_gradients() -> None:
    check_both_orders(lambda n: plain_nodes.gather(n * n, [leaf(ROWS)], (0,)), X)
    indices = [leaf(ROWS), leaf(COLUMNS)]
    check_both_orders(lambda n: plain_nodes.gather(n, indices, (0, 2)) * 2.0, X)
    check_gradients(lambda n: plain_nodes.gather(n, [leaf(ROWS[:0])], (0,)), X)


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("monoid", ["sum", "prod", "max", "min", None])
def test_scatter(monoid: Any) -> None:
    values = np.random.default_rng(1).normal(size=(2, 2, 3, 5)) + 2
    got = value(plain_nodes.scatter(leaf(X), leaf(values), [leaf(ROWS)], (0,), monoid))
    expected = torch.tensor(X)
    flat, source = torch.tensor(ROWS).reshape(-1), torch.tensor(values).reshape(4, 3, 5)
    if monoid is None:
        for row, part in zip(flat, source):
            expected[row] = part
    elif monoid == "sum":
        expected.index_add_(0, flat, source)
    else:
        expected.index_reduce_(0, flat, source, "a" + monoid if monoid != "prod" else "prod")
    np.testing.assert_allclose(got, expected.numpy())


@pytest.mark.parametrize("monoid", ["sum", "prod", "max", "min"])
def test_scatter_gradients(monoid: str) -> None:
    values = np.random.default_rng(1).normal(size=(2, 2, 3, 5)) + 2
    function = lambda x, v: plain_nodes.scatter(x, v, [leaf(ROWS)], (0,), monoid)  # noqa: E731
    check_gradients(function, X, values)
    if monoid in ("sum", "prod"):
        check_both_orders(function, X + 4, values)


def test_overwriting_distinct_places() -> None:
    index, values = np.array([2, 0]), np.random.default_rng(1).normal(size=(2, 3, 5))
    check_both_orders(lambda x, v: plain_nodes.scatter(x * x, v, [leaf(index)], (0,)), X, values)


def test_extremes_share_the_gradient() -> None:
    base, values = np.array([1.0, 5.0]), np.array([1.0, 1.0, 4.0])
    index = np.array([0, 0, 1])
    slopes = gradients_of(
        lambda b, v: plain_nodes.scatter(b, v, [leaf(index)], (0,), "max"),
        [base, values],
        np.ones(2),
    )
    np.testing.assert_allclose(slopes[0], [1 / 3, 1])
    np.testing.assert_allclose(slopes[1], [1 / 3, 1 / 3, 0])


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_derivatives_of_products_with_zeros(zeros: int) -> None:
    base, values = np.array([2.0, 3.0]), np.array([1.0, 2.0, 3.0, 4.0])
    values[:zeros] = 0.0
    places = leaf(np.array([0, 0, 0, 1]))

    def slope(x: Any, v: Any) -> Any:
        product = x.scatter(v, (places,), (0,), "prod")
        for_x, for_v = gradient([(product, leaf(np.array([1.0, -2.0])))], [x, v])
        assert for_x is not None and for_v is not None
        along = for_v * leaf(np.array([1.0, -3.0, 2.0, 5.0]))
        return (for_x * leaf(np.array([2.0, 3.0]))).reduce("sum", (0,)) + along.reduce("sum", (0,))

    check_gradients(slope, base, values)


def forms_of_one_each() -> list[tuple[Callable[[Node], list[Node]], bool]]:
    """Indices of X, (4, 3, 5) say, and whether each element is read at most once."""
    rows, columns, depth = X.shape

    def positions(shape: tuple[int, ...], axis: int) -> Node:
        return leaf(np.zeros(shape)).iota(axis)

    def at(shape: tuple[int, ...], below: int) -> Node:
        return leaf(np.random.default_rng(0).integers(0, below, shape))

    whole, wide = (rows, 1, depth), (rows, 2, depth)
    return [
        (lambda: [positions((rows, 1), 0), at((rows, 1), columns)], True),
        (lambda: [positions((rows,), 0), at((rows,), columns)], True),
        (lambda: [at((1, columns), rows), positions((1, columns), 1)], True),
        (lambda: [positions(whole, 0), at(whole, columns), positions(whole, 2)], True),
        (lambda: [positions((columns, rows), 1), at((columns, rows), columns)], False),
        (lambda: [positions((1, rows), 1), at((1, rows), columns)], True),
        (lambda: [positions(wide, 0), at(wide, columns), positions(wide, 2)], False),
        (lambda: [positions((rows - 1, 1), 0), at((rows - 1, 1), columns)], False),
        (lambda: [at((rows,), rows), at((rows,), columns)], False),
        (lambda: [positions((columns,), 0), positions((columns,), 0)], False),
    ]


@pytest.mark.parametrize("number", range(10))
def test_gradients_of_what_is_read_once_are_elementwise(number: int) -> None:
    make, is_once = forms_of_one_each()[number]
    indices = make()
    axes = tuple(range(len(indices)))
    check_both_orders(lambda n: plain_nodes.gather(n * n, indices, axes), X)
    x = leaf(X)
    output = plain_nodes.gather(x, indices, axes)
    (found,) = gradient([(output, leaf(np.ones(output.shape, X.dtype)))], [x])
    assert (found.op == "where") == is_once


def test_a_diagonal_has_the_same_position_twice() -> None:
    square = X[:3]
    place, index = leaf(np.zeros(3)).iota(0), leaf(np.array([4, 0, 2]))
    check_both_orders(lambda n: plain_nodes.gather(n * n, [place, place, index], (0, 1, 2)), square)

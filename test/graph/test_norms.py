"""Variance and norms: their parts, and their gradients of both orders."""

import numpy as np
from graph_support import check_both_orders, leaf, value

from picograd.graph import build, composites

X = np.random.default_rng(0).normal(size=(3, 4, 5))


def test_parts() -> None:
    x = leaf(X)
    assert composites.count_of(x, (0, 2)) == 15 and composites.count_of(x, ()) == 1
    assert composites.batch_axes(x) == (0, 2)
    np.testing.assert_allclose(value(composites.mean_of(x, (1,))), X.mean(1))
    np.testing.assert_allclose(value(composites.deviation(x, (2,))), X - X.mean(2, keepdims=True))


def test_expansions_equal_numpy() -> None:
    x = leaf(X)
    np.testing.assert_allclose(value(build.var(x, (0, 1), 0)), X.var((0, 1)))
    middle = X - X.mean(2, keepdims=True)
    expected = middle / np.sqrt(X.var(2, keepdims=True) + 1e-5)
    np.testing.assert_allclose(value(build.layer_norm(x, 1)), expected)
    weight, bias = np.arange(1.0, 5.0), np.full(4, 0.5)
    axes = (0, 2)
    plain = (X - X.mean(axes, keepdims=True)) / np.sqrt(X.var(axes, keepdims=True) + 1e-5)
    found = value(build.batch_norm(x, leaf(weight), leaf(bias)))
    np.testing.assert_allclose(found, plain * weight[:, None] + 0.5)


def test_gradients() -> None:
    check_both_orders(lambda n: build.var(n, (1,)), X)
    check_both_orders(lambda n: build.layer_norm(n, 2), X)
    check_both_orders(build.batch_norm, X, X[0, :, 0], X[1, :, 0])

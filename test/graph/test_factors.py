"""Gradients of products: any number of zeros, derivatives of any order."""

import numpy as np
import pytest
from graph_support import leaf, value

from picograd.graph.factors import earlier, factors_before
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.graph.scanning import scan

torch = pytest.importorskip("torch")

ZEROS = np.array([[1.0, 2, 0, 3, 0], [0, 0, 0, 2, 3], [1, 2, 3, 4, 5], [4, 0, 1, 2, 3]])
OURS = {
    "prod": lambda x: x.reduce("prod", (1,)),
    "prod of all": lambda x: x.reduce("prod", (0, 1)),
    "prod of two": lambda x: x.reshape((2, 2, 5)).reduce("prod", (0, 2)),
    "cumprod": lambda x: scan(x, "prod", 1),
    "cumprod down": lambda x: scan(x, "prod", 0),
    "one input twice": lambda x: scan(x, "prod", 1).reduce("prod", (0,)),
}
PYTORCH = {
    "prod": lambda x: x.prod(1),
    "prod of all": lambda x: x.prod(),
    "prod of two": lambda x: x.reshape(2, 2, 5).prod(2).prod(0),
    "cumprod": lambda x: x.cumprod(1),
    "cumprod down": lambda x: x.cumprod(0),
    "one input twice": lambda x: x.cumprod(1).prod(0),
}


@pytest.mark.parametrize("name", OURS)
def test_three_orders_equal_those_of_pytorch(name: str) -> None:
    x, wanted = leaf(ZEROS), torch.tensor(ZEROS, requires_grad=True)
    ours, theirs = OURS[name](x), PYTORCH[name](wanted)
    for order in range(3):
        weights = np.random.default_rng(order).normal(size=ours.shape)
        found: list[Node | None] = gradient([(ours, leaf(weights))], [x])
        assert found[0] is not None
        ours = found[0]
        given = torch.tensor(weights)
        (theirs,) = torch.autograd.grad(theirs, wanted, given, create_graph=True)
        np.testing.assert_allclose(value(ours), theirs.detach().numpy(), 1e-9, 1e-9)


def test_factors_before() -> None:
    x = np.arange(1.0, 8).reshape(1, 7)
    wanted = np.concatenate([[1.0], np.cumprod(x)[:-1]])
    np.testing.assert_allclose(value(factors_before(leaf(x), 1))[0], wanted)
    np.testing.assert_allclose(value(earlier(leaf(x), 1, 9, 5.0))[0], [5.0] * 7)

"""The reverse walk: which nodes get gradients, where it stops, how far it goes."""

import time

import numpy as np
import pytest
from graph_support import check_gradients, leaf, value

from picograd.dtype import float64, int64
from picograd.errors import GradientError
from picograd.graph import build
from picograd.graph.expand import expand_composites
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.graph.node import Node, toposort
from picograd.graph.verify import format_graph, verify

LONG = 30_000  # of these nodes a walk that calls itself would take 30 times Python's limit


def ones(node: Node) -> Node:
    return node.const_like(1)


def test_no_path_gives_none() -> None:
    x, y = leaf(np.ones(3)), leaf(np.ones(3))
    found = gradient([(x * 2, ones(x))], [x, y])
    assert found[0] is not None and found[1] is None


def test_the_output_itself_may_be_a_target() -> None:
    x = leaf(np.ones(3))
    seed = x.const_like(3)
    assert gradient([(x, seed)], [x]) == [seed]


def test_an_inner_node_may_be_a_target() -> None:
    x = leaf(np.full(3, 2.0))
    y = x * x
    for_y, for_x = gradient([(y * y, ones(y))], [y, x])
    assert for_y is not None and for_x is not None
    np.testing.assert_array_equal(value(for_y), [8, 8, 8])
    np.testing.assert_array_equal(value(for_x), [32, 32, 32])


def test_several_outputs_add_up() -> None:
    x = leaf(np.full(3, 2.0))
    (found,) = gradient([(x * x, ones(x)), (x * 3, ones(x))], [x])
    assert found is not None
    np.testing.assert_array_equal(value(found), [7, 7, 7])


def test_detach_stops() -> None:
    x = leaf(np.full(3, 2.0))
    (found,) = gradient([(x * build.detach(x), ones(x))], [x])
    assert found is not None
    np.testing.assert_array_equal(value(found), [2, 2, 2])
    assert gradient([(build.detach(x), ones(x))], [x]) == [None]


def test_integers_stop() -> None:
    x = leaf(np.full(3, 2.0))
    y = build.cast(build.cast(x, int64), float64)
    assert gradient([(y, ones(y))], [x]) == [None]


def test_only_paths_to_targets_are_walked() -> None:
    x, y = leaf(np.ones(3)), leaf(np.ones(3))
    side = y.unary("exp").unary("sin")
    (found,) = gradient([(x * side, ones(x))], [x])
    assert found is not None
    assert "cos" not in format_graph(found)


def test_wrong_cotangent() -> None:
    x = leaf(np.ones(3))
    with pytest.raises(GradientError, match="the gradient given is float64\\(2,\\), the output"):
        gradient([(x, leaf(np.ones(2)))], [x])


def test_third_derivative() -> None:
    def third(n: Node) -> Node:
        y = n.binary("pow", 4) + n.unary("sin")
        for _ in range(3):
            (found,) = gradient([(y, ones(y))], [n])
            assert found is not None
            y = found
        return y

    x = np.array([0.5, 1.5])
    np.testing.assert_allclose(value(third(leaf(x))), 24 * x - np.cos(x))
    check_gradients(third, x)


def test_a_long_chain_is_no_limit() -> None:
    x = leaf(np.array([1.0]))
    y = x
    for _ in range(LONG // 2):
        y = (y + 1.0).composite("relu")
    (found,) = gradient([(y, ones(y))], [x])
    assert found is not None
    verify([y, found])
    assert format_graph(y).count("\n") > LONG
    roots = expand_composites([y, found])
    assert len(toposort(roots)) > LONG
    assert interpret([y])[0] == 1 + LONG // 2


def test_the_walk_is_linear() -> None:
    def seconds(count: int) -> float:
        x = leaf(np.array([1.0]))
        y = x
        for _ in range(count):
            y = y + y * x
        start = time.process_time()
        gradient([(y, ones(y))], [x])
        return time.process_time() - start

    seconds(100)
    short = min(seconds(1000) for _ in range(3))
    assert min(seconds(8000) for _ in range(3)) < 24 * short


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.reduce("max", (1,)),
        lambda x: x.composite("max_pool", ((1, 2, 2, 1),)),
        lambda x: x.scatter(ones(x), (x.iota(0),), (0,), "max"),
    ],
)  # fmt: skip
def test_extremes_are_looked_for_among_what_is_compared(make) -> None:
    """Not in the stored result: another plan made it, and its sums may have other last bits."""
    x = leaf(np.arange(8.0).reshape(2, 4))
    y = make(x)
    (found,) = gradient([(y, ones(y))], [x])
    assert found is not None and y not in toposort([found])

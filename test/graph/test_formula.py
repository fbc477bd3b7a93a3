"""Formulas: graphs that are recorded once and stamped out over other nodes."""

import numpy as np
import pytest

from picograd import Tensor
from picograd.engine.plan_key import graph_key, walk_pending
from picograd.engine.realize import buffer_to_numpy, realize
from picograd.graph.formula import FOLDED, RESULT, formula_of, unfolded
from picograd.graph.node import Node
from picograd.number import given


def leaf(values: list[float]) -> Node:
    node: Node = Tensor(values).realize().node
    return node


def polynomial(x: Node, y: Node) -> list[Node]:
    """Two results that share a part."""
    shared = x * y + 0.5
    return [shared * shared, shared.reduce("sum", (0,))]


def test_a_formula_makes_the_graph_that_was_recorded() -> None:
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    found = formula_of([a, b], polynomial(a, b))
    c, d = leaf([5.0, 6.0]), leaf([7.0, 8.0])
    assert found is not None
    made = found.stamp([c, d])
    assert graph_key(made).key == graph_key(polynomial(c, d)).key
    assert made[0] is not found.stamp([c, d])[0]
    squares = Tensor(0.0)
    squares.node = made[0]
    np.testing.assert_array_equal(squares.numpy(), [35.5**2, 48.5**2])


def test_a_folded_formula_is_one_node_and_unfolds_to_what_was_recorded() -> None:
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    found = formula_of([a, b], polynomial(a, b))
    assert found is not None and found.is_plain
    c, d = leaf([5.0, 6.0]), leaf([7.0, 8.0])
    made = [node.unary("neg") for node in found.folded([c, d])]
    order = walk_pending(made)
    assert [node.op for node in order if node.inputs] == [FOLDED, RESULT, "neg", RESULT, "neg"]
    wanted = [node.unary("neg") for node in found.stamp([c, d])]
    assert graph_key(unfolded(made, order)).key == graph_key(wanted).key
    realize(made)
    np.testing.assert_array_equal(buffer_to_numpy(made[0].realized, (2,)), [-(35.5**2), -(48.5**2)])


def test_formulas_that_say_the_same_are_one() -> None:
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    first, second = (formula_of([a, b], polynomial(a, b)) for _ in range(2))
    assert first is second
    assert formula_of([a], [a * 0.0]) is not formula_of([a], [a * -0.0])
    third = leaf([1.0, 2.0, 3.0])
    assert formula_of([third], [third * 0.0]) is not formula_of([a], [a * 0.0])


def test_given_numbers_become_code() -> None:
    a = leaf([1.0, 2.0])
    found = formula_of([a], [a * given(2.5)])
    assert found is not None and found.is_plain
    assert not graph_key(found.stamp([a])).scalars and graph_key([a * given(2.5)]).scalars


def test_a_result_may_be_an_input() -> None:
    a, b = leaf([1.0]), leaf([2.0])
    found = formula_of([a, b], [b, a + b])
    c, d = leaf([3.0]), leaf([4.0])
    assert found is not None and found.stamp([c, d])[0] is d


@pytest.mark.parametrize("kind", ["another leaf", "a computed value", "a constant", "a view"])
def test_what_depends_on_more_than_shapes_is_no_formula(kind: str) -> None:
    a, other = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    if kind == "another leaf":
        assert formula_of([a], [a + other]) is None
    elif kind == "a computed value":
        value = Tensor([1.0]) * 2
        assert formula_of([a], [a + value.realize().node.broadcast_to((2,))]) is None
    elif kind == "a constant":
        number = a.const_like(2.0)
        assert formula_of([a, number], [a + number]) is None
    else:
        column = a.reshape((2, 1))
        assert formula_of([column], [column.reshape((1, 2))]) is None

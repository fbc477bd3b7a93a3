"""Loops over time: bodies are unique, outcomes mean what they say, broken loops are found."""

from typing import Any

import numpy as np
import pytest
from graph_support import leaf, value

from picograd.dtype import float32, float64, int64
from picograd.errors import InternalError
from picograd.graph.node import Node
from picograd.graph.recurrence import (
    Body,
    Recurrence,
    close,
    make_body,
    outcome,
    placeholder,
    recur,
    stacked,
)
from picograd.graph.verify import format_graph, verify

X = np.arange(1.0, 9.0).reshape(4, 2)


def running_sum(scale: float = 1.0) -> tuple[Body, dict[str, int]]:
    """total' = total + scale * x; also the square of the new total."""
    total, x = (placeholder(kind, (2,), float64, "cpu") for kind in ("carry", "x"))
    after = total + x * scale
    square = after * after
    body, numbers = make_body(([total], [x], []), [after], [square])
    return body, {"after": numbers[id(after)], "square": numbers[id(square)], "x": numbers[id(x)]}


def loop(is_reverse: bool = False) -> tuple[Node, dict[str, int]]:
    body, numbers = running_sum()
    return recur(body, 4, is_reverse, [leaf(np.zeros(2)), leaf(X)]), numbers


def test_equal_bodies_are_one_object() -> None:
    (first, _), (second, _), (other, _) = running_sum(), running_sum(), running_sum(2.0)
    assert first is second and first is not other
    assert Recurrence(first, 4, False) == Recurrence(second, 4, False)
    assert len({Recurrence(first, 4, False), Recurrence(other, 4, False)}) == 2


def test_outcomes() -> None:
    node, numbers = loop()
    sums = np.cumsum(X, 0)
    np.testing.assert_array_equal(value(outcome(node, "carry", 0)), sums[-1])
    history = value(outcome(node, "history", 0))
    np.testing.assert_array_equal(history, np.vstack([np.zeros((1, 2)), sums]))
    np.testing.assert_array_equal(value(outcome(node, "stack", numbers["square"])), sums**2)


def test_outcomes_of_a_reverse_loop_keep_their_places() -> None:
    node, numbers = loop(is_reverse=True)
    sums = np.cumsum(X[::-1], 0)[::-1]
    np.testing.assert_array_equal(value(outcome(node, "carry", 0)), sums[0])
    history = value(outcome(node, "history", 0))
    np.testing.assert_array_equal(history, np.vstack([sums, np.zeros((1, 2))]))
    np.testing.assert_array_equal(value(outcome(node, "stack", numbers["square"])), sums**2)


@pytest.mark.parametrize("is_reverse", [False, True])
def test_stacked_finds_the_cheapest_place(is_reverse: bool) -> None:
    node, numbers = loop(is_reverse)
    order = X[::-1] if is_reverse else X
    sums = np.cumsum(order, 0)
    after, before = sums, np.vstack([np.zeros((1, 2)), sums[:-1]])
    turn = slice(None, None, -1 if is_reverse else 1)
    assert stacked(node, numbers["x"]) is node.inputs[1]
    np.testing.assert_array_equal(value(stacked(node, numbers["after"])), after[turn])
    np.testing.assert_array_equal(value(stacked(node, 0)), before[turn])
    assert "outcome" not in format_graph(stacked(node, numbers["x"]))
    assert "('stack'" not in format_graph(stacked(node, numbers["after"]))


def test_close_hoists_what_no_placeholder_reaches() -> None:
    x, weight = placeholder("x", (2,), float64, "cpu"), leaf(np.ones(2))
    shared = weight.unary("exp") * 2.0
    (root,), constants = close([x * shared + 1.0], [x])
    assert list(constants) == [id(shared)]
    (held,) = constants.values()
    assert (held.op, held.arg, held.shape) == ("placeholder", "constant", (2,))
    text = format_graph(root)
    assert "exp" not in text and "const(1.0)" in text


def broken(**changes: Any) -> Node:
    """A loop with one thing wrong."""
    body, _ = running_sum()
    inputs = [leaf(np.zeros(2)), changes.get("xs", leaf(X))]
    return outcome(recur(body, changes.get("length", 4), False, inputs), "carry", 0)


def foreign_body() -> Node:
    """A body that reads memory."""
    total = placeholder("carry", (2,), float64, "cpu")
    after = total + leaf(np.ones(2))
    body, _ = make_body(([total], [], []), [after], [])
    return outcome(recur(body, 4, False, [leaf(np.zeros(2))]), "carry", 0)


def growing_carry() -> Node:
    total = placeholder("carry", (2,), float64, "cpu")
    body, _ = make_body(([total], [], []), [total.reduce("sum", (0,))], [])
    return outcome(recur(body, 4, False, [leaf(np.zeros(2))]), "carry", 0)


def lost_placeholder() -> Node:
    total, other = (placeholder("carry", (2,), float64, "cpu") for _ in range(2))
    body, _ = make_body(([total], [], []), [total + other], [])
    return outcome(recur(body, 4, False, [leaf(np.zeros(2))]), "carry", 0)


def wrong_inside() -> Node:
    total = placeholder("carry", (2,), float64, "cpu")
    wrong = Node("add", (total, total.const_like(1).cast(float32)), None, (2,), float64, "cpu")
    body, _ = make_body(([total], [], []), [wrong], [])
    return outcome(recur(body, 4, False, [leaf(np.zeros(2))]), "carry", 0)


BROKEN = {
    "a loop of 0 steps": lambda: broken(length=0, xs=leaf(np.zeros((0, 2)))),
    "for a placeholder of float64(4, 2)": lambda: broken(xs=leaf(np.zeros((3, 2)))),
    "for a placeholder of float64": lambda: broken(xs=leaf(X.astype(np.float32))),
    "1 inputs for 2 placeholders": lambda: outcome(
        recur(running_sum()[0], 4, False, [leaf(np.zeros(2))]), "carry", 0
    ),
    "the body has no stack 99": lambda: Node(
        "outcome", (loop()[0],), ("stack", 99), (4, 2), float64, "cpu"
    ),
    "the outcome is float64(4, 2)": lambda: Node(
        "outcome", (loop()[0],), ("stack", 1), (4, 3), float64, "cpu"
    ),
    "the outcome of what is no loop": lambda: Node(
        "outcome", (leaf(X),), ("carry", 0), (2,), float64, "cpu"
    ),
    "the body reads memory": foreign_body,
    "a carry Node(placeholder, (2,), float64, cpu) becomes": growing_carry,
    "a placeholder that is not its own": lost_placeholder,
    "input dtypes differ": wrong_inside,
}


@pytest.mark.parametrize("problem", BROKEN)
def test_verify_finds_broken_loops(problem: str) -> None:
    with pytest.raises(InternalError) as error:
        verify(BROKEN[problem]())
    assert problem in str(error.value)


def test_loops_of_integers() -> None:
    count = placeholder("carry", (), int64, "cpu")
    body, _ = make_body(([count], [], []), [count + 3], [])
    node = recur(body, 5, False, [leaf(np.array(2))])
    assert value(outcome(node, "carry", 0)) == 17
    assert "5 steps of Body(1 carries, 0 xs, 0 constants, 3 nodes)" in format_graph(node)

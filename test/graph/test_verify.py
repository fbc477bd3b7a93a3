"""The verifier finds broken graphs; the printer is stable."""

from typing import Any

import numpy as np
import plain_nodes
import pytest
from graph_support import leaf

from picograd.dtype import bool_, float32, float64, int32
from picograd.errors import InternalError
from picograd.graph import build
from picograd.graph.node import Node
from picograd.graph.verify import format_graph, verify

X = leaf(np.ones((3, 4), np.float32))
Y = leaf(np.ones((4, 3), np.float32))
I = leaf(np.ones((3, 4), np.int32))  # noqa: E741


def node(op: str, inputs: tuple[Node, ...], arg: Any, shape: Any, dtype: Any = float32) -> Node:
    return Node(op, inputs, arg, shape, dtype, "cpu")


BROKEN = {
    "unknown op": node("frobnicate", (X,), None, (3, 4)),
    "takes 2 inputs, has 1": node("add", (X,), None, (3, 4)),
    "the shape is not a tuple of sizes": node("exp", (X,), None, [3, 4]),
    "an input is on another device": Node("exp", (X,), None, (3, 4), float32, "null"),
    "input dtypes differ": node("add", (X, I), None, (3, 4)),
    "takes a float dtype, not int32": node("exp", (I,), None, (3, 4), int32),
    "the condition is not bool": node("where", (X, X, X), None, (3, 4)),
    "an index is not an integer": node("gather", (X, X), (0,), (3, 4, 4)),
    "the dtype is not the argument": node("cast", (X,), float64, (3, 4)),
    "the dtype does not follow from the inputs": node("less", (X, X), None, (3, 4)),
    r"the shape should be \(4, 3\)": node("add", (X, Y), None, (3, 4)),
    r"the shape should be \(4,\)": node("reduce", (X,), ("sum", (0,)), (3,)),
    "the element count changes": node("reshape", (X,), (3, 5), (3, 5)),
    "not a permutation": node("permute", (X,), (0, 0), (3, 3)),
    r"cannot expand \(3, 4\)": node("expand", (X,), (3, 8), (3, 8)),
    "unknown monoid 'mean'": node("reduce", (X,), ("mean", (0,)), (4,)),
    r"bad axes \(1, 0\)": node("reduce", (X,), ("sum", (1, 0)), ()),
    "label 1 has two sizes": node("contract", (X, X), ((0, 1), (1, 2), (0, 2)), (3, 4)),
    r"ranges do not fit \(3, 4\)": node("slice", (X,), ((0, 5, 1), (0, 4, 1)), (5, 4)),
}


@pytest.mark.parametrize("problem", BROKEN)
def test_broken_graphs_are_found(problem: str) -> None:
    with pytest.raises(InternalError, match=problem) as caught:
        verify(BROKEN[problem])
    assert "%0 = " in str(caught.value)
    assert "bug in picograd" in str(caught.value)


def test_a_good_graph_passes() -> None:
    verify([build.softmax(X, 1), build.binary("less", X, X), build.argmax(X, 0)])


def test_print() -> None:
    total = plain_nodes.reduce("sum", (X + 1).binary("less", X).cast(float32), 1)
    assert total.dtype is not bool_
    assert format_graph(total).splitlines() == [
        "%0 = buffer(Storage) float32(3, 4)",
        "%1 = const(1.0) float32(3, 4)",
        "%2 = add(%0, %1) float32(3, 4)",
        "%3 = less(%2, %0) bool(3, 4)",
        "%4 = cast(%3, float32) float32(3, 4)",
        "%5 = reduce(%4, ('sum', (1,))) float32(3,)",
    ]

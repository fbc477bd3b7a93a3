"""Putting a value over what a view shows: against NumPy, and gradients by finite differences."""

from typing import Any

import numpy as np
import pytest
from graph_support import check_both_orders, leaf, value

from picograd.graph.expand import expand_composites
from picograd.graph.interpret import interpret
from picograd.graph.parts import Steps, places, put, shown
from picograd.graph.verify import problem_of

Array = Any
X = np.random.default_rng(0).normal(size=(4, 6))
PARTS: dict[str, tuple[Steps, Any]] = {
    "row": ((("slice", ((1, 2, 1), (0, 6, 1))), ("reshape", (6,))), lambda a: a[1]),
    "steps": ((("slice", ((0, 4, 3), (1, 6, 2))),), lambda a: a[0:4:3, 1:6:2]),
    "last of a step": ((("slice", ((3, 4, 3), (0, 6, 5))),), lambda a: a[3:4, 0:6:5]),
    "permuted": ((("permute", (1, 0)), ("slice", ((2, 4, 1), (0, 3, 1)))), lambda a: a.T[2:4, :3]),
    "flat": ((("reshape", (24,)), ("slice", ((3, 20, 4),))), lambda a: a.reshape(-1)[3:20:4]),
    "backwards": ((("slice", ((1, 3, 1), (0, 6, 1))), ("flip", (0, 1))), lambda a: a[2:0:-1, ::-1]),
    "part of a part": (
        (("slice", ((1, 4, 1), (0, 6, 2))), ("reshape", (9,)), ("slice", ((2, 7, 2),))),
        None,
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_put(name: str) -> None:
    steps, numpy = PARTS[name]
    base = leaf(X)
    part = np.random.default_rng(1).normal(size=shown(base, steps).shape)
    wanted = X.copy()
    if numpy is None:
        wanted.reshape(-1)[places(X.shape, steps)] = part
    else:
        numpy(wanted)[...] = part
    node = put(base, leaf(part), steps)
    assert node.op == "put" and not problem_of(node)
    np.testing.assert_array_equal(value(node), wanted)
    np.testing.assert_array_equal(value(shown(node, steps)), part)
    np.testing.assert_array_equal(interpret(expand_composites([node]))[0], wanted)
    check_both_orders(lambda x, v: put(x * x, v * v, steps) * put(x, v, steps), X, part)


def test_a_view_of_everything_leaves_nothing() -> None:
    base, part = leaf(X), leaf(X.T.copy())
    node = put(base, part, (("permute", (1, 0)), ("flip", (1,))))
    assert node.op != "put"
    np.testing.assert_array_equal(value(node), X[::-1])
    nothing = (("slice", ((2, 2, 1), (0, 6, 1))),)
    empty = leaf(np.zeros((0, 6)))
    assert put(base, empty.const_like(0.0), nothing) is base
    node = put(base, empty, nothing)  # whose gradient is of no elements
    assert not problem_of(node)
    np.testing.assert_array_equal(value(node), X)
    np.testing.assert_array_equal(interpret(expand_composites([node]))[0], X)


def test_a_value_of_another_shape_is_found() -> None:
    node = put(leaf(X), leaf(X[:2]), (("slice", ((1, 3, 1), (0, 6, 1))),))
    node.arg = (("slice", ((1, 2, 1), (0, 6, 1))),)
    assert problem_of(node) == "the view has shape (1, 6)"
    node.arg = (("window", ((0, 2, 1, 1),)),)
    assert problem_of(node) == "a step is no view of distinct elements"

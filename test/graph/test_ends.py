"""Ends of arrays: what is beyond them is left out of sums, and they stay with their nodes."""

import numpy as np
import pytest
from graph_support import leaf

from picograd.buffer import RuntimeScalar
from picograd.errors import InternalError
from picograd.graph.bounded import End, ended, ends_of, left_out, sources_of
from picograd.graph.interpret import interpret
from picograd.graph.verify import format_graph, verify

COUNT = RuntimeScalar(3)
FIRST = End(0, 1, 0, COUNT)
X = leaf(np.arange(1.0, 25.0, dtype=np.float32).reshape(6, 4))


def test_a_reduction_leaves_out_what_its_input_does_not_have() -> None:
    for monoid, wanted in (("sum", np.sum), ("prod", np.prod), ("max", np.max), ("min", np.min)):
        node = ended(X.reduce(monoid, (0,)), (), ((FIRST,),))
        verify(node)
        array = np.arange(1.0, 25.0).reshape(6, 4)
        np.testing.assert_allclose(interpret([node])[0], wanted(array[:3], axis=0))
    product = ended(X.contract(X, ((0, 1), (0, 2), (1, 2))), (), ((FIRST,), (FIRST,)))
    np.testing.assert_allclose(interpret([product])[0], array[:3].T @ array[:3])


def test_digits_of_an_axis_end() -> None:
    array = np.ones((12, 2))
    seen = left_out(array, (End(0, 1, 4, COUNT),), 0)[:, 0]
    assert seen.tolist() == [1, 1, 1, 0] * 3
    seen = left_out(array, (End(0, 2, 0, COUNT),), 7)[:, 1]
    assert seen.tolist() == [1] * 6 + [7] * 6


def test_ends_stay_and_are_printed() -> None:
    total = ended((X + X).reduce("sum", (0,)), (), ((FIRST,),))
    moved = total.with_inputs((X * X,))
    assert sources_of(moved) == ((FIRST,),) and not ends_of(moved)
    assert total.with_inputs(total.inputs) is total
    assert ends_of(ended(X, (FIRST,))) == ()  # a leaf has all its elements
    assert "axis 0 ends" in format_graph(ended(X + X, (FIRST,)))
    assert "axis 1 // 2 % 4 ends" in format_graph(ended(X + X, (End(1, 2, 4, COUNT),)))


def test_wrong_ends_are_found() -> None:
    for node in (
        ended(X + X, (End(2, 1, 0, COUNT),)),
        ended(X + X, (), ((FIRST,), ())),
        ended(X.reduce("sum", (0,)), (), ((End(0, 0, 0, COUNT),),)),
    ):
        with pytest.raises(InternalError, match="end"):
            verify(node)

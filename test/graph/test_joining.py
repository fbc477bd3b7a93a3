"""Arrays joined along an axis: one node of any number of them, its expansion and its bounds."""

import numpy as np
import pytest
from graph_support import leaf, value

from picograd.graph.bounds import bounds
from picograd.graph.composites import TOGETHER, join, joined_shape
from picograd.graph.expand import expand_composites
from picograd.graph.node import toposort


def test_shape() -> None:
    assert joined_shape(1, (2, 3, 4), (2, 0, 4), (2, 1, 4)) == (2, 4, 4)


@pytest.mark.parametrize("count", [TOGETHER, TOGETHER + 1, 300])
def test_many_arrays_are_one_node_and_joined_in_groups(count: int) -> None:
    arrays = [np.full((n % 3, 2), n, np.float32) for n in range(count)]
    found = join([leaf(array) for array in arrays], 0)
    assert len(toposort([found])) == count + 1
    np.testing.assert_array_equal(value(found), np.concatenate(arrays))
    stored = [node for node in toposort(expand_composites([found])) if node.op == "contiguous"]
    assert bool(stored) == (count > TOGETHER)


def test_complex_numbers_are_joined_by_parts() -> None:
    z = np.array([1 + 2j, 3 - 1j], np.complex64)
    np.testing.assert_array_equal(value(join([leaf(z), leaf(z[:1])], 0)), [*z, z[0]])


def test_bounds_are_those_of_all_parts() -> None:
    first, second = (leaf(np.zeros(n, np.float32)) for n in (3, 5))
    assert bounds(join([first.iota(0), second.iota(0) + 2], 0)) == (0, 6)

"""Arrays joined along an axis: one node of any number of them, its expansion and its bounds."""

import numpy as np
import pytest
from graph_support import leaf, value

from picograd.dtype import float32
from picograd.graph.bounds import bounds
from picograd.graph.composites import TOGETHER, join, joined_shape
from picograd.graph.expand import expand_composites
from picograd.graph.node import Node, toposort
from picograd.number import GivenInt


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


@pytest.mark.parametrize(("is_given", "tests"), [(False, 5), (True, 20)])
def test_which_half_a_place_is_in_is_told_once_for_sizes_that_nobody_gave(
    is_given: bool, tests: int
) -> None:
    sizes = [GivenInt(3) if is_given else 3 for _ in range(32)]
    parts = [Node("random_bits", (), None, (size,), float32, "cpu") for size in sizes]
    order = toposort(expand_composites([join(parts, 0)]))
    assert sum(node.op == "where" for node in order) == 31
    assert sum(node.op == "less" for node in order) == tests


def test_complex_numbers_are_joined_by_parts() -> None:
    z = np.array([1 + 2j, 3 - 1j], np.complex64)
    np.testing.assert_array_equal(value(join([leaf(z), leaf(z[:1])], 0)), [*z, z[0]])


def test_bounds_are_those_of_all_parts() -> None:
    first, second = (leaf(np.zeros(n, np.float32)) for n in (3, 5))
    assert bounds(join([first.iota(0), second.iota(0) + 2], 0)) == (0, 6)

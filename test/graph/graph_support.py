"""What the graph tests share: leaves over NumPy arrays, and gradients by finite differences."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import plain_nodes

from picograd.buffer import Buffer, Storage
from picograd.conversion import to_bits
from picograd.dtype import DType, to_dtype
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.graph.node import Node
from picograd.graph.verify import verify

Array = Any
Build = Callable[..., Node]
STEP = 1e-6


def leaf(array: Array, dtype: DType | None = None) -> Node:
    """Make a buffer node over a copy of an array."""
    array = np.array(array, order="C")
    dtype = dtype or to_dtype(array.dtype)
    array = to_bits(array, dtype)
    held = Buffer("cpu", dtype, array.size, 0, array)
    return plain_nodes.buffer(Storage(held), array.shape)


def value(node: Node, float64: bool = False) -> Array:
    """Verify and interpret one node."""
    verify(node)
    return interpret([node], float64)[0]


def gradients_of(function: Build, arrays: Sequence[Array], cotangent: Array) -> list[Array]:
    """Interpret the gradients of sum(function(arrays) * cotangent)."""
    leaves = [leaf(array) for array in arrays]
    output = function(*leaves)
    found = gradient([(output, leaf(cotangent))], leaves)
    known = [node for node in found if node is not None]
    verify([output, *known])
    values = iter(interpret(known, True))
    return [np.zeros_like(a) if n is None else next(values) for a, n in zip(arrays, found)]


def check_gradients(function: Build, *arrays: Array, tolerance: float = 2e-5) -> None:
    """Compare the gradients with central differences along random directions (float64)."""
    random = np.random.default_rng(1)
    output = value(function(*map(leaf, arrays)), True)
    cotangent = random.normal(size=output.shape)
    for position, slope in enumerate(gradients_of(function, arrays, cotangent)):
        assert slope.shape == arrays[position].shape
        direction = random.normal(size=slope.shape)
        ends = []
        for sign in (1, -1):
            moved = list(arrays)
            moved[position] = arrays[position] + sign * STEP * direction
            ends.append(np.sum(value(function(*map(leaf, moved)), True) * cotangent))
        expected, got = (ends[0] - ends[1]) / (2 * STEP), np.sum(slope * direction)
        assert np.isfinite(got)
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def second_order(function: Build) -> Build:
    """Turn f into the function (x..., g) -> the sum of squares of its gradients."""

    def slope(*nodes: Node) -> Node:
        *inputs, cotangent = nodes
        found = gradient([(function(*inputs), cotangent)], inputs)
        parts = [plain_nodes.reduce("sum", node * node) for node in found if node is not None]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    return slope


def check_both_orders(function: Build, *arrays: Array) -> None:
    """Check first and second derivatives."""
    check_gradients(function, *arrays)
    shape = function(*map(leaf, arrays)).shape
    cotangent = np.random.default_rng(2).normal(size=shape)
    check_gradients(second_order(function), *arrays, cotangent)

"""What the tests of convolutions in other forms share: exact leaves, specs, equal values."""

import dataclasses

import numpy as np

from picograd import Tensor
from picograd.graph.expand import expand_composites
from picograd.graph.interpret import interpret
from picograd.graph.node import Node, toposort
from picograd.graph.shape import ConvSpec
from picograd.target import Target


def leaf(*shape: int, seed: int = 0) -> Node:
    """Small whole numbers, so that sums are exact however they are grouped."""
    numbers = np.random.default_rng(seed).integers(-2, 3, shape)
    return Tensor(numbers.astype(np.float32)).bfloat16().realize().node


def plain_spec(rank: int, **changes) -> ConvSpec:
    ones = (1,) * rank
    return dataclasses.replace(ConvSpec(ones, ((0, 0),) * rank, ones, ones), **changes)


def same_value(node: Node, target: Target, atol: float = 0.0) -> list[Node]:
    """Expand a graph, check that its value is the same, and list the convolutions in it."""
    (made,) = expand_composites([node], target=target)
    want, found = interpret([node], True)[0], interpret([made], True)[0]
    assert made.shape == node.shape and made.dtype is node.dtype
    np.testing.assert_allclose(found, want, rtol=0.0, atol=atol)
    return [each for each in toposort([made]) if each.op == "conv"]

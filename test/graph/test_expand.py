"""Expansion: no composite is left, and what has none keeps its identity."""

import numpy as np
from graph_support import leaf

from picograd.graph import build
from picograd.graph.expand import expand_composites
from picograd.graph.node import toposort
from picograd.graph.row import Role


def test_no_composite_is_left() -> None:
    x = leaf(np.ones((2, 3)))
    loss = build.cross_entropy(build.gelu(build.layer_norm(x, 1)), leaf(np.array([0, 1])))
    (root,) = expand_composites([loss])
    assert all(node.row.role is not Role.COMPOSITE for node in toposort([root]))
    assert root.shape == ()


def test_nodes_without_composites_stay() -> None:
    x = leaf(np.ones((2, 3)))
    y = (x + 1).unary("exp")
    assert expand_composites([y])[0] is y
    (root,) = expand_composites([build.relu(y) * y])
    assert root.inputs[1] is y


def test_shared_composites_expand_once() -> None:
    soft = build.softmax(leaf(np.ones((2, 3))), 1)
    (root,) = expand_composites([soft + soft])
    assert root.inputs[0] is root.inputs[1]


def test_a_realized_node_is_left_alone() -> None:
    x = leaf(np.ones((2, 3)))
    soft = build.softmax(x, 1)
    soft.realized = x.arg.buffer
    node = soft + 1
    assert expand_composites([node])[0] is node

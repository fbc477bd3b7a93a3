"""Nodes: cheap to record, walked without recursion."""

import time

import numpy as np
from graph_support import leaf

from picograd.graph import build
from picograd.graph.node import toposort


def test_inputs_come_first() -> None:
    x = leaf(np.ones(3))
    y = x.unary("exp")
    z = y + x
    assert toposort([z, y]) == [x, y, z]
    assert toposort([z], lambda node: node is y) == [y, x, z]
    assert toposort([y * 2], lambda node: node is y)[0] is y


def test_recording_is_cheap() -> None:
    x = leaf(np.ones((3, 4), np.float32))
    best = 1.0
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(1000):
            build.binary("add", x, x)
        best = min(best, (time.perf_counter() - start) / 1000)
    assert best < 10e-6  # about 0.5 us on a quiet machine


def test_scalars_on_either_side() -> None:
    x = leaf(np.full(2, 4.0))
    ops = [(1 - x).op, (2 / x).op, (3 * x).op, (1 + x).op]
    assert ops == ["sub", "div", "mul", "add"]
    assert (1 - x).inputs[1] is x

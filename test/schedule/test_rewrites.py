"""The rewrites before grouping: each gives roots that mean the same."""

import numpy as np
import pytest
from attention_forms import causal
from plan_support import VALUES, leaf

from picograd.graph.expand import realized
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.graph.node import toposort
from picograd.schedule.rewrites import REWRITES
from picograd.target import Target, cuda_target


@pytest.mark.parametrize(
    "target", [Target("llvm", "test", 64), cuda_target("sm_90a")], ids=["cpu", "cuda"]
)
def test_each_rewrite_means_the_same(target):
    np.random.seed(0)
    leaves = [leaf(1, 2, 40, 16) for _ in range(3)]
    output = causal(*leaves)
    roots = [output, *gradient([(output, leaf(*output.shape))], leaves)]
    wanted = interpret(roots, values=VALUES)
    for rewrite in REWRITES:
        roots = rewrite(roots, toposort(roots, realized), target)
        for value, expected in zip(interpret(roots, values=VALUES), wanted, strict=True):
            assert value.shape == expected.shape, rewrite.__name__
            np.testing.assert_allclose(value, expected, rtol=1e-3, atol=1e-4)

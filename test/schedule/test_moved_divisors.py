"""Results that are divided by the total of their weights: the weights are."""

import numpy as np
import pytest
from attention_forms import WEIGHTED, divided_last, plain, product, weigh
from plan_support import TARGET as CPU
from plan_support import VALUES, check_plan, leaf, run, schedule

from picograd.dtype import bfloat16
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.graph.node import toposort
from picograd.schedule.moved_divisors import move_divisors
from picograd.target import cuda_target

GPU = cuda_target("sm_90a")
SHAPES = (2, 3, 20, 8), (2, 3, 24, 8), (2, 3, 24, 12)


def powers_of(q, k):
    scores = product(q, k) * 0.3
    return (scores - scores.reduce("max", (3,), keepdim=True).expand(scores.shape)).unary("exp")


def with_a_summand(q, k, v):
    """Heads of its results are beside one another: dimensions are matched by their labels."""
    powers = powers_of(q, k)
    first, second, _ = WEIGHTED
    out = powers.contract(v, (first, second, (0, 2, 1, 3)))
    total = powers.reduce("sum", (3,)) + 0.5
    return out / total.permute((0, 2, 1)).reshape((2, 20, 3, 1)).expand(out.shape)


@pytest.mark.parametrize("form", [divided_last, with_a_summand])
def test_the_division_is_among_the_weights(form):
    np.random.seed(0)
    plan = check_plan([form(*(leaf(*shape) for shape in SHAPES))], 1, 1e-5)
    assert [kernel.hero for kernel in plan.kernels] == ["attention"]


def test_it_is_on_a_gpu_too():
    plan = schedule([divided_last(*(leaf(2, 3, 64, 64, dtype=bfloat16) for _ in "qkv"))], GPU)
    assert [kernel.hero for kernel in plan.kernels] == ["attention"]


def test_gradients_keep_their_values():
    np.random.seed(1)
    leaves = [leaf(*shape) for shape in SHAPES]
    output = divided_last(*leaves)
    roots = [output, *gradient([(output, leaf(*output.shape))], leaves)]
    for found, wanted in zip(
        run(schedule(roots, CPU)), interpret(roots, values=VALUES), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def is_moved(roots):
    return move_divisors(roots, toposort(roots), CPU) != roots


def test_other_divisors_stay():
    """One that a column has too, one of no sum, a sum of others, and a result that is read."""
    q, k, v = (leaf(*shape) for shape in SHAPES)
    powers, row = powers_of(q, k), leaf(2, 3, 20, 1)
    out, total = weigh(powers, v), powers.reduce("sum", (3,), keepdim=True)
    assert is_moved([out / total.expand(out.shape)])
    other = (powers * powers).reduce("sum", (3,), keepdim=True)
    for each in (leaf(2, 3, 20, 12), row.expand(out.shape), other.expand(out.shape)):
        assert not is_moved([out / each])
    assert not is_moved([out / total.expand(out.shape), out])
    assert not is_moved([plain(q, k, v)])

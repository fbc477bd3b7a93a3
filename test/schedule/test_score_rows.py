"""Sums of rows in the kernel of the stream that reads them."""

import pytest
from attention_forms import LABELS, WEIGHTED, grouped, plain, product, weigh, with_gradients
from plan_support import TARGET, check_plan, leaf

from picograd.dtype import bfloat16
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

HOPPER = cuda_target("sm_90a")
SHAPES = (2, 3, 20, 8), (2, 3, 24, 8), (2, 3, 24, 8)


def heroes(roots, target=TARGET):
    return [kernel.hero for kernel in schedule(roots, target).kernels]


def test_the_kernel_of_dq_sums_rows_of_the_result_and_its_gradient():
    check_plan(with_gradients(plain, *SHAPES), 2, 1e-4)


@pytest.mark.parametrize("depth", [64, 192, 256])
def test_on_gpus(depth):
    leaves = [leaf(2, 3, 40, depth, dtype=bfloat16) for _ in range(3)]
    output = plain(*leaves)
    found = gradient([(output, leaf(*output.shape, dtype=bfloat16))], leaves)
    assert heroes([output, *found], HOPPER) == ["attention"] * 3


def test_heads_that_share_keys():
    check_plan(with_gradients(grouped, (2, 4, 20, 8), (2, 2, 24, 8), (2, 2, 24, 8)), 3, 1e-4)


def test_wide_rows_are_summed_before():
    shapes = (2, 3, 20, 8), (2, 3, 24, 8), (2, 3, 24, 200)
    assert "reduce.row" in heroes(with_gradients(plain, *shapes))


def dq_with(factor_of):
    """Gradients of queries, and a factor of them that is made of sums of rows."""
    q, k, v, g, o = (leaf(*shape) for shape in (*SHAPES, SHAPES[0], SHAPES[0]))
    weights = build.softmax(product(q, k) * 0.3, 3)
    rows = (g * o).reduce("sum", (3,), True)
    slopes = weights * (g.contract(v, LABELS) - rows.expand(weights.shape))
    factor = factor_of(rows).expand(weights.shape)
    return [weigh(weights, v), (slopes * factor).contract(k, WEIGHTED)]


def test_sums_that_others_read_before_the_stream_are_summed_before_it():
    """Their kernel would wait for one that waits for them."""
    roots = dq_with(lambda rows: rows.reduce("sum", (0,), True))
    plan = check_plan(roots, 4, 1e-4)
    assert "reduce.row" in [kernel.hero for kernel in plan.kernels]


def test_sums_are_read_as_often_as_they_are_wanted():
    check_plan(dq_with(lambda rows: rows), 2, 1e-4)

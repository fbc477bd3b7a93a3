"""Fusion around streams: cheap operands are read as they are, dear ones and windows are stored."""

import pytest
from attention_forms import gated, gated_flat, plain
from plan_support import TARGET, check_plan, leaf

from picograd.codegen.pipeline import generate
from picograd.dtype import bfloat16, float32
from picograd.graph.gradient import gradient
from picograd.schedule.schedule import schedule
from picograd.schedule.score_groups import OPERAND_LIMIT
from picograd.target import cuda_target

SHAPES = (1, 2, 20, 8), (1, 2, 24, 8), (1, 2, 24, 12)


def test_cheap_operands_are_computed_where_they_are_read():
    q, k, v = (leaf(*shape) for shape in SHAPES)
    check_plan([plain(q * 0.5, k + 1.0, v)], 1)


def test_dear_operands_are_stored_before():
    q, k, v = (leaf(*shape) for shape in SHAPES)
    for _ in range(OPERAND_LIMIT + 1):
        k = (k * 0.5).unary("sin")
    plan = check_plan([plain(q, k, v)], 2)
    assert any("a stream of scores reads it" in reason for reason in plan.reasons)


def test_a_loss_of_the_result_is_stored_before_gradients_stream():
    """Its gradient is in boxes, and read by the sum of rows that opens the stream's group."""
    target = cuda_target("sm_90a")
    x = leaf(2, 1024, 3 * 128, dtype=bfloat16)
    pieces = [x.slice(((0, 2, 1), (0, 1024, 1), (n * 128, n * 128 + 128, 1))) for n in range(3)]
    heads = [each.reshape((2, 1024, 2, 64)).permute((0, 2, 1, 3)) for each in pieces]
    result = plain(*heads).permute((0, 2, 1, 3)).reshape((2, 1024, 128))
    wide = result.cast(float32)
    loss = (wide * wide).reduce("sum", (0, 1, 2))
    roots = [loss, *gradient([(loss, loss.const_like(1.0))], [x])]
    plan = schedule(roots, target)
    every = [kernel for kernel in plan.kernels if kernel.hero == "attention"]
    assert len(every) >= 3
    for kernel in every:
        generate(kernel, target)


@pytest.mark.parametrize("target", [TARGET, cuda_target("sm_90a")], ids=["cpu", "gpu"])
@pytest.mark.parametrize("form, gate", [(gated, (1, 2, 20, 12)), (gated_flat, (1, 20, 24))])
def test_what_is_made_of_each_element_of_a_result_is_in_its_kernel(form, gate, target):
    dtype = bfloat16 if target.has_blocks else float32
    shapes = [(1, 2, 20, 16)] * 2 + [(1, 2, 20, 12), gate]
    if target.has_blocks:  # of an array whose rows boxes can bring
        shapes = [(1, 2, 20, 16)] * 3 + [(1, 2, 20, 16) if form is gated else (1, 20, 32)]
    leaves = [leaf(*shape, dtype=dtype) for shape in shapes]
    (kernel,) = schedule([form(*leaves)], target).kernels
    assert kernel.hero == "attention"


def test_a_result_that_others_read_is_stored_beside():
    q, k, v = (leaf(*shape) for shape in SHAPES)
    o = plain(q, k, v)
    check_plan([o, o * leaf(1, 2, 20, 12)], 1)


def test_sums_of_what_is_made_of_a_result_are_apart():
    q, k, v = (leaf(*shape) for shape in SHAPES)
    check_plan([(plain(q, k, v) * leaf(1, 2, 20, 12)).reduce("sum", (3,))], 2)

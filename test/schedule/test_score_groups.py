"""Fusion around streams: cheap operands are read as they are, dear ones and windows are stored."""

from attention_forms import plain
from plan_support import check_plan, leaf

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

"""Fusion around streams: cheap operands are read as they are, dear ones and windows are stored."""

from attention_forms import plain
from plan_support import check_plan, leaf

from picograd.schedule.score_groups import OPERAND_LIMIT

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

"""Sinks of attention: what joins the rows of scores, however it is written."""

import numpy as np
import pytest
from attention_forms import one_more, product, spread, sunk, weigh, with_gradients
from plan_support import check_plan, leaf

SHAPES = (2, 3, 20, 8), (2, 3, 24, 8), (2, 3, 24, 12)


def heroes(plan):
    return [kernel.hero for kernel in plan.kernels]


@pytest.mark.parametrize("form, more", [(one_more, ()), (sunk, ((1, 3, 1, 1),))])
def test_a_sink_streams(form, more):
    """One kernel, and with gradients that of dq, dk and dv, and the sum over a head."""
    np.random.seed(0)
    shapes = *SHAPES, *more
    plan = check_plan([form(*(leaf(*shape) for shape in shapes))], 1, 1e-5)
    assert heroes(plan) == ["attention"]
    plan = check_plan(with_gradients(form, *shapes), 2 + len(more), 1e-4)
    assert heroes(plan).count("attention") == 2


def clamped(q, k, v):
    """Softmax off by one, whose maximum is at least 0 by a choice, and named twice."""
    s = product(q, k) * 0.3
    top = s.reduce("max", (3,), True)
    m = top.binary("less", 0.0).where(0.0, top).unary("detach")
    e = (s - m.expand(s.shape)).unary("exp")
    total = e.reduce("sum", (3,), True) + m.unary("neg").unary("exp")
    return weigh(e / total.expand(s.shape), v)


def test_a_limit_may_be_a_choice():
    np.random.seed(0)
    check_plan([clamped(*(leaf(*shape) for shape in SHAPES))], 1, 1e-5)
    check_plan(with_gradients(clamped, *SHAPES), 2, 1e-4)


def test_other_choices_are_no_limits():
    """A choice by another number, or of the lesser."""
    np.random.seed(0)
    q, k, v = (leaf(*shape) for shape in SHAPES)
    s = product(q, k) * 0.3
    top = s.reduce("max", (3,), True)
    for m in (top.binary("less", 0.5).where(0.0, top), top.binary("less", 0.0).where(top, 0.0)):
        e = (s - m.expand(s.shape)).unary("exp")
        check_plan([weigh(e / e.reduce("sum", (3,), True).expand(s.shape), v)], tolerance=1e-5)


def test_limits_of_other_maxima_stay():
    """Scores whose maxima alone are read are no softmax."""
    q, k, c = leaf(2, 3, 20, 8), leaf(2, 3, 24, 8), leaf(1, 3, 1, 1)
    m = product(q, k).reduce("max", (3,), True)
    plan = check_plan([m.binary("maximum", spread(c, m.shape))])
    assert "attention" not in heroes(plan)


def test_maxima_that_wait_for_a_reader():
    """They have two inputs: the maxima, and what is read before."""
    s = product(leaf(2, 3, 20, 8), leaf(2, 3, 24, 8)) * 0.3
    m = s.reduce("max", (3,), True).after(leaf(4), False)
    e = (s - m.binary("maximum", 0.0).expand(s.shape)).unary("exp")
    check_plan([e.reduce("sum", (3,))], tolerance=1e-5)


def test_rows_that_see_nothing_have_their_sink():
    """The weights of such a row are 0."""
    q, k, v, c = (leaf(*shape) for shape in (*SHAPES, (1, 3, 1, 1)))
    s = product(q, k)
    s = s.iota(2).binary("less", s.iota(2).const_like(5)).where(s, -np.inf)
    m = s.reduce("max", (3,), True)
    sink = spread(c, m.shape)
    m = m.binary("maximum", sink)
    e = (s - m.expand(s.shape)).unary("exp")
    total = e.reduce("sum", (3,), True) + (sink - m).unary("exp")
    weights = e / total.expand(s.shape)
    out = weights.contract(v, ((0, 1, 2, 4), (0, 1, 4, 3), (0, 1, 2, 3)))
    check_plan([out], 1, 1e-5)

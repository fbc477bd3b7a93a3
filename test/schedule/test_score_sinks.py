"""The rule of attention: which sinks share a kernel, however the user wrote it."""

import numpy as np
import pytest
from attention_forms import (
    FORMS,
    UNBOUND,
    decaying,
    plain,
    product,
    squared_weights,
    weigh,
    with_gradients,
)
from plan_support import TARGET, check_plan, leaf

from picograd.dtype import float64
from picograd.graph import build
from picograd.schedule.schedule import schedule

SHAPES = (2, 3, 20, 8), (2, 3, 24, 8), (2, 3, 24, 12)


def heroes(plan):
    return [kernel.hero for kernel in plan.kernels]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_attention_is_one_kernel(form):
    np.random.seed(0)
    plan = check_plan([form(*(leaf(*shape) for shape in SHAPES))], 1, 1e-5)
    assert heroes(plan) == ["attention"]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_gradients_stream_too(form):
    """Forward, sums of gradients, and dq, dk and dv: no kernel holds scores."""
    np.random.seed(1)
    plan = check_plan(with_gradients(form, *SHAPES), tolerance=1e-4)
    assert heroes(plan).count("attention") in (2, 3, 4, 5)
    rows, columns = SHAPES[0][2], SHAPES[1][2]
    inputs = {n for n, slot in enumerate(plan.slots) if slot.kind == "input"}
    sizes = [slot.size for n, slot in enumerate(plan.slots) if n not in inputs]
    assert max(sizes) < 2 * 3 * rows * columns, plan.slots


@pytest.mark.parametrize("form", UNBOUND, ids=lambda form: form.__name__)
def test_weights_without_a_total_stream_too(form):
    """What is of rows, and of columns: the result leaves beside both.

    Gradients that need no scores, as those of decays, are a region of their own.
    """
    np.random.seed(3)
    plan = check_plan([form(*(leaf(*shape) for shape in SHAPES))], 1, 1e-5)
    assert heroes(plan) == ["attention"]
    plan = check_plan(with_gradients(form, *SHAPES), tolerance=1e-4)
    assert heroes(plan) == ["attention"] * (2 if form is decaying else 1)


def test_products_no_larger_than_their_operands_are_stored():
    q, k, v = (leaf(4, 2, 16, 16) for _ in range(3))
    plan = check_plan([weigh(product(q, k).unary("sigmoid"), v)])
    assert "attention" not in heroes(plan)


def test_weights_that_no_total_divides_stream_after_it():
    np.random.seed(2)
    plan = check_plan([squared_weights(*(leaf(*shape) for shape in SHAPES))], 2, 1e-5)
    assert heroes(plan) == ["attention", "attention"]


def test_weights_that_are_read_are_stored():
    q, k, v = (leaf(*shape) for shape in SHAPES)
    weights = build.softmax(product(q, k), 3)
    plan = check_plan([weights, weigh(weights, v)])
    assert "attention" not in heroes(plan)
    assert any("kept scores" in reason and "an output" in reason for reason in plan.reasons)


def test_two_layers_of_a_network_are_no_attention():
    x, a, b = leaf(32, 24), leaf(24, 40), leaf(40, 20)
    hidden = x.contract(a, ((0, 1), (1, 2), (0, 2)))
    plan = check_plan([build.relu(hidden).contract(b, ((0, 1), (1, 2), (0, 2)))])
    assert "attention" not in heroes(plan)


def test_a_value_made_of_the_totals_waits_for_them():
    """It may not stream with what it is made of: the plan has no cycle."""
    q, k, v = (leaf(*shape) for shape in SHAPES)
    s = product(q, k)
    e = (s - s.reduce("max", (3,), True).expand(s.shape)).unary("exp")
    total = e.reduce("sum", (3,), True)
    moved = v + total.reduce("sum", (2,), True).expand(v.shape)
    check_plan([weigh(e / total.expand(s.shape), moved)])


def test_queries_made_for_latent_keys_are_no_scores_themselves():
    """They are larger than what they are made of, and the scores sum over a side of them."""
    np.random.seed(4)
    q, matrix, latent = leaf(2, 3, 24, 16), leaf(3, 16, 32), leaf(2, 24, 32)
    queries = q.contract(matrix, ((0, 1, 2, 3), (1, 3, 4), (0, 1, 2, 4)))
    scores = queries.contract(latent, ((0, 1, 2, 4), (0, 3, 4), (0, 1, 2, 3)))
    weights = build.softmax(scores * 0.2, 3)
    values = weights.contract(latent, ((0, 1, 2, 3), (0, 3, 4), (0, 1, 2, 4)))
    assert heroes(check_plan([values], 2, 1e-5)) == ["contract", "attention"]


def test_scheduling_stays_linear():
    """Layers of attention in a row: each is found once, and its group stands behind the last."""
    x = leaf(1, 2, 20, 8, dtype=float64)
    for _ in range(12):
        x = plain(x, x, x)
    plan = schedule([x], TARGET)
    assert heroes(plan) == ["attention"] * 12

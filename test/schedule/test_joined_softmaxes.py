"""Weights that are a sum of softmaxes: which share a stream, and that plans mean the same."""

import numpy as np
import pytest
from attention_forms import differential, is_seen, product, weigh
from plan_support import VALUES, leaf

from picograd.dtype import bfloat16, float32
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

TARGET = cuda_target("sm_90a")
SHAPES = *[(1, 2, 80, 16)] * 2, (1, 2, 80, 32), *[(1, 2, 80, 16)] * 2, (1, 1, 1, 1)


def three(q, k, v, r, t, c):
    w = build.softmax(product(q, k), 3) * 0.5 + build.softmax(product(r, t), 3)
    return weigh(w - build.softmax(product(q, t), 3), v)


def of_places(q, k, v, r, t, c):
    """What the second is multiplied by is of places: it stays in the sum."""
    w = build.softmax(product(r, t), 3)
    return weigh(build.softmax(product(q, k), 3) - w * w.iota(3).cast(float32), v)


def of_same_scores(q, k, v, r, t, c):
    s = product(q, k)
    return weigh(build.softmax(s, 3) - build.softmax(s * 0.5, 3), v)


def masked(q, k, v, r, t, c):
    """A mask of the weights is of places."""
    w = build.softmax(product(q, k), 3) - build.softmax(product(r, t), 3)
    return weigh(is_seen(w).where(w, 0), v)


def roots_of(form, dtype=float32, has_gradients=False):
    np.random.seed(0)
    leaves = [leaf(*shape, dtype=dtype) for shape in SHAPES]
    output = form(*leaves)
    if not has_gradients:
        return [output]
    return [output, *gradient([(output, leaf(*output.shape, dtype=dtype))], leaves)]


@pytest.mark.parametrize(
    "form, count", [(differential, 1), (three, 1), (of_places, 3), (of_same_scores, 3), (masked, 3)]
)
def test_softmaxes_share_a_stream(form, count):
    roots = roots_of(form)
    plan = schedule(roots, TARGET)
    assert len(plan.kernels) == count, plan.reasons
    found = interpret_plan(plan, [VALUES[node] for node in plan.inputs])
    for value, wanted in zip(found, interpret(roots, values=VALUES), strict=True):
        missed = np.linalg.norm(value.reshape(wanted.shape) - wanted)
        assert missed < 1e-5 * np.linalg.norm(wanted)


def test_gradients_of_a_difference():
    plan = schedule(roots_of(differential, bfloat16, True), TARGET)
    heroes = [kernel.hero for kernel in plan.kernels]
    assert heroes.count("attention") == 3 and len(heroes) == 4

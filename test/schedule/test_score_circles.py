"""Two softmaxes whose streams would wait for one another: plans mean the same."""

import numpy as np
import pytest
from plan_support import TARGET, VALUES, leaf

from picograd.graph import build
from picograd.graph.interpret import interpret
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

ROWS = ((0, 1, 3), (0, 3, 2), (0, 1, 2))


def weights(x):
    """Softmax over rows: a stream along the other side knows its maxima and totals."""
    scores = x.contract(x, ((0, 1, 3), (0, 2, 3), (0, 1, 2)))
    return build.softmax(scores * 0.3, 1)


def roots_of(has_circle):
    np.random.seed(0)
    x, v, w = (leaf(2, 40, 16) for _ in range(3))
    p, q = weights(x), weights(v)
    y, z = p.contract(v, ROWS), q.contract(w, ROWS)
    second = p.contract(z + 1.0, ROWS)
    return [y, z, second, q.contract((y if has_circle else w) * 2.0, ROWS)]


@pytest.mark.parametrize("target", [TARGET, cuda_target("sm_90a")], ids=["cpu", "cuda"])
@pytest.mark.parametrize("has_circle", [True, False])
def test_streams_do_not_wait_for_one_another(has_circle, target):
    roots = roots_of(has_circle)
    plan = schedule(roots, target)
    is_told = any("its streams wait for others, and these for them" in r for r in plan.reasons)
    assert is_told == (has_circle and target is TARGET)
    found = interpret_plan(plan, [VALUES[node] for node in plan.inputs])
    for value, wanted in zip(found, interpret(roots, values=VALUES), strict=True):
        np.testing.assert_allclose(value.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-5)

"""Loop IR of streams: the division behind the sum, masked rows, what is not rounded."""

import numpy as np
from attention_forms import causal_twice, plain
from plan_support import TARGET, VALUES, check_plan, leaf, run

from picograd.dtype import bfloat16
from picograd.graph.interpret import interpret
from picograd.schedule.loop import walk
from picograd.schedule.schedule import schedule

SHAPES = (1, 2, 20, 8), (1, 2, 24, 8), (1, 2, 24, 12)


def computes(form, shapes=SHAPES, **options):
    (kernel,) = schedule([form(*(leaf(*s, **options) for s in shapes))], TARGET).kernels
    return kernel.parts[0].computes


def test_weights_are_divided_after_their_sum():
    score, peak, total, weighted, divided = computes(plain)
    assert [c.monoid for c in (score, peak, total, weighted)] == ["sum", "max", "sum", "sum"]
    assert peak.reduce == total.reduce == weighted.reduce != score.reduce
    assert not any(e.op == "div" for e in walk(weighted.body))
    assert divided.body.op == "div" and [e.arg for e in divided.body.args] == [3, 2]


def test_rows_that_a_mask_empties_are_zero():
    q, k, v = (leaf(*shape) for shape in ((1, 2, 20, 8), (1, 2, 40, 8), (1, 2, 40, 12)))
    np.testing.assert_array_equal(computes(causal_twice)[-1].body.op, "where")
    VALUES[q][0, 0, 3] = np.nan
    plan = check_plan([causal_twice(q, k, v)], 1)
    (found,) = run(plan)
    assert np.isnan(found[0, 0, 3]).all() and not np.isnan(found[0, 0, 4]).any()


def test_scores_of_16_bits_are_not_rounded():
    for compute in computes(plain, dtype=bfloat16)[:3]:
        for expr in walk(compute.body):
            is_rounded = expr.op == "cast" and expr.dtype is bfloat16
            assert not (is_rounded and expr.args[0].op == "ref")
    q, k, v = (leaf(*shape, dtype=bfloat16) for shape in SHAPES)
    output = plain(q, k, v)
    (found,) = run(schedule([output], TARGET))
    np.testing.assert_allclose(found, interpret([output], values=VALUES)[0], atol=0.05)

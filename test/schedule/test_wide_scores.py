"""Scores of few rows that a CPU stores are float32, unless somebody else reads them."""

import numpy as np
import pytest
from attention_forms import additive, causal, plain, product, weigh
from plan_support import TARGET, VALUES, leaf, run

from picograd.dtype import bfloat16, float32
from picograd.graph import build
from picograd.graph.interpret import interpret
from picograd.schedule import moved_factors
from picograd.schedule.schedule import schedule

SHAPES = (1, 2, 3, 8), (1, 2, 40, 8), (1, 2, 40, 8)


def stored(roots):
    plan = schedule(roots, TARGET)
    sizes = [(slot.size, slot.dtype) for slot in plan.slots if slot.kind != "input"]
    return plan, [dtype for size, dtype in sizes if size == 2 * 3 * 40]


@pytest.mark.parametrize("form", [plain, causal, additive], ids=lambda form: form.__name__)
def test_scores_are_not_rounded(form):
    leaves = [leaf(*shape, dtype=bfloat16) for shape in SHAPES]
    plan, dtypes = stored([form(*leaves)])
    assert float32 in dtypes
    exact = form(*(node.cast(float32) for node in leaves))
    if form is not additive:  # whose bias is another one
        (found,), (wanted,) = run(plan), interpret([exact], values=VALUES)
        assert np.linalg.norm(found - wanted) < 6e-3 * np.linalg.norm(wanted)


def test_scores_that_are_read_are_what_they_are():
    q, k, v = (leaf(*shape, dtype=bfloat16) for shape in SHAPES)
    s = product(q, k)
    _, dtypes = stored([s, weigh(build.softmax(s, 3), v)])
    assert float32 not in dtypes


def test_float32_and_products_that_no_exponential_reads_stay():
    q, k, v = (leaf(*shape, dtype=bfloat16) for shape in SHAPES)
    _, dtypes = stored([weigh(product(q, k) * 2.0, v).cast(float32)])
    assert float32 not in dtypes


def test_scores_that_stream_stay(monkeypatch):
    q, k, v = (leaf(1, 2, 40, 8, dtype=bfloat16) for _ in range(3))
    monkeypatch.setattr(moved_factors, "widened", None)
    schedule([plain(q, k, v)], TARGET)

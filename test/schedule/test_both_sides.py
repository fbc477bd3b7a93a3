"""Gradients of rows and of columns in one kernel: where it is done, and what it computes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from attention_forms import causal, documents, grouped, plain, product, weigh, with_gradients
from plan_support import TARGET, check_plan, leaf

from picograd import Tensor, jit
from picograd.autograd import grad
from picograd.graph.node import toposort
from picograd.nn.functional import scaled_dot_product_attention
from picograd.schedule import both_sides, score_boxes, score_ranges
from picograd.schedule.cost import machine
from picograd.schedule.schedule import schedule
from picograd.schedule.values import facts_of
from picograd.target import cuda_target

SHAPES = (2, 3, 20, 8), (2, 3, 24, 8), (2, 3, 24, 12)


def attention_kernels(roots, target=TARGET):
    return [kernel.hero for kernel in schedule(roots, target).kernels].count("attention")


def test_one_kernel_has_both_sides():
    plan = check_plan(with_gradients(causal, *SHAPES), 2, 1e-4)
    _, backward = plan.kernels
    assert [len([c for c in x.parts[0].computes if c.store]) for x in plan.kernels] == [3, 3]
    reduced = {compute.reduce for compute in backward.parts[0].computes}
    assert {axis.size for axes in reduced for axis in axes} == {8, 12, 20, 24}


@pytest.mark.parametrize("form", [plain, grouped])
def test_not_where_sums_have_no_room(form, monkeypatch):
    shapes = (2, 4, 20, 8), (2, 2, 24, 8), (2, 2, 24, 8)
    roots = with_gradients(form, *(shapes if form is grouped else SHAPES))
    assert attention_kernels(roots) == 2
    monkeypatch.setattr(both_sides, "MOST_BYTES", 24 * 16 * 4)
    assert attention_kernels(roots) == (2 if form is grouped else 3)


def test_not_where_workers_would_be_idle(monkeypatch):
    """Six matrices: five products each by five workers take as long as seven by all of them."""
    roots = with_gradients(plain, *SHAPES)
    found = {}
    for workers in (1, 2, 4, 5, 6, 16):
        made = replace(machine(TARGET), workers=workers)
        monkeypatch.setattr(score_boxes, "machine", lambda target, made=made: made)
        found[workers] = attention_kernels(roots)
    assert found == {1: 2, 2: 2, 4: 2, 5: 3, 6: 2, 16: 3}


@pytest.mark.parametrize("waiting", ["", "rows", "columns"])
def test_not_where_one_side_is_made_of_the_other(waiting):
    """Sums over a side that read those over the other, which are whole at the very end only."""
    q, k, v, other = (leaf(*shape) for shape in (*SHAPES[:2], (2, 3, 24, 8), SHAPES[0]))
    weights = (product(q, k) * 0.2).unary("exp")
    labels = (0, 1, 4, 2), (0, 1, 4, 3), (0, 1, 2, 3)
    columns = None if waiting == "columns" else weights.contract(other, labels)
    rows = weigh(weights, columns if waiting == "rows" else v)
    columns = columns or weights.contract(rows, labels)
    check_plan([rows, columns], 2 if waiting else 1)


def test_not_on_gpus():
    assert attention_kernels(with_gradients(plain, *SHAPES), cuda_target("sm_90a")) != 2


def test_documents_hide_blocks_of_both(monkeypatch):
    monkeypatch.setattr(score_ranges, "LEAST", 16)
    shapes = (1, 2, 150, 8), (1, 2, 150, 8), (1, 2, 150, 12)
    plan = check_plan(with_gradients(documents, *shapes), tolerance=1e-4)
    assert sum("ranges" in kernel.name for kernel in plan.kernels) == 1


@pytest.mark.parametrize("is_causal", [False, True])
def test_sizes_that_vary(is_causal):
    """Rows behind an end add nothing to the sums of places."""
    generator = np.random.default_rng(0)

    @jit
    def attend(q, k, v, g):
        out = scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        return out, *grad(out, [q, k, v], g)

    for rows, columns in ((70, 70), (37, 90), (101, 44), (5, 130), (90, 37)):
        shapes = (1, 2, rows, 16), (1, 2, columns, 16), (1, 2, columns, 24), (1, 2, rows, 24)
        arrays = [generator.standard_normal(shape).astype(np.float32) for shape in shapes]
        q, k, v = (Tensor(array, requires_grad=True) for array in arrays[:3])
        found = [each.numpy() for each in attend(q, k, v, Tensor(arrays[3]))]
        wanted = gradients_of(*(array.astype(np.float64) for array in arrays), is_causal)
        for each, right in zip(found, wanted, strict=True):
            np.testing.assert_allclose(each, right, rtol=1e-4, atol=1e-5)


def gradients_of(q, k, v, g, is_causal):
    """Attention, and its gradients, in NumPy."""
    scale = q.shape[-1] ** -0.5
    scores = scale * q @ k.swapaxes(-1, -2)
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    dw = g @ v.swapaxes(-1, -2)
    ds = weights * (dw - (dw * weights).sum(-1, keepdims=True)) * scale
    return weights @ v, ds @ k, ds.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ g


def test_only_streams_of_one_region_are_compared(monkeypatch):
    asked = []
    monkeypatch.setattr(both_sides, "row_sums", lambda stream: asked.append(stream) or ())

    def count(layers):
        asked.clear()
        roots = [root for _ in range(layers) for root in with_gradients(plain, *SHAPES)]
        assert attention_kernels(roots)
        return len(asked)

    assert count(6) == 6 * count(1) > 0


def test_a_stream_waits_for_what_its_sinks_are_made_of():
    x = leaf(4, 4)
    first, second = x.unary("exp"), x.unary("sin")
    third = first.unary("neg").unary("exp")
    facts = facts_of(toposort([second, third]), [second, third])

    def stream(node):
        return SimpleNamespace(sinks=[SimpleNamespace(facts=facts[id(node)])])

    assert both_sides.is_waiting(stream(third), stream(first))
    assert not both_sides.is_waiting(stream(first), stream(third))
    assert not both_sides.is_waiting(stream(second), stream(first))

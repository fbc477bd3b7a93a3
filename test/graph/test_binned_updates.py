"""Sums that are only added up at few places: their terms go into bins."""

from typing import Any

import numpy as np
import pytest
from test_scattering import CUDA, leaf

from picograd.dtype import bfloat16, float32, int64
from picograd.graph import indexing
from picograd.graph.binned_updates import terms_of
from picograd.graph.expand import expand_composites
from picograd.graph.interpret import interpret
from picograd.graph.node import Node, constant, toposort
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.schedule import schedule

PLACES = 13


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "FEW", 4)
    monkeypatch.setattr(indexing, "FEW_OF_SUMS", 0)


def table_gradient(scores: Node, heads: int, side: int, index: Node, base: Node) -> Node:
    """What (B, H, S, S) scores that share a bias give its table (places, H)."""
    shared = scores.reduce("sum", (0,)).permute((1, 2, 0))
    return base.scatter(shared.reshape((side * side, heads)), (index,), (0,), "sum")


def zeros(*shape: int) -> Node:
    return constant(0, shape, float32, "cuda:0")


@pytest.mark.parametrize("batch", [1, 3, 11, 24])
@pytest.mark.parametrize("has_base", [False, True])
def test_gradients_of_a_table_that_a_batch_shares(batch: int, has_base: bool) -> None:
    random = np.random.default_rng(batch)
    shape = batch, 2, 7, 7
    arrays: list[Any] = [random.normal(size=shape).astype("f"), random.integers(0, PLACES, 49)]
    leaves = [leaf(shape, float32), leaf((49,), int64)]
    base = zeros(PLACES, 2)
    if has_base:
        base = leaf((PLACES, 2), float32)
        leaves.append(base)
        arrays.append(random.normal(size=(PLACES, 2)).astype("f"))
    node = table_gradient(leaves[0], 2, 7, leaves[1], base)
    expected = arrays[2].astype(float) if has_base else np.zeros((PLACES, 2))
    np.add.at(expected, arrays[1], arrays[0].sum(0).transpose(1, 2, 0).reshape(49, 2))
    given = dict(zip(leaves, arrays, strict=True))
    plan = schedule([node], CUDA)
    of_node = {id(each): array for each, array in given.items()}
    inputs = [of_node[id(each)].copy() for each in plan.inputs]
    for found in (
        interpret([node], values=given),
        interpret(expand_composites([node], target=CUDA), values=given),
        interpret_plan(plan, inputs),
    ):
        np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-5)
    kernels = [step.kernel.hero for step in plan.steps]  # type: ignore[union-attr]
    assert kernels == (["bins", "map"] if has_base else ["bins"])


@pytest.mark.parametrize(("few", "batch", "answer"), [(0, 3, 1), (1 << 22, 3, 2), (1 << 22, 1, 1)])
def test_few_sums_are_added_up_before(
    few: int, batch: int, answer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two short kernels are quicker than one that clears bins; scores of a batch of one stream."""
    monkeypatch.setattr(indexing, "FEW_OF_SUMS", few)
    leaves = leaf((batch, 2, 7, 7), float32), leaf((49,), int64)
    node = table_gradient(leaves[0].unary("exp"), 2, 7, leaves[1], zeros(PLACES, 2))
    heroes = [kernel.hero for kernel in schedule([node], CUDA).kernels]
    assert (heroes[-1] == "bins") is (answer == 1)


def test_what_lies_across_is_summed_before() -> None:
    """Columns that lie beside one another: terms of a place are a row apart."""
    values = leaf((24, 30, 64), float32).reduce("sum", (0,))
    assert terms_of(values.reshape((5, 6, 64)), 1) is None
    turned = leaf((24, 64, 30), float32).reduce("sum", (0,)).permute((1, 0))
    terms = terms_of(turned.reshape((5, 6, 64)), 1)
    assert terms is not None and terms.shape == (3, 5, 6, 64)


def test_terms_are_rounded_as_their_sum_would_be() -> None:
    values = leaf((4, 2, 9), float32).reduce("sum", (0,)).cast(bfloat16).permute((1, 0))
    terms = terms_of(values, 0)
    assert terms is not None
    casts = [each.dtype for each in toposort([terms]) if each.row.keeps_value]
    assert terms.dtype is float32 and bfloat16 in casts


def test_a_sum_that_is_in_memory_is_read() -> None:
    total = leaf((4, 2, 9), float32).reduce("sum", (0,))
    total.is_asked = True
    terms = terms_of(total.permute((1, 0)), 0)
    assert terms is not None and terms.shape == (1, 9, 2)

"""Sums that are only added up at few places: their terms go into bins."""

from typing import Any

import numpy as np
import pytest
from test_scattering import CUDA, leaf

from picograd.dtype import bfloat16, float32, float64, int32, int64
from picograd.graph import indexing
from picograd.graph.binned_updates import terms_of
from picograd.graph.expand import expand_composites
from picograd.graph.interpret import interpret
from picograd.graph.node import Node, constant, toposort
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.schedule import schedule

PLACES = 13
dtypes = {"float32": float32, "float64": float64, "int32": int32, "bfloat16": bfloat16}


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


@pytest.mark.parametrize(("places", "count", "columns"), [(7, 60, 9), (50, 300, 40), (3, 70, 33)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bfloat16"])
def test_rows_of_one_index_lie_beside_one_another(
    dtype: str, places: int, count: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "MOST_VISITS", 0)
    random = np.random.default_rng(0)
    base, values = leaf((places, columns), dtypes[dtype]), leaf((count, columns), dtypes[dtype])
    index = leaf((count,), int64)
    node = base.scatter(values, (index,), (0,), "sum")
    found = list(expand_composites([node], target=CUDA))
    forms = [each.arg[-1] for each in toposort(found) if each.op == "bin_sums"]
    assert forms == ["beside"]
    arrays = [random.integers(0, 9, each.shape).astype("f") for each in (base, values)]
    at = random.integers(0, places, count)
    wanted = arrays[0].copy()
    np.add.at(wanted, at, arrays[1])
    given = dict(zip((base, values, index), (*arrays, at), strict=True))
    made = interpret(found, values=given)[0]
    np.testing.assert_array_equal(made.astype("f"), wanted)


def test_what_goes_to_lanes() -> None:
    """Rows beside one another, an index for all, of which not too many are looked at."""

    def form(places: int, count: int, columns: int, axis: int = 0) -> list[str]:
        shapes = [(places, columns), (count, columns)]
        base, values = (leaf(shape if axis == 0 else shape[::-1], float32) for shape in shapes)
        node = base.scatter(values, (leaf((count,), int64),), (axis,), "sum")
        found = toposort(expand_composites([node], target=CUDA))
        return [each.arg[-1] for each in found if each.op == "bin_sums"]

    assert form(10_000, 30_000, 64) == ["beside"]
    assert form(10_000, 30_000, 64, axis=1) != ["beside"]
    assert form(10_000, 30_000, 4) != ["beside"]
    assert form(10_000, 40_000, 64) != ["beside"]
    assert form(100_000, 10_000, 64) == []
    assert form(50_000, 1_000_000, 64) == []


def test_what_holds_is_counted_where_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are 1, and those of places where it does not hold are left out."""
    monkeypatch.setattr(indexing, "FEW_VISITS", 0)
    x, index = leaf((5000,), float32), leaf((5000,), int64)
    mask = x.binary("less", 0.5)
    node = zeros(PLACES).scatter(mask.cast(float32), (index,), (0,), "sum")
    random = np.random.default_rng(1)
    given = {x: random.random(5000).astype("f"), index: random.integers(0, PLACES, 5000)}
    wanted = np.bincount(given[index], given[x] < 0.5, PLACES)
    found = expand_composites([node], target=CUDA)
    np.testing.assert_array_equal(interpret(found, values=given)[0], wanted)
    heroes = [kernel.hero for kernel in schedule([node], CUDA).kernels]
    assert heroes[0] == "bins"

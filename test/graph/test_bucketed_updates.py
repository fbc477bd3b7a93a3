"""Sums of numbers at many places: buckets of neighbouring places, cut into pieces."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from interpreted_cuda import NAME, interpreted_cuda
from poison import poison
from test_scattering import CUDA, PATTERNS, check, leaf, places

from picograd import Tensor
from picograd.dtype import DType, float32, float64, int32, int64
from picograd.engine import realize, sizes
from picograd.engine.backends import default_device
from picograd.engine.plan_cache import PlanCache
from picograd.graph import bucketed_updates, indexing, sorting
from picograd.graph.expand import expand_composites
from picograd.graph.node import Node, constant, toposort
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.schedule import schedule

PLACES = 1000


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "FAN", 4)
    monkeypatch.setattr(indexing, "FEW", 4)
    monkeypatch.setattr(indexing, "MOST_VISITS", 0)
    monkeypatch.setattr(indexing, "in_bins", lambda *_: None)
    monkeypatch.setattr(sorting, "BLOCK_RUN", 64)
    monkeypatch.setattr(sorting, "RADIX_TILE", 256)
    monkeypatch.setattr(bucketed_updates, "LEAST_UPDATES", 100)
    monkeypatch.setattr(bucketed_updates, "LEAST_PIECE", 50)
    monkeypatch.setattr(bucketed_updates, "MOST_BITS", 6)


def ops_of(node: Node) -> set[str]:
    return {each.op for each in toposort(expand_composites([node], target=CUDA))}


@pytest.mark.parametrize("count", [PLACES, 2500])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern(pattern: str, count: int) -> None:
    random = np.random.default_rng(0)
    base, values = random.normal(size=PLACES).astype("f"), random.normal(size=count).astype("f")
    node = check(base, values, [places(pattern, count, PLACES)], (0,), "sum")
    assert {"bin_sums", "radix_move", "scatter_runs"} <= ops_of(node)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "uint32"])
def test_every_dtype(dtype: str) -> None:
    random = np.random.default_rng(0)
    base, values = (random.integers(0, 4, n).astype(dtype) for n in (300, 2000))
    node = check(base, values, [places("random", 2000, 300)], (0,), "sum")
    assert "bin_sums" in ops_of(node)


@pytest.mark.parametrize(("values", "is_moved"), [(int64, False), (float64, False), (int32, True)])
def test_a_place_and_a_value_are_one_number(values: DType, is_moved: bool) -> None:
    """Where they are not, all is sorted; a number that all values are need not be moved."""
    node = leaf((300,), values).scatter(leaf((2000,), values), [leaf((2000,), int64)], (0,), "sum")
    assert ("bin_sums" in ops_of(node)) is is_moved
    ones = constant(1, (2000,), values, "cuda:0")
    zeros = constant(0, (300,), values, "cuda:0")
    index = leaf((2000,), int64)
    counted = zeros.scatter(ones, [index], (0,), "sum")
    assert "bin_sums" in ops_of(counted)
    plan = schedule([counted], CUDA)
    given = places("random", 2000, 300)
    found = interpret_plan(plan, [given])[0]
    np.testing.assert_array_equal(found, np.bincount(given, minlength=300))


def test_several_axes() -> None:
    random = np.random.default_rng(0)
    base, values = random.normal(size=(30, 17)).astype("f"), random.normal(size=(40, 31))
    first, second = places("random", 1240, 17), places("two", 1240, 30)
    indices = [first.reshape(40, 31), second.reshape(40, 31)]
    node = check(base, values.astype("f"), indices, (1, 0), "sum")
    assert "bin_sums" in ops_of(node)


@pytest.mark.skipif(default_device() != "cpu", reason="interprets on the host")
def test_updates_of_varying_number_share_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realize, "PLANS", PlanCache())
    monkeypatch.setattr(sizes, "FAMILIES", type(sizes.FAMILIES)())
    random = np.random.default_rng(0)
    with interpreted_cuda(monkeypatch) as device:
        poison(monkeypatch, device)
        for count in (1500, 1200, 1900, 1300):
            index = random.integers(0, 300, count)
            values = random.integers(-9, 9, count).astype("f")
            base = Tensor(np.ones(300, "f"), device=NAME)
            found = base.index_add(0, Tensor(index, device=NAME), Tensor(values, device=NAME))
            expected = np.bincount(index, values, 300) + 1
            np.testing.assert_array_equal(found.numpy(), expected)
        assert not any(family.refused for family in sizes.FAMILIES.values())
        assert all(family.reused for family in sizes.FAMILIES.values())


@pytest.mark.parametrize("monoid", ["max", "prod", None])
def test_what_is_sorted(monoid: str | None) -> None:
    """Few updates, rows, other monoids, and more places than a digit and a bucket tell apart."""
    index = leaf((2000,), int64)
    base, values = leaf((300,), float32), leaf((2000,), float32)
    assert "bin_sums" not in ops_of(base.scatter(values, [index], (0,), monoid))
    for size, count, rest in ((300, 90, ()), (300, 2000, (2,)), (1 << 15, 1 << 16, ())):
        base, values = leaf((size, *rest), float32), leaf((count, *rest), float32)
        node = base.scatter(values, [leaf((count,), int64)], (0,), "sum")
        assert "bin_sums" not in ops_of(node)


@pytest.mark.parametrize("counts", [[5, 0, 7, 0], [0, 0, 0, 400], [130, 1, 120, 149], [0] * 4])
def test_pieces_are_each_of_one_bucket(counts: list[int]) -> None:
    """Each element of a bucket is in one piece of it, and no piece is longer than the others."""
    count = 400
    every: Any = leaf((4, 1), int32)
    pieces = bucketed_updates.cut(every, count, 4)
    plan = schedule([pieces.bucket, pieces.begin, pieces.stop], CUDA)
    bucket, begin, stop = interpret_plan(plan, [np.array(counts, "int32")[:, None]])
    assert (np.diff(bucket) >= 0).all() and (stop - begin <= pieces.length).all()
    found = [number for b, e, k in zip(begin, stop, bucket) for number in [k] * max(e - b, 0)]
    assert found == [number for number, each in enumerate(counts) for _ in range(each)]
    filled = [(b, e) for b, e in zip(begin, stop) if b < e]
    assert all(before[1] == after[0] for before, after in pairwise(filled))

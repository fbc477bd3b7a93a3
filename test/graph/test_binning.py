"""Scatters on CUDA whose places a block of threads has room for."""

from typing import Any

import numpy as np
import pytest
from test_scattering import CUDA, check, leaf, places

from picograd.dtype import float32, int64
from picograd.graph import binning, indexing
from picograd.graph.expand import expand_composites
from picograd.graph.node import Node, toposort
from picograd.target import opencl_target


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "FEW", 4)
    monkeypatch.setattr(indexing, "MOST_VISITS", 0)
    monkeypatch.setattr(binning, "LEAST", 32)


def is_binned(node: Node) -> bool:
    ops = {each.op for each in toposort(expand_composites([node], target=CUDA))}
    return "bin_sums" in ops and "scatter_runs" not in ops


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("pattern", ["random", "same", "two"])
def test_numbers_at_few_places(pattern: str, dtype: str) -> None:
    random = np.random.default_rng(0)
    base, values = (random.integers(1, 3, n).astype(dtype) for n in (40, 333))
    assert is_binned(check(base, values, [places(pattern, 333, 40)], (0,), "sum"))


def test_places_of_several_axes() -> None:
    random = np.random.default_rng(0)
    base, values = random.normal(size=(5, 6)).astype("f"), random.normal(size=(11, 6)).astype("f")
    indices = [places("random", 66, size).reshape(11, 6) for size in (6, 5)]
    assert is_binned(check(base, values, indices, (1, 0), "sum"))


@pytest.mark.parametrize("rows", [6, 4])
def test_rows_apart(rows: int) -> None:
    """Those of the base that have no updates stay as they are."""
    random = np.random.default_rng(0)
    shape = (70, rows, 3)
    found = [random.integers(0, 9, shape), *np.indices(shape)[1:]]
    base, values = random.normal(size=(6, 3, 9)).astype("f"), random.normal(size=shape).astype("f")
    order = [found[n] for n in (1, 0, 2)]
    node = check(base, values, order, (0, 2, 1), "sum", own=((0, 1), (2, 2)))
    assert is_binned(node)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (2, 1)])
def test_rows_at_few_places(axes: tuple[int, ...], dtype: str) -> None:
    """Some axes of the base are indexed, in any order, and the others are rows."""
    random = np.random.default_rng(1)
    base = random.integers(1, 3, (4, 5, 6)).astype(dtype)
    rest = [size for axis, size in enumerate(base.shape) if axis not in axes]
    values = random.integers(1, 3, (90, *rest)).astype(dtype)
    indices = [places("random", 90, base.shape[axis]) for axis in axes]
    assert is_binned(check(base, values, indices, axes, "sum"))


def test_rows_that_are_not_wanted() -> None:
    random = np.random.default_rng(0)
    base = random.normal(size=(20, 3)).astype("f")
    values = random.normal(size=(90, 3)).astype("f")
    inside = random.random(90) < 0.5
    node = check(base, values, [places("random", 90, 20)], (0,), "sum", inside)
    assert is_binned(node)


def test_updates_that_are_not_wanted() -> None:
    random = np.random.default_rng(0)
    base, values = random.normal(size=20).astype("f"), random.normal(size=90).astype("f")
    inside = random.random(90) < 0.5
    node = check(base, values, [places("random", 90, 20)], (0,), "sum", inside)
    assert is_binned(node)


@pytest.mark.parametrize(
    ("base", "updates", "monoid", "answer"),
    [
        ((100,), (40,), "sum", True),
        ((100,), (20,), "sum", False),  # places enough to clear
        ((100,), (40,), "max", False),
        ((20000,), (30000,), "sum", False),  # no room
        ((16384,), (30000,), "sum", True),
        ((100, 3), (40,), "sum", True),  # rows of three
        ((100, 3), (40,), "max", False),
        ((100, 3), (1 << 20,), "sum", True),  # lanes have bins of their own
        ((300, 3), (1 << 20,), "sum", False),  # as many are sorted, and threads add side by side
        ((20000, 3), (30000,), "sum", False),
    ],
)
def test_what_is_binned(base: Any, updates: Any, monoid: str, answer: bool) -> None:
    values = leaf((*updates, *base[1:]), float32)
    node = leaf(base, float32).scatter(values, [leaf(updates, int64)], (0,), monoid)
    assert is_binned(node) is answer


def test_warps_have_room_for_their_bins() -> None:
    sizes = 1, 1000, 1024, 1025, 4096, 16384, 16385
    assert [binning.warps_of(size, 4, 1, CUDA) for size in sizes] == [16, 16, 16, 8, 4, 1, 0]
    lanes = [(bins, binning.lanes_of(bins, 4, 1, 1 << 20, CUDA)) for bins in (1, 256, 257, 4096)]
    assert lanes == [(1, 32), (256, 32), (257, 1), (4096, 1)]
    assert [binning.warps_of(size, 4, 32, CUDA) for size in (10, 100, 256)] == [16, 4, 2]
    small = opencl_target(shared_bytes=16 << 10)
    assert [binning.warps_of(size, 4, 1, small) for size in (1000, 4096, 4097)] == [4, 1, 0]


def test_lanes_have_bins_where_they_add_more_than_they_clear() -> None:
    sizes = (1, 204800), (1, 204799), (64, 3200), (65, 3199), (16, 1 << 20)
    assert [binning.lanes_of(100, 4, *each, CUDA) for each in sizes] == [32, 1, 32, 1, 32]

"""Updates that are made all at once: extremes, and the last update of each place."""

from typing import Any

import numpy as np
import pytest
from interpreted_cuda import interpreted_cuda
from test_scattering import CUDA, PATTERNS, check, leaf, places

import picograd
from picograd import Tensor
from picograd.dtype import DType, float32, float64, int32, int64
from picograd.graph import indexing, updates_at_once
from picograd.graph.expand import expand_composites
from picograd.graph.node import Node, toposort

SORTS = {"sort_keys", "radix_move", "scatter_runs"}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "FEW", 4)


def ops_of(node: Node) -> set[str]:
    return {each.op for each in toposort(expand_composites([node], target=CUDA))}


@pytest.mark.parametrize("monoid", ["max", "min", None])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern(pattern: str, monoid: str | None) -> None:
    random = np.random.default_rng(0)
    base, values = random.normal(size=(40, 3)).astype("f"), random.normal(size=(333, 3)).astype("f")
    index = places(pattern, 333, 40)
    node = check(base, values, [index], (0,), monoid)
    assert not ops_of(node) & SORTS
    if monoid is None:
        check(base, values, [index], (0,), None, random.integers(0, 2, 333) > 0)


@pytest.mark.parametrize(
    ("monoid", "dtype", "is_sorted"),
    [("max", float64, True), ("min", int64, True), (None, float64, False), ("min", int32, False)],
)
def test_long_numbers_are_sorted(monoid: str | None, dtype: DType, is_sorted: bool) -> None:
    node = leaf((300,), dtype).scatter(leaf((99,), dtype), [leaf((99,), int64)], (0,), monoid)
    assert bool(ops_of(node) & SORTS) is is_sorted


def test_places_that_are_more_than_can_be_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates_at_once, "MOST_PLACES", 39)
    random = np.random.default_rng(0)
    base, values = random.normal(size=40).astype("f"), random.normal(size=99).astype("f")
    for pattern in PATTERNS:
        node = check(base, values, [places(pattern, 99, 40)], (0,), None)
        assert ops_of(node) & SORTS


def test_updates_with_places_of_their_own() -> None:
    random = np.random.default_rng(0)
    base, values = random.normal(size=(50, 9)).astype("f"), random.normal(size=50).astype("f")
    indices = [np.arange(50), random.integers(0, 9, 50)]
    node = check(base, values, indices, (0, 1), None, own=((0, 0),))
    assert not any(each.arg[1] == "max" for each in scatters(node))
    square = [np.arange(30).reshape(6, 5) // 5, random.integers(0, 9, (6, 5))]
    node = check(base, values[:30].reshape(6, 5), square, (0, 1), None, own=((0, 0),))
    assert any(each.arg[1] == "max" for each in scatters(node))


def scatters(node: Node) -> list[Node]:
    return [
        each for each in toposort(expand_composites([node], target=CUDA)) if each.op == "scatter"
    ]


@pytest.mark.usefixtures("on_host")
@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_nan_zeros_and_infinities(monkeypatch: pytest.MonkeyPatch, reduce: str) -> None:
    base = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 5.0], np.float32)
    index = np.arange(48) % 6
    values = np.tile(np.array([1.0, np.nan, 2.0, -np.inf, np.inf, 5.0, -3.0], np.float32), 7)[:48]
    wanted = Tensor(base).scatter_reduce(0, Tensor(index), Tensor(values), reduce).numpy()
    with interpreted_cuda(monkeypatch):
        x, at, v = (Tensor(each, device="cuda:0") for each in (base, index, values))
        found = x.scatter_reduce(0, at, v, reduce).numpy()
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.usefixtures("on_host")
@pytest.mark.parametrize("columns", [1, 3, 130])
def test_kernels(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    random = np.random.default_rng(0)
    base, rows = (random.normal(size=(n, columns)).astype("f") for n in (70, 300))
    index = random.integers(0, 70, 300)
    wanted = results("cpu", base, rows, index)
    with interpreted_cuda(monkeypatch) as device:
        found = results("cuda:0", base, rows, index)
        assert device.seen == {"program"}
    for each, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(each, other)


def results(device: str, *arrays: Any) -> list[Any]:
    """Write rows, and extremes of rows, into new memory, memory and a part of it."""
    base, rows, index = (Tensor(each, device=device) for each in arrays)
    wide = index[:, None].expand(*rows.shape)
    found = [base.index_copy(0, index, rows), base.scatter_reduce(0, wide, rows, "amin")]
    for function in (set_rows, raise_rows, set_part, raise_part):
        x = base.clone()
        function(x, index, rows)
        found.append(x)
    return [each.numpy() for each in found]


def set_rows(x: Tensor, index: Tensor, rows: Tensor) -> None:
    x[index] = rows


def raise_rows(x: Tensor, index: Tensor, rows: Tensor) -> None:
    x.index_reduce_(0, index, rows, "amax")


def set_part(x: Tensor, index: Tensor, rows: Tensor) -> None:
    x[5:60][index % 55] = rows


def raise_part(x: Tensor, index: Tensor, rows: Tensor) -> None:
    x[5:60].index_reduce_(0, index % 55, rows, "amax")


def test_gradients_are_those_of_a_cpu(device: str) -> None:
    random = np.random.default_rng(0)
    base, values = random.normal(size=20).astype("f"), random.normal(size=90).astype("f")
    index = random.integers(0, 20, 90)
    found = []
    for name in ("cpu", device):
        x, v = (Tensor(each, device=name).requires_grad_() for each in (base, values))
        y = x.scatter_reduce(0, Tensor(index, device=name), v, "amax")
        found.append(picograd.autograd.grad(y.square().sum(), (x, v)))
    for each, other in zip(*found, strict=True):
        np.testing.assert_allclose(each.numpy(), other.numpy(), rtol=1e-5)
    assert found[0][0].dtype is float32

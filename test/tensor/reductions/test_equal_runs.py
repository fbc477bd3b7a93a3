"""Sets: distinct elements, slices and runs, as PyTorch finds them."""

from typing import Any

import numpy as np
import pytest
from interpreted_cuda import NAME, interpreted_cuda
from op_support import same

import picograd
from picograd import Tensor
from picograd.graph import indexing, sorting
from picograd.tensor.reductions import equal_runs

torch = pytest.importorskip("torch")


def test_sets(device: str) -> None:
    rows = np.array([[2, 1], [0, 3], [2, 1], [2, 1], [0, 3]])
    x, t = Tensor(rows, device=device), torch.tensor(rows)
    more = dict(return_inverse=True, return_counts=True)
    same(x.unique(dim=0, **more), t.unique(dim=0, **more))
    same([picograd.unique(x.T, dim=-1)], [torch.unique(t.T, dim=-1)])
    same(x.unique_consecutive(**more), t.unique_consecutive(**more))
    same(x.unique_consecutive(dim=0, **more), t.unique_consecutive(dim=0, **more))
    empty, nothing = x[:0, 0], t[:0, 0]
    same(empty.unique_consecutive(**more), nothing.unique_consecutive(**more))
    for value in (rows, rows.astype(np.float32), rows[:0]):
        for others in ([1, 3], [2.5], []):
            given = torch.tensor(others, dtype=torch.float64 if 2.5 in others else torch.int64)
            found = picograd.isin(Tensor(value, device=device), Tensor(given, device=device))
            same([found], [torch.isin(torch.tensor(value), given)])
    same([picograd.isin(x, 2, invert=True)], [torch.isin(t, 2, invert=True)])


def rows_of(kind: str) -> Any:
    """Draw rows that meet often: few kinds of each column, some of which are far from others."""
    random = np.random.default_rng(0)
    rows = random.integers(0, 3, (150, 3))
    if kind == "far":
        rows[:, 1] *= 1 << 40
        rows[:, 2] -= 1 << 62
        rows[5] = np.iinfo(np.int64).min, np.iinfo(np.int64).max, 7
    elif kind == "int8":
        return (rows * 100 - 100).astype(np.int8)
    elif kind == "float32":
        rows = rows.astype(np.float32) - 1
        rows[7, 1], rows[9, 2] = -0.0, np.inf
        return rows
    elif kind == "bool":
        return rows > 1
    return rows


@pytest.mark.usefixtures("on_host")
@pytest.mark.parametrize("kind", ["near", "far", "int8", "float32", "bool"])
def test_kernels(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    rows = rows_of(kind)
    t = torch.tensor(rows)
    more = dict(return_inverse=True, return_counts=True)
    monkeypatch.setattr(equal_runs, "SMALL_MASK", 10)
    monkeypatch.setattr(equal_runs, "rows_of", None)  # what the host does
    monkeypatch.setattr(sorting, "BLOCK_RUN", 64)
    monkeypatch.setattr(sorting, "RADIX_TILE", 256)
    monkeypatch.setattr(indexing, "FEW", 4)
    with interpreted_cuda(monkeypatch):
        x = Tensor(rows, device=NAME)
        same(x.unique(dim=0, **more), t.unique(dim=0, **more))
        same([picograd.unique(x.T, dim=-1)], [torch.unique(t.T, dim=-1)])
        same(x.unique_consecutive(**more), t.unique_consecutive(**more))
        same(x.unique_consecutive(dim=0, **more), t.unique_consecutive(dim=0, **more))
        same([x.unique(dim=0)], [t.unique(dim=0)])
        column, other = x[:, 0], t[:, 0]
        same([column.unique_consecutive()], [other.unique_consecutive()])
        same([column.unique()], [other.unique()])


@pytest.mark.usefixtures("on_host")
def test_rows_of_many_words_are_sorted_by_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).integers(0, 2, (40, 4)).astype(np.float64)
    monkeypatch.setattr(equal_runs, "SMALL_MASK", 10)
    monkeypatch.setattr(equal_runs, "MOST_WORDS", 3)
    with interpreted_cuda(monkeypatch):
        found = Tensor(rows, device=NAME).unique(dim=0).numpy()
    np.testing.assert_array_equal(found, np.unique(rows, axis=0))


def test_columns_are_cut_into_words() -> None:
    assert equal_runs.words_of([32, 32, 8, 64, 16]) == [(0, 2), (2, 3), (3, 4), (4, 5)]

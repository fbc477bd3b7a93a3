"""Adaptive pooling to many cells, whose graph does not grow with them, equals PyTorch's."""

import numpy as np
import pytest

from picograd import Tensor
from picograd.graph.node import toposort
from picograd.nn import functional as F
from picograd.tensor.network.adaptive_cells import SPELT_OUT, cell_table, cells

torch = pytest.importorskip("torch")
SIZES = [(100, 37), (41, 40), (40, 61), (17, 17), (64, 32), (5, 1000), (1, SPELT_OUT + 1)]


@pytest.mark.parametrize("full, size", SIZES)
def test_averages_and_their_gradients(full: int, size: int) -> None:
    data = np.random.default_rng(full).standard_normal((2, 3, full)).astype(np.float32)
    weights = np.random.default_rng(size).standard_normal((2, 3, size)).astype(np.float32)
    theirs, ours = torch.tensor(data, requires_grad=True), Tensor(data, requires_grad=True)
    expected = torch.nn.functional.adaptive_avg_pool1d(theirs, size)
    found = F.adaptive_avg_pool1d(ours, size)
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=1e-6, atol=1e-6)
    (expected * torch.tensor(weights)).sum().backward()
    (found * Tensor(weights)).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-5, atol=1e-5)


def test_infinity_stays_in_its_cells() -> None:
    data = np.ones((1, 50), np.float32)
    data[0, 0] = np.inf
    found = F.adaptive_avg_pool1d(Tensor(data), 20).numpy()
    expected = torch.nn.functional.adaptive_avg_pool1d(torch.tensor(data), 20).numpy()
    assert np.array_equal(found, expected)


def test_maxima_and_their_positions_with_ties() -> None:
    data = np.random.default_rng(0).integers(0, 4, (2, 3, 23, 19)).astype(np.float32)
    options = dict(return_indices=True)
    found, at = F.adaptive_max_pool2d(Tensor(data), (9, 40), **options)
    expected, place = torch.nn.functional.adaptive_max_pool2d(
        torch.tensor(data), (9, 40), **options
    )
    assert np.array_equal(found.numpy(), expected.numpy())
    assert np.array_equal(at.numpy(), place.numpy())


def test_tables() -> None:
    table, counts = cells("pool", 5, 3)
    assert table.tolist() == [[0, 1, 1], [1, 2, 3], [3, 4, 4]] and counts.tolist() == [2, 3, 2]
    assert cell_table("pool", (2, 2), (1, 2)).tolist() == [[0, 2], [1, 3]]


def test_the_graph_does_not_grow_with_the_cells() -> None:
    x = Tensor(np.ones((1, 1000), np.float32))
    few, many = (F.adaptive_avg_pool1d(x, size) for size in (70, 700))
    assert len(toposort([few.node])) == len(toposort([many.node])) < 40

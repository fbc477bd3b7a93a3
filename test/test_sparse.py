"""PyTorch's sparse tensors, kept dense: a program with them gets the same numbers."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd.errors import DTypeError, ShapeError


def convolved(library: Any) -> list[Any]:
    """Run two layers of a graph network as programs write them, and their gradients."""
    at = library.tensor([[0, 1, 2, 2], [1, 0, 1, 1]])
    weights = library.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    adjacency = library.sparse_coo_tensor(at, weights, (3, 3)).coalesce()
    features = library.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    hidden = library.spmm(adjacency, features)
    out = library.sparse.mm(adjacency, hidden.relu())
    out.sum().backward()
    parts = adjacency.detach()
    shown = [parts.indices(), parts.values(), parts._nnz(), parts.sparse_dim()]
    return [adjacency.to_dense(), out, weights.grad, features.grad, *shown]


@pytest.mark.filterwarnings("ignore")
def test_a_graph_network() -> None:
    torch = pytest.importorskip("torch")
    for ours, theirs in zip(convolved(picograd), convolved(torch)):
        ours, theirs = (x.tolist() if hasattr(x, "tolist") else x for x in (ours, theirs))
        assert ours == theirs


@pytest.mark.filterwarnings("ignore")
def test_ways_to_make_them() -> None:
    torch = pytest.importorskip("torch")
    for call in (
        "T.sparse.FloatTensor(T.LongTensor([[0, 1], [1, 0]]), T.ones(2), T.Size([2, 2]))",
        "T.sparse_coo_tensor([[0, 1], [1, 0]], [1, 2])",
        "T.sparse_coo_tensor([[0, 1]], T.ones(2, 3), (2, 3), dtype=T.float64)",
        "T.sparse_csr_tensor([0, 2, 3], [0, 1, 1], [1.0, 2.0, 3.0])",
        "T.sparse_coo_tensor((2, 3))",
        "T.sparse_coo_tensor(T.ones(2, 0), T.ones(0, 4))",
        "T.sparse.spdiags(T.arange(10).view(2, 5), T.tensor([-1, 2]), (4, 4))",
        "T.sparse.spdiags(T.arange(3), T.tensor(3), (3, 3))",
        "T.eye(2).to_sparse()",
        "T.sparse.addmm(T.ones(2, 1), T.eye(2).to_sparse(), T.ones(2, 1), beta=2.0)",
        "T.sparse.sum(T.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0]), 1)",
    ):
        ours, theirs = (eval(call, {"T": library}).to_dense() for library in (picograd, torch))
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), strict=True)


def test_errors() -> None:
    with pytest.raises(ShapeError, match=r"sparse_coo_tensor: indices \(2, 1\) and values"):
        picograd.sparse_coo_tensor([[0], [1]], [1.0, 2.0])
    with pytest.raises(ValueError, match="an offset stands twice"):
        picograd.sparse.spdiags(picograd.ones(2, 3), picograd.tensor([1, 1]), (3, 3))
    with pytest.raises(DTypeError, match="reduce='amax'"):
        picograd.sparse.mm(picograd.eye(2), picograd.eye(2), "amax")
    assert picograd.sparse.LongTensor(2, 3).dtype is picograd.int64


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_shares_of_entries_alone(name: str) -> None:
    torch = pytest.importorskip("torch")
    data = [[1.0, 0.0, 3.0], [0.0, 0.0, 0.0], [0.5, -2.0, 0.0]]
    ours, theirs = (library.tensor(data, requires_grad=True) for library in (picograd, torch))
    for axis in (0, 1):
        found = getattr(picograd.sparse, name)(ours.to_sparse(), axis)
        wanted = getattr(torch.sparse, name)(theirs.to_sparse(), axis).to_dense()
        np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), 1e-6, 1e-6)
        (found * found).sum().backward()
        (wanted * wanted).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), 1e-5, 1e-6)

"""Methods of sparse tensors on those that keep every element."""

from typing import Any

import pytest

import picograd
from picograd.errors import ShapeError


def test_every_kind_is_the_tensor() -> None:
    x: Any = picograd.tensor([[0.0, 2.0], [3.0, 0.0]])
    for name in ("to_sparse", "to_sparse_coo", "to_sparse_csr", "to_dense", "coalesce"):
        assert getattr(x, name)() is x, name
    assert x.to_dense(picograd.float64).dtype is picograd.float64
    assert x._indices().tolist() == [[0, 1], [1, 0]] and x._values().tolist() == [2.0, 3.0]
    assert x.is_coalesced() and x._nnz() == 2 and x.sparse_dim() == 2
    assert x.crow_indices().tolist() == [0, 1, 2] and x.col_indices().tolist() == [1, 0]


def test_sparse_mask_keeps_what_the_mask_names() -> None:
    x = picograd.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    found = x.sparse_mask(picograd.eye(2).to_sparse())
    (found**2).sum().backward()
    assert found.tolist() == [[1.0, 0.0], [0.0, 4.0]] and x.grad.tolist() == [
        [2.0, 0.0],
        [0.0, 8.0],
    ]
    with pytest.raises(ShapeError, match="sparse_mask"):
        x.sparse_mask(picograd.eye(3))

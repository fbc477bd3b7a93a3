"""Methods of PyTorch's sparse tensors on tensors here, which keep every element.

What turns one kind into another gives the tensor; entries are the elements that are not 0.
"""

from typing import Any

from picograd.errors import ShapeError
from picograd.tensor.core.annotations import DTypeLike, Tensor
from picograd.tensor.core.function import composed


@composed(function=False)
def to_dense(
    self: Any, dtype: DTypeLike | None = None, *, masked_grad: bool | None = None
) -> Tensor:
    """Give the tensor, in a dtype: every element is there already.

    >>> Tensor([0.0, 2.0]).to_dense().tolist()
    [0.0, 2.0]
    """
    return self if dtype is None else self.to(dtype)  # type: ignore[no-any-return]


@composed("to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", function=False)
def to_sparse(self: Any, *sparse_dim: Any, **options: Any) -> Tensor:
    """Give the tensor: all elements are kept, those of 0 too.

    >>> Tensor([0.0, 2.0]).to_sparse().tolist()
    [0.0, 2.0]
    """
    return self  # type: ignore[no-any-return]


@composed(function=False)
def coalesce(self: Any) -> Tensor:
    """Give the tensor: values at one place are added up already.

    >>> Tensor([0.0, 2.0]).coalesce().tolist()
    [0.0, 2.0]
    """
    return self  # type: ignore[no-any-return]


@composed("indices", "_indices", function=False)
def indices(self: Any) -> Tensor:
    """List where elements are not 0: (D, N).

    >>> Tensor([[0.0, 2.0], [3.0, 0.0]]).indices().tolist()
    [[0, 1], [1, 0]]
    """
    return self.nonzero().t()  # type: ignore[no-any-return]


@composed("values", "_values", function=False)
def values(self: Any) -> Tensor:
    """List the elements that are not 0.

    >>> Tensor([[0.0, 2.0], [3.0, 0.0]]).values().tolist()
    [2.0, 3.0]
    """
    return self[self != 0]  # type: ignore[no-any-return]


@composed(function=False)
def sparse_mask(self: Any, mask: Tensor) -> Tensor:
    """Keep the elements where another tensor is not 0. Raises ShapeError for other shapes.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).sparse_mask(Tensor.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 4.0]]
    """
    if self.shape != mask.shape:
        raise ShapeError("sparse_mask", f"{self.shape} and {mask.shape}", "pass equal shapes")
    return self.where(mask != 0, 0)  # type: ignore[no-any-return]


@composed(function=False)
def is_coalesced(self: Any) -> bool:
    """Tell that values at one place are added up.

    >>> Tensor([0.0]).is_coalesced()
    True
    """
    return True


@composed(function=False)
def _nnz(self: Any) -> int:
    """Count the elements that are not 0."""
    return int(self.count_nonzero().item())


@composed(function=False)
def sparse_dim(self: Any) -> int:
    """Count the axes.

    >>> Tensor([[0.0]]).sparse_dim()
    2
    """
    return self.ndim  # type: ignore[no-any-return]


@composed(function=False)
def crow_indices(self: Any) -> Tensor:
    """Count the elements before each row of a matrix that are not 0, and all of them: (M + 1,).

    >>> Tensor([[0.0, 2.0], [3.0, 4.0]]).crow_indices().tolist()
    [0, 1, 3]
    """
    return (self != 0).sum(-1).cumsum(-1).pad((1, 0))  # type: ignore[no-any-return]


@composed(function=False)
def col_indices(self: Any) -> Tensor:
    """List the columns of the elements that are not 0, row by row.

    >>> Tensor([[0.0, 2.0], [3.0, 4.0]]).col_indices().tolist()
    [1, 0, 1]
    """
    return self.nonzero()[:, -1]  # type: ignore[no-any-return]

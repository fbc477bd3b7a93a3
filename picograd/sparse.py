"""PyTorch's `torch.sparse`: tensors that name their non-zeros, kept dense.

`sparse_coo_tensor` makes an ordinary tensor with the values in their places, so that programs with
adjacency matrices run and get the same numbers. Memory and time are those of the dense tensor, and
values of 0 are no entries.
"""

import math
from typing import Any

from picograd.errors import DTypeError, ShapeError, ValueRangeError
from picograd.tensor.core.annotations import Data, DeviceLike, DTypeLike
from picograd.tensor.public import arange
from picograd.tensor.tensor import Tensor
from picograd.typed import kind_named

__all__ = ["addmm", "log_softmax", "mm", "softmax", "sparse_coo_tensor", "sparse_csr_tensor"]
__all__ += ["spdiags", "spmm", "sum"]


def sparse_coo_tensor(
    indices: Data,
    values: Data | None = None,
    size: Any = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """Make a dense tensor of values (N, ...) at indices (D, N); those at one place are added up.

    Without sizes they are the largest indices and one. Sizes alone have no entries. Gradients
    reach the values.

    >>> picograd.sparse_coo_tensor([[0, 1], [1, 0]], [3.0, 4.0], (2, 2)).tolist()
    [[0.0, 3.0], [4.0, 0.0]]
    """
    if values is None:
        sizes: Any = indices if size is None else size
        return Tensor.zeros(*sizes, dtype=dtype, device=device, requires_grad=requires_grad)
    at = tensor_of(indices, device).long()
    given = tensor_of(values, device)
    if dtype is not None:
        given = given.to(dtype)
    if at.ndim != 2 or given.ndim == 0 or at.shape[1] != given.shape[0]:
        text = f"indices {at.shape} and values {given.shape}"
        raise ShapeError("sparse_coo_tensor", text, "pass (D, N) indices and N values")
    if size is None:
        ends = at.amax(1) + 1 if at.shape[1] else at.new_zeros(at.shape[0])
        size = (*ends.tolist(), *given.shape[1:])
    place = device or given.device
    empty = Tensor.zeros(*size, dtype=given.dtype, device=place)
    where = tuple(at.to(place))
    made = empty.index_put(where, given.to(place), accumulate=True)
    return made.detach().requires_grad_() if requires_grad else made


def tensor_of(data: Data, device: DeviceLike | None) -> Tensor:
    """Make a tensor of data that is none yet."""
    return data if isinstance(data, Tensor) else Tensor.of(data, device=device)


def sparse_csr_tensor(
    crow_indices: Data,
    col_indices: Data,
    values: Data,
    size: Any = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Make a dense matrix of rows that start at `crow_indices`; the columns are `col_indices`.

    >>> picograd.sparse_csr_tensor([0, 1, 2], [1, 0], [3.0, 4.0], (2, 2)).tolist()
    [[0.0, 3.0], [4.0, 0.0]]
    """
    starts = tensor_of(crow_indices, device).long()
    columns = tensor_of(col_indices, device).long()
    count = starts.numel() - 1
    rows = arange(count, device=starts.device)
    rows = rows.repeat_interleave(starts.diff())
    if size is None:
        last = columns.max().item()
        size = (count, int(last) + 1)
    at = Tensor.stack([rows, columns])
    made = sparse_coo_tensor(at, values, size, dtype=dtype, device=device)
    return made.detach().requires_grad_() if requires_grad else made


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """Make a matrix of diagonals (K, L), or one: element j of each stands in column j.

    An offset says how far above the main diagonal one lies; what lies outside is left away.

    >>> picograd.sparse.spdiags(Tensor([[1.0, 2.0, 3.0]]), Tensor([1]), (2, 3)).tolist()
    [[0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]
    """
    op = "sparse.spdiags"
    rows = diagonals.reshape(-1, diagonals.shape[-1])
    above = offsets.reshape(-1)
    is_matrix = len(shape) == 2
    if diagonals.ndim > 2 or not is_matrix or len(rows) != len(above):
        text = f"diagonals {diagonals.shape} at {offsets.shape} in {tuple(shape)}"
        raise ShapeError(op, text, "pass K rows, K offsets and two sizes")
    if len(above.unique()) < len(above):
        raise ValueRangeError(op, "an offset stands twice", "pass each once")
    height, width = shape
    column = arange(rows.shape[1], device=rows.device)
    column = column.expand(rows.shape)
    above = above.to(rows.device)
    row = column - above.unsqueeze(1)
    is_left = column < width
    inside = is_left & (row >= 0) & (row < height)
    places = row[inside], column[inside]
    at = Tensor.stack(places)
    return sparse_coo_tensor(at, rows[inside], shape)


def mm(mat1: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """Multiply two matrices.

    >>> picograd.sparse.mm(Tensor.eye(2), Tensor([[1.0], [2.0]])).tolist()
    [[1.0], [2.0]]
    """
    if reduce != "sum":
        raise DTypeError("sparse.mm", f"reduce={reduce!r}", "only sums are there")
    return mat1.mm(mat2) if mat2.ndim == 2 else mat1.matmul(mat2)


spmm = dsmm = hsmm = hspmm = smm = mm


def addmm(
    mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0
) -> Tensor:
    """Compute beta * mat + alpha * (mat1 @ mat2).

    >>> picograd.sparse.addmm(Tensor([[1.0]]), Tensor([[2.0]]), Tensor([[3.0]])).tolist()
    [[7.0]]
    """
    return mat.addmm(mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Tensor, dim: Any = None, dtype: DTypeLike | None = None) -> Tensor:
    """Add up, over some axes or all.

    >>> picograd.sparse.sum(Tensor([[1.0, 2.0]]), 1).tolist()
    [3.0]
    """
    return input.sum(dim, dtype=dtype)


def softmax(input: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """Normalise the exponentials of the entries along an axis; what is no entry stays 0.

    >>> picograd.sparse.softmax(Tensor([[1.0, 0.0, 1.0]]), 1).tolist()
    [[0.5, 0.0, 0.5]]
    """
    is_empty = input == 0
    shares = input.masked_fill(is_empty, -math.inf).softmax(dim, dtype=dtype)
    return shares.masked_fill(is_empty, 0.0)


def log_softmax(input: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """Take the logarithm of `softmax` where there are entries; elsewhere it is 0.

    >>> picograd.sparse.log_softmax(Tensor([[0.0, 3.0]]), 1).tolist()
    [[0.0, 0.0]]
    """
    is_empty = input == 0
    logs = input.masked_fill(is_empty, -math.inf).log_softmax(dim, dtype=dtype)
    return logs.masked_fill(is_empty, 0.0)


class Kind:
    """This class makes tensors of one dtype as `torch.sparse.FloatTensor(indices, values, size)`.

    >>> picograd.sparse.FloatTensor(Tensor([[0], [1]]), Tensor([2.0]), (2, 2)).tolist()
    [[0.0, 2.0], [0.0, 0.0]]
    """

    def __init__(self, name: str) -> None:
        self.dense = kind_named(name)

    def __call__(self, *data: Any) -> Tensor:
        if all(isinstance(each, int) for each in data):
            return self.dense(*data)
        if len(data) == 1:
            return Tensor.zeros(*data[0], dtype=self.dense.dtype)
        return sparse_coo_tensor(*data, dtype=self.dense.dtype)


FloatTensor, DoubleTensor, HalfTensor = map(Kind, ("FloatTensor", "DoubleTensor", "HalfTensor"))
LongTensor, IntTensor, ByteTensor = map(Kind, ("LongTensor", "IntTensor", "ByteTensor"))

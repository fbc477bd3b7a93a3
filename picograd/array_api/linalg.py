"""The array API's extension for linear algebra."""

from typing import Any

from picograd.array_api.elementwise import together
from picograd.array_api.reductions import matmul, matrix_transpose, summing_dtype, tensordot, vecdot
from picograd.array_api.reductions import sum as add_up
from picograd.tensor.core.annotations import DTypeLike, Scalar
from picograd.tensor.linalg import decompositions
from picograd.tensor.linalg.decompositions import (
    cholesky,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    matrix_power,
    qr,
    slogdet,
    svd,
    svdvals,
)
from picograd.tensor.tensor import Tensor

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Compute products of vectors of three elements."""
    return decompositions.cross(*together(x1, x2), dim=axis)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Show the diagonals of matrices."""
    return x.diagonal(offset, -2, -1)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Compute norms of matrices."""
    return decompositions.matrix_norm(x, ord, keepdim=keepdims)


def matrix_rank(x: Tensor, /, *, rtol: Scalar | Tensor | None = None) -> Tensor:
    """Count singular values above a part of the largest."""
    values = svdvals(x)
    if rtol is None:
        eps = 2.0 ** (-52 if values.dtype.bits == 64 else -23)
        rtol = max(x.shape[-2:]) * eps
    limit = values.amax(-1, keepdim=True) if values.shape[-1] else values.sum(-1, keepdim=True)
    part = rtol.unsqueeze(-1) if isinstance(rtol, Tensor) else rtol
    return (values > limit * part).sum(-1)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Multiply every element of a vector with every element of another."""
    first, second = together(x1, x2)
    column = first.unsqueeze(1)
    return column * second.unsqueeze(0)  # type: ignore[no-any-return]


def pinv(x: Tensor, /, *, rtol: Scalar | Tensor | None = None) -> Tensor:
    """Compute the inverse of Moore and Penrose."""
    if not isinstance(rtol, Tensor):
        return decompositions.pinv(x, rtol=rtol)
    u, sizes, vh = svd(x, False)
    limit = sizes.amax(-1, keepdim=True) * rtol.unsqueeze(-1) if sizes.shape[-1] else sizes
    inverse = (sizes > limit).where(1 / sizes, 0.0)
    scaled = vh.mH * inverse.unsqueeze(-2)
    return scaled @ u.mH


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Solve x1 y = x2."""
    first, second = together(x1, x2)
    if second.ndim == 1:
        column = second.unsqueeze(-1)
        return decompositions.solve(first, column).squeeze(-1)
    lead = max(first.ndim, second.ndim)
    # a stack of matrices: the extension knows vectors by their one axis alone
    second = second.reshape((1,) * (lead - second.ndim) + tuple(second.shape))
    if second.shape == first.shape[:-1]:
        second = second.unsqueeze(0)
    return decompositions.solve(first, second)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """Add the elements on the diagonals of matrices."""
    wide = x.cast(summing_dtype(x, dtype))
    diagonals = wide.diagonal(offset, -2, -1)
    return add_up(diagonals, axis=-1, dtype=wide.dtype)


def vector_norm(
    x: Tensor,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: Scalar = 2,
) -> Tensor:
    """Compute norms of vectors, of all elements unless told an axis."""
    return decompositions.vector_norm(x, ord, axis, keepdim=keepdims)

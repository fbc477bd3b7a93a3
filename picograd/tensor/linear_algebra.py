"""picograd.linalg: decompositions, solutions and norms, as torch.linalg.

Computed by NumPy on the host at once, with gradients; errors are ShapeError for shapes that do not
fit and ValueRangeError (a ValueError) for a singular or indefinite matrix.
"""

import math
from typing import Any, NamedTuple

from picograd.errors import ShapeError, ValueRangeError
from picograd.tensor import host, linalg, reduce
from picograd.tensor.recording import apply, read, several
from picograd.tensor.tensor import Tensor


class SVD(NamedTuple):
    """This class holds U (..., M, K), S (..., K) and Vh (..., K, N)."""

    U: Any
    S: Any
    Vh: Any


class QR(NamedTuple):
    """This class holds Q (..., M, N) and R (..., N, N)."""

    Q: Any
    R: Any


class Eigh(NamedTuple):
    """This class holds ascending eigenvalues (..., N) and eigenvectors (..., N, N)."""

    eigenvalues: Any
    eigenvectors: Any


class Slogdet(NamedTuple):
    """This class holds the sign of a determinant and the logarithm of its size."""

    sign: Any
    logabsdet: Any


def inv(A: Tensor) -> Tensor:
    """Invert square matrices (..., N, N).

    >>> import picograd
    >>> picograd.linalg.inv(picograd.Tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return apply(host.inverse, A)


def solve(A: Tensor, B: Tensor) -> Tensor:
    """Solve A X = B: (..., N, N) and (..., N, K), or B (..., N)."""
    return apply(host.solve, A, B)


def det(A: Tensor) -> Tensor:
    """Compute determinants; the gradient needs an invertible matrix."""
    return apply(host.determinant, A)


def slogdet(A: Tensor) -> Slogdet:
    """Compute the sign of determinants and the logarithm of their size."""
    return Slogdet(*several(A, host.log_determinant(read(A))))


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """Write positive definite matrices as L L^T, or U^T U."""
    lower = apply(host.cholesky, A)
    return lower.mT if upper else lower


def qr(A: Tensor, mode: str = "reduced") -> QR:
    """Write tall matrices (M >= N) as Q R."""
    if mode != "reduced":
        raise ValueRangeError("linalg.qr", f"mode={mode!r}", 'use "reduced"')
    return QR(*several(A, host.qr(read(A))))


def svd(A: Tensor, full_matrices: bool = False) -> SVD:
    """Write matrices as U diag(S) Vh; gradients need distinct singular values."""
    if full_matrices:
        raise ValueRangeError("linalg.svd", "full_matrices=True", "pass False")
    return SVD(*several(A, host.svd(read(A))))


def svdvals(A: Tensor) -> Tensor:
    """Compute singular values, descending."""
    values: Tensor = svd(A).S
    return values


def eigh(A: Tensor) -> Eigh:
    """Find eigenvalues and eigenvectors of symmetric matrices (their lower triangle is read)."""
    return Eigh(*several(A, host.eigh(read(A))))


def eigvalsh(A: Tensor) -> Tensor:
    """Find the eigenvalues of symmetric matrices, ascending."""
    values: Tensor = eigh(A).eigenvalues
    return values


def pinv(A: Tensor, rcond: float | None = None) -> Tensor:
    """Compute the Moore-Penrose inverse."""
    return apply(host.pinv, A, rcond)


def lstsq(A: Tensor, B: Tensor) -> Tensor:
    """Find the X of least |A X - B|: the solution alone, (..., N, K)."""
    return pinv(A) @ B


def matrix_rank(A: Tensor, tol: float | None = None) -> Tensor:
    """Count the singular values that are not negligible."""
    return apply(host.matrix_rank, A, tol)


def matrix_power(A: Tensor, n: int) -> Tensor:
    """Multiply a square matrix with itself; negative powers invert it first."""
    if len(A.shape) < 2 or A.shape[-1] != A.shape[-2]:
        raise ShapeError(
            "linalg.matrix_power",
            f"{A.shape} is not square",
            "pass square matrices",
        )
    if n < 0:
        return matrix_power(inv(A), -n)
    if n == 0:
        return Tensor.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand(
            A.shape
        )
    half = matrix_power(A, n // 2) if n > 1 else None
    if half is None:
        return A
    return half @ half if n % 2 == 0 else half @ half @ A


def multi_dot(tensors: Any) -> Tensor:
    """Multiply several matrices from left to right."""
    result: Tensor = tensors[0]
    for each in tensors[1:]:
        result = result @ each
    return result


def vector_norm(
    x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False
) -> Tensor:
    """Compute the norm of all elements, or along axes."""
    return apply(reduce.norm, x, ord, dim, keepdim)


def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False
) -> Tensor:
    """Compute the norm of matrices: "fro", "nuc", 2, -2, 1, -1, inf or -inf."""
    rows, columns = (axis % len(A.shape) for axis in dim)
    if ord == "fro":
        return vector_norm(A, 2, (rows, columns), keepdim)
    if ord in ("nuc", 2, -2):
        values = svdvals(A.movedim((rows, columns), (-2, -1)))
        ends = {2: values.amax, -2: values.amin, "nuc": values.sum}
        result = ends[ord](-1)
        shape = [
            1 if n in (rows, columns) else size for n, size in enumerate(A.shape)
        ]
        return result.reshape(tuple(shape)) if keepdim else result
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueRangeError(
            "linalg.matrix_norm", f"ord={ord!r}", 'use "fro", "nuc" or a number'
        )
    inner, outer = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = A.abs().sum(inner, True)
    result = sums.amax(outer, True) if ord > 0 else sums.amin(outer, True)
    return result if keepdim else result.squeeze((rows, columns))


def norm(
    A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False
) -> Tensor:
    """Compute a vector norm, or a matrix norm for two axes and an `ord`, as torch.linalg.norm."""
    is_pair = isinstance(dim, (tuple, list)) and len(dim) == 2
    if ord is not None and (is_pair or (dim is None and len(A.shape) == 2)):
        return matrix_norm(A, ord, dim if is_pair else (-2, -1), keepdim)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim)


def cond(A: Tensor) -> Tensor:
    """Compute the ratio of the largest to the smallest singular value."""
    values = svdvals(A)
    return values.amax(-1) / values.amin(-1)


def matmul(A: Tensor, B: Tensor) -> Tensor:
    """Multiply matrices; batches broadcast."""
    return apply(linalg.matmul, A, B)

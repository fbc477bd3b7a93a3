"""picograd.linalg: decompositions, solutions and norms, as torch.linalg.

NumPy computes them on the host when the plan runs; a GPU inverts, solves, factors (by Cholesky, as
P L U, as Q R), takes determinants and exponentials itself, and finds eigenvalues of symmetric
matrices and singular values, those of float64 of small ones. Of long matrices the host sees R
alone, for least squares and singular values of float64.

Errors are ShapeError for shapes that do not fit and LinAlgError (a ValueError) for a singular or
indefinite matrix: outside of jit, vmap and scan inv, solve, cholesky, svd, eigh and pinv compute at
once, to raise it where they are called.
"""

# ruff: noqa: I001 (several names a line)

import math
from typing import Any, NamedTuple

from picograd.tensor.core.function import composed
from picograd.errors import LinAlgError, ShapeError, ValueRangeError, check_known
from picograd.graph import build
from picograd.tensor.shaping import joining, assembling, movement
from picograd.tensor.linalg import host, products, refusals
from picograd.tensor.linalg.calls import called, factors
from picograd.tensor.reductions import reduce
from picograd.tensor.core.guard import guard_functions
from picograd.tensor.core.arguments import is_tensor, need_tensor
from picograd.tensor.linalg.reflectors import householder_product
from picograd.tensor.linalg.symmetric import ldl_factor, ldl_factor_ex, ldl_solve
from picograd.tensor.linalg.systems import (
    eye_like, hermitian_of, lstsq, lu, lu_factor, lu_factor_ex, lu_solve, matrix_exp, matrix_rank,
    multi_dot, need_square, solve_triangular, tensorinv, tensorsolve,
)  # fmt: skip
from picograd.tensor.core.recording import Recorded, apply, decided, read, wrap
from picograd.tensor.core.spelling import spell_functions
from picograd.tensor.core.subclasses import publish
from picograd.tensor.core.annotations import Axis, DTypeLike, Scalar, Tensor
from picograd.tensor.linalg.tolerant import Factored, Inverted, Solved, attempt
from collections.abc import Sequence

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh",
    "eigvals", "eigvalsh", "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex",
    "ldl_solve", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp",
    "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr",
    "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv",
    "tensorsolve", "vander", "vecdot", "vector_norm",
]  # fmt: skip


class SVD(NamedTuple):
    """This class holds U (..., M, K), S (..., K) and Vh (..., K, N)."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class QR(NamedTuple):
    """This class holds Q (..., M, N) and R (..., N, N)."""

    Q: Tensor
    R: Tensor


class Eigh(NamedTuple):
    """This class holds ascending eigenvalues (..., N) and eigenvectors (..., N, N)."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class Eig(NamedTuple):
    """This class holds complex eigenvalues (..., N) and eigenvectors (..., N, N)."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class Slogdet(NamedTuple):
    """This class holds the sign of a determinant and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor


@composed("inverse")
def inv(A: Tensor) -> Tensor:
    """Invert square matrices (..., N, N).

    >>> picograd.linalg.inv(picograd.Tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return refusals.inverse(A)


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Solve A X = B, or X A = B: (..., N, N) and (..., N, K), or B (..., N).

    >>> picograd.linalg.solve(Tensor([[2.0, 0.0], [0.0, 4.0]]), Tensor([1.0, 1.0])).tolist()
    [0.5, 0.25]
    """
    need_tensor("linalg.solve", A, B)
    if not left and B.ndim > 1:
        return refusals.solution(A.mT, B.mT).mT
    return refusals.solution(A.mT if not left else A, B)


@composed()
def det(A: Tensor) -> Tensor:
    """Compute determinants; the second derivative needs an invertible matrix.

    >>> round(picograd.linalg.det(Tensor([[1.0, 2.0], [3.0, 4.0]])).item(), 4)
    -2.0
    """
    return called(host.computed, "det", A)


@composed()
def slogdet(A: Tensor) -> Slogdet:
    """Compute the sign of determinants and the logarithm of their size.

    >>> sign, logarithm = picograd.linalg.slogdet(Tensor([[-1.0, 0.0], [0.0, 1.0]]))
    >>> sign.item(), logarithm.item()
    (-1.0, 0.0)
    """
    return Slogdet(*factors(host.log_determinant, A))


@composed()
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """Write positive definite matrices as L L^T, or U^T U.

    >>> picograd.linalg.cholesky(Tensor([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    lower = refusals.cholesky(A)
    return lower.mH if upper else lower


@composed()
def qr(A: Tensor, mode: str = "reduced", *, some: bool | None = None) -> QR:
    """Write matrices (..., M, N) as Q R: orthonormal columns times an upper triangle.

    "reduced" gives K = min(M, N) columns, "complete" M of them, "r" no Q. Gradients need as many
    columns as R has rows, which the complete form of a tall matrix has not. `some` is the
    older spelling: True is "reduced", False "complete".

    >>> Q, R = picograd.linalg.qr(picograd.Tensor([[3.0], [4.0]]))
    >>> (Q @ R).round().tolist()
    [[3.0], [4.0]]
    """
    if some is not None:
        mode = "reduced" if some else "complete"
    check_known("linalg.qr", "mode", mode, ("reduced", "complete", "r"))
    rows, columns = A.shape[-2:] if A.ndim > 1 else (0, 1)
    is_complete = mode == "complete" and rows > columns
    q, r = factors(host.qr, A, "complete" if is_complete else "reduced")
    return QR(Recorded.kind.of([], dtype=r.dtype) if mode == "r" else q, r)


def svd(A: Tensor, full_matrices: bool = True) -> SVD:
    """Write matrices as U diag(S) Vh; gradients need distinct singular values.

    With `full_matrices` U is (M, M) and Vh (N, N); the vectors beyond min(M, N) may be any basis
    and have no gradient.

    >>> picograd.linalg.svd(picograd.Tensor([[3.0, 0.0], [0.0, 4.0]])).S.tolist()
    [4.0, 3.0]
    """
    need_tensor("linalg.svd", A)
    u, s, vh = refusals.svd(A)
    rows, columns = A.shape[-2:]
    if full_matrices and rows > columns:
        u = Recorded.kind.cat([u, complement(u)], -1)
    if full_matrices and columns > rows:
        vh = Recorded.kind.cat([vh, complement(vh.mH).mH], -2)
    return SVD(u, s, vh)


def complement(basis: Tensor) -> Tensor:
    """Find orthonormal columns at right angles to those of a basis: the rest of its QR."""
    count = basis.shape[-1]
    q, _ = host.qr(build.detach(read(basis)), "complete")
    return wrap(q, False)[..., count:]


def svdvals(A: Tensor) -> Tensor:
    """Compute singular values, descending.

    >>> picograd.linalg.svdvals(Tensor([[3.0, 0.0], [0.0, 4.0]])).tolist()
    [4.0, 3.0]
    """
    if needs_vectors("linalg.svdvals", A):
        return svd(A, full_matrices=False).S
    return refusals.singular_values(A)


def needs_vectors(op: str, A: Tensor) -> bool:
    """Tell whether singular values or eigenvalues are found with vectors, for their gradients."""
    need_tensor(op, A)
    return A.requires_grad or A.dtype.is_complex


def eigh(A: Tensor, UPLO: str = "L") -> Eigh:
    """Find eigenvalues and eigenvectors of symmetric matrices, of which one triangle is read.

    >>> values, vectors = picograd.linalg.eigh(Tensor([[2.0, 0.0], [0.0, 1.0]]))
    >>> values.tolist()
    [1.0, 2.0]
    """
    x = with_lower("linalg.eigh", A, UPLO)
    return Eigh(*refusals.eigh(x))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Find the eigenvalues of symmetric matrices, ascending.

    >>> picograd.linalg.eigvalsh(Tensor([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    if needs_vectors("linalg.eigvalsh", A):
        return eigh(A, UPLO).eigenvalues
    return refusals.eigenvalues(with_lower("linalg.eigvalsh", A, UPLO))


def with_lower(op: str, A: Tensor, triangle: str) -> Tensor:
    """Give symmetric matrices whose lower triangle is the one that is read: "L" or "U"."""
    triangle = triangle.upper()
    check_known(op, "UPLO", triangle, ("L", "U"))
    need_tensor(op, A)
    return A.mH if triangle == "U" else A


@composed("pinverse")
def pinv(
    A: Tensor,
    rcond: float | Tensor | None = None,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    hermitian: bool = False,
) -> Tensor:
    """Compute the Moore-Penrose inverse; singular values up to max(atol, rtol * largest) are 0.

    `hermitian` says that A equals its conjugate transpose: its lower triangle is read.

    >>> picograd.linalg.pinv(picograd.Tensor([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    relative = rcond if rtol is None else rtol
    limits = (limit.item() if is_tensor(limit) else limit for limit in (relative, atol))
    x = A + (hermitian_of(A) - A).detach() if hermitian else A  # the gradient goes to all of A
    return refusals.pseudo_inverse(x, *limits)


@composed()
def matrix_power(A: Tensor, n: int) -> Tensor:
    """Multiply a square matrix with itself; negative powers invert it first.

    >>> picograd.linalg.matrix_power(Tensor([[1.0, 1.0], [0.0, 1.0]]), 3).tolist()
    [[1.0, 3.0], [0.0, 1.0]]
    """
    if len(A.shape) < 2 or A.shape[-1] != A.shape[-2]:
        raise ShapeError("linalg.matrix_power", f"{A.shape} is not square", "pass square matrices")
    if n < 0:
        return matrix_power(inv(A), -n)
    if n == 0:
        return eye_like(A).expand(*A.shape).clone()
    if n == 1:
        return A.clone()
    half = matrix_power(A, n // 2)
    return half @ half if n % 2 == 0 else half @ half @ A


def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: Axis = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Compute the norm of all elements, or along axes.

    >>> picograd.linalg.vector_norm(Tensor([[3.0, 4.0]]), dim=1).tolist()
    [5.0]
    """
    need_tensor("linalg.vector_norm", x)
    return apply(reduce.norm, x if dtype is None else x.cast(dtype), ord, dim, keepdim)


def matrix_norm(
    A: Tensor, ord: Scalar | str = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False
) -> Tensor:
    """Compute the norm of matrices: "fro", "nuc", 2, -2, 1, -1, inf or -inf.

    >>> picograd.linalg.matrix_norm(Tensor([[3.0, 0.0], [0.0, 4.0]])).item()
    5.0
    """
    rows, columns = (axis % len(A.shape) for axis in dim)
    if ord == "fro":
        return vector_norm(A, 2, (rows, columns), keepdim)
    if ord in ("nuc", 2, -2):
        values = svdvals(A.movedim((rows, columns), (-2, -1)))
        if ord != "nuc" and not values.shape[-1]:
            values = values.sum(-1, True)  # of no numbers: 0
        ends = {2: values.amax, -2: values.amin, "nuc": values.sum}
        result = ends[ord](-1)
        shape = [1 if n in (rows, columns) else size for n, size in enumerate(A.shape)]
        return result.reshape(tuple(shape)) if keepdim else result
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueRangeError("linalg.matrix_norm", f"ord={ord!r}", 'use "fro", "nuc" or a number')
    inner, outer = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = A.abs().sum(inner, True)
    largest = sums.amax if A.shape[outer] else sums.sum  # of no numbers: 0
    result = largest(outer, True) if ord > 0 else sums.amin(outer, True)
    return result if keepdim else result.squeeze((rows, columns))


def norm(
    A: Tensor, ord: Scalar | str | None = None, dim: Axis = None, keepdim: bool = False
) -> Tensor:
    """Compute a vector norm, or a matrix norm for two axes and an `ord`, as torch.linalg.norm.

    >>> picograd.linalg.norm(Tensor([3.0, 4.0])).item()
    5.0
    """
    pair = dim if isinstance(dim, (tuple, list)) and len(dim) == 2 else None
    if ord is not None and (pair is not None or (dim is None and len(A.shape) == 2)):
        return matrix_norm(A, ord, (-2, -1) if pair is None else pair, keepdim)
    if ord is not None and dim is None and len(A.shape) > 2:
        text = f"ord={ord!r} without dim, and the shape is {tuple(A.shape)}"
        raise ShapeError("linalg.norm", text, "name one axis, or two, or leave ord out")
    order: Any = 2 if ord is None else ord
    return vector_norm(A, order, dim, keepdim)


def cond(A: Tensor, p: Scalar | str | None = None) -> Tensor:
    """Compute the condition number: the ratio of the extreme singular values (p of None, 2, -2),
    or norm(A, p) * norm(inv(A), p), infinite where there is no inverse.

    >>> picograd.linalg.cond(picograd.Tensor([[4.0, 0.0], [0.0, 2.0]])).item()
    2.0
    """
    need_tensor("linalg.cond", A)
    if p in (None, 2, -2):
        values = svdvals(A)
        ratio = values.amax(-1) / values.amin(-1)
        return ratio if p != -2 else 1 / ratio
    need_square("linalg.cond", A)
    inverse, failure = inv_ex(A)
    return (matrix_norm(A, p) * matrix_norm(inverse, p)).masked_fill(failure != 0, math.inf)


def matmul(A: Tensor, B: Tensor) -> Tensor:
    """Multiply matrices; batches broadcast.

    >>> picograd.linalg.matmul(Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([1.0, 1.0])).tolist()
    [3.0, 7.0]
    """
    return apply(products.matmul, A, B)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Sum the products along an axis; the others broadcast, complex x is conjugated.

    >>> picograd.linalg.vecdot(picograd.Tensor([1.0, 2.0]), picograd.Tensor([3.0, 4.0])).item()
    11.0
    """
    need_tensor("linalg.vecdot", x, y)
    return (x.conj() * y).sum(dim)


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Multiply vectors of three along an axis: the result is at right angles to both.

    >>> picograd.linalg.cross(Tensor([1.0, 0.0, 0.0]), Tensor([0.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    return apply(assembling.cross, input, other, dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Take the diagonals of the last two axes.

    >>> picograd.linalg.diagonal(Tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [1.0, 4.0]
    """
    return apply(movement.diagonal, A, offset, dim1, dim2)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """List the powers of each element along a new last axis: (..., n) -> (..., n, N).

    >>> picograd.linalg.vander(picograd.Tensor([2, 3])).tolist()
    [[1, 2], [1, 3]]
    """
    need_tensor("linalg.vander", x)
    row = x if x.ndim else x.reshape(1)
    return joining.powers_of(row, row.shape[-1] if N is None else N)


def eig(A: Tensor) -> Eig:
    """Find eigenvalues and eigenvectors of square matrices: complex numbers, in no order.

    >>> values, vectors = picograd.linalg.eig(Tensor([[0.0, -1.0], [1.0, 0.0]]))
    >>> values.tolist()
    [1j, -1j]
    """
    need_tensor("linalg.eig", A)
    return Eig(*decided(*factors(host.eig, A)))


def eigvals(A: Tensor) -> Tensor:
    """Find the eigenvalues of square matrices: complex numbers, in no order.

    >>> picograd.linalg.eigvals(Tensor([[0.0, -1.0], [1.0, 0.0]])).tolist()
    [1j, -1j]
    """
    need_tensor("linalg.eigvals", A)
    return decided(called(host.eigenvalues, A))


def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Factored:
    """Factor as `cholesky`, and say for each matrix whether it went well: 0.

    >>> picograd.linalg.cholesky_ex(Tensor([[1.0, 0.0], [0.0, -4.0]])).info.item()
    2
    """
    factor, info = attempt(cholesky, input, check_errors=check_errors)
    return Factored(factor.mH if upper else factor, info)


def inv_ex(A: Tensor, *, check_errors: bool = False) -> Inverted:
    """Invert as `inv`, and say for each matrix whether it went well: 0.

    >>> picograd.linalg.inv_ex(Tensor([[2.0]])).info.item()
    0
    """
    return Inverted(*attempt(inv, A, check_errors=check_errors))


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Solved:
    """Solve as `solve`, and say for each matrix whether it went well: 0.

    >>> picograd.linalg.solve_ex(Tensor([[2.0]]), Tensor([4.0])).result.tolist()
    [2.0]
    """
    if not left:
        found, info = attempt(solve, A.mT, B.mT, check_errors=check_errors)
        return Solved(found.mT, info)
    return Solved(*attempt(solve, A, B, check_errors=check_errors))


guard_functions(globals(), __all__)
spell_functions(globals(), __all__)
publish(globals(), __all__)

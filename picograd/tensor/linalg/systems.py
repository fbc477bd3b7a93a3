"""Systems of linear equations beyond `solve`: triangular ones, LU, least squares, tensors.

Functions of tensors. Factors are host calls; the rest is made of differentiable operations.
Definitions: Golub and Van Loan, "Matrix Computations" (2013).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from picograd.engine.tracing import is_tracing
from picograd.errors import ShapeError, ValueRangeError, check_known
from picograd.graph.shape import broadcast_shapes
from picograd.helpers import product
from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.arguments import as_float, need_tensor
from picograd.tensor.core.function import composed
from picograd.tensor.core.operands import need_integer, need_rank
from picograd.tensor.core.recording import Recorded, decided
from picograd.tensor.linalg import host, refusals
from picograd.tensor.linalg.calls import called, factors

Array = Any


class LU(NamedTuple):
    """This class holds P, L and U of A = P L U."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactor(NamedTuple):
    """This class holds L and U in one matrix, and the rows swapped at each step, from 1 on."""

    LU: Tensor
    pivots: Tensor


class LeastSquares(NamedTuple):
    """This class holds the X of least |A X - B|, the squared distances left, and A's rank."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def need_square(op: str, x: Tensor) -> None:
    """Raise ShapeError unless the last two axes are equal."""
    need_tensor(op, x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(op, f"{tuple(x.shape)} is not square", "pass square matrices")


def need_rows(op: str, A: Tensor, B: Tensor, left: bool = True) -> None:
    """Raise ShapeError unless there is a row, or a column, of B for each of A."""
    if B.ndim < 2 or B.shape[-2 if left else -1] != A.shape[-1]:
        text = f"{tuple(A.shape)} and {tuple(B.shape)} do not fit"
        raise ShapeError(op, text, "B needs as many rows (left) or columns as A")


def need_pivots(op: str, LU: Tensor, pivots: Tensor) -> None:
    """Raise an error unless `pivots` are rows swapped in the matrices that `lu_factor` gives."""
    need_tensor(op, LU, pivots)
    need_rank(op, LU.node, 2)
    wanted = (*LU.shape[:-2], min(LU.shape[-2:]))
    if tuple(pivots.shape) != wanted:
        text = f"pivots of shape {tuple(pivots.shape)} do not fit LU of shape {tuple(LU.shape)}"
        raise ShapeError(op, text, "pass both as picograd.linalg.lu_factor gives them")
    need_integer(op, pivots.node)


def hermitian_of(A: Tensor) -> Tensor:
    """Read the lower triangle of a matrix that equals its conjugate transpose."""
    below, main = A.tril(-1), A.tril().triu()
    if A.is_complex():
        main = main.real.cast(A.dtype)  # a diagonal's imaginary part counts as 0
    return below + main + below.mH


def eye_like(x: Tensor) -> Tensor:
    """Make the identity of a stack's last axis."""
    return Recorded.kind.eye(x.shape[-1], dtype=x.dtype, device=x.device)


def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Solve A X = B, or X A = B, for triangular A; the other triangle is not read.

    >>> A, B = picograd.Tensor([[2.0, 9.0], [1.0, 1.0]]), picograd.Tensor([[2.0], [3.0]])
    >>> picograd.linalg.solve_triangular(A, B, upper=False).tolist()
    [[1.0], [2.0]]
    """
    op = "linalg.solve_triangular"
    need_square(op, A)
    need_tensor(op, B)
    need_rows(op, A, B, left)
    if not left:
        return solve_triangular(A.mT, B.mT, upper=not upper, unitriangular=unitriangular).mT
    return called(host.solve, A, B, upper, unitriangular)


@composed()
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """Solve A X = B given the Cholesky factor of A: A = L L^T, or U^T U.

    >>> L = picograd.Tensor([[2.0]])
    >>> picograd.cholesky_solve(picograd.Tensor([[8.0]]), L).tolist()
    [[2.0]]
    """
    need_square("cholesky_solve", L)
    need_rows("cholesky_solve", L, B)
    return called(host.cholesky_solve, B, L, upper)


@composed()
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """Invert a matrix given its Cholesky factor.

    >>> picograd.cholesky_inverse(picograd.Tensor([[2.0]])).tolist()
    [[0.25]]
    """
    need_square("cholesky_inverse", L)
    return cholesky_solve(eye_like(L), L, upper)


# LU


def lu(A: Tensor, *, pivot: bool = True) -> LU:
    """Write matrices as P L U: a permutation, a lower triangle with ones, an upper triangle.

    >>> P, L, U = picograd.linalg.lu(picograd.Tensor([[0.0, 2.0], [4.0, 0.0]]))
    >>> (P @ L @ U).tolist()
    [[0.0, 2.0], [4.0, 0.0]]
    """
    need_pivot(pivot)
    need_tensor("lu", A)
    P, lower, upper = factors(host.lu_in_three, as_float(A))
    return LU(P.detach() if P.requires_grad else P, lower, upper)


def unfactored(both: Tensor, swaps: Tensor) -> LU:
    """Make P, L and U of both triangles in one and the rows swapped, counted from 1."""
    rows, columns = both.shape[-2:]
    least = min(rows, columns)
    unit = Recorded.kind.eye(rows, least, dtype=both.dtype, device=both.device)
    L = both[..., :least].tril(-1) + unit
    P = called(host.permutation, swaps, rows, both.detach())
    return LU(P, L, both[..., :least, :].triu())


def need_pivot(pivot: bool) -> None:
    """Raise ValueRangeError for elimination without row swaps."""
    if not pivot:
        raise ValueRangeError("linalg.lu", "pivot=False loses digits", "leave it out")


def lu_factor(A: Tensor, *, pivot: bool = True) -> LUFactor:
    """Compute L and U in one matrix, and the rows swapped at each step, counted from 1 (int32).

    >>> [x.tolist() for x in picograd.linalg.lu_factor(picograd.Tensor([[0.0, 2.0], [4.0, 0.0]]))]
    [[[4.0, 0.0], [0.0, 2.0]], [2, 2]]
    """
    need_pivot(pivot)
    need_tensor("lu_factor", A)
    return LUFactor(*refusals.lu_factor(as_float(A)))


class LUTried(NamedTuple):
    """This class holds what `lu_factor` gives, and 0 or where U has a 0 for each matrix."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUTried:
    """Factor as `lu_factor`, and say for each matrix where a pivot is 0 first, counted from 1.

    >>> picograd.linalg.lu_factor_ex(picograd.Tensor([[1.0, 1.0], [1.0, 1.0]])).info.item()
    2
    """
    need_pivot(pivot)
    need_tensor("lu_factor_ex", A)
    both, swaps = factors(host.lu, as_float(A), "lu")
    is_zero = both.diagonal(0, -2, -1) == 0
    first = is_zero.int().argmax(-1) + 1 if is_zero.shape[-1] else 0
    info = is_zero.any(-1).where(first, 0).int()
    if check_errors and info.any():
        raise ValueRangeError("linalg.lu_factor_ex", "a pivot is 0", "pass regular matrices")
    return LUTried(both, swaps, info)


@composed("lu")
def packed_lu(input: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """Give `linalg.lu_factor` by its older name, with `get_infos` that of `lu_factor_ex`.

    >>> [x.tolist() for x in picograd.lu(picograd.Tensor([[2.0]]))]
    [[[2.0]], [1]]
    """
    found = lu_factor_ex(input, pivot=pivot)
    return tuple(found) if get_infos else tuple(found[:2])


class Triangular(NamedTuple):
    """This class holds the solution, and a copy of the matrix."""

    solution: Tensor
    cloned_coefficient: Tensor


@composed()
def triangular_solve(
    input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False,
    unitriangular: bool = False,
) -> Triangular:  # fmt: skip
    """Solve A X = input by the older name of `linalg.solve_triangular`.

    >>> picograd.triangular_solve(picograd.Tensor([[8.0]]), picograd.Tensor([[2.0]]))[0].tolist()
    [[4.0]]
    """
    matrix, is_upper = (A.mT, not upper) if transpose else (A, upper)
    found = solve_triangular(matrix, input, upper=is_upper, unitriangular=unitriangular)
    batch = broadcast_shapes(A.shape[:-2], input.shape[:-2], op="triangular_solve")
    return Triangular(found, A.expand(*batch, *A.shape[-2:]).clone())


@composed(method=False)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> LU:
    """Take P, L and U out of what `lu_factor` returns; what is not asked for is empty.

    >>> A = picograd.Tensor([[0.0, 2.0], [4.0, 0.0]])
    >>> P, L, U = picograd.lu_unpack(*picograd.linalg.lu_factor(A))
    >>> (P @ L @ U).tolist()
    [[0.0, 2.0], [4.0, 0.0]]
    """
    need_pivots("lu_unpack", LU_data, LU_pivots)
    found, empty = unfactored(LU_data, LU_pivots), LU_data.new_zeros(0)
    factors = (found.L, found.U) if unpack_data else (empty, empty)
    return LU(found.P if unpack_pivots else empty, *factors)


def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """Solve A X = B, X A = B, or with A's conjugate transpose, given what `lu_factor` says of A.

    >>> A, B = picograd.Tensor([[0.0, 2.0], [4.0, 0.0]]), picograd.Tensor([[2.0], [8.0]])
    >>> picograd.linalg.lu_solve(*picograd.linalg.lu_factor(A), B).tolist()
    [[2.0], [1.0]]
    """
    need_square("linalg.lu_solve", LU)
    need_pivots("linalg.lu_solve", LU, pivots)
    if not left:
        return lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    need_rows("linalg.lu_solve", LU, B)
    return called(host.lu_solve, LU, pivots, B, adjoint)


# least squares and tensors


DRIVERS = (None, "gelsy", "gels", "gelsd", "gelss")


def lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> LeastSquares:
    """Find the X of least |A X - B|: (..., M, N), (..., M, K) -> (..., N, K), and facts about it.

    Which facts `driver` decides, as in PyTorch; the default "gelsy" gives the rank. "gels" gives
    the residuals (if M > N and the rank is full), "gelsd" and "gelss" also rank and singular
    values. What is not given is empty; where ranks are not known, inside `jit` and `vmap`,
    residuals are given, NaN without full rank. Gradients reach A and B.

    >>> A, B = picograd.Tensor([[1.0], [1.0]]), picograd.Tensor([[1.0], [3.0]])
    >>> result = picograd.linalg.lstsq(A, B, driver="gelsd")
    >>> round(result.solution.item(), 4), round(result.residuals.item(), 4), result.rank.item()
    (2.0, 2.0, 1)
    """
    op = "linalg.lstsq"
    need_tensor(op, A, B)
    is_vector = B.ndim == A.ndim - 1
    if A.ndim < 2 or B.ndim < 1 or B.shape[-1 if is_vector else -2] != A.shape[-2]:
        text = f"{tuple(A.shape)} and {tuple(B.shape)} do not fit"
        raise ShapeError(op, text, "B needs one row per row of A")
    check_known(op, "driver", driver, DRIVERS)
    columns = B.unsqueeze(-1) if is_vector else B
    broadcast_shapes(A.shape[:-2], columns.shape[:-2], op=op)
    if rcond is not None and rcond < 0:  # LAPACK's way to ask for the precision of the dtype
        rcond = float(np.finfo(A.dtype.numpy).eps)
    has_values = driver in ("gelsd", "gelss")
    if has_values and rcond is not None:  # singular values are cut off, not pivots
        solution = decided(called(host.pinv, A, rcond)) @ columns
        rank = rank_of(A.detach(), None, rcond)
    else:
        solution, rank = factors(host.lstsq, A, columns, None if driver == "gels" else rcond)
    rows, width = A.shape[-2:]
    place = dict(dtype=solution.abs().dtype, device=A.device)
    values = rest = empty = Recorded.kind.zeros(0, **place)
    if has_values:
        _, values, _ = decided(*factors(host.svd, A.detach()))
    if rows > width and (driver == "gels" or has_values):
        rest = (A @ solution - columns).abs().square().sum(-2)
        if has_values and is_tracing():
            rest = (rank < width).unsqueeze(-1).where(float("nan"), rest)
        elif has_values and not (rank == width).all().item():
            rest = empty
    rank = rank.reshape(-1)[:0] if driver == "gels" else rank
    return LeastSquares(solution.squeeze(-1) if is_vector else solution, rest, rank, values)


def matrix_rank(
    A: Tensor,
    tol: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
) -> Tensor:
    """Count the singular values above max(atol, rtol * the largest), in int64.

    Unless given, rtol is eps * max(M, N) without an atol, and 0 with one.

    >>> picograd.linalg.matrix_rank(picograd.Tensor([[1.0, 2.0], [2.0, 4.0]])).item()
    1
    """
    need_tensor("linalg.matrix_rank", A)
    atol = tol if atol is None else atol
    x = as_float(A).detach()
    x = hermitian_of(x) if hermitian else x
    return decided(rank_of(x, atol, rtol))


def rank_of(x: Tensor, atol: float | Tensor | None, rtol: float | Tensor | None) -> Tensor:
    """Count the singular values above a limit."""
    if x.dtype.is_complex:  # whose values NumPy gives with vectors here
        _, values, _ = factors(host.svd, x)
    else:
        values = refusals.singular_values(as_float(x))
    if not values.shape[-1]:
        return values.sum(-1).long()
    if rtol is None:
        eps = float(np.finfo(values.dtype.numpy).eps) * max(x.shape[-2:])
        rtol = eps if atol is None else 0.0
    limit = values.amax(-1) * rtol
    limit = limit if atol is None else limit.clamp(atol, None)
    return (values > limit.unsqueeze(-1)).sum(-1)


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """Invert the map from the last axes of a tensor to its first `ind`.

    >>> picograd.linalg.tensorinv(picograd.eye(4).reshape(2, 2, 4)).shape
    (4, 2, 2)
    """
    op = "linalg.tensorinv"
    need_tensor(op, A)
    front, back = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if ind < 1 or product(front) != product(back):
        text = f"{front} and {back} differ in elements"
        raise ShapeError(op, text, "choose another ind")
    square = A.reshape(product(front), product(back))
    return refusals.inverse(square).reshape(*back, *front)


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """Find X with tensordot(A, X) = B, summed over all axes of X.

    >>> B = picograd.Tensor([[1.0, 2.0]])
    >>> picograd.linalg.tensorsolve(picograd.eye(2).reshape(1, 2, 2), B).tolist()
    [1.0, 2.0]
    """
    op = "linalg.tensorsolve"
    need_tensor(op, A, B)
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))
    shape = tuple(A.shape[B.ndim :])
    if product(shape) != B.numel() or A.numel() != B.numel() ** 2:
        text = f"{tuple(A.shape)} and {tuple(B.shape)} do not fit"
        raise ShapeError(op, text, "A needs B's elements first, then as many again")
    square = A.reshape(B.numel(), B.numel())
    return refusals.solution(square, B.reshape(B.numel())).reshape(*shape)


# functions of matrices


@composed()
def matrix_exp(A: Tensor) -> Tensor:
    """Compute the exponential of square matrices: sum A^n / n!, by scaling and squaring.

    Under `jit` a GPU squares 32 times for float32 and 53 times for float64: of matrices whose norm
    (the largest sum of a column) is above 2 to the power of that, the result is NaN.

    >>> picograd.linalg.matrix_exp(picograd.Tensor([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    need_square("linalg.matrix_exp", A)
    return called(host.matrix_exp, A, *refusals.squarings(A))


@composed("lu_solve")
def solve_factored(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """Solve A X = input, given what `lu_factor` says of A: `lu_solve` in PyTorch's old order.

    >>> A, B = picograd.Tensor([[0.0, 2.0], [4.0, 0.0]]), picograd.Tensor([[2.0], [8.0]])
    >>> picograd.lu_solve(B, *picograd.linalg.lu_factor(A)).tolist()
    [[2.0], [1.0]]
    """
    return lu_solve(LU_data, LU_pivots, input)


@composed(method=False)
def chain_matmul(*matrices: Tensor) -> Tensor:
    """Multiply several matrices in the cheapest order: `linalg.multi_dot` of its arguments.

    >>> a = picograd.Tensor([[1.0, 2.0]])
    >>> picograd.chain_matmul(a, a.T, a).tolist()
    [[5.0, 10.0]]
    """
    is_list = len(matrices) == 1 and isinstance(matrices[0], (list, tuple))
    listed: Any = matrices[0] if is_list else matrices
    return listed[0] if len(listed) == 1 else multi_dot(listed)


def chain_order(sizes: list[int]) -> Any:
    """Choose the cheapest order of a chain of products (Cormen et al., 15.2): (first, second)."""
    count = len(sizes) - 1
    cost = {(n, n): 0 for n in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for low in range(count - length):
            high = low + length
            ends = sizes[low] * sizes[high + 1]
            prices = {
                at: cost[low, at] + cost[at + 1, high] + ends * sizes[at + 1]
                for at in range(low, high)
            }
            split[low, high] = min(prices, key=prices.__getitem__)
            cost[low, high] = prices[split[low, high]]

    def tree(low: int, high: int) -> Any:
        if low == high:
            return low
        return tree(low, split[low, high]), tree(split[low, high] + 1, high)

    return tree(0, count - 1)


def multiplied(listed: Sequence[Tensor], tree: Any) -> Tensor:
    """Multiply matrices in the order of a tree of pairs."""
    if isinstance(tree, int):
        return listed[tree]
    return multiplied(listed, tree[0]) @ multiplied(listed, tree[1])


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Multiply several matrices in the cheapest order; the first and last may be vectors.

    >>> a = picograd.Tensor([[1.0, 2.0]])
    >>> picograd.linalg.multi_dot([a, a.T, a]).tolist()
    [[5.0, 10.0]]
    """
    op = "linalg.multi_dot"
    listed = list(tensors)
    need_tensor(op, *listed)
    if len(listed) < 2 or any(x.ndim != 2 for x in listed[1:-1]):
        raise ShapeError(op, "it takes two or more matrices", "use matmul for stacks")
    is_row, is_column = listed[0].ndim == 1, listed[-1].ndim == 1
    listed[0] = listed[0].unsqueeze(0) if is_row else listed[0]
    listed[-1] = listed[-1].unsqueeze(1) if is_column else listed[-1]
    tree = chain_order([listed[0].shape[0], *(x.shape[-1] for x in listed)])
    result = multiplied(listed, tree)
    result = result.squeeze(0) if is_row else result
    return result.squeeze(-1) if is_column else result

"""Products of Householder's reflectors 1 - tau v v^H, as LAPACK keeps the Q of a QR decomposition.

v has a 1 on the diagonal and the rest below it, in columns of one matrix. Golub and Van Loan,
"Matrix Computations" (2013), section 5.1.
"""

from typing import Any, NamedTuple

from picograd.errors import ShapeError
from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.arguments import as_float, need_tensor
from picograd.tensor.core.function import composed
from picograd.tensor.core.operands import need_rank
from picograd.tensor.core.recording import Recorded
from picograd.tensor.linalg import host
from picograd.tensor.linalg.calls import factors


class Reflected(NamedTuple):
    """This class holds R over the reflectors' columns, and their factors tau."""

    a: Tensor
    tau: Tensor


def need_factored(op: str, columns: Any, tau: Any) -> None:
    """Check that there are matrices of columns, and factors."""
    need_tensor(op, columns, tau)
    need_rank(op, columns.node, 2)
    need_rank(op, tau.node, 1)
    if tuple(tau.shape[:-1]) != tuple(columns.shape[:-2]):
        problem = f"factors {tuple(tau.shape)} are not of matrices {tuple(columns.shape)}"
        raise ShapeError(op, problem, "pass both as picograd.geqrf gives them")


def reflected(op: str, columns: Tensor, tau: Tensor, other: Tensor, is_adjoint: bool) -> Tensor:
    """Multiply Q, or its adjoint, by matrices: one reflector after the other."""
    count = tau.shape[-1]
    if count > min(columns.shape[-2:]) or columns.shape[-2] != other.shape[-2]:
        shapes = ", ".join(str(tuple(x.shape)) for x in (columns, tau, other))
        problem = f"reflectors, factors and matrix do not fit: {shapes}"
        raise ShapeError(op, problem, "pass what picograd.geqrf gives, and as many rows")
    for number in range(count) if is_adjoint else reversed(range(count)):
        below = columns[..., number + 1 :, number : number + 1]
        vector = Recorded.kind.cat([(below[..., :1, :] * 0).sum(-2, keepdim=True) + 1, below], -2)
        factor = tau[..., number, None, None]
        rows = other[..., number:, :]
        moved = rows - (factor.conj() if is_adjoint else factor) * (vector @ (vector.mH @ rows))
        above = other[..., :number, :].expand(*moved.shape[:-2], -1, -1)
        other = Recorded.kind.cat([above, moved], -2)
    return other


@composed("orgqr")
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """Multiply reflectors: the first columns (..., M, N) of their product, for `geqrf` Q of QR.

    >>> from picograd import Tensor, linalg
    >>> linalg.householder_product(Tensor([[0.0], [1.0]]), Tensor([1.0])).tolist()
    [[0.0], [-1.0]]
    """
    need_factored("householder_product", input, tau)
    rows, columns = input.shape[-2:]
    if rows < columns:
        text = f"{columns} columns of {rows} elements"
        raise ShapeError("householder_product", text, "pass at least as many rows as columns")
    eye = Recorded.kind.eye(rows, columns, dtype=input.dtype, device=input.device)
    return reflected("householder_product", input, tau, eye, False)


@composed()
def geqrf(input: Tensor) -> Reflected:
    """Decompose as QR, Q as reflectors below R; computed on the host, without gradients.

    >>> picograd.geqrf(picograd.Tensor([[3.0], [4.0]])).a.abs().round(decimals=4).tolist()
    [[5.0], [0.5]]
    """
    need_tensor("geqrf", input)
    need_rank("geqrf", input.node, 2)
    matrices = as_float(input).detach()
    found = factors(host.geqrf, matrices)
    return Reflected(*[each.cast(matrices.dtype) for each in found])


@composed()
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """Multiply Q of `geqrf`, or its adjoint, by matrices from the left, or from the right.

    >>> import picograd
    >>> a, tau = picograd.geqrf(picograd.Tensor([[0.0], [2.0]]))
    >>> picograd.ormqr(a, tau, picograd.Tensor([[0.0], [2.0]]), transpose=True).abs().tolist()
    [[2.0], [0.0]]
    """
    need_factored("ormqr", input, tau)
    need_tensor("ormqr", other)
    need_rank("ormqr", other.node, 2)
    if left:
        return reflected("ormqr", input, tau, other, transpose)
    return reflected("ormqr", input, tau, other.mH, not transpose).mH

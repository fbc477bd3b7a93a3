"""Symmetric matrices that need not be definite: A = P L D L^T P^T, and systems of them.

Functions of tensors; what they compute: graph/host_ldl.py.
"""

from typing import NamedTuple

from picograd.dtype import int32
from picograd.errors import ValueRangeError
from picograd.graph.host_call import host_call, unpacked
from picograd.graph.host_ldl import ldl_shapes
from picograd.graph.node import Node
from picograd.graph.shape import broadcast_shapes
from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.arguments import as_float
from picograd.tensor.linalg import host
from picograd.tensor.linalg.calls import called, factors
from picograd.tensor.linalg.host import real_part
from picograd.tensor.linalg.systems import need_pivots, need_rows, need_square


class LDL(NamedTuple):
    """This class holds L and D in one matrix, and the pivots as LAPACK writes them, from 1 on."""

    LD: Tensor
    pivots: Tensor


class LDLTried(NamedTuple):
    """This class holds what `ldl_factor` gives, and 0 or where D has a 0 for each matrix."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


def factored(node: Node, is_hermitian: bool) -> list[Node]:
    """Factor matrices."""
    x = host.wide("ldl_factor", node)
    found = host_call("ldl", x, options=(is_hermitian,))
    both, pivots = unpacked(found, *ldl_shapes(x.shape))
    return [both, real_part(pivots).cast(int32)]


def solved(both: Node, pivots: Node, b: Node, is_hermitian: bool) -> Node:
    """Solve systems given the factors."""
    lead = broadcast_shapes(both.shape[:-2], b.shape[:-2], op="linalg.ldl_solve")
    places = host.as_numbers(pivots, both)
    column = places.reshape((*pivots.shape, 1))
    parts = [host.repeated(each, lead) for each in (both, column, b)]
    options = (is_hermitian,)
    return host_call("ldl_solve", *parts, options=options)


def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> LDLTried:
    """Factor as `ldl_factor`, and say for each matrix where D has a 0 first, counted from 1.

    >>> picograd.linalg.ldl_factor_ex(picograd.Tensor([[1.0, 1.0], [1.0, 1.0]])).info.item()
    2
    """
    need_square("linalg.ldl_factor_ex", A)
    both, pivots = factors(factored, as_float(A.detach()), hermitian)
    diagonal = both.diagonal(0, -2, -1)
    is_zero = (diagonal == 0) & (pivots > 0)  # blocks of 2 rows are regular
    has_rows = is_zero.shape[-1] > 0
    zeros = is_zero.int()
    first = zeros.argmax(-1) + 1 if has_rows else 0
    is_singular = is_zero.any(-1)
    info = is_singular.where(first, 0).int()
    if check_errors and info.any():
        problem, fix = "D has a 0", "pass regular matrices"
        raise ValueRangeError("linalg.ldl_factor", problem, fix)
    return LDLTried(both, pivots, info)


def ldl_factor(A: Tensor, *, hermitian: bool = False) -> LDL:
    """Factor symmetric, or Hermitian, matrices (..., N, N), of which the lower triangle is read.

    The factors have no gradient, as in PyTorch. Raises ValueRangeError for a singular matrix.

    >>> A = picograd.Tensor([[0.0, 2.0], [2.0, 0.0]])
    >>> [x.tolist() for x in picograd.linalg.ldl_factor(A)]
    [[[0.0, 0.0], [2.0, 0.0]], [-2, -2]]
    """
    found = ldl_factor_ex(A, hermitian=hermitian, check_errors=True)
    return LDL(found.LD, found.pivots)


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """Solve A X = B (..., N, K), given what `ldl_factor` says of A; gradients are those by B.

    >>> A = picograd.Tensor([[0.0, 2.0], [2.0, 0.0]])
    >>> picograd.linalg.ldl_solve(*picograd.linalg.ldl_factor(A), picograd.ones(2, 1)).tolist()
    [[0.5], [0.5]]
    """
    need_square("linalg.ldl_solve", LD)
    need_pivots("linalg.ldl_solve", LD, pivots)
    need_rows("linalg.ldl_solve", LD, B)
    fixed = LD.detach()
    return called(solved, fixed, pivots, B, hermitian)  # type: ignore[no-any-return]

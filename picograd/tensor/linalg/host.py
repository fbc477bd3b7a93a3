"""Decompositions and transforms on nodes: checks of what a user gave, then a host call.

What they compute and their gradients: graph/host_matrices.py and graph/host_call.py. Matrices
are the last two axes, the rest are batches. 16-bit floats compute in float32.
"""

from collections.abc import Sequence

import numpy as np

from picograd.dtype import int32, int64
from picograd.errors import ShapeError, ValueRangeError
from picograd.graph import build
from picograd.graph.build_composite import check_device
from picograd.graph.host_call import host_call, unpacked
from picograd.graph.host_lu import lu_parts, lu_shapes
from picograd.graph.host_matrices import nearest_shapes, qr_shapes, svd_shapes, triangle, turned
from picograd.graph.node import Node
from picograd.tensor.core.operands import floating, need_rank
from picograd.tensor.linalg import products


def wide(op: str, node: Node, is_square: bool = True) -> Node:
    """Check a stack of matrices, of 32 bits or more."""
    need_rank(f"linalg.{op}", node, 2)
    if is_square and node.shape[-1] != node.shape[-2]:
        raise ShapeError(f"linalg.{op}", f"{node.shape} is not square", "pass square matrices")
    return floating(op, node).accumulated()


def computed(op: str, node: Node, is_square: bool = True) -> Node:
    """Compute one result of matrices, by the name of the function of `picograd.linalg`."""
    return host_call(op, wide(op, node, is_square))


def inverse(node: Node) -> Node:
    """Invert square matrices."""
    x = wide("inv", node)
    return host_call("inv", x).cast(floating("inv", node).dtype)


def told_inverse(node: Node) -> list[Node]:
    """Invert square matrices, and tell which pivot of each is 0, from 1: none is refused."""
    x = wide("inv", node)
    inverse, failure = unpacked(host_call("inv_told", x), x.shape[-2:], ())
    return [inverse.cast(floating("inv", node).dtype), real_part(failure)]


def told_solution(a: Node, b: Node) -> list[Node]:
    """Solve a x = b, and tell which pivot of each a is 0, from 1: none is refused."""
    x, columns, is_vector = systems(a, b, True)
    found = host_call("solve_told", x, columns)
    solution, failure = unpacked(found, columns.shape[-2:], ())
    lead = solution.shape[:-1]
    return [solution.reshape(lead) if is_vector else solution, real_part(failure)]


def solve(a: Node, b: Node, *triangle: bool) -> Node:
    """Solve a x = b for square a: (..., N, N) and (..., N, K), or b (..., N).

    A triangular a (upper?, ones on its diagonal?) takes matrices b alone.
    """
    x, columns, is_vector = systems(a, b, not triangle)
    name = "solve_triangular" if triangle else "solve"
    result = host_call(name, x, columns, options=triangle)
    return result.reshape(result.shape[:-1]) if is_vector else result


def systems(a: Node, b: Node, takes_vectors: bool) -> tuple[Node, Node, bool]:
    """Check systems of equations: matrices of one batch, and whether b was a vector of each."""
    x, right = products.same_dtype("solve", wide("solve", a), floating("solve", b).accumulated())
    check_device("linalg.solve", (x, right))
    is_vector = takes_vectors and (right.rank == 1 or right.shape == x.shape[:-1])
    columns = right.reshape((*right.shape, 1)) if is_vector else right
    if columns.shape[-2] != x.shape[-1]:
        text = f"{a.shape} and {b.shape} do not fit"
        raise ShapeError("linalg.solve", text, "b needs one row per row of a")
    lead = np.broadcast_shapes(x.shape[:-2], columns.shape[:-2])
    return repeated(x, lead), repeated(columns, lead), is_vector


def repeated(node: Node, lead: Sequence[int]) -> Node:
    """Give a stack of matrices some leading axes."""
    ones = (1,) * (len(lead) + 2 - len(node.shape))
    return build.expand(node.reshape((*ones, *node.shape)), (*lead, *node.shape[-2:]))


def log_determinant(node: Node) -> list[Node]:
    """Compute the sign of determinants and the logarithm of their size."""
    sign, logarithm = unpacked(host_call("slogdet", wide("slogdet", node)), (), ())
    return [sign, real_part(logarithm)]


def real_part(node: Node) -> Node:
    """Take the real parts of what lay beside complex results."""
    return node.parts()[0] if node.dtype.is_complex else node


def qr(node: Node, mode: str = "reduced") -> list[Node]:
    """Write (..., M, N) as Q R with orthonormal columns, min(M, N) or M of them ("complete")."""
    x = wide("qr", node, False)
    return unpacked(host_call("qr", x, options=(mode,)), *qr_shapes(x.shape, mode))


def geqrf(node: Node) -> list[Node]:
    """Decompose (..., M, N) as R with reflectors below it, and min(M, N) factors of these."""
    x = wide("geqrf", node, False)
    return unpacked(host_call("geqrf", x), x.shape[-2:], (min(x.shape[-2:]),))


def svd(node: Node) -> list[Node]:
    """Write matrices as U diag(S) Vh with min(M, N) singular values."""
    x = wide("svd", node, False)
    u, s, vh = unpacked(host_call("svd", x), *svd_shapes(x.shape))
    return [u, real_part(s), vh]


def eigh(node: Node) -> list[Node]:
    """Find eigenvalues, ascending, and eigenvectors of symmetric matrices (lower triangle)."""
    x = wide("eigh", node)
    values, vectors = unpacked(host_call("eigh", x), x.shape[-1:], x.shape[-2:])
    return [real_part(values), vectors]


def eig(node: Node) -> list[Node]:
    """Find eigenvalues and eigenvectors of square matrices: complex numbers."""
    x = complex_matrices("eig", node)
    return unpacked(host_call("eig", x), x.shape[-1:], x.shape[-2:])


def eigenvalues(node: Node) -> Node:
    """Find eigenvalues of square matrices, without vectors: complex numbers."""
    return host_call("eigvals", complex_matrices("eigvals", node))


def complex_matrices(op: str, node: Node) -> Node:
    """Check a stack of square matrices, and make complex ones of them."""
    x = wide(op, node)
    return x.cast(x.dtype.complex)


def pinv(node: Node, rtol: float | None, atol: float | None = None) -> Node:
    """Compute the Moore-Penrose inverse; singular values up to max(atol, rtol * largest) are 0."""
    x = wide("pinv", node, False)
    if rtol is None:
        eps = float(np.finfo(x.dtype.real.numpy).eps) * max(x.shape[-2:])
        rtol = eps if atol is None else 0.0
    options = float(rtol), float(atol or 0.0)
    return host_call("pinv", x, options=options)


def lstsq(a: Node, b: Node, limit: float | None) -> list[Node]:
    """Find the x of least |a x - b|, and the rank of a."""
    right = floating("lstsq", b).accumulated()
    x, right = products.same_dtype("lstsq", wide("lstsq", a, False), right)
    lead = np.broadcast_shapes(x.shape[:-2], right.shape[:-2])
    x, right = repeated(x, lead), repeated(right, lead)
    if limit is None:
        limit = float(np.finfo(x.dtype.real.numpy).eps) * max(x.shape[-2:])
    found = host_call("lstsq", x, right, options=(float(limit),))
    solution, rank = unpacked(found, *nearest_shapes(x.shape, right.shape))
    return [solution, real_part(rank).cast(int64)]


def lu(node: Node, name: str = "lu_factor") -> list[Node]:
    """Write matrices as P L U: both triangles in one, and the rows swapped at each step, from 1."""
    x = wide(name, node, False)
    both, swaps = unpacked(host_call(name, x), *lu_shapes(x.shape))
    return [both, real_part(swaps).cast(int32)]


def lu_in_three(node: Node) -> list[Node]:
    """Write matrices as P L U, in three."""
    x = wide("lu", node, False)
    return unpacked(host_call("in_three", x), *lu_parts(x.shape))


def permutation(swaps: Node, rows: int, like: Node) -> Node:
    """Make the matrices P of P L U from the rows swapped at each step, from 1."""
    return host_call("permutation", as_numbers(swaps, like), options=(rows,))


def as_numbers(swaps: Node, like: Node) -> Node:
    """Cast the rows that are swapped to the one dtype of a call."""
    return swaps.cast(like.dtype.real).cast(like.dtype)


def lu_solve(both: Node, swaps: Node, b: Node, is_adjoint: bool) -> Node:
    """Solve A x = b, or with A's conjugate transpose, given what `lu` says of A."""
    lead = np.broadcast_shapes(both.shape[:-2], b.shape[:-2])
    x, right = repeated(both, lead), repeated(b, lead)
    rows = as_numbers(swaps, x).reshape((*swaps.shape, 1))
    rows = repeated(rows, lead).reshape((*lead, swaps.shape[-1]))
    if is_adjoint:
        first = triangle(turned(x), right, False)
        return host_call("swap_rows", triangle(turned(x), first, True, True), rows, options=(True,))
    first = triangle(x, host_call("swap_rows", right, rows, options=(False,)), False, True)
    return triangle(x, first, True)


def cholesky_solve(b: Node, factor: Node, is_upper: bool) -> Node:
    """Solve A x = b given A = L L^H, or U^H U."""
    factor = turned(factor) if is_upper else factor
    return solve(turned(factor), solve(factor, b, False, False), True, False)


def matrix_exp(node: Node, *most: int) -> Node:
    """Compute the exponential of square matrices; a GPU squares them so often at most."""
    x = wide("matrix_exp", node)
    return host_call("matrix_exp", x, options=most).cast(floating("matrix_exp", node).dtype)


# Fourier transforms


def need_points(op: str, size: int) -> None:
    """Raise ValueRangeError for an axis of no elements."""
    if size < 1:
        text = f"invalid number of data points ({size}) specified"
        raise ValueRangeError(op, text, "transform an axis of one element or more")


def fourier(node: Node, axis: int, is_inverse: bool, norm: str) -> Node:
    """Transform along one axis of complex numbers."""
    need_points("fft", node.shape[axis])
    return host_call("fft", node, options=(axis - node.rank, is_inverse, norm))


def fourier_of_real(node: Node, axis: int, norm: str) -> Node:
    """Transform along one axis of real numbers: the first n // 2 + 1 frequencies."""
    need_points("rfft", node.shape[axis])
    return host_call("rfft", node, options=(axis - node.rank, norm))


def real_of_fourier(node: Node, axis: int, size: int, norm: str) -> Node:
    """Transform size // 2 + 1 frequencies along one axis back to `size` real numbers."""
    return host_call("irfft", node, options=(axis - node.rank + 1, size, norm))

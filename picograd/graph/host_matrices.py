"""Host calls of linear algebra. Matrices are the last two axes, the rest are batches.

They are real or complex: in gradients a transpose is a conjugate transpose, `turned`.

Gradients: Giles, "Collected matrix derivative results" (2008); for QR, Walter and Lehmann,
"Algorithmic differentiation of linear algebra functions" (2010).
Equal eigenvalues or singular values have gradients as long as no vectors are asked for.
"""

import math
from functools import partial
from typing import Any

import numpy as np

from picograd.errors import GradientError
from picograd.graph import matrix_kernels, turned_columns
from picograd.graph.complex_rules import conjugate
from picograd.graph.elimination import identity
from picograd.graph.host_call import HostFunction, functions, host_call, unpacked
from picograd.graph.lapack import inverted, is_above, least_squares, orthogonal
from picograd.graph.matrix_kernels import SQUARINGS, TERMS
from picograd.graph.node import Node
from picograd.graph.shape import Shape
from picograd.helpers import product as count

Array = Any
Gradients = list[Node | None]
FEW = 24  # rows or columns of a matrix for which finding a function takes longest
LARGE = 64  # rows of a matrix that is inverted faster from its factors (measured)
BELOW: Any = getattr(np.linalg, "_umath_linalg", None)  # what NumPy's own functions call


def conjugated(node: Node) -> Node:
    """Conjugate; real numbers stay."""
    return conjugate(node) if node.dtype.is_complex else node


def turned(node: Node) -> Node:
    """Swap the last two axes, and conjugate."""
    lead = tuple(range(node.rank - 2))
    return conjugated(node.permute((*lead, node.rank - 1, node.rank - 2)))


def matmul(a: Node, b: Node) -> Node:
    """Multiply two stacks of matrices of the same leading axes."""
    n = a.rank - 2
    lead = tuple(range(n))
    return a.contract(b, ((*lead, n, n + 1), (*lead, n + 1, n + 2), (*lead, n, n + 2)))


def product(*factors: Node) -> Node:
    """Multiply matrices from left to right."""
    result = factors[0]
    for each in factors[1:]:
        result = matmul(result, each)
    return result


def mask(node: Node, op: str, offset: int = 0) -> Node:
    """Compare column + offset with row, everywhere in a stack of matrices."""
    columns, rows = (node.iota(node.rank - 1), node.iota(node.rank - 2))
    return (columns + offset).binary(op, rows)


def lower(node: Node, offset: int = 0) -> Node:
    """Zero the elements above a diagonal; offset 1 zeroes the main one, too."""
    return mask(node, "less_equal", offset).where(node, 0.0)


def upper(node: Node) -> Node:
    """Zero the elements below the main diagonal."""
    return mask(node, "less", 0).where(0.0, node)


def columns_of(vector: Node, like: Node) -> Node:
    """Repeat (..., N) along the columns of matrices (..., M, N)."""
    return vector.reshape((*vector.shape[:-1], 1, vector.shape[-1])).expand(like.shape)


def diagonal(vector: Node) -> Node:
    """Put vectors (..., N) on the diagonals of matrices (..., N, N)."""
    size = vector.shape[-1]
    wide = vector.reshape((*vector.shape[:-1], 1, size)).expand((*vector.shape, size))
    return mask(wide, "equal").where(wide, 0.0)


def numbers(scalar: Node, like: Node) -> Node:
    """Repeat one number (...) over each matrix."""
    return scalar.reshape((*scalar.shape, 1, 1)).expand(like.shape)


def quotient(top: Node, bottom: Node) -> Node:
    """Divide, with 0 / 0 = 0."""
    is_nothing = top.binary("equal", 0.0).binary("logical_and", bottom.binary("equal", 0.0))
    return is_nothing.where(0.0, top / is_nothing.where(1.0, bottom))


# inverses


def inverse_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """-Y^T g Y^T."""
    return [-product(turned(y), g, turned(y))]


def solve_vjp(g: Node, y: Node, a: Node, b: Node) -> Gradients:
    """A^-T g for b, and minus its outer product with the solution for A."""
    back = host_call("solve", turned(a), g)
    return [-matmul(back, turned(y)), back]


def triangle(a: Node, b: Node, is_upper: bool, is_unit: bool = False) -> Node:
    """Solve a x = b for a triangle."""
    return host_call("solve_triangular", a, b, options=(is_upper, is_unit))


def cofactors(x: Array) -> Array:
    """Compute det(x) x^-T, conjugated; of matrices with no good inverse from singular values."""
    try:
        inverse = MATRICES["inv"].numpy(x)  # NaN where there is none, or an error
    except np.linalg.LinAlgError:
        inverse = np.full_like(x, np.nan)
    spread = math.prod(np.abs(each).sum(-1).max(-1, initial=0) for each in (x, inverse))
    if (spread < 0.01 / np.finfo(x.dtype).eps).all():
        value = MATRICES["det"].numpy(x)[..., None, None]
        return np.conj(value * np.swapaxes(inverse, -1, -2))
    u, s, vh = np.linalg.svd(x)
    size = s.shape[-1]
    others = np.where(np.eye(size, dtype=bool), 1, s[..., None, :]).prod(-1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return (u * (np.conj(sign)[..., None] * others)[..., None, :]) @ vh


def det_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """g times the cofactors."""
    return [numbers(g, x) * host_call("cofactors", x)]


def cofactors_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """Differentiate det(x) x^-T, which needs an inverse."""
    back = turned(host_call("inv", x))
    along = (conjugated(g) * back).reduce("sum", (x.rank - 2, x.rank - 1))
    value = numbers(conjugated(host_call("det", x)), x)
    return [value * (numbers(along, x) * back - product(back, turned(g), back))]


def slogdet_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """x^-T times the gradient of the logarithm; of a sign only a complex one has a gradient."""
    for_sign, scale = unpacked(g, (), ())
    if x.dtype.is_complex:
        sign, _ = unpacked(y, (), ())
        _, turn = (conjugate(for_sign) * sign).parts()
        scale = scale.parts()[0].paired(-turn)
    return [numbers(scale, x) * turned(host_call("inv", x))]


def cholesky(x: Array) -> Array:
    """Write matrices as L L^T; NaN in one reaches the last element of L, and is refused, too."""
    found = BELOW.cholesky_lo(x)
    if not np.isfinite(found[..., -1:, -1:]).all():
        raise np.linalg.LinAlgError(INDEFINITE)
    return found


def cholesky_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """Giles: L^-T P(L^T g) L^-1, symmetric; P halves the diagonal of the lower triangle."""
    inner = lower(matmul(turned(y), g))
    inner = inner - identity(inner) * inner * 0.5
    whole = turned(triangle(turned(y), turned(triangle(turned(y), inner, True)), True))
    return [(whole + turned(whole)) * 0.5]


def pseudo_inverse(x: Array, rtol: float, atol: float) -> Array:
    """Invert by the singular values above max(atol, rtol * the largest); the others count as 0."""
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    limit = np.maximum(atol, rtol * s.max(-1, keepdims=True, initial=0))
    is_large = s > limit
    scale = np.where(is_large, 1 / np.where(is_large, s, 1), 0)
    return np.conj(np.swapaxes(vh, -1, -2)) @ (scale[..., None] * np.conj(np.swapaxes(u, -1, -2)))


def pinv_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """Golub and Pereyra (1973): three terms, two of them beside the range and the null space."""
    across = turned(g)
    left = across - product(x, y, across)
    right = across - product(across, y, x)
    total = product(left, y, turned(y)) + product(turned(y), y, right)
    return [total - product(turned(y), g, turned(y))]


def nearest(a: Array, b: Array, limit: float) -> tuple[Array, Array]:
    """Find the x of least |a x - b|, and the rank of a."""
    found = least_squares(a, b, limit)
    if found is not None:
        return found
    values = np.linalg.svd(a, compute_uv=False)
    is_large = values > limit * values.max(-1, keepdims=True, initial=0)
    return pseudo_inverse(a, limit, 0.0) @ b, is_large.sum(-1)


def nearest_shapes(a: Shape, b: Shape) -> tuple[Shape, Shape]:
    """Shapes of the solution and of the rank for one matrix."""
    return (a[-1], b[-1]), ()


def nearest_vjp(g: Node, y: Node, a: Node, b: Node) -> Gradients:
    """The gradient of A^+ b."""
    back, _ = unpacked(g, *nearest_shapes(a.shape, b.shape))
    inverse = host_call("pinv", a, options=(*y.arg.options, 0.0))
    return [*pinv_vjp(matmul(back, turned(b)), inverse, a), matmul(turned(inverse), back)]


# decompositions


def reflected(x: Array) -> tuple[Array, Array]:
    """Decompose as R and reflectors below it, and their factors."""
    found: Any = np.linalg.qr(x, mode="raw")
    return found[0].swapaxes(-1, -2), found[1]


def qr_shapes(x: Shape, mode: str) -> tuple[Shape, Shape]:
    """Shapes of Q and R of one matrix."""
    rows, width = x[-2:]
    inner = rows if mode == "complete" else min(rows, width)
    return (rows, inner), (inner, width)


def qr(x: Array, mode: str) -> tuple[Array, ...]:
    """Write matrices as Q R; `mode` "reduced" or "complete".

    By LAPACK for the dtype; small matrices by what NumPy calls, in float64, which takes less.
    """
    is_complete, (rows, columns) = mode == "complete", x.shape[-2:]
    if min(rows, columns) > FEW:
        found = orthogonal(x, is_complete)
        if found is not None:
            return found
    make = getattr(BELOW, "qr_complete" if is_complete and rows > columns else "qr_reduced", None)
    if make is None or not hasattr(BELOW, "qr_r_raw") or not x.size:
        return tuple(np.linalg.qr(x, mode))  # type: ignore[call-overload]
    both = x.astype(np.result_type(x.dtype, np.float64))
    scales = BELOW.qr_r_raw(both)
    left, top = make(both, scales), both[..., : rows if is_complete else min(rows, columns), :]
    right = np.where(is_above(*top.shape[-2:]), top, 0)
    return left.astype(x.dtype), right.astype(x.dtype)


def qr_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """Gradient for as many orthonormal columns as R has rows.

    A wide matrix is [A, B] = Q [U, V]: what reaches V = Q^T B goes on to Q and to B.
    """
    (mode,), (rows, width) = y.arg.options, x.shape[-2:]
    shapes = qr_shapes(x.shape, mode)
    if mode == "complete" and rows > width:
        text = "the vectors beyond the columns of the matrix have no gradient"
        raise GradientError("linalg.qr", text, 'use mode="reduced"')
    q, r = unpacked(y, *shapes)
    for_q, for_r = unpacked(g, *shapes)
    if rows >= width:
        return [square_qr_gradient(for_q, for_r, q, r)]
    left, right = (columns_between(x, 0, rows), columns_between(x, rows, width))
    for_v = columns_between(for_r, rows, width)
    for_q = for_q + matmul(right, turned(for_v))
    first = square_qr_gradient(
        for_q, columns_between(for_r, 0, rows), q, columns_between(r, 0, rows)
    )
    none = ((0, 0),) * (left.rank - 1)
    second = matmul(q, for_v)
    return [first.pad((*none, (0, width - rows))) + second.pad((*none, (rows, 0)))]


def square_qr_gradient(for_q: Node, for_r: Node, q: Node, r: Node) -> Node:
    """Gradient of a matrix with at least as many rows as columns."""
    m = matmul(r, turned(for_r)) - matmul(turned(for_q), q)
    low = lower(m, 1)
    along, _ = (identity(m) * m).parts() if m.dtype.is_complex else (identity(m) * m, None)
    mirrored = low + turned(low) + along.cast(m.dtype)
    return turned(triangle(r, turned(for_q + matmul(q, mirrored)), True))


def columns_between(node: Node, start: int, stop: int) -> Node:
    """Cut columns out of matrices."""
    whole = tuple((0, size, 1) for size in node.shape[:-1])
    return node.slice((*whole, (start, stop, 1)))


def svd_shapes(x: Shape) -> tuple[Shape, Shape, Shape]:
    """Shapes of U, S and Vh of one matrix."""
    rows, width = x[-2:]
    least = min(rows, width)
    return (rows, least), (least,), (least, width)


def gaps(values: Node) -> Node:
    """Compute v_j - v_i at row i and column j."""
    size = values.shape[-1]
    shape = (*values.shape, size)
    rows = values.reshape((*values.shape, 1)).expand(shape)
    return values.reshape((*values.shape[:-1], 1, size)).expand(shape) - rows


def svd_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """Rotate the vectors within their spaces by 1 / (s_j^2 - s_i^2), and out of them by 1 / s."""
    shapes = svd_shapes(x.shape)
    u, s, vh = unpacked(y, *shapes)
    for_u, for_s, for_vh = unpacked(g, *shapes)
    if x.dtype.is_complex:  # the values are real, though they lie among complex numbers
        for_s = for_s.parts()[0].cast(x.dtype)
    for_v, v, apart = turned(for_vh), turned(vh), gaps(s * s)
    of_u, of_v = skew(matmul(turned(u), for_u)), skew(matmul(turned(v), for_v))
    phases = identity(of_u) * of_u  # of complex vectors; those of real ones have none
    j, k = quotient(of_u - phases, apart), quotient(of_v - identity(of_v) * of_v, apart)
    core = j * columns_of(s, j) + turned(columns_of(s, k)) * k + diagonal(for_s)
    if x.dtype.is_complex:
        core = core + quotient(phases * 0.5, columns_of(s, phases))
    total = product(u, core, vh)
    rows, width = x.shape[-2:]
    if rows > width:
        rest = for_u - product(u, turned(u), for_u)
        total = total + matmul(quotient(rest, columns_of(s, rest)), vh)
    if width > rows:
        rest = for_v - product(v, turned(v), for_v)
        total = total + matmul(u, turned(quotient(rest, columns_of(s, rest))))
    return [total]


def skew(node: Node) -> Node:
    """Subtract the transpose: 0 on the diagonal."""
    return node - turned(node)


def eigh_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """Rotate the vectors by 1 / (w_j - w_i)."""
    shapes = (x.shape[-1:], x.shape[-2:])
    w, v = unpacked(y, *shapes)
    for_w, for_v = unpacked(g, *shapes)
    turn = matmul(turned(v), for_v)
    turn = turn - identity(turn) * turn
    inner = quotient(turn, gaps(w)) + diagonal(for_w)
    total = product(v, inner, turned(v))
    return [(total + turned(total)) * 0.5]


def eigenvalues_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """Multiply eigenvectors by the gradients of their values: V diag(g) V^T."""
    _, v = unpacked(host_call("eigh", x), x.shape[-1:], x.shape[-2:])
    return [matmul(v * columns_of(g, v), turned(v))]


def values_shape(x: Shape) -> Shape:
    """Shape of the singular values."""
    return (*x[:-2], min(x[-2:]))


def singular_values_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """Multiply singular vectors by the gradients of their values: U diag(g) Vh."""
    u, _, vh = unpacked(host_call("svd", x), *svd_shapes(x.shape))
    return [matmul(u * columns_of(g, u), vh)]


def eig(x: Array) -> tuple[Array, ...]:
    """Find eigenvalues and eigenvectors of complex matrices; of real ones come conjugate pairs."""
    return tuple(each.astype(x.dtype) for each in np.linalg.eig(real_where_it_can(x)))


def real_where_it_can(x: Array) -> Array:
    """Take the real parts of complex numbers that have no others."""
    return x if np.any(x.imag) else x.real


def values_of_any(x: Array) -> Array:
    """Find eigenvalues without vectors."""
    return np.linalg.eigvals(real_where_it_can(x)).astype(x.dtype)


def values_of_any_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """Multiply eigenvectors by the gradients of their values: V^-T diag(g) V^T."""
    _, v = unpacked(host_call("eig", x), x.shape[-1:], x.shape[-2:])
    across = turned(v)
    return [host_call("solve", across, matmul(diagonal(g), across))]


def eig_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """Rotate by 1 / (w_j - w_i), less what only makes the vectors longer (Boeddeker, 2017)."""
    shapes = (x.shape[-1:], x.shape[-2:])
    w, v = unpacked(y, *shapes)
    for_w, for_v = unpacked(g, *shapes)
    inner = matmul(turned(v), for_v)
    along, _ = (identity(inner) * inner).parts()
    inner = inner - product(turned(v), v, along.cast(x.dtype))
    inner = inner - identity(inner) * inner
    core = quotient(inner, conjugate(gaps(w))) + diagonal(for_w)
    return [host_call("solve", turned(v), matmul(core, turned(v)))]


# functions of matrices


def exponential(x: Array, *most: int) -> Array:
    """Sum x^n / n! in double precision, scaled and squared as often as the norm of each asks.

    Four terms at a time: eight products for twenty terms. A GPU is told the `most` squarings.
    """
    x = x.astype(np.result_type(x.dtype, np.float64))
    size = np.abs(x).sum(-2).max(-1, initial=0)
    is_plain = (size > 1) & np.isfinite(size)
    halvings = np.where(is_plain, np.ceil(np.log2(np.where(is_plain, size, 1))), 0)
    x = x * (2.0**-halvings)[..., None, None]
    square = x @ x
    powers, fourth = (np.eye(x.shape[-1]), x, square, square @ x), square @ square
    parts = [
        sum(each / math.factorial(start + n) for n, each in enumerate(powers))
        for start in range(0, TERMS, 4)
    ]
    result = parts.pop()
    while parts:
        result = result @ fourth + parts.pop()
    for step in range(int(halvings.max(initial=0))):
        is_here = (halvings > step)[..., None, None]
        result = np.where(is_here, result @ result, result)
    return result


def matrix_exp_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """Al-Mohy and Higham (2009): the upper right block of exp([[X^T, g], [0, X^T]])."""
    size, none = x.shape[-1], ((0, 0),) * (x.rank - 2)
    options = y.arg.options
    scale = largest_of(g) if options else None
    if scale is not None:  # of a norm of 1, it asks for one squaring more
        g = g / numbers(scale, g)
    start, end = (0, size), (size, 0)
    whole = turned(x).pad((*none, start, start)) + turned(x).pad((*none, end, end))
    whole = whole + g.pad((*none, start, end))
    more = tuple(min(most + 1, SQUARINGS[8]) for most in options)
    found = host_call("matrix_exp", whole, options=more)
    lead = tuple((0, n, 1) for n in x.shape[:-2])
    found = found.slice((*lead, (0, size, 1), (size, 2 * size, 1)))
    return [found if scale is None else found * numbers(scale, found)]


def largest_of(x: Node) -> Node:
    """Find the norm of each matrix, the largest sum of a column; 1 for zeros."""
    sums = conjugated(x).unary("abs").reduce("sum", (x.rank - 2,))
    norm = sums.reduce("max", (x.rank - 2,))
    return norm.binary("equal", 0.0).where(1.0, norm)


def total(shapes: tuple[Shape, ...], x: Shape) -> Shape:
    """Shape of several results in one."""
    return (*x[:-2], sum(map(count, shapes)))


def same(x: Shape, *options: Any) -> Shape:
    """Keep the shape."""
    return x


def row(
    name: str, numpy: Any, shape: Any, vjp: Any, can_fail: bool = False, kernels: Any = None
) -> HostFunction:
    """Make the row of a function whose value is kept."""
    return HostFunction(name, numpy, shape, vjp, True, can_fail, kernels=kernels)


def lower_named(name: str) -> Any:
    """Find what NumPy's functions call; None in a release that has no such name."""
    return getattr(BELOW, name, None)


def quick(
    name: str,
    below: str,
    shape: Any,
    vjp: Any,
    refusal: str = "",
    otherwise: Any = None,
    kernels: Any = None,
) -> HostFunction:
    """Make the row of one of NumPy's functions, which is called below its checks and copies.

    Those take longer than a small matrix does, and compute float32 in float64. A release of NumPy
    that has another name below is called as all are.
    """
    found = lower_named(below) or otherwise or getattr(np.linalg, name)
    return HostFunction(name, found, shape, vjp, True, bool(refusal), refusal, kernels)


NUMPYS_INVERSE = lower_named("inv") or np.linalg.inv


def inverse(x: Array) -> Array:
    """Invert matrices: large ones from their factors, where NumPy solves for all columns of 1."""
    made = inverted(x) if x.shape[-1] >= LARGE else None
    found: Array = NUMPYS_INVERSE(x) if made is None else made
    return found


INDEFINITE = "Matrix is not positive definite"
SINGULAR, STUCK = "Singular matrix", "it did not converge"
THIN, VALUES = partial(np.linalg.svd, full_matrices=False), partial(np.linalg.svd, compute_uv=False)
MATRICES = functions(
    HostFunction(
        "inv", inverse, same, inverse_vjp, True, True, SINGULAR, matrix_kernels.inverse_kernels
    ),
    quick(
        "solve", "solve", lambda a, b: b, solve_vjp, SINGULAR, kernels=matrix_kernels.solve_kernels
    ),
    HostFunction(
        "cholesky",
        cholesky,
        same,
        cholesky_vjp,
        True,
        True,
        INDEFINITE,
        matrix_kernels.cholesky_kernels,
    ),
    row(
        "pinv",
        pseudo_inverse,
        lambda x, *_: (*x[:-2], x[-1], x[-2]),
        pinv_vjp,
        True,
        turned_columns.pseudo_inverse_kernels,
    ),
    row(
        "lstsq",
        nearest,
        lambda a, b, *_: total(nearest_shapes(a, b), a),
        nearest_vjp,
        kernels=matrix_kernels.nearest_kernels,
    ),
    quick(
        "svd",
        "svd_s",
        lambda x: total(svd_shapes(x), x),
        svd_vjp,
        STUCK,
        THIN,
        turned_columns.svd_kernels,
    ),
    quick(
        "eigh",
        "eigh_lo",
        lambda x: total((x[-1:], x[-2:]), x),
        eigh_vjp,
        STUCK,
        kernels=turned_columns.eigh_kernels,
    ),
    quick(
        "eigvalsh",
        "eigvalsh_lo",
        lambda x: x[:-1],
        eigenvalues_vjp,
        STUCK,
        kernels=turned_columns.eigenvalue_kernels,
    ),
    quick(
        "svdvals",
        "svd",
        values_shape,
        singular_values_vjp,
        STUCK,
        VALUES,
        turned_columns.value_kernels,
    ),
    row("eig", eig, lambda x: total((x[-1:], x[-2:]), x), eig_vjp, True),
    row("eigvals", values_of_any, lambda x: x[:-1], values_of_any_vjp, True),
    row("geqrf", reflected, lambda x: total((x[-2:], (min(x[-2:]),)), x), None),
    row(
        "qr",
        qr,
        lambda x, mode: total(qr_shapes(x, mode), x),
        qr_vjp,
        kernels=matrix_kernels.qr_kernels,
    ),
    quick("det", "det", lambda x: x[:-2], det_vjp, kernels=matrix_kernels.determinant_kernels),
    quick(
        "slogdet",
        "slogdet",
        lambda x: (*x[:-2], 2),
        slogdet_vjp,
        kernels=matrix_kernels.log_determinant_kernels,
    ),
    HostFunction("cofactors", cofactors, same, cofactors_vjp),
    HostFunction(
        "matrix_exp", exponential, same, matrix_exp_vjp, kernels=matrix_kernels.exponential_kernels
    ),
)

"""Eigenvalues and singular values by a GPU.

Columns of a matrix X are turned until they are at right angles, X J = W, by a block of threads that
has room for them or by products (graph/turned_blocks.py). Lengths of columns are singular values.

    symmetric A    c - A = L L^T, L J = W    vectors v = w / |w|, eigenvalues v^T A v
    A = Q R        R^T J = W                 A = (Q J) diag(|w|) (w / |w|)^T

with c above all eigenvalues, so that no column is short (Veselic and Hari, 1989); columns of R^T
need fewer sweeps than those of A (Drmac and Veselic, 2008). Of columns that may be zero, the
vectors are Q of W. Numbers are multiplied by a power of two, so that no square is lost.
"""

import numpy as np

from picograd.dtype import float32, float64
from picograd.graph.composites import join
from picograd.graph.elimination import eliminate, identity, stacked
from picograd.graph.matrix_kernels import asked, diagonal_of, exact, is_complex, spread
from picograd.graph.matrix_loops import ACROSS, DOWN, PRODUCT, SQUARE, factored, head, left, tail
from picograd.graph.node import Node, Nodes
from picograd.graph.reflector_loops import decomposed, reduced
from picograd.graph.scanning import scan
from picograd.graph.turned_blocks import turn, turn_in_blocks
from picograd.helpers import product
from picograd.target import Target

MOST_TURNED = 128  # columns
BETWEEN = 16  # elements of columns, in shared memory, at most
SPARE = 1024  # elements beside them
ABOVE = 1.25  # of a bound
SQUARES = 3  # that a nearer bound is taken from
LONG = 2  # times as many rows as columns: the host has less to do with R alone
WITHIN = 0.75  # of the exponents: numbers that may be squared are scaled


def fits(rows: int, columns: int, x: Node, target: Target) -> bool:
    """Tell whether a block of threads has room for columns, some elements longer each."""
    elements = (rows + BETWEEN) * columns + SPARE
    has_room = elements * x.dtype.itemsize <= target.shared_bytes
    return 0 < columns <= MOST_TURNED and has_room


def turned(x: Node, count: int, target: Target) -> tuple[Node, Node]:
    """Turn columns by what their first rows are: in one kernel, or in blocks."""
    rows, columns = x.shape[1:]
    return turn(x, count) if fits(rows, columns, x, target) else turn_in_blocks(x, count)


def spanned(x: Node, like: Node) -> Node:
    """Repeat a number for each matrix (B, 1, 1), or one for each column (B, N)."""
    stack = like.shape[0]
    ones = (1,) * (like.rank - 2)
    count = x.size // stack
    x = x.reshape((stack, *ones, count))
    return x.expand(like.shape)


def scaled(x: Node) -> tuple[Node, Node]:
    """Multiply matrices by a power of two so that their largest elements are near 1.

    Returned are they, and what each is to be multiplied by (B, 1, 1) to be as large as before.
    """
    limit = WITHIN * np.finfo(x.dtype.numpy).maxexp
    largest = x.unary("abs").reduce("max", (DOWN, ACROSS), True)
    power = largest.unary("log2").unary("floor")
    power = power.binary("maximum", -limit)
    power = power.binary("minimum", limit)
    down = -power
    factor = down.unary("exp2")
    x = x * spanned(factor, x)
    return x, power.unary("exp2")


# symmetric matrices


def eigen(node: Node, target: Target) -> tuple[Node, Node] | None:
    """Find eigenvalues (B, N), ascending, and eigenvectors of symmetric matrices."""
    if not is_real(node):
        return None
    (x,) = node.inputs
    size = x.shape[-1]
    x = stacked(x)
    is_small = fits(size, size, x, target)
    if not is_small:
        if node.dtype is not float32:  # values of 1 to 1e-8 take too many sweeps
            return None
        x = exact(x, target)
    row, column = x.iota(DOWN), x.iota(ACROSS)
    is_lower = column.binary("less_equal", row)
    mirrored = x.permute((0, 2, 1))
    x = is_lower.where(x, mirrored)
    x, scale = scaled(x.stored())
    bound = bound_of(x) if is_small else near_bound_of(x)
    moved = identity(x) * spanned(bound, x) - x
    if is_small:
        lower = eliminate(moved, "cholesky", size).reshape(x.shape)
    else:
        lower = factored(moved.stored())
    squares, columns = turned(lower, size, target)
    length = squares.unary("sqrt")
    vectors = columns / spanned(length, columns)
    vectors = vectors.stored()
    digits = exact(vectors, target)
    along = exact(x, target).contract(digits, PRODUCT)
    along = along * digits
    values = along.reduce("sum", (DOWN,)).cast(x.dtype)
    values = scan(values, "max", DOWN)  # equal ones may be out of order
    values = values * spanned(scale, values)
    return values, vectors


def bound_of(x: Node) -> Node:
    """Find a number above all eigenvalues of symmetric matrices, by a quarter of what bounds them:
    the smaller one of two norms (B, 1, 1); 1 for a matrix of zeros.
    """
    sums = x.unary("abs").reduce("sum", (DOWN,), True)
    most = sums.reduce("max", (ACROSS,), True)
    squares = (x * x).reduce("sum", (DOWN, ACROSS), True)
    least = most.binary("minimum", squares.unary("sqrt"))
    is_nothing = least.binary("equal", 0.0)
    return is_nothing.where(1.0, least * ABOVE)


def near_bound_of(x: Node) -> Node:
    """Find a number above all eigenvalues, nearer to them by three products: the norm of x^8 is at
    most the root of the rows times theirs.
    """
    norm = bound_of(x)
    power = x / spanned(norm, x)
    for _ in range(SQUARES):
        power = power.stored().contract(power, PRODUCT)
    root = bound_of(power)
    for _ in range(SQUARES):
        root = root.unary("sqrt")
    return norm * root * ABOVE


def in_lines(parts: Nodes) -> Node:
    """Put results of each matrix one behind the other."""
    lines = [each.reshape((each.shape[0], product(each.shape[1:]))) for each in parts]
    return join(lines, DOWN)


def eigh_kernels(node: Node, target: Target) -> Node | None:
    """Find eigenvalues and eigenvectors."""
    found = eigen(node, target)
    return None if found is None else in_lines([*found]).reshape(node.shape)


def eigenvalue_kernels(node: Node, target: Target) -> Node | None:
    """Find eigenvalues."""
    found = eigen(node, target)
    return None if found is None else found[0].reshape(node.shape)


# singular values


def tall(node: Node, target: Target) -> Node:
    """Give matrices, or their transposes, with as many rows as columns at least."""
    (x,) = node.inputs
    x = stacked(exact(x, target))
    rows, columns = x.shape[1:]
    if rows < columns:
        return x.permute((0, 2, 1))
    return x


def turnable(node: Node, times: int, target: Target) -> Node | None:
    """Give tall matrices whose columns, so many times as long, are turned here.

    Those of float32 that no block of threads has room for are float64 meanwhile: what turns them
    is found of products, which lose half of the digits.
    """
    x = tall(node, target)
    count = x.shape[2]
    if fits(times * count, count, x, target):
        return x
    return x.cast(float64) if node.dtype is float32 else None


def is_long(node: Node) -> bool:
    """Tell whether the host has less to do with R of matrices, or of their transposes."""
    (x,) = node.inputs
    shape = x.shape[-2:]
    return max(shape) >= LONG * min(shape)


def is_real(node: Node) -> bool:
    """Tell whether a call is of real matrices that have elements."""
    (x,) = node.inputs
    return not is_complex(node) and x.size > 0


def parts_of(x: Node, target: Target) -> tuple[Node, Node, Node]:
    """Write matrices (B, M, N), M >= N, as U W^T: U, and W with columns at right angles.

    Returned are the squares of their lengths (B, N) before both, longest first.
    """
    count = x.shape[2]
    q, upper = decomposed(x, count)
    lower = upper.permute((0, 2, 1))
    both = join([lower, identity(lower)], DOWN).stored()
    squares, columns = turned(both, count, target)
    u = q.contract(tail(columns, count), PRODUCT)
    return squares, u, head(columns, count)


def svd_kernels(node: Node, target: Target) -> Node | None:
    """Write small matrices as U diag(S) Vh."""
    if not is_real(node):
        return None
    rows, columns = node.inputs[0].shape[-2:]
    x = turnable(node, 2, target)
    if x is None:
        return None
    x, scale = scaled(x)
    squares, u, others = parts_of(x.stored(), target)
    values = lengths(squares, scale)
    v = directions(others)
    u, v = (v, u) if rows < columns else (u, v)
    found = in_lines([u, values, v.permute((0, 2, 1))])
    return found.reshape(node.shape)


def lengths(squares: Node, scale: Node) -> Node:
    """Find singular values of matrices that were scaled."""
    values = squares.unary("sqrt")
    return values * spanned(scale, values)


def directions(x: Node) -> Node:
    """Find the directions of columns at right angles, sorted by their lengths: any for zeros."""
    q, upper = decomposed(x.stored(), x.shape[2])
    diagonal = diagonal_of(upper)
    is_turned = diagonal.binary("less", 0.0)
    is_turned = is_turned.cast(x.dtype)
    sign = 1.0 - is_turned * 2.0
    return q * spanned(sign, q)


def value_kernels(node: Node, target: Target) -> Node | None:
    """Find singular values: those of R."""
    if not is_real(node):
        return None
    x = turnable(node, 1, target)
    if x is not None:
        x, scale = scaled(x)
        upper, _ = reduced(x.stored(), left(x, 0))
        lower = upper.permute((0, 2, 1))
        squares, _ = turned(lower.stored(), x.shape[2], target)
        return lengths(squares, scale).reshape(node.shape)
    if not is_long(node):
        return None
    x = tall(node, target)
    square, _ = reduced(x, left(x, 0))
    square = spread(square, node.shape[:-1], node)
    return asked(node, square, node.shape[-1:])


def pseudo_inverse_kernels(node: Node, target: Target) -> Node | None:
    """Invert: A^+ = W diag(1 / |w|^2) U^T, or R^+ Q^T."""
    if not is_real(node):
        return None
    rows, columns = node.shape[-2:]
    x = turnable(node, 2, target)
    if x is not None:
        x, scale = scaled(x)
        squares, u, others = parts_of(x.stored(), target)
        factors = inverted(squares, scale, *node.arg.options)
        inverse = others * spanned(factors, others)
        found = inverse.contract(u, SQUARE)
        found = found / spanned(scale, found)
    elif is_long(node):
        x = tall(node, target)
        count = x.shape[2]
        q, upper = decomposed(x, count)
        square = spread(upper, node.shape[:-2], node)
        shape = count, count
        inverse = asked(node, square, shape)
        inverse = stacked(inverse).cast(q.dtype)
        found = inverse.contract(q, SQUARE)
    else:
        return None
    if columns < rows:
        found = found.permute((0, 2, 1))
    return found.reshape(node.shape)


def inverted(squares: Node, scale: Node, rtol: float, atol: float) -> Node:
    """Invert squares of singular values (B, N), longest first; of short ones it is 0."""
    values = squares.unary("sqrt")
    largest = values.reduce("max", (DOWN,), True)
    limit = largest * rtol
    absolute = scale.unary("reciprocal") * atol
    absolute = spanned(absolute, limit)
    limit = limit.binary("maximum", absolute)
    is_short = values.binary("less_equal", limit.expand(values.shape))
    inverse = is_short.where(1.0, squares)
    inverse = inverse.unary("reciprocal")
    return is_short.where(0.0, inverse)

"""Elimination of small matrices by a GPU: one kernel for a stack, a block of threads for a matrix.

    eliminate(x)    arg = (kind, n): of each (M, W) of a stack (B, M, W) the first n columns are
                    eliminated; the result lies in one row of (B, ...)

    "lu"        P L U of the matrix: both triangles (M, W), and the rows swapped, counted from 1
    "solve"     x = [A, B]: A^-1 B, and 0 or the first pivot that is 0, counted from 1
    "cholesky"  L with L L^T = x, NaN from the first minor on that is not positive
    "lower", "upper", "unit_lower", "unit_upper"    x = [T, B]: T^-1 B for a triangle T
    "eigh"      the eigenvalues of a symmetric matrix, ascending, and its eigenvectors (M, M), of
                which the lower triangle is read

A row of a host call names what computes it here (`kernels`): nothing where a matrix is complex, or
too large for a block. Triangles and positive definite matrices may be larger: they fall into blocks
of `SIDE` rows, what is left of one is taken out of others by products, and many blocks into halves.
"""

from typing import Any

import numpy as np

from picograd.dtype import float64, int32
from picograd.graph.batch_rules import refused
from picograd.graph.composites import join
from picograd.graph.node import Node
from picograd.graph.row import FLOAT, Op, Role, table
from picograd.graph.shape import Shape
from picograd.helpers import ceil_div, product
from picograd.target import Target

Array = Any
Arg = tuple[str, int]
BLOCK_BYTES = 128 << 10  # of a matrix: half the registers of a multiprocessor
MOST_ROWS = 512  # of which each warp sees all
SPARE = 512  # elements beside rows and columns
SIDE = 64  # rows of a block of a large matrix
MOST_TURNED = 32  # rows of a matrix that is turned: each turn costs digits
ROWS = 512  # of what falls into blocks, one after the other
SUBSTITUTIONS = {  # reads the upper triangle, has ones on the diagonal
    "lower": (False, False),
    "upper": (True, False),
    "unit_lower": (False, True),
    "unit_upper": (True, True),
}


def shape_of(arg: Arg, x: Shape) -> Shape:
    """Give the shape of what is left of a stack of matrices."""
    kind, size = arg
    stack, rows, columns = x
    if kind in ("lu", "eigh"):
        return stack, rows * columns + size
    if kind == "cholesky":
        return stack, rows * columns
    return stack, rows * (columns - size) + (kind == "solve")


# what it means


@np.errstate(all="ignore")
def eliminated(arg: Arg, x: Array) -> Array:
    """Eliminate columns of matrices, all of them at once."""
    kind, size = arg
    stack = len(x)
    if kind == "cholesky":
        return cholesky(x).reshape(stack, -1)
    if kind == "eigh":
        values, vectors = np.linalg.eigh(x)
        vectors = vectors.reshape(stack, -1)
        return np.concatenate([values, vectors], 1)
    if kind in SUBSTITUTIONS:
        found = substituted(x, size, *SUBSTITUTIONS[kind])
        return found.reshape(stack, -1)
    both, behind = in_triangles(x, size)
    if kind == "solve":
        steps = np.arange(size)
        is_zero = both[:, steps, steps] == 0
        first = is_zero.argmax(1) + 1
        failure = np.where(is_zero.any(1), first, 0)
        behind = failure[:, None]
        both = substituted(both, size, True, False)
    both = both.reshape(stack, -1)
    return np.concatenate([both, behind], 1)


def in_triangles(x: Array, size: int) -> tuple[Array, Array]:
    """Eliminate by Gauss, with partial pivoting: both triangles, and the rows swapped, from 1."""
    both = x.copy()
    every = np.arange(len(x))
    swaps = np.zeros((len(x), size), x.dtype)
    for step in range(size):
        column = np.abs(both[:, step:, step])
        best = step + np.argmax(column, 1)
        swaps[:, step] = best + 1
        chosen = both[every, best]
        both[every, best] = both[:, step]
        both[:, step] = chosen
        pivot = chosen[:, step, None]
        rest = slice(step + 1, None)
        below = both[:, rest, step]
        below /= np.where(pivot == 0, 1, pivot)
        row = chosen[:, None, rest]
        both[:, rest, rest] -= below[:, :, None] * row
    return both, swaps


def substituted(x: Array, size: int, is_upper: bool, is_unit: bool) -> Array:
    """Solve a triangle, column by column: each is taken out of the rows that are left."""
    triangle = x[..., :size]
    found = x[..., size:].copy()
    for step in reversed(range(size)) if is_upper else range(size):
        if not is_unit:
            found[:, step] /= triangle[:, step, step, None]
        rest = slice(step) if is_upper else slice(step + 1, size)
        column = triangle[:, rest, step, None]
        row = found[:, None, step]
        found[:, rest] -= column * row
    return found


def cholesky(x: Array) -> Array:
    """Factor column by column."""
    both = x.copy()
    for step in range(x.shape[-1]):
        pivot = both[:, step, step, None]
        pivot = np.where(pivot > 0, pivot, np.nan)
        left = slice(step, None)
        column = both[:, left, step]
        column /= np.sqrt(pivot)
        below = column[:, 1:]
        rest = slice(step + 1, None)
        row = below[:, None, :]
        both[:, rest, rest] -= below[:, :, None] * row
    return np.tril(both)


def elimination_row(name: str) -> Op:
    """Make the row of an op on a stack of small matrices."""
    return Op(
        name,
        Role.ELIMINATION,
        1,
        FLOAT,
        lambda node, x: eliminated(node.arg, x),
        hero=name,
        shape=shape_of,
        batch=refused("it is what a host call becomes on CUDA"),
    )


ELIMINATION_ROWS = table(elimination_row("eliminate"), elimination_row("rotate"))


# host calls by kernels


def eliminate(x: Node, kind: str, size: int, op: str = "eliminate") -> Node:
    """Eliminate columns of a stack of matrices that has one leading axis, or turn them."""
    arg = kind, size
    shape = shape_of(arg, x.shape)
    return Node(op, (x,), arg, shape, x.dtype, x.device)


def stacked(x: Node) -> Node:
    """Give matrices one leading axis."""
    return x.reshape((product(x.shape[:-2]), *x.shape[-2:]))


def is_complex(node: Node) -> bool:
    """Tell whether a host call is of complex matrices, which are pairs of numbers later on."""
    return node.dtype.is_complex or node.arg.in_pairs


def fits(node: Node, rows: int, columns: int, target: Target) -> bool:
    """Tell whether a block of threads has room for real matrices of so many rows and columns.

    In registers, and in shared memory beside rows and columns of it.
    """
    size = rows * columns
    beside = size + 5 * rows + 2 * columns
    is_small = 0 < size * node.dtype.itemsize <= BLOCK_BYTES
    has_room = (beside + SPARE) * node.dtype.itemsize <= target.shared_bytes
    is_short = rows <= MOST_ROWS
    return is_small and has_room and is_short and not is_complex(node)


def matrix_fits(node: Node, x: Node, target: Target) -> bool:
    """Tell whether a block of threads has room for matrices."""
    rows, columns = x.shape[-2:]
    return fits(node, rows, columns, target)


def beside(a: Node, b: Node) -> Node:
    """Put matrices beside one another, with one leading axis."""
    return join([stacked(a), stacked(b)], 2)


def solved(node: Node, a: Node, b: Node, target: Target) -> Node | None:
    """Solve systems: the solutions, one a row, with what went wrong behind each."""
    size, columns = b.shape[-2:]
    if not fits(node, size, size + columns, target):
        return None
    both = beside(a, b)
    return eliminate(both, "solve", size)


def without_failure(found: Node, shape: Shape) -> Node:
    """Leave out what went wrong."""
    count, size = found.shape
    rows = 0, count, 1
    cells = 0, size - 1, 1
    return found.slice((rows, cells)).reshape(shape)


def solve_kernels(node: Node, target: Target) -> Node | None:
    """Solve systems, whether or not they can be."""
    a, b = node.inputs
    found = solved(node, a, b, target)
    return None if found is None else without_failure(found, node.shape)


def told_solve_kernels(node: Node, target: Target) -> Node | None:
    """Solve systems, and tell which could not be."""
    a, b = node.inputs
    found = solved(node, a, b, target)
    return None if found is None else found.reshape(node.shape)


def identity_like(x: Node) -> Node:
    """Make identity matrices."""
    rows = x.iota(x.rank - 2)
    columns = x.iota(x.rank - 1)
    is_same = rows.binary("equal", columns)
    return is_same.cast(x.dtype)


def inverse_kernels(node: Node, target: Target) -> Node | None:
    """Invert matrices, whether or not they can be."""
    (x,) = node.inputs
    identity = identity_like(x)
    found = solved(node, x, identity, target)
    return None if found is None else without_failure(found, node.shape)


def told_inverse_kernels(node: Node, target: Target) -> Node | None:
    """Invert matrices, and tell which could not be."""
    (x,) = node.inputs
    found = solved(node, x, identity_like(x), target)
    return None if found is None else found.reshape(node.shape)


def triangle_kernels(node: Node, target: Target) -> Node | None:
    """Solve triangles."""
    a, b = node.inputs
    options = node.arg.options
    size, columns = b.shape[-2:]
    if is_complex(node) or not a.size:
        return None
    kind = next(kind for kind, each in SUBSTITUTIONS.items() if each == options)
    if fits(node, size, size + columns, target):
        found = eliminate(beside(a, b), kind, size)
    else:
        triangle = stacked(exact(a, target))
        right = stacked(exact(b, target))
        found = solved_in_blocks(triangle, right, kind)
    return found.reshape(node.shape)


def cholesky_kernels(node: Node, target: Target) -> Node | None:
    """Factor positive definite matrices."""
    (x,) = node.inputs
    if is_complex(node):
        return None
    if matrix_fits(node, x, target):
        found = eliminate(stacked(x), "cholesky", x.shape[-1])
    else:
        found = factored_in_blocks(stacked(exact(x, target)))
    return found.reshape(node.shape)


def eigen(node: Node) -> Node | None:
    """Find eigenvalues and eigenvectors of small symmetric matrices."""
    (x,) = node.inputs
    size = x.shape[-1]
    if is_complex(node) or size > MOST_TURNED:
        return None
    return eliminate(stacked(x), "eigh", size, "rotate")


def eigh_kernels(node: Node, target: Target) -> Node | None:
    """Find eigenvalues and eigenvectors."""
    found = eigen(node)
    return None if found is None else found.reshape(node.shape)


def eigenvalue_kernels(node: Node, target: Target) -> Node | None:
    """Find eigenvalues."""
    (x,) = node.inputs
    found = eigen(node)
    if found is None:
        return None
    rows = 0, found.shape[0], 1
    cells = 0, x.shape[-1], 1
    return found.slice((rows, cells)).reshape(node.shape)


# large matrices


def exact(x: Node, target: Target) -> Node:
    """Compute in float64 where products of float32 have fewer digits."""
    return x.cast(float64) if target.tf32 else x


def part(x: Node, rows: tuple[int, int], columns: tuple[int, int]) -> Node:
    """Take rows and columns of matrices, from the first to before the last."""
    every = 0, x.shape[0], 1
    return x.slice((every, (*rows, 1), (*columns, 1)))


def without(x: Node, a: Node, b: Node, is_turned: bool = False) -> Node:
    """Subtract a b from matrices, or a b^T."""
    left = 0, 1, 2
    right = (0, 3, 2) if is_turned else (0, 2, 3)
    taken = a.contract(b, (left, right, (0, 1, 3)))
    return x - taken


def solved_in_blocks(triangle: Node, right: Node, kind: str) -> Node:
    """Solve triangles: each block, or half, of unknowns is taken out of the equations of others."""
    size, columns = right.shape[1:]
    if size <= SIDE:
        return solved_in_columns(triangle, right, kind)
    step = SIDE if size <= ROWS else ceil_div(size, 2 * SIDE) * SIDE
    is_upper, _ = SUBSTITUTIONS[kind]
    starts = list(range(0, size, step))
    found: dict[int, Node] = {}
    first, rest = 0, right  # the equations that are left, and where the first of them is
    for start in reversed(starts) if is_upper else starts:
        stop = min(start + step, size)
        here = start, stop
        place = start - first, stop - first
        own = part(rest, place, (0, columns))
        corner = part(triangle, here, here)
        solved = solved_in_blocks(corner, own, kind)
        found[start] = lying(solved)
        first, last = (0, start) if is_upper else (stop, size)
        if first < last:
            place = (0, start) if is_upper else (stop - start, rest.shape[1])
            rest = part(rest, place, (0, columns))
            others = part(triangle, (first, last), here)
            rest = without(rest, others, found[start])
    parts = [found[start] for start in starts]
    return join(parts, 1).stored()


def lying(x: Node) -> Node:
    """Let columns that several blocks of threads solved lie beside one another."""
    return x.stored() if x.shape[1] <= SIDE < x.shape[2] else x


def solved_in_columns(triangle: Node, right: Node, kind: str) -> Node:
    """Solve small triangles for many columns: some of them in a block of threads."""
    stack, size, columns = right.shape
    count = ceil_div(columns, SIDE)
    missing = count * SIDE - columns
    right = right.pad(((0, 0), (0, 0), (0, missing)))
    right = right.reshape((stack, size, count, SIDE))
    right = right.permute((0, 2, 1, 3))
    triangle = triangle.reshape((stack, 1, size, size))
    triangle = triangle.expand((stack, count, size, size))
    both = beside(triangle, right)
    found = eliminate(both, kind, size)
    found = found.reshape((stack, count, size, SIDE))
    found = found.permute((0, 2, 1, 3))
    found = found.reshape((stack, size, count * SIDE))
    return part(found, (0, size), (0, columns))


def factored_in_blocks(x: Node) -> Node:
    """Factor L L^T: a block on the diagonal, the rows below it, and what is left; or in halves."""
    size = x.shape[-1]
    if size <= SIDE:
        return eliminate(x, "cholesky", size).reshape(x.shape)
    step = SIDE if size <= ROWS else ceil_div(size, 2 * SIDE) * SIDE
    columns = []
    for start in range(0, size, step):
        left = size - start
        end = min(step, left)
        head = 0, end
        tail = end, left
        corner = factored_in_blocks(part(x, head, head))
        column = corner
        if end < left:
            right = part(x, tail, head).permute((0, 2, 1))
            turned = solved_in_blocks(corner, right, "lower")
            below = turned.permute((0, 2, 1))
            if end <= SIDE < left - end:
                below = below.stored()
            column = join([corner, below], 1)
            rest = part(x, tail, tail)
            x = without(rest, below, below, True)
        above = start, 0
        columns.append(column.pad(((0, 0), above, (0, 0))))
    return join(columns, 2).stored()


def lu_kernels(node: Node, target: Target) -> Node | None:
    """Write matrices as P L U."""
    (x,) = node.inputs
    if not matrix_fits(node, x, target):
        return None
    return eliminate(stacked(x), "lu", min(x.shape[-2:])).reshape(node.shape)


def pivots(x: Node) -> tuple[Node, Node]:
    """Find the pivots of square matrices (B, N), and whether rows were swapped at each step."""
    size = x.shape[-1]
    found = eliminate(stacked(x), "lu", size)
    count, width = found.shape
    rows = 0, count, 1
    diagonal = 0, size * size, size + 1
    behind = size * size, width, 1
    swaps = found.slice((rows, behind))
    own = swaps.iota(1).binary("add", 1)
    is_swapped = swaps.binary("not_equal", own.cast(x.dtype))
    return found.slice((rows, diagonal)), is_swapped


def sign_of(is_swapped: Node, like: Node) -> Node:
    """Give 1 for an even number of swaps, -1 for an odd one."""
    count = is_swapped.cast(int32).reduce("sum", (1,))
    odd = count.binary("mod", 2).cast(like.dtype)
    return 1.0 - odd * 2.0


def determinant_kernels(node: Node, target: Target) -> Node | None:
    """Multiply pivots."""
    (x,) = node.inputs
    if not matrix_fits(node, x, target):
        return None
    diagonal, is_swapped = pivots(x)
    found = diagonal.reduce("prod", (1,))
    return (found * sign_of(is_swapped, found)).reshape(node.shape)


def log_determinant_kernels(node: Node, target: Target) -> Node | None:
    """Multiply the signs of pivots, and add the logarithms of their sizes."""
    (x,) = node.inputs
    if not matrix_fits(node, x, target):
        return None
    diagonal, is_swapped = pivots(x)
    signs = diagonal.unary("sign").reduce("prod", (1,))
    signs = signs * sign_of(is_swapped, signs)
    sizes = diagonal.unary("abs").unary("log")
    sizes = sizes.reduce("sum", (1,))
    column = (*signs.shape, 1)
    parts = [each.reshape(column) for each in (signs, sizes)]
    both = join(parts, 1)
    return both.reshape(node.shape)

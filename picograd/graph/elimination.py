"""Elimination of small matrices by a GPU: one kernel for a stack, a block of threads for a matrix.

    eliminate(x)    arg = (kind, n): of each (M, W) of a stack (B, M, W) the first n columns are
                    eliminated; the result lies in one row of (B, ...)

    "lu"        P L U of the matrix: both triangles (M, W), and the rows swapped, counted from 1
    "solve"     x = [A, B]: A^-1 B, and 0 or the first pivot that is 0, counted from 1
    "panel"     as "lu", and the row that stands at each place then
    "cholesky"  L with L L^T = x, NaN from the first minor on that is not positive
    "below"     x = [A; B], A = L L^T: B L^-T, the rows of L that are below if A were so large
    "lower", "upper", "unit_lower", "unit_upper"    x = [T, B]: T^-1 B for a triangle T
    "reflect"   R and Householder's vectors of the matrix: (M, N), vectors on the diagonal and below
                it, of length sqrt(2) or 0; then the diagonal of R. Q is the product of 1 - v v^T
    "turn"      columns turned until the first n of their rows are at right angles, the longest
                first: the squares of their lengths, and then all rows (M, W). An identity matrix
                behind the n rows becomes what they are multiplied by
    "sweep"     as "turn", but one sweep over all pairs of columns is enough

What host calls of matrices become of it is in graph/matrix_kernels.py.
"""

from typing import Any

import numpy as np

from picograd.dtype import int32
from picograd.graph.batch_rules import refused
from picograd.graph.composites import join
from picograd.graph.node import Node
from picograd.graph.row import FLOAT, Op, Role, table
from picograd.graph.shape import Shape
from picograd.helpers import product

Array = Any
Arg = tuple[str, int]
SUBSTITUTIONS = {  # reads the upper triangle, has ones on the diagonal
    "lower": (False, False),
    "upper": (True, False),
    "unit_lower": (False, True),
    "unit_upper": (True, True),
}
TURNS = "turn", "sweep"


def shape_of(arg: Arg, x: Shape) -> Shape:
    """Give the shape of what is left of a stack of matrices."""
    kind, size = arg
    stack, rows, columns = x
    if kind in TURNS:
        return stack, rows * columns + columns
    if kind in ("lu", "reflect"):
        return stack, rows * columns + size
    if kind == "cholesky":
        return stack, rows * columns
    if kind == "below":
        return stack, (rows - size) * columns
    if kind == "panel":
        return stack, rows * columns + size + rows
    return stack, rows * (columns - size) + (kind == "solve")


# what it means


@np.errstate(all="ignore")
def eliminated(arg: Arg, x: Array) -> Array:
    """Eliminate columns of matrices, all of them at once."""
    kind, size = arg
    stack = len(x)
    if kind == "cholesky":
        return cholesky(x).reshape(stack, -1)
    if kind == "below":
        return cholesky(x)[:, size:].reshape(stack, -1)
    if kind == "reflect":
        return reflected(x, size)
    if kind in TURNS:
        top = x[:, :size]
        lengths, turn = decomposed(top)
        squares = lengths * lengths
        turned = x @ turn.swapaxes(1, 2)
        turned = turned.reshape(stack, -1)
        return np.concatenate([squares, turned], 1)
    if kind in SUBSTITUTIONS:
        found = substituted(x, size, *SUBSTITUTIONS[kind])
        return found.reshape(stack, -1)
    both, behind, order = in_triangles(x, size)
    if kind == "panel":
        behind = np.concatenate([behind, order], 1)
    if kind == "solve":
        steps = np.arange(size)
        is_zero = both[:, steps, steps] == 0
        first = is_zero.argmax(1) + 1
        failure = np.where(is_zero.any(1), first, 0)
        behind = failure[:, None]
        both = substituted(both, size, True, False)
    both = both.reshape(stack, -1)
    return np.concatenate([both, behind], 1)


def decomposed(x: Array) -> tuple[Array, Array]:
    """Find singular values and right vectors; LAPACK gives up on some that are nearly diagonal."""
    try:
        _, values, vectors = np.linalg.svd(x)
    except np.linalg.LinAlgError:
        squares, turn = np.linalg.eigh(x.swapaxes(1, 2) @ x)
        values = np.sqrt(np.maximum(squares[:, ::-1], 0))
        vectors = turn[..., ::-1].swapaxes(1, 2)
    return values, vectors


def in_triangles(x: Array, size: int) -> tuple[Array, Array, Array]:
    """Eliminate by Gauss, with partial pivoting.

    Returned are both triangles, the rows swapped, from 1, and which row is at each place then.
    """
    both = x.copy()
    every = np.arange(len(x))
    swaps = np.zeros((len(x), size), x.dtype)
    order = np.tile(np.arange(x.shape[1]).astype(x.dtype), (len(x), 1))
    for step in range(size):
        column = np.abs(both[:, step:, step])
        best = step + np.argmax(column, 1)
        swaps[:, step] = best + 1
        places = order[every, best]
        order[every, best] = order[:, step]
        order[:, step] = places
        chosen = both[every, best]
        both[every, best] = both[:, step]
        both[:, step] = chosen
        pivot = chosen[:, step, None]
        rest = slice(step + 1, None)
        below = both[:, rest, step]
        below /= np.where(pivot == 0, 1, pivot)
        row = chosen[:, None, rest]
        both[:, rest, rest] -= below[:, :, None] * row
    return both, swaps, order


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


def reflected(x: Array, size: int) -> Array:
    """Turn each column onto its first element: what is left has the other sign of that."""
    both = x.copy()
    diagonal = np.zeros((len(x), size), x.dtype)
    for step in range(size):
        left = slice(step, None)
        rest = slice(step + 1, None)
        vector = both[:, left, step]
        largest = np.abs(vector).max(1)
        unit = np.where(largest == 0, 1, largest)  # so that no square is lost
        vector /= unit[:, None]
        head = vector[:, 0].copy()
        length = np.linalg.norm(vector, axis=1)
        is_turned = vector[:, 1:].any(1)
        turned = np.where(head < 0, length, -length)
        vector[:, 0] -= turned
        scale = np.sqrt(length * (length + np.abs(head)))
        scale = np.where(is_turned, 1 / scale, 0)
        vector *= scale[:, None]
        others = both[:, left, rest]
        others -= vector[:, :, None] * (vector[:, None] @ others)
        diagonal[:, step] = np.where(is_turned, turned, head) * unit
    both = both.reshape(len(x), -1)
    return np.concatenate([both, diagonal], 1)


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
        row = below[:, None, : x.shape[-1] - step - 1]
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


# nodes


def eliminate(x: Node, kind: str, size: int, op: str = "eliminate") -> Node:
    """Eliminate columns of a stack of matrices that has one leading axis, or turn them."""
    arg = kind, size
    shape = shape_of(arg, x.shape)
    return Node(op, (x,), arg, shape, x.dtype, x.device)


def identity(x: Node, shape: Shape | None = None) -> Node:
    """Make identity matrices of the shape and dtype of others, or of another shape."""
    if shape is None:
        shape = x.shape
    count = len(shape)
    row = Node("iota", (), count - 2, shape, int32, x.device)
    column = Node("iota", (), count - 1, shape, int32, x.device)
    is_same = row.binary("equal", column)
    return is_same.cast(x.dtype)


def stacked(x: Node) -> Node:
    """Give matrices one leading axis."""
    return x.reshape((product(x.shape[:-2]), *x.shape[-2:]))


def beside(a: Node, b: Node) -> Node:
    """Put matrices beside one another, with one leading axis."""
    return join([stacked(a), stacked(b)], 2)


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

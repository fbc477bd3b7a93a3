"""Host calls of symmetric elimination: L D L^T of matrices that need not be definite.

Pivots are those of Bunch and Kaufman (1977), written as LAPACK's sytrf writes lower triangles:
one of k + 1 > 0 swaps rows there and at its step, and two equal ones below 0 share a 2 x 2 block.
"""

import math
from itertools import pairwise

import numpy as np

from picograd.graph.host_call import functions, host_call
from picograd.graph.host_lu import size_of
from picograd.graph.host_matrices import Array, Gradients, conjugated, row, total
from picograd.graph.node import Node
from picograd.graph.shape import Shape
from picograd.helpers import product as count

ALPHA = (1 + math.sqrt(17)) / 8  # bounds how much elements grow in two steps


def ldl(x: Array, is_hermitian: bool) -> tuple[Array, Array]:
    """Factor matrices, of which the lower triangle is read: L and D in one, and the pivots."""
    flat = np.tril(x).reshape(count(x.shape[:-2]), *x.shape[-2:])
    above = np.tril(flat, -1).swapaxes(-2, -1)
    flat = flat + (above.conj() if is_hermitian else above)
    pivots = np.empty(flat.shape[:2], x.dtype)
    for matrix, own in zip(flat, pivots):
        step = 0
        while step < len(matrix):
            step += eliminated(matrix[step:, step:], own[step:], step)
    return np.tril(flat).reshape(x.shape), pivots.reshape(x.shape[:-1])


def eliminated(rest: Array, pivots: Array, step: int) -> int:
    """Take one step of a whole symmetric matrix, in place; gives the size of its block."""
    size, other = chosen(size_of(rest))
    at = size - 1
    pivots[:size] = (step + other + 1) * (1 if size == 1 else -1)
    for axes in (rest, rest.T):
        axes[[at, other]] = axes[[other, at]]
    block, below = rest[:size, :size].copy(), rest[size:, :size]
    if not block.any():  # nothing to eliminate: D has a zero
        return size
    scaled = np.linalg.solve(block.T, below.T).T
    rest[size:, size:] -= scaled @ rest[:size, size:]
    rest[size:, :size] = scaled
    return size


def chosen(sizes: Array) -> tuple[int, int]:
    """Choose a pivot of 1 or 2 rows, and the row that the last of them is swapped with."""
    own, column = sizes[0, 0], sizes[1:, 0]
    if not column.size or own >= ALPHA * column.max():
        return 1, 0
    largest = 1 + int(column.argmax())
    across = np.delete(sizes[largest], largest).max()
    if own * across >= ALPHA * column.max() ** 2:
        return 1, 0
    return (1, largest) if sizes[largest, largest] >= ALPHA * across else (2, largest)


def ldl_solve(both: Array, pivots: Array, b: Array, is_hermitian: bool) -> Array:
    """Solve A x = b of all matrices, given what `ldl` says of A."""
    size = both.shape[-1]
    number = count(both.shape[:-2])
    flat, x = both.reshape(number, size, size), b.reshape(number, *b.shape[-2:]).copy()
    for factor, own, found in zip(flat, pivots.real.astype(int).reshape(number, size), x):
        starts = [0]
        while starts[-1] < size:
            starts.append(starts[-1] + (1 if own[starts[-1]] > 0 else 2))
        steps = list(pairwise(starts))
        for start, end in steps:
            other = abs(own[start]) - 1
            found[[end - 1, other]] = found[[other, end - 1]]
            found[end:] -= factor[end:, start:end] @ found[start:end]
            block = np.tril(factor[start:end, start:end])
            mirror = np.tril(block, -1).T
            block = block + (mirror.conj() if is_hermitian else mirror)
            found[start:end] = np.linalg.solve(block, found[start:end])
        for start, end in reversed(steps):
            back = factor[end:, start:end].T
            found[start:end] -= (back.conj() if is_hermitian else back) @ found[end:]
            other = abs(own[start]) - 1
            found[[end - 1, other]] = found[[other, end - 1]]
    return x.reshape(b.shape)


def ldl_solve_vjp(g: Node, y: Node, both: Node, pivots: Node, b: Node) -> Gradients:
    """Solve again: A is its own transpose, or conjugate transpose. The factors have no gradient."""
    (is_hermitian,) = y.arg.options
    turn = (lambda node: node) if is_hermitian else conjugated
    found = host_call("ldl_solve", both, pivots, turn(g), options=(is_hermitian,))
    return [None, None, turn(found)]


def ldl_shapes(x: Shape) -> tuple[Shape, Shape]:
    """Shapes of L and D in one, and of the pivots, of one matrix."""
    return x[-2:], x[-1:]


SYMMETRIC = functions(
    row("ldl", ldl, lambda x, *_: total(ldl_shapes(x), x), None, True),
    row("ldl_solve", ldl_solve, lambda both, pivots, b, *_: b, ldl_solve_vjp, True),
)

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


def mirrored(below: Array, is_hermitian: bool) -> Array:
    """Make matrices of their lower triangles."""
    above = np.tril(below, -1).swapaxes(-2, -1)
    if is_hermitian:
        above = above.conj()
    return below + above


def ldl(x: Array, is_hermitian: bool) -> tuple[Array, Array]:
    """Factor matrices, of which the lower triangle is read: L and D in one, and the pivots."""
    number = count(x.shape[:-2])
    size = x.shape[-1]
    below = np.tril(x).reshape(number, size, size)
    every = mirrored(below, is_hermitian)
    pivots = np.empty((number, size), x.dtype)
    for matrix, own in zip(every, pivots):
        step = 0
        while step < size:
            rest = matrix[step:, step:]
            step += eliminated(rest, own[step:], step)
    both = np.tril(every)
    return both.reshape(x.shape), pivots.reshape(x.shape[:-1])


def eliminated(rest: Array, pivots: Array, step: int) -> int:
    """Take one step of a whole symmetric matrix, in place; gives the size of its block."""
    size, other = chosen(size_of(rest))
    place = step + other + 1
    pivots[:size] = place if size == 1 else -place
    swap(rest, size - 1, other)
    swap(rest.T, size - 1, other)
    block = rest[:size, :size].copy()
    if not block.any():  # nothing to eliminate: D has a zero
        return size
    below = rest[size:, :size]
    above = rest[:size, size:]
    scaled = np.linalg.solve(block.T, below.T).T
    rest[size:, size:] -= scaled @ above
    rest[size:, :size] = scaled
    return size


def swap(x: Array, one: int, other: int) -> None:
    """Swap two rows in place."""
    x[[one, other]] = x[[other, one]]


def chosen(sizes: Array) -> tuple[int, int]:
    """Choose a pivot of 1 or 2 rows, and the row that the last of them is swapped with."""
    own = sizes[0, 0]
    column = sizes[1:, 0]
    if not column.size:
        return 1, 0
    most = column.max()
    if own >= ALPHA * most:
        return 1, 0
    largest = 1 + int(column.argmax())
    line = sizes[largest]
    across = np.delete(line, largest).max()
    if own * across >= ALPHA * most**2:
        return 1, 0
    is_one = line[largest] >= ALPHA * across
    return 1 if is_one else 2, largest


def blocks(pivots: Array) -> list[tuple[int, int]]:
    """Find where the blocks of D begin and end."""
    starts = [0]
    while starts[-1] < len(pivots):
        own = pivots[starts[-1]]
        starts.append(starts[-1] + (1 if own > 0 else 2))
    return list(pairwise(starts))


def ldl_solve(both: Array, pivots: Array, b: Array, is_hermitian: bool) -> Array:
    """Solve A x = b of all matrices, given what `ldl` says of A."""
    number = count(both.shape[:-2])
    size = both.shape[-1]
    every = both.reshape(number, size, size)
    whole = pivots.real.astype(int)
    places = whole.reshape(number, size)
    x = b.reshape(number, *b.shape[-2:]).copy()
    for factor, own, found in zip(every, places, x):
        steps = blocks(own)
        for start, end in steps:
            other = abs(own[start]) - 1
            swap(found, end - 1, other)
            part = found[start:end]
            below = factor[end:, start:end]
            found[end:] -= below @ part
            corner = np.tril(factor[start:end, start:end])
            block = mirrored(corner, is_hermitian)
            part[:] = np.linalg.solve(block, part)
        for start, end in reversed(steps):
            back = factor[end:, start:end].T
            if is_hermitian:
                back = back.conj()
            found[start:end] -= back @ found[end:]
            other = abs(own[start]) - 1
            swap(found, end - 1, other)
    return x.reshape(b.shape)


def ldl_solve_vjp(g: Node, y: Node, both: Node, pivots: Node, b: Node) -> Gradients:
    """Solve again: A is its own transpose, or conjugate transpose. The factors have no gradient."""
    (is_hermitian,) = y.arg.options
    turn = (lambda node: node) if is_hermitian else conjugated
    right = turn(g)
    found = host_call("ldl_solve", both, pivots, right, options=y.arg.options)
    return [None, None, turn(found)]


def ldl_shapes(x: Shape) -> tuple[Shape, Shape]:
    """Shapes of L and D in one, and of the pivots, of one matrix."""
    return x[-2:], x[-1:]


SYMMETRIC = functions(
    row("ldl", ldl, lambda x, *_: total(ldl_shapes(x), x), None, True),
    row("ldl_solve", ldl_solve, lambda both, pivots, b, *_: b, ldl_solve_vjp, True),
)

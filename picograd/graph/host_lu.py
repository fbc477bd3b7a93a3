"""Host calls of elimination: P L U, systems of triangles, and rows swapped.

Rows are swapped one pair after the other, and which, counted from 1, as LAPACK says it. Gradients
of LU: de Hoog et al. (2011).
"""

from functools import partial
from typing import Any

import numpy as np

from picograd.errors import LinAlgError
from picograd.graph import matrix_kernels
from picograd.graph.elimination import identity
from picograd.graph.host_call import HostCall, HostFunction, functions, host_call, results, unpacked
from picograd.graph.host_matrices import (
    MATRICES,
    Array,
    Gradients,
    lower,
    mask,
    matmul,
    row,
    total,
    triangle,
    turned,
    upper,
)
from picograd.graph.lapack import factored, is_above, substituted
from picograd.graph.node import Node
from picograd.graph.shape import Shape
from picograd.helpers import product as count

MANY = 16  # matrices for each row of one: as many take longer one by one than step by step


def solve_rows(a: Array, b: Array, is_upper: bool, is_unit: bool) -> Array:
    """Solve a x = b by one triangle of a: row by row of all matrices where these are many."""
    size, number = a.shape[-1], count(a.shape[:-2])
    x = substituted(a, b, is_upper, is_unit) if number <= MANY * size else None
    if x is not None:
        return x
    x = np.array(b, a.dtype, order="C")
    for at in reversed(range(size)) if is_upper else range(size):
        done = slice(at + 1, size) if is_upper else slice(at)
        x[..., at, :] -= np.einsum("...k,...kc->...c", a[..., at, done], x[..., done, :])
        if not is_unit:
            x[..., at, :] /= a[..., at, at, None]
    return x


def solve_rows_vjp(g: Node, y: Node, a: Node, b: Node) -> Gradients:
    """The gradients of `solve`, within the triangle that is read."""
    is_upper, is_unit = y.arg.options
    back = triangle(turned(a), g, not is_upper, is_unit)
    slope = -matmul(back, turned(y))
    beyond = mask(slope, "less", -int(is_unit))
    return [beyond.where(0.0, slope) if is_upper else lower(slope, int(is_unit)), back]


def size_of(x: Array) -> Array:
    """Measure numbers as LAPACK chooses pivots: complex ones by the sum of both parts."""
    return np.abs(x.real) + np.abs(x.imag) if np.iscomplexobj(x) else np.abs(x)


def lu(x: Array) -> tuple[Array, Array]:
    """Write matrices as P L U: both triangles in one, and the rows swapped at each step, from 1."""
    is_many = count(x.shape[:-2]) > MANY * x.shape[-1]
    return (None if is_many else factored(x)) or eliminated(x)


def lu_factor(x: Array) -> tuple[Array, Array]:
    """Write regular matrices as `lu` does."""
    both, swaps = lu(x)
    if not np.diagonal(both, axis1=-2, axis2=-1).all():
        raise np.linalg.LinAlgError("Singular matrix")
    return both, swaps


def eliminated(x: Array) -> tuple[Array, Array]:
    """Do what `lu` does by Gauss with partial pivoting, a step of all matrices at once."""
    both = x.reshape(count(x.shape[:-2]), *x.shape[-2:]).copy()
    every = np.arange(len(both))
    swaps = np.zeros((len(both), min(x.shape[-2:])), x.dtype)
    for step in range(swaps.shape[1]):
        best = step + np.argmax(size_of(both[:, step:, step]), 1)
        swaps[:, step] = best + 1
        row = swapped(both, every, step, best)
        below = both[:, step + 1 :, step]
        below /= np.where(row[:, step] == 0, 1, row[:, step])[:, None]
        both[:, step + 1 :, step + 1 :] -= below[:, :, None] * row[:, None, step + 1 :]
    return both.reshape(x.shape), swaps.reshape(*x.shape[:-2], swaps.shape[-1])


def swapped(rows: Array, every: Array, step: int, best: Array) -> Array:
    """Swap a row of each of some matrices with the best one of each; gives the best ones."""
    chosen = rows[every, best]
    rows[every, best] = rows[:, step]
    rows[:, step] = chosen
    return chosen


def in_three(x: Array) -> tuple[Array, Array, Array]:
    """Write matrices as P L U, in three."""
    both, swaps = lu(x)
    (rows, columns), least = x.shape[-2:], swaps.shape[-1]
    left, top = both[..., :least], both[..., :least, :]
    left = np.where(is_above(rows, least), np.eye(rows, least, dtype=x.dtype), left)
    return permutation(swaps, rows), left, np.where(is_above(least, columns), top, 0)


def lu_parts(x: Shape) -> tuple[Shape, Shape, Shape]:
    """Shapes of P, L and U of one matrix."""
    rows, columns = x[-2:]
    least = min(rows, columns)
    return (rows, rows), (rows, least), (least, columns)


def lu_shapes(x: Shape) -> tuple[Shape, Shape]:
    """Shapes of the triangles in one, and of the swaps, of one matrix."""
    return x[-2:], (min(x[-2:]),)


def block(node: Node, rows: tuple[int, int], columns: tuple[int, int]) -> Node:
    """Take rows and columns of a stack of matrices, from the first to before the last."""
    lead = tuple((0, size, 1) for size in node.shape[:-2])
    return node.slice((*lead, (*rows, 1), (*columns, 1)))


def lu_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """The gradient of both triangles in one."""
    rows, columns = x.shape[-2:]
    least = min(rows, columns)
    both, swaps = unpacked(y, *lu_shapes(x.shape))
    flowing, _ = unpacked(g, *lu_shapes(x.shape))
    left = lower(block(both, (0, rows), (0, least)), 1)
    left, top = left + identity(left), upper(block(both, (0, least), (0, columns)))
    for_left, for_top = (
        block(flowing, (0, size), (0, of)) for size, of in ((rows, least), (least, columns))
    )
    found = lu_gradient(left, top, for_left, for_top)
    return [host_call("swap_rows", found, swaps, options=(True,))]


def in_three_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """The gradient of L and U; P has none."""
    shapes = lu_parts(x.shape)
    order, left, top = unpacked(y, *shapes)
    return [matmul(order, lu_gradient(left, top, *unpacked(g, *shapes)[1:]))]


def lu_gradient(left: Node, top: Node, for_left: Node, for_top: Node) -> Node:
    """L^-T (tril(L^T gL, -1) + triu(gU U^T)) U^-T, of the square that both triangles have.

    It is what P is multiplied with. Columns to its right are L times those of U, rows below it
    those of L times U.
    """
    rows, least, columns = *left.shape[-2:], top.shape[-1]
    square, right, below = (0, least), (least, columns), (least, rows)
    whole_left, whole_top, beside, under = left, top, for_top, for_left
    left, for_left = (block(each, square, square) for each in (left, for_left))
    top, for_top = (block(each, square, square) for each in (top, for_top))
    for_left, for_top, edge = lower(for_left, 1), upper(for_top), None
    if columns > rows:
        edge = triangle(turned(left), block(beside, square, right), True, True)
        for_left = for_left - matmul(edge, turned(block(whole_top, square, right)))
    elif rows > columns:
        edge = turned(triangle(top, turned(block(under, below, square)), True))
        for_top = for_top - matmul(turned(block(whole_left, below, square)), edge)
    inner = lower(matmul(turned(left), lower(for_left, 1)), 1)
    inner = inner + upper(matmul(upper(for_top), turned(top)))
    back = triangle(turned(left), inner, True, True)
    whole = turned(triangle(top, turned(back), True))
    if edge is not None:
        sides = ((0, rows - least), (0, columns - least))
        lead = ((0, 0),) * (left.rank - 2)
        start = tuple((least * (size > least), 0) for size in (rows, columns))
        whole = whole.pad((*lead, *sides)) + edge.pad((*lead, *start))
    return whole


def permutation(swaps: Array, rows: int) -> Array:
    """Make the matrices P of A = P L U from the swaps."""
    square = np.eye(rows, dtype=swaps.dtype)
    return swap_rows(np.broadcast_to(square, (*swaps.shape[:-1], rows, rows)), swaps, True)


def order_of(swaps: Array, rows: int) -> Array:
    """Find where rows (count, rows) come from that are swapped one pair after the other."""
    flat = swaps.reshape(count(swaps.shape[:-1]), swaps.shape[-1]).real.astype(np.int64) - 1
    if not ((flat >= 0) & (flat < rows)).all():
        raise np.linalg.LinAlgError(f"a pivot is not in 1..{rows}")
    if len(flat) == 1:
        listed = list(range(rows))
        for step, other in enumerate(flat[0].tolist()):
            listed[step], listed[other] = listed[other], listed[step]
        return np.array([listed], int)
    order, every = np.tile(np.arange(rows), (len(flat), 1)), np.arange(len(flat))
    for step in range(flat.shape[1]):
        swapped(order, every, step, flat[:, step])
    return order


def swap_rows(x: Array, swaps: Array, is_back: bool) -> Array:
    """Multiply matrices by P^T of A = P L U, or by P."""
    order = order_of(swaps, x.shape[-2])
    places = np.arange(len(order))[:, None], order
    flat = x.reshape(len(order), *x.shape[-2:])
    if not is_back:
        return flat[places].reshape(x.shape)
    found = np.empty_like(flat)
    found[places] = flat
    return found.reshape(x.shape)


def swap_rows_vjp(g: Node, y: Node, x: Node, swaps: Node) -> Gradients:
    """Swap back."""
    return [host_call("swap_rows", g, swaps, options=(not y.arg.options[0],)), None]


def tried(name: str, a: Array, *others: Array) -> tuple[Array, Array]:
    """Solve or invert matrices, NaN where that fails, and say which pivot is 0 first, from 1."""
    try:
        found = results(HostCall(name), a, *others)
        return found, np.zeros(a.shape[:-2], a.dtype)
    except LinAlgError:
        diagonal = np.diagonal(lu(a)[0], axis1=-2, axis2=-1) == 0
    failure = np.where(diagonal.any(-1), diagonal.argmax(-1) + 1, 0)
    is_bad = (failure != 0)[..., None, None]
    regular = np.where(is_bad, np.eye(a.shape[-1], dtype=a.dtype), a)
    found = np.where(is_bad, np.nan, results(HostCall(name), regular, *others))
    return found, failure.astype(a.dtype)


def told(name: str, shape: Any, kernels: Any) -> HostFunction:
    """Make the row of a function that raises nothing, but says what went wrong."""

    def whole(*shapes: Shape) -> Shape:
        own = shape(*[each[-2:] for each in shapes])
        return total((own, ()), shapes[0])

    def vjp(g: Node, y: Node, *inputs: Node) -> Gradients:
        own = shape(*[each.shape[-2:] for each in inputs])
        parts = (unpacked(each, own, ())[0] for each in (g, y))
        return MATRICES[name].vjp(*parts, *inputs)  # type: ignore[misc, return-value]

    return HostFunction(f"{name}_told", partial(tried, name), whole, vjp, True, kernels=kernels)


ELIMINATIONS = functions(
    HostFunction(
        "solve_triangular",
        solve_rows,
        lambda a, b, *_: b,
        solve_rows_vjp,
        True,
        kernels=matrix_kernels.triangle_kernels,
    ),
    row("in_three", in_three, lambda x: total(lu_parts(x), x), in_three_vjp),
    HostFunction(
        "lu", lu, lambda x: total(lu_shapes(x), x), lu_vjp, True, kernels=matrix_kernels.lu_kernels
    ),
    row("lu_factor", lu_factor, lambda x: total(lu_shapes(x), x), lu_vjp, True),
    told("solve", lambda a, b: b, matrix_kernels.told_solve_kernels),
    told("inv", lambda x: x, matrix_kernels.told_inverse_kernels),
    HostFunction("swap_rows", swap_rows, lambda x, swaps, is_back: x, swap_rows_vjp),
    HostFunction("permutation", permutation, lambda x, rows: (*x[:-1], rows, rows)),
)

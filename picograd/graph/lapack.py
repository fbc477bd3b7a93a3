"""Functions of LAPACK and BLAS that NumPy has no name for, in the library it computes with.

NumPy's modules are linked to all of it, under names that differ by who built them (`SPELLINGS`).
Where none is found `function` gives None, and what asks computes in NumPy. They are called for each
matrix of a stack, which takes 2 us, and float32 is computed as such.

LAPACK reads columns where NumPy has rows: it sees the transpose of each row-major matrix.
"""

import ctypes
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

Array = Any
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
# of NumPy's wheels, of libraries of 64-bit integers, of all others
SPELLINGS = (
    ("scipy_{}_64_", ctypes.c_int64), ("{}_64_", ctypes.c_int64), ("{}_", ctypes.c_int32),
)  # fmt: skip
BLOCK = 32  # rows of a workspace for each column, as many as OpenBLAS asks for
Call = tuple[Any, Any, Any]  # a function, the type of its integers, and a place for what it says


@lru_cache(None)
def function(name: str, dtype: Any) -> Call | None:
    """Find a function for a dtype by its name without the letter; None where there is none."""
    module, letter = getattr(np.linalg, "_umath_linalg", None), LETTERS.get(np.dtype(dtype).name)
    if module is None or letter is None:
        return None
    library = ctypes.CDLL(module.__file__)
    for spelling, integer in SPELLINGS:
        found = getattr(library, spelling.format(letter + name), None)
        if found is not None:
            return found, integer, np.zeros((), np.dtype(integer))
    return None


def call(found: Call, count: int, *arguments: Any) -> None:
    """Call a function for each matrix of a stack.

    Letters, integers and arrays of no axis are for all; other arrays have one row for each.
    """
    entry, integer, _ = found
    passed: list[Any] = []
    moving = []
    for each in arguments:
        kind = type(each)
        if kind is int:
            passed.append(ctypes.byref(integer(each)))
        elif kind is bytes:
            passed.append(each)
        else:
            address = each.__array_interface__["data"][0]
            passed.append(ctypes.c_void_p(address))
            if each.ndim and count > 1:
                moving.append((passed[-1], address, each.strides[0]))
    for number in range(count):
        for pointer, address, step in moving:
            pointer.value = address + number * step
        entry(*passed)


@lru_cache(None)
def one(dtype: Any) -> Array:
    """Make the number 1 of a dtype."""
    return np.ones((), dtype)


def columns_of(x: Array, room: int = 0) -> Array:
    """Copy matrices (..., M, N) as LAPACK reads them: a stack (count, N, M), or of more columns."""
    rows, columns = x.shape[-2:]
    if room <= columns:
        turned = np.array(np.swapaxes(x, -1, -2), order="C")
        return turned.reshape(math.prod(x.shape[:-2]), columns, rows)
    made: Array = np.zeros((math.prod(x.shape[:-2]), room, rows), x.dtype)
    made.reshape(*x.shape[:-2], *made.shape[1:])[..., :columns, :] = np.swapaxes(x, -1, -2)
    return made


def rows_of(stack: Array, lead: Sequence[int]) -> Array:
    """Show a stack of LAPACK's matrices as (..., M, N)."""
    return np.swapaxes(stack.reshape(*lead, *stack.shape[1:]), -1, -2)


def factored(x: Array) -> tuple[Array, Array] | None:
    """Write matrices as P L U: both triangles in one, and the rows swapped at each step, from 1."""
    found, (rows, columns) = function("getrf", x.dtype), x.shape[-2:]
    if found is None:
        return None
    both = columns_of(x)
    swaps = np.empty((len(both), min(rows, columns)), found[2].dtype)
    if x.size:
        call(found, len(both), rows, columns, both, rows, swaps, found[2])
    lead = x.shape[:-2]
    return rows_of(both, lead), swaps.astype(x.dtype).reshape(*lead, swaps.shape[1])


def inverted(x: Array) -> Array | None:
    """Invert matrices by their factors; NumPy's LinAlgError if one is singular.

    That of the transpose, which LAPACK sees, is the transpose of the inverse.
    """
    factor, invert = function("getrf", x.dtype), function("getri", x.dtype)
    if factor is None or invert is None:
        return None
    size, made = x.shape[-1], np.array(x, order="C")
    stack = made.reshape(math.prod(x.shape[:-2]), size, size)
    count, integers = len(stack), factor[2].dtype
    swaps, failure = np.empty((count, size), integers), np.zeros((count, 1), integers)
    if x.size:
        call(factor, count, size, size, stack, size, swaps, failure)
        if failure.any():
            raise np.linalg.LinAlgError("Singular matrix")
        length = BLOCK * size
        work = np.broadcast_to(np.empty(length, x.dtype), (count, length))
        call(invert, count, size, stack, size, swaps, work, length, invert[2])
    return made


def substituted(a: Array, b: Array, is_upper: bool, is_unit: bool) -> Array | None:
    """Solve a x = b by one triangle of a: x^T a^T = b^T, of which nothing is copied but b."""
    found, (size, columns) = function("trsm", a.dtype), b.shape[-2:]
    if found is None:
        return None
    x, count = np.array(b, a.dtype, order="C"), math.prod(b.shape[:-2])
    if x.size:
        triangles = np.ascontiguousarray(a).reshape(count, size, size)
        letters = b"R", b"L" if is_upper else b"U", b"N", b"U" if is_unit else b"N"
        scale, stack = one(a.dtype), x.reshape(count, size, columns)
        call(found, count, *letters, columns, size, scale, triangles, size, stack, columns)
    return x


def orthogonal(x: Array, is_complete: bool) -> tuple[Array, Array] | None:
    """Write matrices as Q R, with min(M, N) columns or with M."""
    form = function("geqrf", x.dtype)
    make = function("ungqr" if np.iscomplexobj(x) else "orgqr", x.dtype)
    if form is None or make is None:
        return None
    (rows, columns), lead, least = x.shape[-2:], x.shape[:-2], min(x.shape[-2:])
    inner = rows if is_complete else least
    both = columns_of(x, inner)
    count = len(both)
    scales, info = np.zeros((count, least), x.dtype), form[2]
    length = BLOCK * max(rows, columns, 1)
    work = np.broadcast_to(np.empty(length, x.dtype), (count, length))
    if x.size:
        call(form, count, rows, columns, both, rows, scales, work, length, info)
    right = rows_of(both[:, :columns], lead)[..., :inner, :]
    right = np.where(is_above(inner, columns), right, 0)
    if rows:
        call(make, count, rows, inner, least, both, rows, scales, work, length, info)
    return rows_of(both[:, :inner], lead), right


def least_squares(a: Array, b: Array, limit: float) -> tuple[Array, Array] | None:
    """Find the x of least |a x - b|, and of several the shortest; and the rank of each a.

    Of a triangle with pivots what is below `limit` times the largest counts as 0.
    """
    found = function("gelsy", a.dtype)
    if found is None:
        return None
    (rows, columns), width, lead = a.shape[-2:], b.shape[-1], a.shape[:-2]
    left, right = columns_of(a), np.zeros((math.prod(lead), width, max(rows, columns)), a.dtype)
    right[..., :rows] = columns_of(b)
    count, integers = len(left), found[2].dtype
    ranks, order = np.zeros((count, 1), integers), np.zeros((count, columns), integers)
    if a.size and b.size:
        length = BLOCK * (rows + columns + width + 4)
        work = np.broadcast_to(np.empty(length, a.dtype), (count, length))
        limits = np.array(limit, a.real.dtype)
        more = [np.broadcast_to(np.empty(2 * columns, a.real.dtype), (count, 2 * columns))]
        more = more if np.iscomplexobj(a) else []
        given = left, rows, right, max(rows, columns), order, limits, ranks, work, length
        call(found, count, rows, columns, width, *given, *more, found[2])
    x = rows_of(right[..., :columns], lead)
    return x, ranks.astype(a.dtype).reshape(lead)


@lru_cache(256)
def is_above(rows: int, columns: int) -> Array:
    """Tell which elements of a matrix are not below the diagonal."""
    return np.arange(rows)[:, None] <= np.arange(columns)

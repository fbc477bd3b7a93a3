"""Decompositions that say what went wrong instead of raising: torch.linalg's `*_ex`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from picograd.dtype import int32
from picograd.errors import LinAlgError
from picograd.graph.host_lu import lu
from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.recording import Recorded

Array = Any  # of NumPy


class Inverted(NamedTuple):
    """This class holds the inverse, and 0 or where a pivot was 0 for each matrix."""

    inverse: Tensor
    info: Tensor


class Factored(NamedTuple):
    """This class holds the factor L, and 0 or the order of the minor that is not positive."""

    L: Tensor
    info: Tensor


class Solved(NamedTuple):
    """This class holds the solution, and 0 or where a pivot was 0 for each matrix."""

    result: Tensor
    info: Tensor


def attempt(
    function: Callable[..., Tensor], matrices: Tensor, *others: Tensor, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    """Call a function of linear algebra: its result, and how it went for each matrix.

    If a matrix of a stack fails, its result is NaN, of `cholesky` what the leading minors before
    give; gradients end here.
    """
    stack = tuple(matrices.shape[:-2])
    info = Recorded.kind.zeros(*stack, dtype=int32, device=matrices.device)
    try:
        return function(matrices, *others), info
    except LinAlgError:
        if check_errors:
            raise
    is_cholesky = function.__name__ == "cholesky"
    given = matrices.detach().numpy()
    if given.dtype == np.float16:  # NumPy factors none
        given = given.astype(np.float32)
    found = failures(given, is_cholesky)
    info = Recorded.kind.of(found, dtype=int32, device=matrices.device)
    is_bad = (info != 0).reshape(*stack, 1, 1)
    eye = Recorded.kind.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
    result = function(is_bad.where(eye, matrices.detach()), *others)
    lead = (1,) * (len(result.shape) - len(stack))
    instead: Any = float("nan")
    if is_cholesky:
        instead = Recorded.kind.of(begun(given, found), dtype=result.dtype, device=result.device)
    return (info != 0).reshape(*stack, *lead).where(instead, result), info


def begun(matrices: Array, orders: Array) -> Array:
    """Factor each matrix up to its minor that fails: what is right of that stays as it was."""
    factors = np.tril(matrices)
    for place in (each for each in np.ndindex(orders.shape) if orders[each]):
        factor, done = factors[place], orders[place] - 1
        lead = factor[:done, :done] = np.linalg.cholesky(factor[:done, :done])
        below = factor[done:, :done] = np.linalg.solve(lead.conj(), factor[done:, :done].T).T
        factor[done, done] -= np.vdot(below[0], below[0])
    return factors


def failures(matrices: Array, is_cholesky: bool) -> Array:
    """Find the first leading minor of each matrix that is not positive, or the first pivot 0."""
    found = np.zeros(matrices.shape[:-2], np.int32)
    for place in np.ndindex(found.shape):
        matrix = matrices[place].astype(np.result_type(matrices, np.float64))
        found[place] = first_minor(matrix, is_cholesky)
    return found


def first_minor(matrix: Array, is_cholesky: bool) -> int:
    """Find the order of the first minor, or pivot, that fails; 0 if none does."""
    if not is_cholesky:
        pivots = np.diagonal(lu(matrix)[0])
        return int(np.argmin(np.abs(pivots))) + 1 if not pivots.all() else 0
    for order in range(1, len(matrix) + 1):
        try:
            factor = np.linalg.cholesky(matrix[:order, :order])
        except np.linalg.LinAlgError:
            return order
        if not np.isfinite(factor[-1, -1]):
            return order
    return 0

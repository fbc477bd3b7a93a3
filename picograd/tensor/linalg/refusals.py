"""Functions that refuse some matrices, on a GPU: what kernels found wrong is looked at here.

A host raises where it computes. Kernels tell what went wrong, and what they found is read at once
where a user computes at once; in a trace when its plan has run (`demands.report`).
"""

import math
from typing import Any

from picograd.engine.tracing import is_tracing
from picograd.errors import LinAlgError
from picograd.graph.host_matrices import INDEFINITE, SINGULAR, STUCK
from picograd.target import is_gpu
from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.demands import any_of, report
from picograd.tensor.core.recording import Recorded, decided, read
from picograd.tensor.linalg import host
from picograd.tensor.linalg.calls import called, factors


def refused(name: str, problem: str, is_bad: Tensor, *results: Tensor) -> tuple[Tensor, ...]:
    """Give results unless one of their matrices is bad: that raises LinAlgError."""
    error = LinAlgError(f"linalg.{name}", problem, "check the matrix")
    failed = any_of(read(is_bad.detach()))
    if is_tracing():
        report(failed, error)
        return results
    is_wrong = is_bad.detach().any()
    decided(is_wrong, *results)
    if is_wrong.item():
        raise error
    return results


def is_told(A: Tensor) -> bool:
    """Tell whether kernels compute what they can of a matrix."""
    return isinstance(A, Recorded) and is_gpu(read(A).device)


def inverse(A: Tensor) -> Tensor:
    """Invert square matrices."""
    if not is_told(A):
        return decided(called(host.inverse, A))
    found, failure = factors(host.told_inverse, A)
    (found,) = refused("inv", SINGULAR, failure != 0, found)
    return found


def solution(A: Tensor, B: Tensor) -> Tensor:
    """Solve A X = B."""
    if not is_told(A):
        return decided(called(host.solve, A, B))
    found, failure = factors(host.told_solution, A, B)
    (found,) = refused("solve", SINGULAR, failure != 0, found)
    return found


def cholesky(A: Tensor) -> Tensor:
    """Write positive definite matrices as L L^T: of others the last element is NaN."""
    found = called(host.computed, "cholesky", A)
    if not is_told(A) or not found.numel():
        return decided(found)
    is_bad = found.detach()[..., -1, -1].isfinite().logical_not()
    (found,) = refused("cholesky", INDEFINITE, is_bad, found)
    return found


def eigh(A: Tensor) -> tuple[Tensor, Tensor]:
    """Find eigenvalues and eigenvectors: kernels give NaN of what is not finite."""
    values, vectors = factors(host.eigh, A)
    if not is_told(A):
        return decided(values, vectors)
    values, vectors = refused("eigh", STUCK, values.isnan(), values, vectors)
    return values, vectors


def eigenvalues(A: Tensor) -> Tensor:
    """Find eigenvalues alone."""
    found = called(host.computed, "eigvalsh", A)
    if not is_told(A):
        return found
    (found,) = refused("eigvalsh", STUCK, found.isnan(), found)
    return found


def svd(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Find singular values and vectors."""
    u, values, vh = factors(host.svd, A)
    if not is_told(A):
        return decided(u, values, vh)
    u, values, vh = refused("svd", STUCK, values.isnan(), u, values, vh)
    return u, values, vh


def singular_values(A: Tensor) -> Tensor:
    """Find singular values alone."""
    found = called(host.computed, "svdvals", A, False)
    if not is_told(A):
        return found
    (found,) = refused("svdvals", STUCK, found.isnan(), found)
    return found


def pseudo_inverse(A: Tensor, *limits: Any) -> Tensor:
    """Invert what can be inverted."""
    found = called(host.pinv, A, *limits)
    if not is_told(A):
        return decided(found)
    (found,) = refused("pinv", STUCK, found.isnan(), found)
    return found


def squarings(A: Tensor) -> tuple[int, ...]:
    """Count how often an exponential is squared at most, where a GPU is to be told and values are
    known: a power of two, so that plans are few.
    """
    if not is_told(A) or is_tracing() or not A.numel() or A.dtype.is_complex:
        return ()
    norm = A.detach().abs().double().sum(-2).amax().item()
    count = math.ceil(math.log2(norm)) if 1 < norm < math.inf else 0
    return (1 << (count - 1).bit_length() if count else 0,)


def lu_factor(A: Tensor) -> tuple[Tensor, Tensor]:
    """Write regular matrices as P L U."""
    if not is_told(A):
        return decided(*factors(host.lu, A))
    both, swaps = factors(host.lu, A, "lu")
    is_bad = both.detach().diagonal(0, -2, -1) == 0
    both, swaps = refused("lu_factor", SINGULAR, is_bad, both, swaps)
    return both, swaps

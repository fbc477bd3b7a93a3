"""The largest singular values and eigenvalues: exact ones, where PyTorch's draw or iterate."""

from collections.abc import Callable
from typing import Any

from picograd.errors import ShapeError
from picograd.tensor.core.guard import guard_functions
from picograd.tensor.linalg.decompositions import SVD, cholesky, eigh, svd
from picograd.tensor.linalg.systems import solve_triangular
from picograd.tensor.tensor import Tensor

__all__ = ["lobpcg", "pca_lowrank", "svd_lowrank"]


def svd_lowrank(A: Tensor, q: int = 6, niter: int = 2, M: Tensor | None = None) -> SVD:
    """Write matrices, less `M`, as U diag(S) V^T of rank `q` at most.

    >>> import picograd
    >>> picograd.svd_lowrank(picograd.Tensor([[3.0, 0.0], [0.0, 4.0]]), q=1)[1].tolist()
    [4.0]
    """
    matrices = A
    if M is not None:
        matrices = A - M
    u, s, vh = svd(matrices, full_matrices=False)
    v = vh.mT
    rank = min(q, s.shape[-1])
    left = u.narrow(-1, 0, rank)
    right = v.narrow(-1, 0, rank)
    return SVD(left, s.narrow(-1, 0, rank), right)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> SVD:
    """Find the `q` axes (at most 6, if not given) along which rows differ most: U, S, V.

    >>> import picograd
    >>> picograd.pca_lowrank(picograd.Tensor([[1.0, 0.0], [3.0, 0.0]]), q=1)[2].abs().tolist()
    [[1.0], [0.0]]
    """
    count = 6 if q is None else q
    if center:
        centre = A.mean(-2, keepdim=True)
        A = A - centre
    return svd_lowrank(A, count, niter)


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[..., None] | None = None,
    ortho_iparams: dict[str, Any] | None = None,
    ortho_fparams: dict[str, Any] | None = None,
    ortho_bparams: dict[str, Any] | None = None,
) -> tuple[Tensor, Tensor]:
    """Find the `k` largest (or smallest) eigenvalues of A x = e B x, and their vectors as columns.

    A and B are symmetric, B positive definite. All are computed exactly: what steers PyTorch's
    iteration is not needed. Without `k` it is the columns of `X`, or 1.

    >>> import picograd
    >>> picograd.lobpcg(picograd.Tensor([[2.0, 0.0], [0.0, 3.0]]))[0].tolist()
    [3.0]
    """
    count = k if k is not None else 1 if X is None else X.shape[-1]
    if A.ndim < 2 or A.shape[-1] != A.shape[-2] or not 0 < count <= A.shape[-1]:
        text = f"{count} eigenvalues of A of shape {tuple(A.shape)}"
        raise ShapeError("lobpcg", text, "pass a square matrix and at most as many as its rows")
    matrix, factor = A, None
    if B is not None:  # B = L L^T: the eigenvalues are those of L^-1 A L^-T
        factor = cholesky(B)
        half = solve_triangular(factor, A, upper=False)
        matrix = solve_triangular(factor, half.mH, upper=False)
    values, vectors = eigh(matrix)
    if factor is not None:
        vectors = solve_triangular(factor.mH, vectors, upper=True)
    if largest is not False:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values.narrow(-1, 0, count), vectors.narrow(-1, 0, count)


guard_functions(globals(), __all__)

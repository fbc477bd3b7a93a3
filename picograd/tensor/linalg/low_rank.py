"""The largest singular values of matrices: exact ones, where PyTorch's names draw at random."""

from picograd.tensor.core.guard import guard_functions
from picograd.tensor.linalg.decompositions import SVD, svd
from picograd.tensor.tensor import Tensor

__all__ = ["pca_lowrank", "svd_lowrank"]


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
    full = s.shape[-1]
    rank = min(q, full)
    left = u.narrow(-1, 0, rank)
    right = v.narrow(-1, 0, rank)
    values = s.narrow(-1, 0, rank)
    return SVD(left, values, right)


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


guard_functions(globals(), __all__)

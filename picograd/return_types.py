"""The classes of results that are several tensors, by PyTorch's names of torch.return_types.

Functions that give parts of the same names share a class: `return_types.max` is that of `min`.
"""

from typing import Any

from picograd.tensor.linalg.decompositions import QR, SVD, Eig, Eigh, Slogdet
from picograd.tensor.linalg.reflectors import Reflected as geqrf
from picograd.tensor.linalg.symmetric import LDL as linalg_ldl_factor
from picograd.tensor.linalg.symmetric import LDLTried as linalg_ldl_factor_ex
from picograd.tensor.linalg.systems import LU as linalg_lu
from picograd.tensor.linalg.systems import LeastSquares as linalg_lstsq
from picograd.tensor.linalg.systems import LUFactor as linalg_lu_factor
from picograd.tensor.linalg.systems import LUTried as linalg_lu_factor_ex
from picograd.tensor.linalg.systems import Triangular as triangular_solve
from picograd.tensor.linalg.tolerant import Factored as linalg_cholesky_ex
from picograd.tensor.linalg.tolerant import Inverted as linalg_inv_ex
from picograd.tensor.linalg.tolerant import Solved as linalg_solve_ex
from picograd.tensor.math.arithmetic import Parts as frexp
from picograd.tensor.reductions.cumulative import Ordered
from picograd.tensor.reductions.reduce import Extreme
from picograd.tensor.reductions.reduce import Extremes as aminmax
from picograd.tensor.reductions.statistics import Histogram as histogram

max = min = Extreme
cummax = cummin = kthvalue = median = mode = nanmedian = sort = topk = Ordered
linalg_eig, linalg_eigh = Eig, Eigh
linalg_qr = qr = QR
linalg_slogdet = slogdet = Slogdet
linalg_svd = svd = SVD


def from_one(kind: Any) -> None:
    """Let a class be called with the sequence of its parts, as PyTorch's are."""
    make = kind.__new__

    def new(cls: Any, *parts: Any, **named: Any) -> Any:
        return make(cls, *(parts[0] if len(parts) == 1 and not named else parts), **named)

    kind.__new__ = new


for each in {kind for kind in vars().values() if hasattr(kind, "_fields")}:
    from_one(each)

__all__ = [
    "aminmax", "cummax", "cummin", "frexp", "geqrf", "histogram", "kthvalue", "linalg_cholesky_ex",
    "linalg_eig", "linalg_eigh", "linalg_inv_ex", "linalg_ldl_factor", "linalg_ldl_factor_ex",
    "linalg_lstsq", "linalg_lu", "linalg_lu_factor", "linalg_lu_factor_ex", "linalg_qr",
    "linalg_slogdet", "linalg_solve_ex", "linalg_svd", "max", "median", "min", "mode",
    "nanmedian", "qr", "slogdet", "sort", "svd", "topk", "triangular_solve",
]  # fmt: skip

"""opt_einsum on tensors: products and axes under NumPy's names. Imported after it.

opt_einsum.contract("ab,bc,cd->da", x, y, z)
"""

import importlib
from collections.abc import Sequence
from typing import Any

from picograd.tensor.tensor import Tensor

dispatch: Any = importlib.import_module("opt_einsum.backends.dispatch")


def tensordot(x: Tensor, y: Tensor, axes: int | Sequence[Sequence[int]] = 2) -> Tensor:
    """Contract the last axes with the first of y, or listed pairs."""
    return x.tensordot(y, axes)


def transpose(x: Tensor, axes: Sequence[int]) -> Tensor:
    """Put the axes into another order."""
    return x.permute(*axes)


for function in (tensordot, transpose):
    dispatch._cached_funcs[function.__name__, "picograd"] = function

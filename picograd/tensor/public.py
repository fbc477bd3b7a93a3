"""The functions of `picograd` that rows of definitions give; `public.pyi` is what checkers read."""

from picograd.tensor.core.calling import function_of
from picograd.tensor.core.function import FUNCTIONS
from picograd.tensor.tensor import Tensor as Tensor

__all__ = []

for _row in FUNCTIONS.values():
    if _row.function:
        _made = function_of(_row, __name__)
        globals()[_row.name] = _made
        __all__ += [_row.name]

__all__.sort()

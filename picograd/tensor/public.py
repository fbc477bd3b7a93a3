"""The functions of `picograd` that rows of definitions give; `public.pyi` is what checkers read."""

from picograd.tensor.core.calling import late_functions
from picograd.tensor.core.function import FUNCTIONS
from picograd.tensor.tensor import Tensor as Tensor

_rows = {}

for _row in FUNCTIONS.values():
    if _row.function:
        _rows[_row.name] = _row

__all__ = sorted(_rows)
__getattr__, __dir__ = late_functions(globals(), _rows)

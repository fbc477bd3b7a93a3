"""The functions of `picograd` that rows of definitions give; `public.pyi` is what checkers read."""

from picograd.tensor.core.calling import late_functions
from picograd.tensor.core.function import FUNCTIONS
from picograd.tensor.tensor import Tensor as Tensor

_shown = [row for row in FUNCTIONS.values() if row.function]
_rows = {row.name: row for row in _shown}
__all__ = sorted(_rows)
__getattr__ = late_functions(globals(), _rows)

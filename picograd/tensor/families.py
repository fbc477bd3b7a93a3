"""Names of `picograd` beside functions of rows: dtypes and numbers."""

import math
from typing import Final

from picograd.dtype import complex64, complex128, float16, float32, float64, int16, int32, int64
from picograd.tensor.core.guard import guard_functions
from picograd.tensor.core.spelling import spell_functions
from picograd.tensor.core.subclasses import publish
from picograd.tensor.core.type_info import finfo, iinfo
from picograd.tensor.making.distributions import fork_rng
from picograd.tensor.math import special

cdouble: Final = complex128
cfloat: Final = complex64
double: Final = float64
float: Final = float32
half: Final = float16
long: Final = int64
int: Final = int32
short: Final = int16
e: Final = math.e
inf: Final = math.inf
nan: Final = math.nan
pi: Final = math.pi
newaxis = None

polygamma: Final = special.polygamma  # whose method takes the tensor first


__all__ = [
    "cdouble", "cfloat", "double", "e", "finfo", "float", "fork_rng", "half", "iinfo", "inf",
    "int", "long", "nan", "newaxis", "pi", "polygamma", "short",
]  # fmt: skip

guard_functions(globals(), __all__)
spell_functions(globals(), __all__)
publish(globals(), __all__)

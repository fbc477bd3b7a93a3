"""Names of `picograd` beside functions of rows: dtypes, numbers, and methods as functions."""

import math
from typing import Final

from picograd.dtype import float16, float32, float64, int16, int32, int64
from picograd.tensor.core.guard import guard_functions
from picograd.tensor.core.spelling import spell_functions
from picograd.tensor.core.type_info import finfo, iinfo
from picograd.tensor.making.distributions import fork_rng
from picograd.tensor.tensor import Tensor

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

absolute: Final = Tensor.absolute
addbmm: Final = Tensor.addbmm
broadcast_to: Final = Tensor.broadcast_to
clone: Final = Tensor.clone
detach: Final = Tensor.detach
fix: Final = Tensor.fix
ger: Final = Tensor.ger
logdet: Final = Tensor.logdet
narrow_copy: Final = Tensor.narrow_copy
svd: Final = Tensor.svd
t: Final = Tensor.t
unsafe_chunk: Final = Tensor.unsafe_chunk
unsafe_split: Final = Tensor.unsafe_split
unsafe_split_with_sizes: Final = Tensor.unsafe_split_with_sizes

__all__ = [
    "absolute", "addbmm", "broadcast_to", "clone", "detach", "double", "e", "finfo", "fix",
    "float", "fork_rng", "ger", "half", "iinfo", "inf", "int", "logdet", "long", "nan",
    "narrow_copy", "newaxis", "pi", "short", "svd", "t", "unsafe_chunk", "unsafe_split",
    "unsafe_split_with_sizes",
]  # fmt: skip

guard_functions(globals(), __all__)
spell_functions(globals(), __all__)

"""The Python array API standard over tensors: `xp = tensor.__array_namespace__()`.

https://data-apis.org/array-api/2025.12: names, arguments and promotion are the standard's, where
`picograd` has PyTorch's. Tensors are picograd's own.

>>> from picograd import array_api as xp
>>> xp.sum(xp.asarray([1, 2], dtype=xp.uint8)).dtype
picograd.uint64
"""

import math

from picograd.array_api import creation, elementwise, fft, info, linalg, reductions, shaping
from picograd.array_api.creation import *  # noqa: F403
from picograd.array_api.elementwise import *  # noqa: F403
from picograd.array_api.info import *  # noqa: F403
from picograd.array_api.reductions import *  # noqa: F403
from picograd.array_api.shaping import *  # noqa: F403
from picograd.dtype import bool_ as bool
from picograd.dtype import (
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip

__array_api_version__ = "2025.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", __array_api_version__)
e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi
__all__ = [
    "__array_api_version__", "bool", "complex64", "complex128", "e", "fft", "float32", "float64",
    "inf", "int8", "int16", "int32", "int64", "linalg", "nan", "newaxis", "pi", "uint8", "uint16",
    "uint32", "uint64",
]  # fmt: skip
for _part in (creation, elementwise, info, reductions, shaping):
    __all__ += _part.__all__

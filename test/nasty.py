"""Values that conversions get wrong: ends of ranges, ties, subnormals, NaN; and all short bits."""

import numpy as np

from picograd.conversion import convert
from picograd.dtype import DType

ALL_BITS = {8: np.arange(256).astype(np.uint8), 16: np.arange(1 << 16).astype(np.uint16)}
WIDTHS = (7, 8, 11, 15, 16, 23, 24, 31, 32, 52, 53, 62, 63, 64)
MANTISSAS = (2, 3, 7, 10, 23, 52)


def integers(dtype: DType) -> np.ndarray:
    """Powers of two and their neighbours, ties of every float's mantissa, and the ends."""
    ends = np.iinfo(dtype.numpy)
    found = {0, 1, 2, 3, 100, ends.min, ends.max, ends.min + 1, ends.max - 1}
    for width in WIDTHS:
        found |= {s * ((1 << width) + d) for d in (-2, -1, 0, 1, 2) for s in (1, -1)}
        for digits in MANTISSAS:
            if width > digits + 1:  # halfway between two numbers of so many digits, and next to it
                half = (1 << width) + (1 << (width - digits - 1))
                found |= {half + d for d in (-1, 0, 1)} | {-half - d for d in (-1, 0, 1)}
                found |= {half + (1 << (width - digits)) + d for d in (-1, 0, 1)}
    return np.array(sorted(n for n in found if ends.min <= n <= ends.max), dtype.numpy)


def floats(dtype: DType) -> np.ndarray:
    """Ends of the ranges of all dtypes and their neighbours, ties, subnormals, NaN, infinities."""
    found = [0.0, 0.5, 1.5, 2.5, 0.99999, 448.0, 464.0, 57344.0, 61440.0, 65504.0, 65520.0, 65536.0]
    found += [2.0**-k for k in (6, 7, 9, 10, 14, 15, 16, 17, 24, 25, 126, 127, 133, 134, 149)]
    found += [2.0**k for k in (*WIDTHS, 127)] + [1e30, 3.3895313892515355e38, 3.4028234663852886e38]
    found += [1 + (2 * k + 1) * 2.0 ** -(d + 1) for d in MANTISSAS for k in (0, 1)]
    with np.errstate(over="ignore"):
        x = np.array(found).astype(dtype.numpy)
        near = [np.nextafter(x, x.dtype.type(end)) for end in (np.inf, 0)]
        x = np.concatenate([x, *near, np.array([np.inf, np.nan], dtype.numpy)])
    return np.concatenate([x, -x])


def nasty(dtype: DType) -> np.ndarray:
    """List such values of a dtype, as `dtype.numpy`."""
    if dtype.name == "bool":
        return np.array([False, True])
    return convert(floats(dtype) if dtype.is_float else integers(dtype), dtype)

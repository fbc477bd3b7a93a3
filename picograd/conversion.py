"""Conversion between dtypes in NumPy, as the kernels convert: the oracle of every interpreter.

NumPy has no bfloat16 and no 8-bit floats: their values are held in float32 (exactly), and `to_bits`
and `from_bits` change between those and the bytes in memory.

Rounding is to nearest, ties to even. float64 reaches a 16-bit float in one rounding; an 8-bit float
is rounded from float32, as in PyTorch. Floats become integers by truncation, limited to the range
of the integer, NaN as 0.

Sources: IEEE 754-2019; the OCP specification of 8-bit floating point (revision 1.0, 2023).
"""

from typing import Any

import numpy as np

from picograd.dtype import DType, bfloat16, bool_, float8_e4m3fn, float8_e5m2
from picograd.late_methods import dataclass

Array = Any


@dataclass(frozen=True, slots=True)
class Float8:
    """How the seven bits below the sign of an 8-bit float are read."""

    mantissa: int  # bits of the mantissa; the exponent has the other bits
    bias: int
    largest: int  # code of the largest number
    limit: int  # code of what is larger: that same one (e4m3fn has no infinity), or infinity's

    @property
    def shift(self) -> int:
        """Bits of a float32 mantissa that are rounded away."""
        return 23 - self.mantissa

    @property
    def offset(self) -> int:
        """Difference of the exponent biases, at the place of the exponent."""
        return (127 - self.bias) << self.mantissa

    @property
    def smallest(self) -> float:
        """The smallest number above 0: the distance of numbers that are not normal."""
        return 2.0 ** (1 - self.bias - self.mantissa)

    @property
    def normal_bits(self) -> int:
        """Bits of the smallest normal number as a float32."""
        return (128 - self.bias) << 23


FLOAT8 = {
    float8_e4m3fn: Float8(mantissa=3, bias=7, largest=0x7E, limit=0x7E),
    float8_e5m2: Float8(mantissa=2, bias=15, largest=0x7B, limit=0x7C),
}


def convert(x: Array, dtype: DType) -> Array:
    """Convert values to a dtype; the result has the dtype `dtype.numpy`."""
    x = np.asarray(x)
    if dtype is bfloat16 or dtype.kind == "float8":
        return from_bits(rounded_bits(x, dtype), dtype)
    if x.dtype == dtype.numpy:
        return x
    if x.dtype.kind == "f" and dtype.is_integer:
        return saturate(x, dtype)
    if dtype is bool_:
        return np.asarray(x != 0)
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(dtype.numpy, copy=False)


def saturate(x: Array, dtype: DType) -> Array:
    """Truncate floats to integers: limited to the range, NaN gives 0."""
    ends = np.iinfo(dtype.numpy)
    whole = np.trunc(np.where(np.isnan(x), 0, x)).astype(np.float64)
    is_high, is_low = (whole >= float(ends.max), whole <= float(ends.min))
    middle = np.where(is_high | is_low, 0, whole).astype(dtype.numpy)
    return np.where(is_high, ends.max, np.where(is_low, ends.min, middle)).astype(dtype.numpy)


def rounded_bits(x: Array, dtype: DType) -> Array:
    """Round values to bfloat16 or an 8-bit float and give the bits."""
    if dtype is bfloat16:
        return bfloat16_bits(round_to_odd(x) if x.dtype == np.float64 else x.astype(np.float32))
    with np.errstate(over="ignore", invalid="ignore"):
        return float8_bits(x.astype(np.float32), FLOAT8[dtype])


def round_to_odd(x: Array) -> Array:
    """Round float64 to float32 towards 0, with the last bit set when something was lost.

    Rounding that once more, to at most 22 bits, gives what one rounding would have given.
    Source: S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums" (2008).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        near = x.astype(np.float32)
    wide, bits = (near.astype(np.float64), near.view(np.uint32))
    odd = np.where(np.abs(x) < np.abs(wide), bits - np.uint32(1), bits) | np.uint32(1)
    return np.where(wide != x, odd, bits).astype(np.uint32).view(np.float32)


def bfloat16_bits(x: Array) -> Array:
    """Round float32 to its upper 16 bits; NaN stays NaN."""
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    quiet = (bits >> 16) | 0x40
    return np.where(np.isnan(x), quiet, rounded).astype(np.uint16)


def float8_bits(x: Array, form: Float8) -> Array:
    """Round float32 to an 8-bit float."""
    bits = x.view(np.uint32).astype(np.int64)
    sign, size = bits >> 24 & 0x80, bits & 0x7FFFFFFF
    half = (1 << (form.shift - 1)) - 1 + (size >> form.shift & 1)
    normal = ((size + half) >> form.shift) - form.offset
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.rint(np.abs(x).astype(np.float64) / form.smallest)
    tiny = np.where(size < form.normal_bits, steps, 0).astype(np.int64)
    code = np.minimum(np.where(size < form.normal_bits, tiny, normal), form.limit)
    return (sign | np.where(np.isnan(x), 0x7F, code)).astype(np.uint8)


def float8_values(form: Float8) -> Array:
    """List the float32 value of each of the 256 codes of an 8-bit float; NaN is quiet."""
    codes = np.arange(128)
    steps = codes.astype(np.float32) * np.float32(form.smallest)
    bits = (codes + form.offset) << form.shift
    quiet = np.where(codes > form.limit, 0x400000, 0)
    special = 0x7F800000 | codes << form.shift & 0x7FFFFF | quiet
    bits = np.where(codes > form.largest, special, bits)
    bits = np.where(codes < 1 << form.mantissa, steps.view(np.uint32), bits)
    return np.concatenate([bits, bits | 1 << 31]).astype(np.uint32).view(np.float32)


VALUES = {dtype: float8_values(form) for dtype, form in FLOAT8.items()}


def to_bits(x: Array, dtype: DType) -> Array:
    """Give the contents of memory, of `dtype.storage`, for values of any dtype."""
    x = np.asarray(x)
    if dtype is bfloat16 or dtype.kind == "float8":
        return rounded_bits(x, dtype)
    return convert(x, dtype)


def from_bits(bits: Array, dtype: DType) -> Array:
    """Give values, of `dtype.numpy`, for the contents of memory."""
    if dtype is bfloat16:
        return (bits.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype.kind == "float8":
        return VALUES[dtype][bits.view(np.uint8)]
    return bits.view(dtype.numpy)

"""Casts that no language has an instruction for, as integer arithmetic on the bits.

8-bit floats are bytes in every language. Sources: the OCP specification of 8-bit floating point; S.
Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums" (2008), for rounding to odd.
"""

from picograd.codegen.value import Value
from picograd.conversion import FLOAT8
from picograd.dtype import DType, bfloat16, bool_, float32, int32, uint8, uint16, uint32

# Bits of a float32, as int32: the sign, infinity, and what makes a NaN quiet.
SIGN32 = -(1 << 31)
INFINITY32 = 0x7F800000
QUIET32 = 0x400000


def encode_float8(x: Value, dtype: DType) -> Value:
    """Round float32 to an 8-bit float.

    Among the normal numbers, adding half a step to the bits carries into the exponent where it
    should. The others are multiples of one step: adding a number whose last bit is that step
    rounds to it.
    """
    form, bits = FLOAT8[dtype], x.bitcast(int32)
    size = (bits & 0x7FFFFFFF).raw("minimum", INFINITY32)
    is_odd = size.raw("shift_right", form.shift) & 1
    rounded = size + is_odd + ((1 << (form.shift - 1)) - 1)
    normal = rounded.raw("shift_right", form.shift) - form.offset
    magic = form.smallest * 2.0**23
    near = (size.bitcast(float32) + magic).bitcast(int32)
    tiny = near - x.constant(magic).bitcast(int32)
    code = (size < form.normal_bits).where(tiny, normal)
    code = (code < form.limit).where(code, form.limit)
    code = x.is_equal(x).where(code, 0x7F)
    sign = (bits < 0).where(bits.constant(0x80), 0)
    return (code | sign).cast(uint8).bitcast(dtype)


def decode_float8(x: Value) -> Value:
    """Widen an 8-bit float to float32, exactly; NaN becomes quiet."""
    form, code = (FLOAT8[x.dtype], x.bitcast(uint8).cast(int32))
    size, sign = (code & 0x7F, (code < 0x80).where(code.constant(0), SIGN32))
    tiny = (size.cast(float32) * form.smallest).bitcast(int32)
    bits = (size + form.offset).raw("shift_left", form.shift)
    bits = (size < 1 << form.mantissa).where(tiny, bits)
    payload = size.raw("shift_left", form.shift) & 0x7FFFFF
    quiet = (size <= form.limit).where(size.constant(0), QUIET32)
    special = payload | quiet | INFINITY32
    bits = (size <= form.largest).where(bits, special)
    return (bits | sign).bitcast(float32)


def encode_bfloat16(x: Value) -> Value:
    """Round float32 to its upper half.

    CPUs that have an instruction for it (VCVTNEPS2BF16) take numbers that are not normal for 0.
    """
    bits = x.bitcast(uint32)
    is_odd = bits.raw("shift_right", 16) & 1
    rounded = (bits + is_odd + 0x7FFF).raw("shift_right", 16)
    quiet = bits.raw("shift_right", 16) | 0x40
    half = x.is_equal(x).where(rounded, quiet)
    return half.cast(uint16).bitcast(bfloat16)


def round_to_odd(x: Value) -> Value:
    """Round float64 to float32 so that rounding once more, to 16 bits, gives the nearest of those.

    That is towards 0, with the last bit set when something was lost.
    """
    near = x.raw("cast", dtype=float32)
    wide, bits = (near.raw("cast", dtype=x.dtype), near.bitcast(int32))
    below = (x.raw("abs") < wide.raw("abs")).where(bits - 1, bits)
    is_inexact = wide.raw("not_equal", x, dtype=bool_)
    return is_inexact.where(below | 1, bits).bitcast(float32)

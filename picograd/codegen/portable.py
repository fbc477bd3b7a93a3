"""log, exp and cos with the same bits on every target, in float32 and float64.

The library functions of a CPU and a GPU differ in the last bits. These are written with operations
that are rounded exactly everywhere (add, sub, mul, div, fma), in one order, for all targets alike;
no compiler contracts an addition and a multiplication on its own (docs/design/0009-random-bits.md).
Errors stay within about 2 units in the last place. Random numbers are made of them.
"""

from math import factorial, pi
from math import log as host_log

from picograd.codegen import polynomial
from picograd.codegen.polynomial import (
    COS,
    EXP64,
    LN2_HIGH64,
    LN2_LOW64,
    ROUND64,
    SIN,
    clamp,
    horner,
    log_edges,
    power_of_two,
    quadrant_sine,
)
from picograd.codegen.value import Value
from picograd.dtype import float32, float64, int32, int64

# Taylor's series, as long as float64 needs: log((1+s)/(1-s)) = s (2 + t P(t)), t = s^2 <= 0.0295;
# sin(x) = x + x t P(t), cos(x) = 1 - t/2 + t^2 Q(t), t = x^2, |x| <= pi/4
LOG64 = tuple(2 / (2 * k + 1) for k in range(1, 12))
SIN64 = tuple((-1) ** k / factorial(2 * k + 1) for k in range(1, 10))
COS64 = tuple((-1) ** k / factorial(2 * k) for k in range(2, 11))


def log(x: Value) -> Value:
    """Compute log(x): e log(2) + log(m) with m near 1."""
    if x.dtype is float32:
        return polynomial.log_natural(x)
    is_small = x < 2.0**-1022  # a denormal: scale it up
    bits = is_small.where(x * 2.0**52, x).bitcast(int64) - 0x3FE6A09E667F3BCD  # of sqrt(1/2)
    e = bits.raw("shift_right", 52).cast(float64)
    mantissa = ((bits & ((1 << 52) - 1)) + 0x3FE6A09E667F3BCD).bitcast(float64)
    e = is_small.where(e - 52.0, e)
    f = mantissa - 1.0
    s = f / (f + 2.0)
    square = s * s
    rest = (s * square).fma(horner(LOG64, square), e * LN2_LOW64)
    return log_edges(x, e.fma(LN2_HIGH64, s.fma(2.0, rest)))


def exp(x: Value) -> Value:
    """Compute exp(x): 2^n exp(r) with r = x - n log(2)."""
    if x.dtype is float32:
        return polynomial.exp(x)
    x = clamp(x, -746.0, 710.0)
    shifted = x.fma(1 / host_log(2), ROUND64)
    n = shifted - ROUND64
    r = n.fma(-LN2_LOW64, n.fma(-LN2_HIGH64, x))
    result = (r * r).fma(horner(EXP64, r), r) + 1.0
    # Twice half the exponent: 2^n alone would overflow at 1024 and underflow below -1022.
    whole = shifted.bitcast(int64) - 0x4338000000000000
    half = whole.raw("shift_right", 1)
    return result * power_of_two(half) * power_of_two(whole - half)


def cos_turn(x: Value) -> Value:
    """Compute cos(2 pi x); x less its nearest quarter turn is exact."""
    x = x - x.raw("round")
    quarter = (x * 4.0).raw("round")
    angle = (x - quarter * 0.25) * (2 * pi)
    sine, cosine = (SIN, COS) if x.dtype is float32 else (SIN64, COS64)
    return quadrant_sine(angle, quarter.cast(int32) + 1, sine, cosine)

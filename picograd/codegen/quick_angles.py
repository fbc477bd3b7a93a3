"""Circular functions of float32 for GPUs, in float32: an angle is carried as a sum of two.

Errors stay within 1.3 units in the last place up to |x| = 2^16; beyond, the library's functions of
float64 are called, which few programs need. On a CPU a reduction in float64 is shorter.
"""

from collections.abc import Callable
from math import pi

from picograd.codegen.polynomial import COS, ROUND32, SIN, horner
from picograd.codegen.program import RARE_FROM
from picograd.codegen.value import Pair, Value, two_sum
from picograd.dtype import float32, int32

FAR = 2.0**16  # n pi/2 is exact enough up to here
HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)  # float32 each


def reduce_angle(x: Value) -> tuple[Pair, Value]:
    """Write x = n pi/2 + r with |r| <= pi/4: r as a sum of two, n in the lowest bits of an int32.

    The first difference is exact (Cody and Waite): its terms are multiples of 2^-23, or of x's own
    last place.
    """
    first, second, third = HALF_PI
    shifted = x.fma(2 / pi, ROUND32)
    n = shifted - ROUND32
    less = n * second
    r = two_sum(n.fma(-first, x), -less)
    low = r.low - n.fma(third, n.fma(second, -less))
    return Pair(r.high, low), shifted.bitcast(int32)


def sine_and_cosine(r: Pair) -> tuple[Pair, Pair]:
    """Compute sin(r) and cos(r) for |r| <= pi/4 as sums of two."""
    high, one = r.high, r.high.constant(1.0)
    square = high * high
    sine = Pair(high, (high * square).fma(horner(SIN, square), r.low))
    half = square * 0.5
    less = one - half
    rest = (square * square).fma(horner(COS, square), -(high * r.low))
    return sine, Pair(less, rest + ((one - less) - half))


def turned(x: Value, quarters: int) -> Value:
    """Compute sin(x + quarters pi/2)."""
    r, n = reduce_angle(x)
    n = n + quarters if quarters else n
    sine, cosine = sine_and_cosine(r)
    is_even = (n & 1).is_equal(0)
    size = is_even.where(sine.high, cosine.high) + is_even.where(sine.low, cosine.low)
    sign = (n & 2).raw("shift_left", 30)
    return size.bitcast(int32).raw("bitwise_xor", sign).bitcast(float32)


def usual(x: Value, op: str, value: Value) -> Value:
    """Choose a value for |x| < FAR, else call the library."""
    return (x * (RARE_FROM / FAR)).rare(op, value, x)


def sin(x: Value) -> Value:
    """Compute the sine; a zero keeps its sign."""
    return usual(x, "sin", x.is_equal(0.0).where(x, turned(x, 0)))


def cos(x: Value) -> Value:
    """Compute the cosine."""
    return usual(x, "cos", turned(x, 1))


def tan(x: Value) -> Value:
    """Compute the tangent: a quotient of two sums, and its rest by the same reciprocal."""
    r, n = reduce_angle(x)
    sine, cosine = sine_and_cosine(r)
    is_even = (n & 1).is_equal(0)
    top, bottom = is_even.where(sine.high, -cosine.high), is_even.where(cosine.high, sine.high)
    top_low = is_even.where(sine.low, -cosine.low)
    bottom_low = is_even.where(cosine.low, sine.low)
    inverse = bottom.constant(1.0) / (bottom + bottom_low)
    ratio = top * inverse
    rest = (-ratio).fma(bottom, top) + (-ratio).fma(bottom_low, top_low)
    return usual(x, "tan", x.is_equal(0.0).where(x, rest.fma(inverse, ratio)))


ANGLES: dict[str, Callable[[Value], Value]] = {"sin": sin, "cos": cos, "tan": tan}

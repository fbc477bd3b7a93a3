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
    less_low = n.fma(second, -less)
    start = n.fma(-first, x)
    r = two_sum(start, -less)
    rest = n.fma(third, less_low)
    low = r.low - rest
    quarters = shifted.bitcast(int32)
    return Pair(r.high, low), quarters


def sine_and_cosine(r: Pair) -> tuple[Pair, Pair]:
    """Compute sin(r) and cos(r) for |r| <= pi/4 as sums of two."""
    high = r.high
    one = high.constant(1.0)
    square = high * high
    cube, fourth = high * square, square * square
    sine_low = cube.fma(horner(SIN, square), r.low)
    half = square * 0.5
    less = one - half
    lost = (one - less) - half
    turned_low = high * r.low
    cosine_low = fourth.fma(horner(COS, square), -turned_low)
    sine = Pair(high, sine_low)
    cosine = Pair(less, cosine_low + lost)
    return sine, cosine


def turned(x: Value, quarters: int) -> Value:
    """Compute sin(x + quarters pi/2)."""
    r, n = reduce_angle(x)
    n = n + quarters if quarters else n
    sine, cosine = sine_and_cosine(r)
    is_even = (n & 1).is_equal(0)
    high = is_even.where(sine.high, cosine.high)
    low = is_even.where(sine.low, cosine.low)
    sign = (n & 2).raw("shift_left", 30)
    bits = (high + low).bitcast(int32)
    return bits.raw("bitwise_xor", sign).bitcast(float32)


def usual(x: Value, op: str, value: Value) -> Value:
    """Choose a value for |x| < FAR, else call the library."""
    gauge = x * (RARE_FROM / FAR)
    return gauge.rare(op, value, x)


def sin(x: Value) -> Value:
    """Compute the sine; a zero keeps its sign."""
    is_zero = x.is_equal(0.0)
    value = is_zero.where(x, turned(x, 0))
    return usual(x, "sin", value)


def cos(x: Value) -> Value:
    """Compute the cosine."""
    return usual(x, "cos", turned(x, 1))


def tan(x: Value) -> Value:
    """Compute the tangent: a quotient of two sums, and its rest by the same reciprocal."""
    r, n = reduce_angle(x)
    sine, cosine = sine_and_cosine(r)
    is_even = (n & 1).is_equal(0)
    top = is_even.where(sine.high, -cosine.high)
    top_low = is_even.where(sine.low, -cosine.low)
    bottom = is_even.where(cosine.high, sine.high)
    bottom_low = is_even.where(cosine.low, sine.low)
    inverse = bottom.constant(1.0) / (bottom + bottom_low)
    ratio = top * inverse
    rest = (-ratio).fma(bottom, top)
    rest = rest + (-ratio).fma(bottom_low, top_low)
    value = rest.fma(inverse, ratio)
    is_zero = x.is_equal(0.0)
    return usual(x, "tan", is_zero.where(x, value))


FORMULAS = sin, cos, tan
ANGLES: dict[str, Callable[[Value], Value]] = {each.__name__: each for each in FORMULAS}

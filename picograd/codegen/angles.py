"""Circular functions and lengths, for every target alike; precision as in elementary.py.

The inverse functions share one core: the angle of a ratio of two numbers.
"""

from collections.abc import Callable
from math import inf, pi
from math import tan as host_tan

from picograd.codegen.elementary import added, constant, finished, signed, widened
from picograd.codegen.polynomial import ROUND64, clamp, horner
from picograd.codegen.portable import COS64, SIN64
from picograd.codegen.value import (
    Pair,
    Value,
    Wide,
    as_pair,
    choose,
    head,
    quick_sum,
    rounded,
    square_root,
    two_product,
    two_sum,
)
from picograd.dtype import bool_, float32, float64, int32, int64

# atan(z) = z + z t P(t), t = z^2, |z| <= tan(pi/8); relative error of P 4e-18
ATAN = (
    -0.3333333333333333,
    0.19999999999999762,
    -0.1428571428564902,
    0.1111111110411266,
    -0.09090908702135893,
    0.07692294904895292,
    -0.06666398746373535,
    0.05878631460173418,
    -0.052282847666252616,
    0.04541795446312359,
    -0.03432108202704706,
    0.016012008462212284,
)
# pi and its parts as sums of two float64
PI = (pi, 1.2246467991473532e-16)
HALF_PI, QUARTER_PI = ((PI[0] * share, PI[1] * share) for share in (0.5, 0.25))
HALF_PI_REST = -1.4973849048591833e-33  # beyond those two


def is_minus(x: Value) -> Value:
    """Test the sign bit."""
    return x.bitcast(int32 if x.dtype is float32 else int64) < 0


def atan_ratio(top: Wide, bottom: Wide) -> Wide:
    """Compute atan(top / bottom) for numbers >= 0 of which at most one is 0.

    The ratio is brought to |z| <= tan(pi/8) by atan(u) = pi/4 + atan((u - 1) / (u + 1)) and
    atan(u) = pi/2 + atan(-1 / u).
    """
    is_far = head(bottom) * host_tan(3 * pi / 8) < head(top)
    is_middle = head(bottom) * host_tan(pi / 8) < head(top)
    less = choose(is_middle, top - bottom, top)
    more = choose(is_middle, top + bottom, bottom)
    z = choose(is_far, -bottom, less) / choose(is_far, top, more)
    high = head(z)
    if isinstance(z, Pair):  # the rest of a division says nothing where it may underflow
        z = Pair(high, (high.raw("abs") < 2.0**-900).where(high.constant(0.0), z.low))
    square = high * high
    middle = choose(is_middle, constant(QUARTER_PI, z), constant((0.0, 0.0), z))
    start = choose(is_far, constant(HALF_PI, z), middle)
    angle = start + (z + horner(ATAN, square) * square * high)
    return choose(is_far | is_middle, angle, z + horner(ATAN, square) * square * high)


def atan(x: Value) -> Value:
    """Compute the inverse tangent."""
    size = widened(clamp(x.raw("abs"), 0.0, 1e30))
    return signed(finished(atan_ratio(size, constant((1.0, 0.0), size)), x), x)


def other_leg(x: Value) -> Wide:
    """Compute sqrt(1 - x^2)."""
    return square_root(added(-x, 1.0) * added(x, 1.0))


def asin(x: Value) -> Value:
    """Compute the inverse sine; NaN outside -1..1."""
    value = signed(finished(atan_ratio(widened(x.raw("abs")), other_leg(x)), x), x)
    return (x.raw("abs") < 2.0**-28).where(x, value)


def acos(x: Value) -> Value:
    """Compute the inverse cosine; NaN outside -1..1."""
    angle = atan_ratio(other_leg(x), widened(x.raw("abs")))
    return finished(choose(x < 0.0, constant(PI, angle) - angle, angle), x)


def moderate(a: Value, b: Value) -> tuple[Value, Value, Value]:
    """Scale two float64 numbers >= 0 so that squares stay in range; also give the way back."""
    largest = (a < b).where(b, a)
    is_large, is_small = (largest.constant(2.0**500) < largest, largest < 2.0**-400)
    one = largest.constant(1.0)
    factor = is_large.where(one.constant(2.0**-600), is_small.where(one.constant(2.0**600), one))
    back = is_large.where(one.constant(2.0**600), is_small.where(one.constant(2.0**-600), one))
    return a * factor, b * factor, back


def atan2(y: Value, x: Value) -> Value:
    """Compute the angle of the point (x, y), in -pi..pi; infinities and zeros have one too."""
    wide, high = x.raw("abs"), y.raw("abs")
    is_infinite = wide.is_equal(inf) | high.is_equal(inf)
    one, zero = wide.constant(1.0), wide.constant(0.0)
    bottom = is_infinite.where(wide.is_equal(inf).where(one, zero), wide)
    top = is_infinite.where(high.is_equal(inf).where(one, zero), high)
    bottom = (top.is_equal(0.0) & bottom.is_equal(0.0)).where(one, bottom)
    first, second = top.cast(float64), bottom.cast(float64)
    if x.dtype is float64:
        first, second, _ = moderate(first, second)
    like = widened(x)
    angle = atan_ratio(same_width(first, like), same_width(second, like))
    value = finished(choose(is_minus(x), constant(PI, angle) - angle, angle), x)
    value = is_minus(y).where(-value, value)
    is_nan = x.raw("not_equal", x, dtype=bool_) | y.raw("not_equal", y, dtype=bool_)
    return is_nan.where(x + y, value)


def same_width(x: Value, like: Wide) -> Wide:
    """Carry a float64 value as `like` is carried."""
    return as_pair(x) if isinstance(like, Pair) else x


def hypot(x: Value, y: Value) -> Value:
    """Compute sqrt(x^2 + y^2); infinite if either is, whatever the other."""
    a, b = x.raw("abs"), y.raw("abs")
    if x.dtype is float32:
        wide, high = a.cast(float64), b.cast(float64)
        value = (wide * wide + high * high).raw("sqrt").cast(float32)
    else:
        wide, high, back = moderate(a, b)
        value = rounded(square_root(two_product(wide, wide) + two_product(high, high))) * back
    return (a.is_equal(inf) | b.is_equal(inf)).where(x.constant(inf), value)


def reduce_angle(x: Value) -> tuple[Pair, Value]:
    """Write x = n pi/2 + r with |r| <= pi/4: r as a pair, n in the lowest bits of an int64.

    Up to |x| = RARE_FROM the first difference is exact, and what pi/2 has beyond three numbers less
    than the pair shows.
    """
    shifted = x.fma(1 / HALF_PI[0], ROUND64)
    n = shifted - ROUND64
    less = two_product(n, n.constant(HALF_PI[1]))
    r = two_sum(n.fma(-HALF_PI[0], x), -less.high)
    return quick_sum(r.high, n.fma(-HALF_PI_REST, r.low - less.low)), shifted.bitcast(int64)


def short_sine(r: Pair, square: Value) -> Pair:
    """Compute sin(r) for |r| <= pi/4; `square` is that of its high part."""
    low = square.fma(r.low * -0.5, r.low)
    return quick_sum(r.high, (r.high * square).fma(horner(SIN64, square), low))


def short_cosine(r: Pair, square: Value) -> Pair:
    """Compute cos(r) for |r| <= pi/4; `square` is that of its high part."""
    start = quick_sum(square.constant(1.0), square * -0.5)
    rest = r.high.fma(r.high, -square) * -0.5  # of the square
    low = start.low + (-r.high).fma(r.low, rest)
    return quick_sum(start.high, (square * square).fma(horner(COS64, square), low))


def quadrant(r: Pair, n: Value) -> Value:
    """Compute sin(r + n pi/2)."""
    square = r.high * r.high
    is_even = (n & 1).is_equal(0)
    size = rounded(choose(is_even, short_sine(r, square), short_cosine(r, square)))
    return size.bitcast(int64).raw("bitwise_xor", (n & 2).raw("shift_left", 62)).bitcast(float64)


def sin(x: Value) -> Value:
    """Compute the sine in float64."""
    return x.rare("sin", x.is_equal(0.0).where(x, quadrant(*reduce_angle(x))))


def cos(x: Value) -> Value:
    """Compute the cosine in float64."""
    r, n = reduce_angle(x)
    return x.rare("cos", quadrant(r, n + 1))


def tan_pair(x: Value) -> Value:
    """Compute the tangent in float64: a quotient of pairs."""
    r, n = reduce_angle(x)
    square = r.high * r.high
    sine, cosine = short_sine(r, square), short_cosine(r, square)
    is_even = (n & 1).is_equal(0)
    ratio = choose(is_even, sine, -cosine) / choose(is_even, cosine, sine)
    return x.rare("tan", x.is_equal(0.0).where(x, rounded(ratio)))


def tan(x: Value) -> Value:
    """Compute the tangent by the library's function of float64."""
    return x.cast(float64).raw("tan").cast(x.dtype)


ANGLES: dict[str, Callable[..., Value]] = {
    "tan": tan,
    "atan": atan,
    "asin": asin,
    "acos": acos,
    "atan2": atan2,
    "hypot": hypot,
}

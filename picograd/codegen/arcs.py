"""Inverse tangents of float32 in float32, on every target: the angle of a ratio of at most 1.

Errors stay within 1.5 units in the last place. What the division leaves out, and the constants, is
carried along.
"""

from collections.abc import Callable
from math import inf

from picograd.codegen.elementary import PARTS_OF_PI
from picograd.codegen.polynomial import copy_sign, horner
from picograd.codegen.value import Value
from picograd.dtype import bool_, int32

# atan(z) = z + z t P(t), t = z^2, 0 <= z <= 1; relative error 5e-10, of these float32
ATAN = (
    -0.333333283662796, 0.1999971568584442, -0.14280343055725098, 0.11061233282089233,
    -0.08821462094783783, 0.06763648986816406, -0.04498325660824776, 0.02277761697769165,
    -0.007425363175570965, 0.0011345221428200603,
)  # fmt: skip
LARGEST = 1e30  # pi/2 from here on


def arc(low: Value, high: Value, quarters: Value, is_less: Value) -> Value:
    """Compute quarters pi/2 + atan(low / high), or less it, for low <= high."""
    inverse = high.constant(1.0) / high
    z = low * inverse
    rest = (-z).fma(high, low) * inverse
    square = z * z
    rest = (z * square).fma(horner(ATAN, square), rest)
    z, rest = is_less.where(-z, z), is_less.where(-rest, rest)
    pi_high, pi_low = PARTS_OF_PI[32]
    start = quarters * (pi_high / 2)
    total = start + z
    return total + (((start - total) + z) + quarters.fma(pi_low / 2, rest))


def atan(x: Value) -> Value:
    """Compute the inverse tangent: beyond 1 as pi/2 - atan(1 / x)."""
    size, one = x.raw("abs"), x.constant(1.0)
    size = (size.constant(LARGEST) < size).where(size.constant(LARGEST), size)
    is_far = one < size
    low, high = is_far.where(one, size), is_far.where(size, one)
    return copy_sign(arc(low, high, is_far.where(one, 0.0), is_far), x)


def atan2(y: Value, x: Value) -> Value:
    """Compute the angle of the point (x, y), in -pi..pi; infinities and zeros have one too."""
    wide, tall = x.raw("abs"), y.raw("abs")
    one, zero = wide.constant(1.0), wide.constant(0.0)
    is_infinite = wide.is_equal(inf) | tall.is_equal(inf)
    wide, tall = (is_infinite.where(a.is_equal(inf).where(one, zero), a) for a in (wide, tall))
    is_steep, is_left = wide < tall, x.bitcast(int32) < 0
    low, high = is_steep.where(wide, tall), is_steep.where(tall, wide)
    high = high.is_equal(0.0).where(one, high)
    factor = (one.constant(2.0**64) < high).where(
        one.constant(2.0**-64), one
    )  # so that 1 / high is a number
    factor = (high < 2.0**-64).where(one.constant(2.0**96), factor)
    quarters = is_steep.where(one, is_left.where(one.constant(2.0), zero))
    is_less = is_steep.raw("not_equal", is_left, dtype=bool_)
    value = copy_sign(arc(low * factor, high * factor, quarters, is_less), y)
    is_nan = x.raw("not_equal", x, dtype=bool_) | y.raw("not_equal", y, dtype=bool_)
    return is_nan.where(x + y, value)


ARCS: dict[str, Callable[..., Value]] = {"atan": atan, "atan2": atan2}

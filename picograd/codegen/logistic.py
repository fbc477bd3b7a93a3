"""sigmoid and silu of float32 and float64 to within 1.2 and 2 units in the last place.

With t = exp(-|x|) the sigmoid is 1 / (1 + t), or t / (1 + t) where x < 0. What the rounding of t,
of 1 + t and of the quotient leaves out is carried along and made good at the end.
"""

from collections.abc import Callable
from math import log

from picograd.codegen.elementary import EXP, INVERSE_LN2
from picograd.codegen.polynomial import (
    LN2_HIGH32,
    LN2_HIGH64,
    LN2_LOW32,
    LN2_LOW64,
    ROUND32,
    ROUND64,
    exp_excess,
    horner,
    shifted_powers,
)
from picograd.codegen.value import Value
from picograd.dtype import float32


def negative_exp(size: Value, most: float) -> tuple[Value, Value, Value]:
    """Write exp(-size) = (1 + q) a b for 0 <= size <= most: q, and the powers of two a and b."""
    size = (size.constant(most) < size).where(size.constant(most), size)
    is_single = size.dtype is float32
    to_whole = ROUND32 if is_single else ROUND64
    shifted = size.fma(-INVERSE_LN2[0], to_whole)
    n = shifted - to_whole
    first, second = shifted_powers(shifted, size.fma(-0.5 * INVERSE_LN2[0], to_whole))
    if is_single:
        excess = exp_excess(n.fma(-LN2_LOW32, n.fma(-LN2_HIGH32, -size)))
        return excess, first, second
    high, low = n.fma(-LN2_HIGH64, -size), n * LN2_LOW64
    r = high - low
    series = horner((0.5, *EXP[64]), r)
    return r + (r * r).fma(series, (high - r) - low), first, second


def share(is_minus: Value, t: Value, low: Value, top: Value, top_low: Value) -> Value:
    """Compute (top + top_low) / (1 + t + low), the numerator being 1 where not minus."""
    total = t + 1.0
    below = t - (total - 1.0) + low  # what the rounding of the total left out
    above = is_minus.where(top, 1.0)
    inverse = total.constant(1.0) / total
    quotient = above * inverse
    rest = (-quotient).fma(total, above)
    rest = rest + (-quotient).fma(below, is_minus.where(top_low, 0.0))
    return rest.fma(inverse, quotient)


def sigmoid(x: Value) -> Value:
    """Compute 1 / (1 + exp(-x))."""
    most = 104.0 if x.dtype is float32 else 746.0
    excess, first, second = negative_exp(x.raw("abs"), most)
    power = first * second  # exact, as a denormal too
    t = excess.fma(power, power)
    low = excess.fma(power, power - t)
    return share(x < 0.0, t, low, t, low)


def silu(x: Value) -> Value:
    """Compute x / (1 + exp(-x)); NaN at minus infinity, as in PyTorch.

    The second power of two comes last: a denormal sigmoid has lost digits. It is 0 where x is
    minus infinity.
    """
    most = 254.0 * log(2) if x.dtype is float32 else 2046.0 * log(2)
    excess, first, second = negative_exp(x.raw("abs"), most)
    top = excess.fma(first, first)
    top_low = excess.fma(first, first - top)
    is_minus = x < 0.0
    result = share(is_minus, top * second, top_low * second, top, top_low)
    return result * x * is_minus.where(second, 1.0)


LOGISTIC: dict[str, Callable[..., Value]] = {"sigmoid": sigmoid, "silu": silu}

"""log|gamma(x)|: in float64, and of float32 in float32, within 4 units in the last place.

That is in float64 too for -11.5 to -2, where 1 / gamma(x) is 1 or -1 near every whole number, and
its logarithm shows digits that float32 does not have. Coefficients were fitted for this project, of
float32 as those of codegen/polynomial.py, of float64 as those of transcendental.py.
"""

import math

from picograd.dtype import float32, float64
from picograd.graph.node import Node
from picograd.tensor.core.function import recorded
from picograd.tensor.math.transcendental import (
    SHIFT,
    above,
    digamma_slope,
    digamma_value,
    known_slope,
    lowered,
    polynomial,
    smooth,
    to_whole,
)

# lgamma(2 + u) = u P(u), |u| <= 1/2; relative error 2e-17
LGAMMA = (
    0.42278433509846713, 0.3224670334241132, -0.06735230105319563, 0.02058080842778338,
    -0.007385551028935545, 0.002890510330865901, -0.0011927539009983087, 0.0005096695196526673,
    -0.00022315497746292723, 9.945761692157133e-05, -4.4923727564247656e-05, 2.050601970174762e-05,
    -9.45628851510172e-06, 4.3828545383846665e-06, -1.9743106888421067e-06, 9.242852225162277e-07,
    -5.811277768921246e-07, 2.7475390051909663e-07,
)  # fmt: skip
# Stirling's series: B(2k) / (2k (2k - 1)), Bernoulli's numbers
LGAMMA_TAIL = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
TAIL_START = 0.5 * math.log(2 * math.pi) - 0.5
# Of float32: lgamma(v) = (v - 1) (v - 2) P(v - 5/4) for 0.7 <= v <= 2, and (v - 2) P(v - 13/4) for
# 2 <= v <= 4.5; sin(pi z) = pi z (1 + t P(t)), t = z^2, |z| <= 1/2; relative error 1e-8
LOW = (
    0.5241164565086365, -0.1845584511756897, 0.09456592798233032, -0.05626831203699112,
    0.036153264343738556, -0.024398507550358772, 0.01692701131105423, -0.011294037103652954,
    0.007727497257292271, -0.007672423496842384, 0.007159230764955282, -0.0029227277263998985,
)  # fmt: skip
MIDDLE = (
    0.7486415505409241, 0.21467949450016022, -0.027824394404888153, 0.005171777680516243,
    -0.0011224530171602964, 0.00026626751059666276, -6.757900700904429e-05, 1.6633650375297293e-05,
    -3.7250165405566804e-06, 1.7109315422203508e-06, -6.54396103527688e-07,
)  # fmt: skip
SINE = (-1.6449333429336548, 0.811715841293335, -0.1904432326555252, 0.024715930223464966)
# 1 / gamma(3 + z), |z| <= 5/2; relative error 6e-14
INVERSE = (
    0.5, -0.4613921675492469, 0.11414921556372454, 0.0384709429122061, -0.031511716458710815,
    0.006933235953179704, 0.0005450185340894231, -0.0006746741523001345, 0.0001569181690605179,
    -5.661016765843617e-06, -5.94242281995316e-06, 1.6767165620372285e-06, -1.691064592163852e-07,
    -1.8185343121225384e-08, 9.01236748535036e-09, -1.3678629426335645e-09, 4.731156635060459e-11,
    2.2387821607830236e-11, -5.236235196818713e-12, 5.29129422723488e-13, 4.22834640707276e-15,
    -1.1476030395775043e-14, 1.716074856705962e-15, -1.3127469184358576e-17,
    -1.4445808689232296e-17,
)  # fmt: skip


def lgamma_positive(x: Node) -> Node:
    """Compute log(gamma(x)) for x > 0 in float64.

    By a fit around 2, where it has a root, for 1.5 to 2.5. Larger x up to SHIFT come down by
    gamma(x) = (x - 1) gamma(x - 1), smaller ones go up; Stirling's series beyond.
    """
    is_large, is_low, is_tiny = above(x, SHIFT), x.binary("less", 1.5), x.binary("less", 0.5)
    y, steps = lowered(is_large.where(x.const_like(2.0), x), 2.5)
    factor = x.const_like(1.0)
    for is_above, each in steps:
        factor = is_above.where(factor * each, factor)
    u = is_tiny.where(y, is_low.where(y - 1, y - 2))
    factor = is_tiny.where(x * (x + 1), is_low.where(x, factor))
    logarithm = is_large.where(x, factor).unary("log")
    near = u * polynomial(LGAMMA, u) + is_low.where(-logarithm, logarithm)
    inverse = x.unary("reciprocal")
    tail = inverse * polynomial(LGAMMA_TAIL, inverse * inverse)
    far = (x - 0.5) * (logarithm - 1) + (tail + TAIL_START)
    value = is_large.where(far, near)
    return x.binary("equal", math.inf).where(x, value)


def inverse_gamma(x: Node) -> tuple[Node, Node]:
    """Compute |1 / gamma(x)| of float32 in -11.5 to -2: as a sum of two float32.

    That is the product of x, x + 1, ... x + 6, and of five numbers more below -6.5, times a fit.
    """
    wide = x.binary("maximum", -11.5).binary("minimum", -2.0).cast(float64)
    is_low = wide.binary("less", -6.5)
    y = is_low.where(wide + 5, wide)
    outer = y * (y + 6)  # (y + 1) (y + 5) is 5 more
    steps = outer * (outer + 5)
    steps = steps * (outer + 8)
    steps = steps * (y + 3)
    more = wide * (wide + 4)
    others = more * (more + 3)
    others = others * (wide + 2)
    steps = is_low.where(steps * others, steps)
    found = steps * polynomial(INVERSE, y + 4)
    found = found.unary("abs")
    high = found.cast(float32)
    rest = found - high.cast(float64)
    return high, rest.cast(float32)


def lgamma_single(x: Node, part: Node) -> Node:
    """Compute log|gamma(x)| of float32 by fits up to 4.5, and Stirling's series beyond.

    Below 0 it is that of |x|, by gamma(x) gamma(-x) = -pi / (x sin(pi x)).
    """
    size = x.unary("abs")
    is_tiny, is_far = size.binary("less", 0.7), above(size, 4.5)
    logarithm, less = size.unary("log"), size - 1
    other = is_tiny.where(size + 1, size)
    first, second = is_tiny.where(size, less), is_tiny.where(less, size - 2)
    low = polynomial(LOW, other - 1.25)
    low = first * second * low
    middle = polynomial(MIDDLE, size - 3.25)
    middle = middle * (size - 2)
    near = above(size, 2.0).where(middle, low)
    is_close = x.binary("less", -2.0)
    is_close = is_close.binary("logical_and", above(x, -11.5))
    high, rest = inverse_gamma(x)
    inverse = is_close.where(high, size).unary("reciprocal")  # a quotient of both
    tail = polynomial(LGAMMA_TAIL[:4], inverse * inverse)
    tail = inverse * tail + TAIL_START
    far = (size - 0.5) * (logarithm - 1)
    inner = is_far.where(far + tail, near)
    value = is_tiny.where(inner - logarithm, inner)
    square = part * part
    cube = part * square
    sine = cube.multiply_add(polynomial(SINE, square), part)
    sine = sine.unary("abs")
    sine = is_tiny.where(sine, sine * size)
    sine = is_close.where(high, sine)
    more = is_close.where(rest * inverse, inner)
    below = -(sine.unary("log") + more)
    return x.binary("less", 0.0).where(below, value)


def lgamma_double(x: Node, part: Node) -> Node:
    """Compute log|gamma(x)|, by reflection below 0: gamma(x) gamma(1 - x) = pi / sin(pi x)."""
    is_low = x.binary("less", 0.0)
    inner = lgamma_positive(is_low.where(1 - x, x))
    sine = (part * math.pi).unary("sin").unary("abs")
    return is_low.where(math.log(math.pi) - sine.unary("log") - inner, inner)


def lgamma_value(x: Node) -> Node:
    """Compute log|gamma(x)|: infinite at whole numbers up to 0, and at infinity."""
    part = to_whole(x)
    found = (lgamma_single if x.dtype is float32 else lgamma_double)(x, part)
    is_infinite = x.unary("abs").binary("equal", math.inf)
    is_pole = part.binary("equal", 0.0).binary("logical_and", x.binary("less_equal", 0.0))
    is_infinite = is_infinite.binary("logical_or", is_pole)
    return is_infinite.where(x.const_like(math.inf), found)


def lgamma_slope(x: Node, y: Node) -> Node:
    """Compute digamma in float64, which can be differentiated again."""
    return known_slope(x.cast(float64), digamma_value, digamma_slope).cast(x.dtype)


@recorded(in_place=True)
def lgamma(x: Node) -> Node:
    """Compute log|gamma(x)|.

    >>> Tensor([3.0, 4.0, 5.0]).lgamma().tolist()
    [0.6931..., 1.7917..., 3.1780...]
    """
    return smooth("lgamma", x, lgamma_value, lgamma_slope)

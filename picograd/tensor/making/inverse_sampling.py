"""From uniform draws to other distributions, with the same bits on every device.

All is made of operations that every device rounds alike: exact arithmetic, `sqrt` and the
`portable` rows of the op table (docs/design/0009-random-bits.md). Draws u are multiples of a step
in [0, 1), in float32 or float64; narrower floats are rounded once, at the end.
"""

import math

from picograd.codegen.error_function import ERFC
from picograd.dtype import DType, float32, float64
from picograd.graph.node import Node
from picograd.tensor.math.transcendental import ROOT_PI, polynomial, with_sign

ROOT_2 = math.sqrt(2)
WINITZKI = 0.147  # of his estimate of erfinv (2008)
CENTRE = 2 / (math.pi * WINITZKI)


def wide_dtype(dtype: DType) -> DType:
    """Choose the float in which draws of a dtype are computed."""
    return float64 if dtype.bits == 64 else float32


def half_step(u: Node) -> float:
    """Give half the step between uniform draws."""
    return 2.0**-54 if u.dtype is float64 else 2.0**-25


def log(x: Node) -> Node:
    """Compute the logarithm."""
    return x.unary("portable_log")


def exp(x: Node) -> Node:
    """Compute the exponential function."""
    return x.unary("portable_exp")


def cos_turn(x: Node) -> Node:
    """Compute cos(2 pi x)."""
    return x.unary("portable_cos_turn")


def box_muller(u: Node, v: Node) -> Node:
    """Make a normal draw: sqrt(-2 log(1 - u)) cos(2 pi v)."""
    square = log(1.0 - u) * -2.0  # 1 - u is never 0
    radius = square.unary("sqrt")
    return radius * cos_turn(v)


def exponential(u: Node) -> Node:
    """Make a draw from exp(-x), x > 0: -log(1 - u), kept from 0 by half a step of u."""
    draw = -log(1.0 - u)
    least = half_step(u)
    return draw.binary("maximum", least)


def gumbel(u: Node) -> Node:
    """Make a draw from the Gumbel distribution: -log of an exponential draw."""
    return -log(exponential(u))


def cauchy(u: Node) -> Node:
    """Make a draw from the Cauchy distribution: tan(pi (u - 1/2)), finite also for u = 0."""
    least = half_step(u) - 0.5
    inside = (u - 0.5).binary("maximum", least)
    turn = inside * 0.5
    sine = cos_turn(turn - 0.25)
    return sine / cos_turn(turn)


def geometric(u: Node, p: float) -> Node:
    """Count the trials up to the first success of probability p."""
    waited = log(1.0 - u) / math.log1p(-p)
    return waited.unary("ceil").binary("maximum", 1.0)


def truncated_normal(u: Node, first: float, last: float) -> Node:
    """Make a standard normal draw, in float64, where erf(x / sqrt(2)) is from `first` to `last`."""
    limit = 1.0 - 2.0**-53
    middle = u * (last - first) + first
    middle = middle.binary("maximum", -limit)
    middle = middle.binary("minimum", limit)
    return erfinv(middle) * ROOT_2


def erfc(x: Node) -> Node:
    """Compute 1 - erf(x) for x >= 0, as `error_function.erfc` does."""
    t = 2.0 / (x + 2.0)
    fit = polynomial(ERFC, t * 2.0 - 1.0)
    return t * exp(fit - x * x)


def erfinv(x: Node) -> Node:
    """Invert erf between -1 and 1: Winitzki's estimate and three steps of Newton's method."""
    rest = 1.0 - x.unary("abs")
    logarithm = log(rest * (2.0 - rest))
    half = logarithm * 0.5 + CENTRE
    inner = half * half - logarithm / WINITZKI
    root = inner.unary("sqrt") - half
    y = root.binary("maximum", 0.0).unary("sqrt")
    for _ in range(3):
        slope = exp(y * y) * (ROOT_PI / 2)
        excess = erfc(y) - rest
        y = y + excess * slope
    return with_sign(y, x)

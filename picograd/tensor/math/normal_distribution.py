"""The normal distribution's functions: erfcx, its cumulative probability, logarithm and inverse.

Values are computed in float64 and rounded once. Definitions: NIST Digital Library of Mathematical
Functions, 7.2 and 7.12.
"""

import math

from picograd.codegen.erfc_fit import ERFC
from picograd.graph.node import Node
from picograd.tensor.core.function import within
from picograd.tensor.math.transcendental import (
    ROOT_PI,
    above,
    erfinv_value,
    known_slope,
    polynomial,
    signbit,
    smooth,
)

ROOT_2, ROOT_HALF = math.sqrt(2), math.sqrt(0.5)
ROOT_TWO_PI = math.sqrt(2 * math.pi)
# sqrt(pi) x erfcx(x) = 1 - 1 / (2 x^2) + 1 3 / (2 x^2)^2 - 1 3 5 / (2 x^2)^3 ...
TAIL = (1.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0)
NEWTON_STEPS = 6  # from the first estimate to the last digit of float64


def square_rest(x: Node, square: Node) -> Node:
    """Compute x^2 - square, the rounding error of the square, by Dekker's halves (1971)."""
    scaled = x * float(2**27 + 1)
    high = scaled - (scaled - x)
    low = x - high
    return high * high - square + high * low * 2 + low * low


def exp_square(x: Node) -> Node:
    """Compute exp(x^2) for |x| <= 30: an error in x^2 would be one of exp."""
    square = x * x
    return square.unary("exp") * (square_rest(x, square) + 1)


def over_root_two(x: Node) -> tuple[Node, Node]:
    """Compute x / sqrt(2), rounded, and what the rounding left out."""
    size = x * ROOT_HALF
    whole = x * x  # 2 size^2 - x^2 = 4 size (size - x / sqrt(2)), nearly
    square = size * size
    rest = (whole * 0.5 - square) + square_rest(x, whole) * 0.5 - square_rest(size, square)
    safe = size.binary("equal", 0.0).where(size.const_like(1.0), size)
    return size, rest / (safe * 2)


def half_erfc(x: Node) -> Node:
    """Compute erfc(x / sqrt(2)) / 2; the slope makes good what rounding x / sqrt(2) left out."""
    limited = x.binary("minimum", 50.0).binary("maximum", -50.0)
    size, rest = over_root_two(limited)
    share = rest * (size * size * -1).unary("exp") * (1 / ROOT_PI)
    value = size.unary("erfc") * 0.5 - share
    return x.unary("isnan").where(x, value)


def erfcx_value(x: Node) -> Node:
    """Compute exp(x^2) erfc(x): the fit of erfc without its exponential; beyond 50 the series."""
    size = x.unary("abs")
    is_far = above(size, 50.0)
    near = is_far.where(x.const_like(50.0), size)
    t = 2 / (near + 2)
    value = t * polynomial(ERFC, t * 2 - 1).unary("exp")
    inverse = is_far.where(size, 50.0).unary("reciprocal")
    tail = inverse * polynomial(TAIL, inverse * inverse * 0.5) * (1 / ROOT_PI)
    value = is_far.where(tail, value)
    return signbit(x).where(exp_square(x.binary("maximum", -30.0)) * 2 - value, value)


def erfcx_slope(x: Node, y: Node) -> Node:
    """Compute 2 x y - 2 / sqrt(pi)."""
    return x * y * 2 - 2 / ROOT_PI


@within("special", is_recorded=True)
def erfcx(node: Node) -> Node:
    """Compute exp(x^2) erfc(x) without overflow.

    >>> picograd.special.erfcx(picograd.Tensor([0.0])).tolist()
    [1.0]
    """
    return smooth("erfcx", node, erfcx_value, erfcx_slope, True)


@within("special", is_recorded=True)
def ndtr(node: Node) -> Node:
    """Compute the probability that a standard normal number is less than x.

    >>> picograd.special.ndtr(picograd.Tensor([0.0])).tolist()
    [0.5]
    """
    return smooth(
        "ndtr",
        node,
        lambda x: half_erfc(-x),
        lambda x, y: (x * x * -0.5).unary("exp") * (1 / ROOT_TWO_PI),
        True,
    )


def log_ndtr_value(x: Node) -> Node:
    """Compute log(ndtr(x)) without underflow of ndtr."""
    is_low = x.binary("less", -1.0)
    low = is_low.where(x, -1.0)
    tail = (erfcx_value(low * (-1 / ROOT_2)) * 0.5).unary("log") - low * low * 0.5
    high = is_low.where(x.const_like(0.0), x)
    return is_low.where(tail, (-half_erfc(high)).unary("log1p"))


def log_ndtr_slope(x: Node, y: Node) -> Node:
    """Compute sqrt(2 / pi) / erfcx(-x / sqrt(2))."""
    scaled = known_slope(x * (-1 / ROOT_2), erfcx_value, erfcx_slope)
    return scaled.unary("reciprocal") * math.sqrt(2 / math.pi)


@within("special", is_recorded=True)
def log_ndtr(node: Node) -> Node:
    """Compute log(ndtr(x)) without underflow.

    >>> round(picograd.special.log_ndtr(picograd.Tensor([-10.0])).item(), 2)
    -53.23
    """
    return smooth("log_ndtr", node, log_ndtr_value, log_ndtr_slope, True)


def ndtri_value(p: Node) -> Node:
    """Invert ndtr: Newton's method on log(ndtr(x)) - log(p), concave, for the lower half."""
    is_high = above(p, 0.5)
    low = is_high.where(1 - p, p)
    inside = above(low, 0.0)
    target = inside.where(low, 0.5).unary("log")
    x = -((target + math.log(2)) * -2).unary("sqrt") * inside.cast(p.dtype)
    for _ in range(NEWTON_STEPS):
        x = x - (log_ndtr_value(x) - target) / log_ndtr_slope(x, x)
    edge = low.binary("equal", 0.0).where(p.const_like(-math.inf), math.nan)
    value = inside.where(x, edge)
    middle = erfinv_value(p * 2 - 1) * ROOT_2  # relatively exact around 1/2, where x is 0
    is_middle = (p - 0.5).unary("abs").binary("less", 0.4)
    return is_middle.where(middle, is_high.where(-value, value))


@within("special", is_recorded=True)
def ndtri(node: Node) -> Node:
    """Find the x whose ndtr is p.

    >>> picograd.special.ndtri(picograd.Tensor([0.5, 1.0])).tolist()
    [0.0, inf]
    """
    return smooth(
        "ndtri", node, ndtri_value, lambda p, y: (y * y * 0.5).unary("exp") * ROOT_TWO_PI, True
    )


def entr_value(x: Node) -> Node:
    """Compute -x log(x): 0 at 0, -infinity below."""
    is_inside = above(x, 0.0)
    safe = is_inside.where(x, 1.0)
    is_zero = x.binary("equal", 0.0)
    edge = is_zero.where(x.const_like(0.0), -math.inf)
    value = is_inside.where(-(safe * safe.unary("log")), edge)
    return x.unary("isnan").where(x, value)


@within("special", is_recorded=True)
def entr(node: Node) -> Node:
    """Compute -x log(x): 0 at 0, -infinity below.

    >>> picograd.special.entr(picograd.Tensor([0.0, -1.0])).tolist()
    [0.0, -inf]
    """
    return smooth("entr", node, entr_value, lambda x, y: -x.unary("log") - 1)

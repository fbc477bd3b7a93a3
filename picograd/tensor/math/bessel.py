"""Modified Bessel functions of the first kind, orders 0 and 1, plain and scaled by exp(-|x|).

Values are computed in float64 from series and polynomials; gradients follow I0' = I1 and
I1' = I0 - I1 / x.
Coefficients were fitted for this project: interpolation at Chebyshev nodes in 40 digits (mpmath).
Definitions: NIST Digital Library of Mathematical Functions, 10.25 and 10.29.
"""

import math

from picograd.graph.node import Node
from picograd.tensor.core.function import recorded, within
from picograd.tensor.math.transcendental import above, known_slope, polynomial, smooth, with_sign

# I0(x) and 2 I1(x) / x as series in x^2 / 4, for 0 <= x <= 8; 1e-19 (DLMF 10.25.2)
SMALL0 = tuple(1 / math.factorial(k) ** 2 for k in range(27))
SMALL1 = tuple(1 / (math.factorial(k) * math.factorial(k + 1)) for k in range(27))
# exp(-x) sqrt(x) I0(x) and I1(x) for x >= 8, in t = 16 / x - 1; relative error 2e-16
LARGE0 = (
    0.4021765094450081, 0.0033605519836677235, 0.00013621607439187193, 1.1143033802583682e-05,
    1.4838475863096976e-06, 2.9735956581528157e-07, 8.872154618944625e-08, 3.932926571091252e-08,
    2.155681110989874e-08, 7.532386417555123e-09, -6.805980075129678e-09, -1.331979859201994e-08,
    -5.162517880939013e-09, 7.323310735122893e-09, 6.789790403895736e-09, -3.11851456121224e-09,
    -4.8482509221176966e-09, 1.0924527246468664e-09, 2.3981927228949238e-09, -2.748111637276033e-10,
    -7.473844621887592e-10, 3.525321019700796e-11, 1.0881994785468934e-10,
)  # fmt: skip
LARGE1 = (
    0.38939845902587233, -0.009749577193235609, -0.000219235763833829, -1.503854721127423e-05,
    -1.8349101539664522e-06, -3.483853071371078e-07, -1.0001220638799958e-07, -4.31323156237458e-08,
    -2.3382691353601083e-08, -8.407326839577817e-09, 6.795073490187386e-09, 1.3952625102162603e-08,
    5.722677527454156e-09, -7.432535335623792e-09, -7.222524178953976e-09, 3.0717395650769477e-09,
    5.094016301574338e-09, -1.0476127785270019e-09, -2.5062162405593894e-09, 2.582169443152386e-10,
    7.79067217908059e-10, -3.2677656089803323e-11, -1.13288885034257e-10,
)  # fmt: skip


def near(x: Node, order: int) -> Node:
    """Compute I(|x|) for |x| <= 8 by its series, all of whose terms are positive."""
    half = x.unary("abs").binary("minimum", 8.0) * 0.5
    series = polynomial(SMALL1 if order else SMALL0, half * half)
    return half * series if order else series


def far(x: Node, order: int) -> Node:
    """Compute exp(-|x|) I(|x|) for |x| >= 8."""
    size = x.unary("abs").binary("maximum", 8.0)
    fit = polynomial(LARGE1 if order else LARGE0, size.unary("reciprocal") * 16 - 1)
    return fit * size.unary("rsqrt")


def scaled(x: Node, order: int) -> Node:
    """Compute exp(-|x|) I(|x|)."""
    size = x.unary("abs")
    value = above(size, 8.0).where(far(x, order), near(x, order) * (-size).unary("exp"))
    return x.unary("isnan").where(x, value)


def plain(x: Node, order: int) -> Node:
    """Compute I(|x|), far out by exp(|x|) in two steps, as that may overflow where I does not."""
    size = x.unary("abs")
    root = (size * 0.5).unary("exp")
    value = above(size, 8.0).where(far(x, order) * root * root, near(x, order))
    return x.unary("isnan").where(x, value)


def value(x: Node, order: int, is_scaled: bool) -> Node:
    """Compute I(x), times exp(-|x|) if it is scaled; I1 is odd."""
    found = scaled(x, order) if is_scaled else plain(x, order)
    return with_sign(found, x) if order else found


def ratio(x: Node, y: Node) -> Node:
    """Compute y / x, which is 1/2 at 0 for I1."""
    is_zero = x.binary("equal", 0.0)
    return is_zero.where(x.const_like(0.5), y / is_zero.where(x.const_like(1.0), x))


def slope(x: Node, y: Node, order: int, is_scaled: bool) -> Node:
    """Compute I0' = I1, or I1' = I0 - I1 / x, less sign(x) y if it is scaled."""
    found = known_slope(x, value, slope, order=1 - order, is_scaled=is_scaled)
    found = found - x.unary("sign") * y if is_scaled else found
    return found - ratio(x, y) if order else found


@recorded(in_place=True)
@within("special", is_recorded=True)
def i0(node: Node) -> Node:
    """Compute the modified Bessel function I0.

    >>> picograd.special.i0(picograd.Tensor([0.0])).tolist()
    [1.0]
    """
    return smooth("i0", node, value, slope, True, order=0, is_scaled=False)


@within("special", is_recorded=True)
def i0e(node: Node) -> Node:
    """Compute exp(-|x|) I0(x).

    >>> picograd.special.i0e(picograd.Tensor([0.0])).tolist()
    [1.0]
    """
    return smooth("i0e", node, value, slope, True, order=0, is_scaled=True)


@within("special", is_recorded=True)
def i1(node: Node) -> Node:
    """Compute the modified Bessel function I1.

    >>> picograd.special.i1(picograd.Tensor([0.0])).tolist()
    [0.0]
    """
    return smooth("i1", node, value, slope, True, order=1, is_scaled=False)


@within("special", is_recorded=True)
def i1e(node: Node) -> Node:
    """Compute exp(-|x|) I1(x).

    >>> picograd.special.i1e(picograd.Tensor([0.0])).tolist()
    [0.0]
    """
    return smooth("i1e", node, value, slope, True, order=1, is_scaled=True)

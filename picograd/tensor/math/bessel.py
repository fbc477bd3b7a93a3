"""Modified Bessel functions of the first kind, orders 0 and 1, plain and scaled by exp(-|x|).

Values are series and polynomials, of float32 within 4 units in the last place; gradients follow
I0' = I1 and I1' = I0 - I1 / x.
Coefficients were fitted for this project: interpolation at Chebyshev nodes in 40 digits (mpmath),
those of float32 as in codegen/polynomial.py.
Definitions: NIST Digital Library of Mathematical Functions, 10.25 and 10.29.
"""

import math

from picograd.graph.node import Node
from picograd.tensor.core.function import recorded, within
from picograd.tensor.math.transcendental import above, known_slope, polynomial, smooth, with_sign

NEAREST = {32: 5.0, 64: 8.0}  # up to here in x^2 / 4, by the bits of the dtype
# I0(x) and 2 I1(x) / x: fits, relative error 1e-8, and series (DLMF 10.25.2), 1e-19
NEAR = {32: ((
    1.0, 1.000000238418579, 0.24999865889549255, 0.027780137956142426, 0.0017342520877718925,
    7.019280747044832e-05, 1.7700610897009028e-06, 5.600639951808262e-08,
), (
    1.0, 0.5000000596046448, 0.08333305269479752, 0.006944871973246336, 0.00034692406188696623,
    1.1681987416523043e-05, 2.5473914888607396e-07, 6.919973039032357e-09,
)), 64: tuple([
    tuple([1 / (math.factorial(k) * math.factorial(k + order)) for k in range(27)])
    for order in (0, 1)
])}  # fmt: skip
# exp(5 - x) sqrt(x) I0(x) and I1(x) beyond, in t = 2 nearest / x - 1; relative error 4e-8 and 2e-16
FAR = {32: ((
    59.99520492553711, 0.8400329351425171, 0.06089634448289871, 0.01003054529428482,
    0.00342714530415833, 0.0012867130571976304, -0.000282523047644645, -0.0003896980779245496,
), (
    56.91143798828125, -2.3819189071655273, -0.0954233780503273, -0.013050073757767677,
    -0.0040930393151938915, -0.0015350597677752376, 0.00029460262157954276, 0.0004372168914414942,
)), 64: ((
    59.68828628358089, 0.4987501362245573, 0.0202162579210493, 0.0016537728486282412,
    0.0002202225079109554, 4.413207255201648e-05, 1.3167444950440885e-05, 5.83698056934117e-06,
    3.199314436997593e-06, 1.1179052638106955e-06, -1.0100970037391871e-06, -1.9768333876517312e-06,
    -7.661855876336984e-07, 1.0868756812894012e-06, 1.0076942434865259e-06, -4.6282859773689406e-07,
    -7.195442354734674e-07, 1.621343600350587e-07, 3.5592335814164575e-07, -4.078559296546902e-08,
    -1.1092168909761396e-07, 5.2320402938451175e-09, 1.6150312234492097e-08,
), (
    57.79185545370495, -1.4469655511625286, -0.032537472298844974, -0.002231918299938452,
    -0.0002723248126195564, -5.170496401713959e-05, -1.484312749886191e-05, -6.401403221129536e-06,
    -3.47029909210844e-06, -1.247757935869625e-06, 1.008478323012881e-06, 2.0707531691858627e-06,
    8.493206503747934e-07, -1.1030860493014565e-06, -1.0719176300933029e-06, 4.558865727934445e-07,
    7.560190518366711e-07, -1.5547952197742027e-07, -3.7195546965560205e-07, 3.8322792439638665e-08,
    1.1562382696299048e-07, -4.849794172355262e-09, -1.6813561319142695e-08,
))}  # fmt: skip
EASED = 5.0  # exp of so much less does not overflow where I does not


def near(x: Node, order: int) -> Node:
    """Compute I(|x|) near 0 by a series, all of whose terms are positive."""
    bits = x.dtype.bits
    half = x.unary("abs").binary("minimum", NEAREST[bits]) * 0.5
    series = polynomial(NEAR[bits][order], half * half)
    return half * series if order else series


def far(x: Node, order: int) -> Node:
    """Compute exp(5 - |x|) I(|x|) far from 0."""
    nearest = NEAREST[x.dtype.bits]
    root = x.unary("abs").binary("maximum", nearest).unary("rsqrt")
    return polynomial(FAR[x.dtype.bits][order], root * root * (2 * nearest) - 1) * root


def chosen(x: Node, large: Node, small: Node) -> Node:
    """Choose what is computed far from 0, or near it; NaN stays."""
    value = above(x.unary("abs"), NEAREST[x.dtype.bits]).where(large, small)
    return x.unary("isnan").where(x, value)


def scaled(x: Node, order: int) -> Node:
    """Compute exp(-|x|) I(|x|)."""
    small = near(x, order) * (-x.unary("abs")).unary("exp")
    return chosen(x, far(x, order) * math.exp(-EASED), small)


def plain(x: Node, order: int) -> Node:
    """Compute I(|x|)."""
    return chosen(x, far(x, order) * (x.unary("abs") - EASED).unary("exp"), near(x, order))


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
    return smooth("i0", node, value, slope, order=0, is_scaled=False)


@within("special", is_recorded=True)
def i0e(node: Node) -> Node:
    """Compute exp(-|x|) I0(x).

    >>> picograd.special.i0e(picograd.Tensor([0.0])).tolist()
    [1.0]
    """
    return smooth("i0e", node, value, slope, order=0, is_scaled=True)


@within("special", is_recorded=True)
def i1(node: Node) -> Node:
    """Compute the modified Bessel function I1.

    >>> picograd.special.i1(picograd.Tensor([0.0])).tolist()
    [0.0]
    """
    return smooth("i1", node, value, slope, order=1, is_scaled=False)


@within("special", is_recorded=True)
def i1e(node: Node) -> Node:
    """Compute exp(-|x|) I1(x).

    >>> picograd.special.i1e(picograd.Tensor([0.0])).tolist()
    [0.0]
    """
    return smooth("i1e", node, value, slope, order=1, is_scaled=True)

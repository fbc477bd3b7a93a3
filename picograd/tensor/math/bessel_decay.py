"""Modified Bessel functions of the second kind, orders 0 and 1, plain and scaled by exp(x).

Gradients follow K0' = -K1 and K1' = -K0 - K1 / x.
Coefficients were fitted for this project: interpolation at Chebyshev nodes in 50 digits (mpmath).
Definitions: NIST Digital Library of Mathematical Functions, 10.25, 10.29 and 10.31.
"""

import math

from picograd.graph.node import Node
from picograd.tensor.core.function import within
from picograd.tensor.math import bessel
from picograd.tensor.math.transcendental import above, known_slope, polynomial, smooth

END = 2.0
# for x <= 2, in t = x^2 / 2 - 1: K0(x) + log(x) I0(x) and (K1(x) - log(x) I1(x) - 1 / x) / x; then
# exp(x) sqrt(x) K(x) for x >= 2, in t = 4 / x - 1
K0 = (
    0.7819051943679178, 0.7812430851107339, 0.12278562011464678, 0.00777646646981443,
    0.0002658589288253285, 5.6886558483558625e-06, 8.336543810883835e-08, 8.891855786815693e-10,
    7.212483213466006e-12, 4.599367347935576e-14, 2.3662147662312846e-16,
)  # fmt: skip
K1 = (
    -0.49820162023255865, -0.21068184102943455, -0.02142386442877562, -0.001004688143150579,
    -2.7280508484366524e-05, -4.841738921130948e-07, -6.061898763274258e-09, -5.643777985695717e-11,
    -4.061614593078465e-13, -2.3275906252642427e-15, -1.0872988148265948e-17,
)  # fmt: skip
K0_LARGE = (
    1.2185953385133905, -0.031071461824889863, 0.003032891810274143, -0.00047976905673534966,
    9.95605474680701e-05, -2.4735205374482363e-05, 7.002244891192467e-06, -2.191167925216506e-06,
    7.427862249156294e-07, -2.6897300718519323e-07, 1.0292557328065749e-07, -4.106658027115221e-08,
    1.713185600678902e-08, -8.004851515961861e-09, 3.649704196745876e-09, -6.909445532095268e-10,
    2.3928247577454007e-10, -1.2154646925329214e-09, 6.696909677353191e-10, 4.297822831935991e-10,
    -2.511583623750801e-10, -1.7415792636713548e-10, 9.815402008859526e-11,
)  # fmt: skip
K1_LARGE = (
    1.363151890371342, 0.1033497377538656, -0.005566729880073309, 0.0007357241548745106,
    -0.0001395902196146278, 3.2843866443823695e-05, -8.961206568008175e-06, 2.7300306911646126e-06,
    -9.067153917791994e-07, 3.230534911986308e-07, -1.2200063909110853e-07, 4.8165011477502914e-08,
    -1.990916912542139e-08, 9.191838293612963e-09, -4.159564044495663e-09, 8.254002611298962e-10,
    -2.915889725458638e-10, 1.3385849977465314e-09, -7.347807544194839e-10, -4.671582670762342e-10,
    2.7260400995214217e-10, 1.9076899650576552e-10, -1.0724391572705258e-10,
)  # fmt: skip
SMALL, LARGE = (K0, K1), (K0_LARGE, K1_LARGE)


def near(x: Node, order: int) -> Node:
    """Compute K(x) for 0 < x <= 2."""
    inside = x.binary("minimum", END)
    series = polynomial(SMALL[order], inside * inside * 0.5 - 1)
    wave = inside.unary("log") * bessel.near(inside, order)
    return inside * series + wave + inside.unary("reciprocal") if order else series - wave


def second_kind(x: Node, order: int, is_scaled: bool) -> Node:
    """Compute K(x), times exp(x) if it is scaled: infinity at 0, no number below."""
    inside = above(x, 0.0).where(x, x.const_like(1.0))
    outer = inside.binary("maximum", END)
    large = polynomial(LARGE[order], outer.unary("reciprocal") * 4 - 1) * outer.unary("rsqrt")
    small = near(inside, order)
    if is_scaled:
        small = small * inside.binary("minimum", END).unary("exp")
    else:
        large = large * (-outer).unary("exp")
    value = above(x, END).where(large, small)
    edge = x.binary("equal", 0.0).where(x.const_like(math.inf), x.const_like(math.nan))
    return above(x, 0.0).where(value, edge)


def slope(x: Node, y: Node, order: int, is_scaled: bool) -> Node:
    """Compute K0' = -K1, or K1' = -K0 - K1 / x, and y more if it is scaled."""
    other = known_slope(x, second_kind, slope, order=1 - order, is_scaled=is_scaled)
    found = y - other if is_scaled else -other
    if order == 0:
        return found
    return found - y / x


@within("special", "modified_bessel_k0", is_recorded=True)
def k0(node: Node) -> Node:
    """Compute the modified Bessel function of the second kind K0.

    >>> picograd.special.modified_bessel_k0(Tensor([0.0])).tolist()
    [inf]
    """
    return smooth("modified_bessel_k0", node, second_kind, slope, True, order=0, is_scaled=False)


@within("special", "modified_bessel_k1", is_recorded=True)
def k1(node: Node) -> Node:
    """Compute the modified Bessel function of the second kind K1.

    >>> picograd.special.modified_bessel_k1(Tensor([0.0])).tolist()
    [inf]
    """
    return smooth("modified_bessel_k1", node, second_kind, slope, True, order=1, is_scaled=False)


@within("special", "scaled_modified_bessel_k0", is_recorded=True)
def k0e(x: Node) -> Node:
    """Compute exp(x) K0(x).

    >>> picograd.special.scaled_modified_bessel_k0(Tensor([0.0])).tolist()
    [inf]
    """
    return smooth("scaled_modified_bessel_k0", x, second_kind, slope, True, order=0, is_scaled=True)


@within("special", "scaled_modified_bessel_k1", is_recorded=True)
def k1e(x: Node) -> Node:
    """Compute exp(x) K1(x).

    >>> picograd.special.scaled_modified_bessel_k1(Tensor([0.0])).tolist()
    [inf]
    """
    return smooth("scaled_modified_bessel_k1", x, second_kind, slope, True, order=1, is_scaled=True)

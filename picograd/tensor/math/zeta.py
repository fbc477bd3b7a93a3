"""Hurwitz's zeta function and the derivatives of digamma, in float64 on the device.

Zeta is computed by Euler and Maclaurin's formula. Definitions: NIST Digital Library of
Mathematical Functions, 5.15 and 25.11. Every derivative of a polygamma function is the next one.
"""

import math

from picograd.dtype import float64
from picograd.graph.build_composite import custom
from picograd.graph.gradient import Refused
from picograd.graph.node import Node

# B(2k) / (2k)!: Bernoulli's numbers over factorials
EULER = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
    -3617 / 10670622842880000,
)  # fmt: skip
LARGEST_FACTORIAL = 170  # n! that float64 holds
TERMS = 12  # summed one by one before the formula takes over


def zeta_value(x: Node, q: Node, scale: float = 1.0) -> Node:
    """Sum scale (q + k)^-x over k >= 0, in float64: some terms, then Euler and Maclaurin's formula.

    Small parts are added first, so that hardly more than the last addition rounds.
    """
    # Where q is large the formula serves at once, and the terms would only round: what it
    # leaves out is 2 (2 pi)^-18 x (x + 1) ... (x + 16) (x - 1) / q^18 < 1e-17 from 2 x + 14 on.
    is_far = q.const_like(14.0).binary("less", q - x * 2)
    end = is_far.where(q, q + TERMS)
    power = end.binary("pow", -x) * scale
    factor, inverse = (power * x / end, (end * end).unary("reciprocal"))
    parts = [power * 0.5]
    for number, coefficient in enumerate(EULER):
        parts.append(factor * coefficient)
        first = 2 * number + 1
        factor = factor * (x + first) * (x + (first + 1)) * inverse
    # a power of its own: end^-x may underflow where end^(1 - x) does not
    total = parts.pop()
    for part in reversed(parts):
        total = total + part
    total = total + end.binary("pow", 1 - x) * (scale / (x - 1))
    for step in reversed(range(TERMS)):
        term = (q + step).binary("pow", -x) * scale
        total = is_far.where(total, total + term)
    return total


def is_positive(x: Node) -> Node:
    """Tell which elements are greater than 0."""
    return x.const_like(0.0).binary("less", x)


def zeta_edges(x: Node, q: Node, value: Node) -> Node:
    """Give infinity at x = 1 and at the poles q = 0, -1, ..., NaN for x < 1 and other q < 0."""
    is_low = is_positive(q).unary("logical_not")
    is_pole = is_low.binary("logical_and", q.binary("equal", q.unary("floor")))
    below = is_pole.where(x.const_like(math.inf), math.nan)
    value = is_low.where(below, value)
    value = x.binary("equal", 1.0).where(x.const_like(math.inf), value)
    value = x.binary("less", 1.0).where(x.const_like(math.nan), value)
    return x.unary("isnan").where(x, q.unary("isnan").where(q, value))


def zeta_in_double(x: Node, q: Node) -> Node:
    """Compute zeta in float64; its gradient reaches q, and is refused for x."""
    value = zeta_edges(x, q, zeta_value(x, is_positive(q).where(q, 1.0)))

    def vjp(g: Node, y: Node, x: Node, q: Node) -> list[Node | Refused]:
        return [Refused("zeta", "its first argument"), -(g * x * zeta_in_double(x + 1, q))]

    return custom(value, (x, q), vjp)


def cotangent_slopes(order: int) -> list[int]:
    """List the coefficients of the polynomial P with cot^(n)(t) = P(cot t), lowest first.

    With c = cot t, c' = -(1 + c^2): each P is -(1 + c^2) times the derivative of the one before.
    """
    found = [0, 1]
    for _ in range(order):
        slope = [power * each for power, each in enumerate(found)][1:]
        found = [0] * (len(slope) + 2)
        for power, each in enumerate(slope):
            found[power] -= each
            found[power + 2] -= each
    return found


def polygamma_value(order: int, x: Node) -> Node:
    """Compute the derivative of digamma of an order >= 1 in float64, by reflection below 0.

    Above, the first term of zeta is most of it near 0, while powers of the cotangent there would
    multiply its rounding errors. The function is (-1)^(n + 1) n! zeta(n + 1, x), and what it
    differs by at 1 - x is the n-th derivative of pi cot(pi x). At the poles 0, -1, ... it is
    infinite.
    """
    sign = (-1) ** (order + 1)
    if order > LARGEST_FACTORIAL:  # as in PyTorch: the factorial is infinite in float64
        return x.binary("equal", math.inf).where(x.const_like(0.0), x * 0.0 + sign * math.inf)
    is_low = x.binary("less_equal", 0.0)
    place = is_low.where(1 - x, x)
    inner = zeta_value(place.const_like(float(order + 1)), place, float(math.factorial(order)))
    inner = inner if sign > 0 else -inner
    angle = (x - x.unary("floor")) * math.pi
    cotangent = angle.unary("cos") / angle.unary("sin")
    *rest, last = cotangent_slopes(order)
    turned = cotangent.const_like(float(last))
    for coefficient in reversed(rest):
        turned = turned * cotangent + float(coefficient)
    reflected = inner * -sign - turned * math.pi ** (order + 1)
    is_pole = angle.binary("equal", 0.0)
    reflected = is_pole.where(x.const_like(sign * math.inf), reflected)
    value = is_low.where(reflected, inner)
    return x.binary("equal", math.inf).where(x.const_like(0.0), value)


def polygamma_in_double(order: int, x: Node) -> Node:
    """Compute the derivative of digamma of an order >= 1; its gradient is the next order."""
    value = polygamma_value(order, x)
    return custom(value, (x,), lambda g, y, x: (g * polygamma_in_double(order + 1, x),))


def polygamma_of(order: int, x: Node) -> Node:
    """Compute the derivative of digamma of an order >= 1 in the dtype of x."""
    return polygamma_in_double(order, x.cast(float64)).cast(x.dtype)

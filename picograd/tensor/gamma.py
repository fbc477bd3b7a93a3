"""Relatives of the gamma function: Hurwitz's zeta, polygamma, incomplete gamma functions.

Definitions: NIST Digital Library of Mathematical Functions, 5.15, 8.2 and 25.11. Zeta is computed
on the device in float64 by Euler and Maclaurin's formula. The incomplete gamma functions take as
many steps as their arguments need, and are computed by NumPy on the host, at once; inside `jit`
they are an error.
"""

import math
from typing import Any

import numpy as np

from picograd.dtype import float64
from picograd.engine.realize import node_from_numpy
from picograd.errors import ValueRangeError
from picograd.graph import build
from picograd.graph.build_composite import custom
from picograd.graph.node import Node
from picograd.tensor import host, special
from picograd.tensor.operands import Operand, floating, pair

Array = Any
# B(2k) / (2k)!: Bernoulli's numbers over factorials
EULER = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
)
TERMS = 12  # summed one by one before the formula takes over
STEPS = 100_000  # more than an incomplete gamma function of any argument below 1e8 takes
TINY = 1e-300


def zeta_value(x: Node, q: Node) -> Node:
    """Sum (q + k)^-x over k >= 0, in float64: some terms, then Euler and Maclaurin's formula."""
    total = q.binary("pow", -x)
    for step in range(1, TERMS):
        total = total + (q + step).binary("pow", -x)
    end = q + TERMS
    power = end.binary("pow", -x)
    total = total + power * end / (x - 1) + power * 0.5
    factor, inverse = power * x / end, (end * end).unary("reciprocal")
    for number, coefficient in enumerate(EULER):
        total = total + factor * coefficient
        first = 2 * number + 1
        factor = factor * (x + first) * (x + (first + 1)) * inverse
    return total


def zeta_edges(x: Node, q: Node, value: Node) -> Node:
    """Give infinity at x = 1 and at the poles q = 0, -1, ..., NaN for x < 1 and other q < 0."""
    is_low = special.above(q, 0.0).unary("logical_not")
    is_pole = is_low.binary("logical_and", q.binary("equal", q.unary("floor")))
    below = is_pole.where(x.const_like(math.inf), math.nan)
    value = is_low.where(below, value)
    value = x.binary("equal", 1.0).where(x.const_like(math.inf), value)
    value = x.binary("less", 1.0).where(x.const_like(math.nan), value)
    return x.unary("isnan").where(x, q.unary("isnan").where(q, value))


def zeta_in_double(x: Node, q: Node) -> Node:
    """Compute zeta in float64; its gradient reaches q."""
    safe = special.above(q, 0.0).where(q, 1.0)
    value = zeta_edges(x, q, zeta_value(x, safe))

    def vjp(g: Node, y: Node, x: Node, q: Node) -> list[Node | None]:
        return [None, -(g * x * zeta_in_double(x + 1, q))]

    return custom(value, (x, q), vjp)


def zeta(a: Operand, b: Operand) -> Node:
    """Compute Hurwitz's zeta function of x = a and q = b."""
    x, q = pair("zeta", a, b, floating=True)
    return zeta_in_double(x.cast(float64), q.cast(float64)).cast(x.dtype)


def polygamma(node: Node, order: int) -> Node:
    """Compute the derivative of digamma of an order: (-1)^(n + 1) n! zeta(n + 1, x) from 1 on."""
    if isinstance(order, bool) or not isinstance(order, int) or order < 0:
        raise ValueRangeError(
            "polygamma", f"n is {order!r}", "use a whole number >= 0"
        )
    if order == 0:
        return special.digamma(node)
    if order == 1:
        return special.smooth(
            "polygamma",
            node,
            special.trigamma_value,
            lambda x, y: polygamma(x, 2),
            True,
        )
    x = floating("polygamma", node)
    q = x.cast(float64)
    factor = float(math.factorial(order)) * (-1) ** (order + 1)
    return (zeta_in_double(q.const_like(float(order + 1)), q) * factor).cast(
        x.dtype
    )


def multigammaln(node: Node, p: int) -> Node:
    """Compute the logarithm of the multivariate gamma function of dimension p."""
    if isinstance(p, bool) or not isinstance(p, int) or p < 1:
        raise ValueRangeError(
            "multigammaln", f"p is {p!r}", "use a whole number >= 1"
        )
    x = floating("multigammaln", node)
    total = x.const_like(p * (p - 1) / 4 * math.log(math.pi))
    for step in range(p):
        total = total + special.lgamma(x - step / 2)
    return total


# incomplete gamma functions


def lower_series(a: Array, x: Array) -> Array:
    """Sum x^n / ((a + 1) ... (a + n)): the series of the lower function, good for x < a + 1."""
    term = np.ones_like(a)
    total = term.copy()
    for step in range(1, STEPS):
        term = term * x / (a + step)
        total = total + term
        if not (np.abs(term) > 1e-17 * np.abs(total)).any():
            break
    return total / a


def upper_fraction(a: Array, x: Array) -> Array:
    """Evaluate the continued fraction of the upper function, good for x >= a + 1 (Lentz, 1976)."""
    b = x + 1 - a
    c, d = np.full_like(b, 1 / TINY), 1 / np.where(b == 0, TINY, b)
    total = d.copy()
    for step in range(1, STEPS):
        factor = step * (a - step)
        b = b + 2
        d = factor * d + b
        c = b + factor / c
        d = 1 / np.where(d == 0, TINY, d)
        change = d * np.where(c == 0, TINY, c)
        total = total * change
        if not (np.abs(change - 1) > 1e-16).any():
            break
    return total


def log_gamma(a: Array) -> Array:
    """Compute log(gamma(a)) of every element."""
    return np.vectorize(math.lgamma, otypes=[float])(a)


def lower_share(a: Array, x: Array) -> tuple[Array, Array]:
    """Compute the regularised lower and upper incomplete gamma functions of float64 arrays."""
    lower = np.full(a.shape, np.nan)
    lower[(a > 0) & (x == 0)] = 0.0
    lower[(a >= 0) & np.isfinite(a) & (x == np.inf)] = 1.0
    lower[(a == 0) & (x > 0)] = 1.0
    lower[(a == np.inf) & (x >= 0) & np.isfinite(x)] = 0.0
    upper = 1 - lower
    inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    for is_low in (True, False):
        here = inside & ((x < a + 1) == is_low)
        if here.any():
            each, at = a[here], x[here]
            with np.errstate(all="ignore"):
                scale = np.exp(each * np.log(at) - at - log_gamma(each))
                share = scale * (lower_series if is_low else upper_fraction)(
                    each, at
                )
            lower[here] = share if is_low else 1 - share
            upper[here] = 1 - share if is_low else share
    return lower, upper


def incomplete(op: str, a: Operand, b: Operand) -> Node:
    """Compute igamma (lower) or igammac (upper) with the gradient of x; there is none for a."""
    first, second = pair(op, a, b, floating=True)
    order, x = build.detach(first).cast(float64), second.cast(float64)
    arrays = [host.values_of(op, build.detach(each)) for each in (order, x)]
    found = lower_share(*arrays)[op == "igammac"]
    value = node_from_numpy(np.asarray(found), float64, x.device)
    sign = 1.0 if op == "igamma" else -1.0

    def vjp(g: Node, y: Node, x: Node, order: Node) -> list[Node | None]:
        density = ((order - 1) * x.unary("log") - x - special.lgamma(order)).unary(
            "exp"
        )
        return [g * density * sign, None]

    return custom(value, (x, order), vjp).cast(first.dtype)


def igamma(a: Operand, b: Operand) -> Node:
    """Compute the regularised lower incomplete gamma function."""
    return incomplete("igamma", a, b)


def igammac(a: Operand, b: Operand) -> Node:
    """Compute the regularised upper incomplete gamma function."""
    return incomplete("igammac", a, b)

"""Relatives of the gamma function: Hurwitz's zeta, polygamma, incomplete gamma functions.

Definitions: NIST Digital Library of Mathematical Functions, 5.15 and 8.2. The incomplete gamma
functions take as many steps as their arguments need, and are computed by NumPy on the host, at
once; inside `jit` they are an error.
"""

import math
from typing import Any

import numpy as np

from picograd.dtype import float64
from picograd.engine.realize import node_from_numpy
from picograd.errors import ValueRangeError
from picograd.graph import build
from picograd.graph.build_composite import custom
from picograd.graph.gradient import Refused
from picograd.graph.node import Node
from picograd.tensor import host, special
from picograd.tensor.operands import Operand, floating, pair
from picograd.tensor.zeta import polygamma_of, zeta_in_double

Array = Any
STEPS = 100_000  # more than an incomplete gamma function of any argument below 1e8 takes
TINY = 1e-300


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
            special.trigamma_slope,
            True,
        )
    return polygamma_of(order, floating("polygamma", node))


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
    if not a.ndim:  # NumPy's arithmetic makes numbers of these
        lower, upper = lower_share(a.reshape(1), x.reshape(1))
        return lower.reshape(()), upper.reshape(())
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
    order, x = first.cast(float64), second.cast(float64)
    arrays = [host.values_of(op, build.detach(each)) for each in (order, x)]
    found = lower_share(*arrays)[op == "igammac"]
    value = node_from_numpy(np.asarray(found), float64, x.device)
    sign = 1.0 if op == "igamma" else -1.0

    def vjp(g: Node, y: Node, x: Node, order: Node) -> list[Node | Refused]:
        density = ((order - 1) * x.unary("log") - x - special.lgamma(order)).unary(
            "exp"
        )
        return [g * density * sign, Refused(op, "its first argument")]

    return custom(value, (x, order), vjp).cast(first.dtype)


def igamma(a: Operand, b: Operand) -> Node:
    """Compute the regularised lower incomplete gamma function."""
    return incomplete("igamma", a, b)


def igammac(a: Operand, b: Operand) -> Node:
    """Compute the regularised upper incomplete gamma function."""
    return incomplete("igammac", a, b)

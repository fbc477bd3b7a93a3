"""Relatives of the gamma function: Hurwitz's zeta, polygamma, incomplete gamma functions.

Definitions: NIST Digital Library of Mathematical Functions, 5.15 and 8.2. The incomplete gamma
functions are host calls (graph/host_call.py).
"""

import math

from picograd.dtype import float64
from picograd.errors import ValueRangeError
from picograd.graph.build_composite import custom
from picograd.graph.gradient import Refused
from picograd.graph.host_call import host_call
from picograd.graph.node import Node
from picograd.graph.room import check_size
from picograd.tensor.core.function import recorded, within
from picograd.tensor.core.operands import Operand, floating, pair
from picograd.tensor.math import log_gamma, transcendental
from picograd.tensor.math.zeta import polygamma_of, zeta_in_double

SPELT_OUT = 16  # terms of multigammaln that are each a node of their own


@within("special", is_recorded=True)
def zeta(a: Operand, other: Operand) -> Node:
    """Compute Hurwitz's zeta function: the sum of (other + k) ** -input over k >= 0.

    Gradients reach `other`. Negative `other` that are no poles give NaN.

    >>> round(picograd.special.zeta(picograd.Tensor([2.0]), 1.0).item(), 4)
    1.6449
    """
    x, q = pair("zeta", a, other, floating=True)
    return zeta_in_double(x.cast(float64), q.cast(float64)).cast(x.dtype)


@recorded(function=False, in_place=True)
def polygamma(x: Node, n: int) -> Node:
    """Compute the n-th derivative of digamma: `x.polygamma(1)`."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise ValueRangeError("polygamma", f"n is {n!r}", "use a whole number >= 0")
    if n == 0:
        return transcendental.digamma(x)
    if n == 1:
        return transcendental.smooth(
            "polygamma", x, transcendental.trigamma_value, transcendental.trigamma_slope, True
        )
    return polygamma_of(n, floating("polygamma", x))


@recorded("mvlgamma", in_place=True)
@within("special", is_recorded=True)
def multigammaln(x: Node, p: int) -> Node:
    """Compute the logarithm of the multivariate gamma function of dimension p.

    >>> round(picograd.special.multigammaln(picograd.Tensor([2.0]), 2).item(), 4)
    0.4516
    """
    if isinstance(p, bool) or not isinstance(p, int) or p < 1:
        raise ValueRangeError("multigammaln", f"p is {p!r}", "use a whole number >= 1")
    x = floating("multigammaln", x)
    total = x.const_like(p * (p - 1) / 4 * math.log(math.pi))
    if p > SPELT_OUT:
        shape = (*x.shape, p)
        check_size("multigammaln", shape, x.dtype.itemsize)
        wide = x.reshape((*x.shape, 1)).expand(shape)
        terms = log_gamma.lgamma(wide - wide.iota(x.rank).cast(x.dtype) / 2)
        return total + terms.reduce("sum", (x.rank,))
    for step in range(p):
        total = total + log_gamma.lgamma(x - step / 2)
    return total


# incomplete gamma functions


def incomplete(op: str, a: Operand, b: Operand) -> Node:
    """Compute igamma (lower) or igammac (upper) with the gradient of x; there is none for a."""
    first, second = pair(op, a, b, floating=True)
    order, x = first.cast(float64), second.cast(float64)
    value = host_call(op, order, x)
    sign = 1.0 if op == "igamma" else -1.0

    def vjp(g: Node, y: Node, x: Node, order: Node) -> list[Node | Refused]:
        density = ((order - 1) * x.unary("log") - x - log_gamma.lgamma(order)).unary("exp")
        return [g * density * sign, Refused(op, "its first argument")]

    return custom(value, (x, order), vjp).cast(first.dtype)


@recorded(in_place=True)
@within("special", "gammainc", is_recorded=True)
def igamma(a: Operand, other: Operand) -> Node:
    """Compute the regularised lower incomplete gamma function of a and x = other.

    Computed on the host, at once; gradients reach x alone.

    >>> round(picograd.special.gammainc(picograd.Tensor([1.0]), 1.0).item(), 4)
    0.6321
    """
    return incomplete("igamma", a, other)


@recorded(in_place=True)
@within("special", "gammaincc", is_recorded=True)
def igammac(a: Operand, other: Operand) -> Node:
    """Compute the regularised upper incomplete gamma function of a and x = other.

    Computed on the host, at once; gradients reach x alone.

    >>> round(picograd.special.gammaincc(picograd.Tensor([1.0]), 1.0).item(), 4)
    0.3679
    """
    return incomplete("igammac", a, other)

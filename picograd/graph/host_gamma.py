"""Host calls of the incomplete gamma functions of float64, element by element.

Definitions: NIST Digital Library of Mathematical Functions, 8.2. They take as many steps as their
arguments need. Their gradient is made of other operations (tensor/math/gamma.py).
"""

import math
from typing import Any

import numpy as np

from picograd.graph.host_call import HostFunction, functions

Array = Any
STEPS = 100_000  # more than an incomplete gamma function of any argument below 1e8 takes
TINY = 1e-300
CLOSE = 4 * np.finfo(np.float64).eps  # a factor that has settled still moves by one or two


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
    c = np.full_like(b, 1 / TINY)
    d = 1 / np.where(b == 0, TINY, b)
    total = d.copy()
    for step in range(1, STEPS):
        factor = step * (a - step)
        b = b + 2
        d = factor * d + b
        c = b + factor / c
        d = 1 / np.where(d == 0, TINY, d)
        change = d * np.where(c == 0, TINY, c)
        total = total * change
        if not (np.abs(change - 1) > CLOSE).any():
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
    finite_a = np.isfinite(a)
    finite_x = np.isfinite(x)
    lower = np.full(a.shape, np.nan)
    lower[(a > 0) & (x == 0)] = 0.0
    lower[(a >= 0) & finite_a & (x == np.inf)] = 1.0
    lower[(a == 0) & (x > 0)] = 1.0
    lower[(a == np.inf) & (x >= 0) & finite_x] = 0.0
    upper = 1 - lower
    inside = (a > 0) & (x > 0) & finite_a & finite_x
    for is_low in (True, False):
        here = inside & ((x < a + 1) == is_low)
        if here.any():
            each, at = a[here], x[here]
            with np.errstate(all="ignore"):
                scale = np.exp(each * np.log(at) - at - log_gamma(each))
                share = scale * (lower_series if is_low else upper_fraction)(each, at)
            lower[here] = share if is_low else 1 - share
            upper[here] = 1 - share if is_low else share
    return lower, upper


INCOMPLETE = functions(
    HostFunction("igamma", lambda a, x: lower_share(a, x)[0], lambda a, x: x),
    HostFunction("igammac", lambda a, x: lower_share(a, x)[1], lambda a, x: x),
)

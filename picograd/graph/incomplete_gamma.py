"""Host calls of the incomplete gamma functions of float64, element by element.

Definitions: NIST Digital Library of Mathematical Functions, 8.2. They take as many steps as their
arguments need. Their gradient is made of other operations (tensor/math/gamma.py).
"""

import math
from typing import Any

import numpy as np

from picograd.graph.host_call import HostFunction, functions

Array = Any

STEPS = 100_000  # more than an incomplete gamma function of any argument below LARGE takes
LARGE = 1e6  # from here on four digits of the exponent would be lost, and two terms are enough
FEW = 0.2  # up to here 1 less the lower function loses digits of the upper one
SMALL_TERMS = 25  # FEW ** 25 is below 2 ** -53, and so is 1.2 ** 25 / 25!
BERNOULLI = {2: 1 / 12, 4: -1 / 720, 6: 1 / 30240}  # of numbers, by factorials
ETA = 1 / 2835, 1 / 864, -2 / 135, 1 / 12, -1 / 3  # coefficients of Temme's first term
TINY = 1e-300
CLOSE = 4 * np.finfo(np.float64).eps  # a factor that has settled still moves by one or two


def lower_series(a: Array, x: Array) -> Array:
    """Sum x^n / ((a + 1) ... (a + n)): that of the lower function times a, good for x < a + 1."""
    term = np.ones_like(a)
    total = term.copy()
    for step in range(1, STEPS):
        term = term * x / (a + step)
        total = total + term
        if not (np.abs(term) > 1e-17 * np.abs(total)).any():
            break
    return total


def zeta(k: int, n: int = 60) -> float:
    """Compute Riemann's zeta function at k >= 2: n terms, and the rest by Euler and Maclaurin."""
    terms = math.fsum(float(each) ** -k for each in range(1, n))
    rest = 1 / (k - 1) + 1 / (2 * n)
    for order, factor in BERNOULLI.items():
        rest += factor * math.prod(range(k, k + order - 1)) / n**order
    return terms + rest * float(n) ** (1 - k)


def upper_of_small(a: Array, x: Array) -> Array:
    """Compute the upper function of a <= FEW and x < a + 1, where the lower one is almost 1.

    1 - x^a / gamma(a + 1) (1 + a sum of (-x)^n / (n! (a + n))), whose 1 is left out of both parts.
    """
    log = -np.euler_gamma * a
    for k in range(2, SMALL_TERMS):
        factor = zeta(k) / k
        log = log + factor * (-a) ** k
    term = np.ones_like(a)
    total = np.zeros_like(a)
    for n in range(1, SMALL_TERMS):
        term = term * -x / n
        total = total + term / (a + n)
    power = a * np.log(x) - log
    rest = np.exp(power) * a * total
    return -np.expm1(power) - rest


def not_zero(x: Array) -> Array:
    """Put a tiny number in the place of 0, to divide by."""
    return np.where(x == 0, TINY, x)


def upper_fraction(a: Array, x: Array) -> Array:
    """Evaluate the continued fraction of the upper function, good for x >= a + 1 (Lentz, 1976)."""
    b = x + 1 - a
    c = np.full_like(b, 1 / TINY)
    d = 1 / not_zero(b)
    total = d.copy()
    for step in range(1, STEPS):
        factor = step * (a - step)
        b = b + 2
        d = factor * d + b
        c = b + factor / c
        d = 1 / not_zero(d)
        change = d * not_zero(c)
        total = total * change
        if not (np.abs(change - 1) > CLOSE).any():
            break
    return total


def shares_of_large(a: Array, x: Array) -> tuple[Array, Array]:
    """Compute the lower and the upper function of large a (Temme, 1979, "The asymptotic expansion
    of the incomplete gamma functions", SIAM J. Math. Anal. 10).

    Where neither is 0 or 1 eta is below 0.04, so that few terms of its coefficients are enough.
    """
    mu = (x - a) / a
    powers = [(-mu) ** n / n for n in range(2, 9)]  # of mu - log(1 + mu), which cancels
    is_near = np.abs(mu) < 1e-2
    distance = mu - np.log1p(mu)
    distance = np.where(is_near, sum(powers), distance)
    eta = np.sign(mu) * np.sqrt(2 * distance)
    first = np.polyval(ETA, eta)
    second = -1 / 540 - eta / 288
    exponent = a * distance
    scale = np.sqrt(2 * np.pi * a)
    rest = np.exp(-exponent) / scale
    rest = rest * (first + second / a)
    rest = np.where(exponent < 700, rest, 0.0)
    erfc = np.vectorize(math.erfc, otypes=[float])
    place = eta * np.sqrt(a / 2)
    return erfc(-place) / 2 - rest, erfc(place) / 2 + rest


def log_gamma(a: Array) -> Array:
    """Compute log(gamma(a)) of every element."""
    return np.vectorize(math.lgamma, otypes=[float])(a)


def lower_share(a: Array, x: Array) -> tuple[Array, Array]:
    """Compute the regularised lower and upper incomplete gamma functions of float64 arrays."""
    if not a.ndim:  # NumPy's arithmetic makes numbers of these
        found = lower_share(a.reshape(1), x.reshape(1))
        return found[0].reshape(()), found[1].reshape(())
    finite_a = np.isfinite(a)
    finite_x = np.isfinite(x)
    ends = [
        (a > 0) & (x == 0),
        (a >= 0) & finite_a & (x == np.inf),
        (a == 0) & (x > 0),
        (a == np.inf) & (x >= 0) & finite_x,
    ]
    lower = np.select(ends, [0.0, 1.0, 1.0, 0.0], np.nan)
    upper = 1 - lower
    are_numbers = finite_a & finite_x
    inside = (a > 0) & (x > 0) & are_numbers
    is_below = x < a + 1
    large = inside & (a > LARGE)
    with np.errstate(all="ignore"):
        lower[large], upper[large] = shares_of_large(a[large], x[large])
    for is_low in (True, False):
        here = inside & ~large & (is_below == is_low)
        if here.any():
            each, at = a[here], x[here]
            function = lower_series if is_low else upper_fraction
            with np.errstate(all="ignore"):
                power = each * np.log(at) - at
                scale = np.exp(power - log_gamma(each + is_low))
                share = scale * function(each, at)
            own, other = (lower, upper) if is_low else (upper, lower)
            own[here] = share
            other[here] = 1 - share
    small = inside & is_below & (a <= FEW)
    with np.errstate(all="ignore"):
        upper[small] = upper_of_small(a[small], x[small])
    return lower, upper


INCOMPLETE = functions(
    HostFunction("igamma", lambda a, x: lower_share(a, x)[0], lambda a, x: x),
    HostFunction("igammac", lambda a, x: lower_share(a, x)[1], lambda a, x: x),
)

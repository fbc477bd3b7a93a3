"""erf and erfc: a series near 0, one fit for the whole half line; precision as in elementary.py.

The coefficients were fitted for this project: interpolation at Chebyshev nodes in 40 digits
(mpmath).
"""

from math import factorial, pi, sqrt

from picograd.codegen.elementary import exp_core, scaled
from picograd.codegen.erfc_fit import ERFC
from picograd.codegen.pairs import Wide, rounded, two_product
from picograd.codegen.polynomial import clamp, horner
from picograd.codegen.value import Value
from picograd.dtype import bool_, float32, float64

# erf(x) = x + x P(x^2) for |x| <= 1: Taylor's series, to 1e-19; for erfc where it is above 1/3
NEAR_ERF, NEAR_ERFC = 1.0, 0.65
TERMS = 20


def series() -> tuple[float, ...]:
    """List the coefficients of P."""
    found = []
    for k in range(TERMS):
        sign = (-1) ** k
        divisor = factorial(k) * (2 * k + 1)
        found.append(2 / sqrt(pi) * sign / divisor)
    found[0] -= 1
    return tuple(found)


SERIES = series()


def near_erf(x: Value) -> Value:
    """Compute erf(x) for |x| <= 1 in float64."""
    return x.fma(horner(SERIES, x * x), x)


def far_erfc(size: Value, is_single: bool) -> Value:
    """Compute erfc(size) for size >= 0 in float64."""
    size = clamp(size, 0.0, 27.5)  # erfc(27.5) is 0 in float64
    t = size.constant(2.0) / (size + 2.0)
    place = t * 2.0 - 1.0
    fit = horner(ERFC, place)
    power: Wide = fit - size * size if is_single else -two_product(size, size) + fit
    whole, m = exp_core(power)
    product = rounded((m + 1.0) * t)
    return rounded(scaled(product, whole))


def erfc(x: Value) -> Value:
    """Compute 1 - erf(x), accurate far out, where erf is nearly 1."""
    wide = x.cast(float64)
    size = wide.raw("abs")
    far = far_erfc(size, x.dtype is float32)
    far = (wide < 0.0).where(far.constant(2.0) - far, far)
    near = size.constant(1.0) - near_erf(clamp(wide, -NEAR_ERFC, NEAR_ERFC))
    result = (size < NEAR_ERFC).where(near, far).cast(x.dtype)
    return x.raw("not_equal", x, dtype=bool_).where(x, result)


def erf(x: Value) -> Value:
    """Compute erf(x) in float64."""
    size = x.raw("abs")
    far = size.constant(1.0) - far_erfc(size, False)
    is_near = size < NEAR_ERF
    near = near_erf(x)
    is_negative = x < 0.0
    signed = is_negative.where(-far, far)
    return is_near.where(near, signed)

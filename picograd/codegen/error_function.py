"""erf and erfc: a series near 0, one fit for the whole half line; precision as in elementary.py.

The coefficients were fitted for this project: interpolation at Chebyshev nodes in 40 digits
(mpmath).
"""

from math import factorial, pi, sqrt

from picograd.codegen.elementary import exp_core, scaled
from picograd.codegen.pairs import Wide, rounded, two_product
from picograd.codegen.polynomial import clamp, horner
from picograd.codegen.value import Value
from picograd.dtype import bool_, float32, float64

# erf(x) = x + x P(x^2) for |x| <= 1: Taylor's series, to 1e-19; for erfc where it is above 1/3
NEAR_ERF, NEAR_ERFC = 1.0, 0.65
SERIES = tuple(
    2 / sqrt(pi) * (-1) ** k / (factorial(k) * (2 * k + 1)) - (k == 0) for k in range(20)
)
# erfc(x) = t exp(Q(2 t - 1) - x^2) with t = 2 / (2 + x), 0 <= x <= 55; relative error 2e-17
ERFC = (
    -0.6717940840566923,
    0.6726432239776567,
    0.047343306841904034,
    -0.046895610231184395,
    -0.009872689366360973,
    0.008824938557437042,
    0.0017589335569540693,
    -0.0023458125077488214,
    -0.00014624685048771492,
    0.0006736788749172171,
    -9.373514947254003e-05,
    -0.0001743034907457427,
    7.140172173241487e-05,
    3.174766433864047e-05,
    -3.0190781187898417e-05,
    1.2986326717917163e-07,
    8.57098143368866e-06,
    -2.9304029565184452e-06,
    -1.2895745152925392e-06,
    1.222057579484653e-06,
    -1.428925798226975e-07,
    -2.1815101031738615e-07,
    1.263227113950746e-07,
    -2.2923361330110874e-08,
    -1.9403471006253363e-08,
    2.3560288932535057e-08,
    -5.452493572422616e-09,
    -5.602615571281354e-09,
    2.702725173267304e-09,
    4.96458590322717e-10,
    -3.42520872276392e-10,
)


def near_erf(x: Value) -> Value:
    """Compute erf(x) for |x| <= 1 in float64."""
    return x.fma(horner(SERIES, x * x), x)


def far_erfc(size: Value, is_single: bool) -> Value:
    """Compute erfc(size) for size >= 0 in float64."""
    size = clamp(size, 0.0, 27.5)  # erfc(27.5) is 0 in float64
    t = size.constant(2.0) / (size + 2.0)
    fit = horner(ERFC, t * 2.0 - 1.0)
    power: Wide = fit - size * size if is_single else -two_product(size, size) + fit
    whole, m = exp_core(power)
    return rounded(scaled(rounded((m + 1.0) * t), whole))


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
    return (size < NEAR_ERF).where(near_erf(x), (x < 0.0).where(-far, far))

"""erf and erfc: polynomials near 0, fits for the rest of the half line.

Precision is that of elementary.py. The coefficients were fitted for this project: interpolation at
Chebyshev nodes in 40 digits (mpmath).

The fit of erfc is numbers alone, which samplers read too (tensor/making/inverse_sampling.py).
"""

from picograd.codegen.elementary import exp, exp_core, scaled
from picograd.codegen.polynomial import clamp, horner, power_of_two
from picograd.codegen.value import Value, rounded, two_product
from picograd.dtype import bool_, float32, float64

# erfc(x) = t exp(Q(2 t - 1) - x^2) with t = 2 / (2 + x), 0 <= x <= 55; relative error 2e-17
ERFC = (
    -0.6717940840566923, 0.6726432239776567, 0.047343306841904034, -0.046895610231184395,
    -0.009872689366360973, 0.008824938557437042, 0.0017589335569540693, -0.0023458125077488214,
    -0.00014624685048771492, 0.0006736788749172171, -9.373514947254003e-05, -0.0001743034907457427,
    7.140172173241487e-05, 3.174766433864047e-05, -3.0190781187898417e-05, 1.2986326717917163e-07,
    8.57098143368866e-06, -2.9304029565184452e-06, -1.2895745152925392e-06, 1.222057579484653e-06,
    -1.428925798226975e-07, -2.1815101031738615e-07, 1.263227113950746e-07, -2.2923361330110874e-08,
    -1.9403471006253363e-08, 2.3560288932535057e-08, -5.452493572422616e-09, -5.602615571281354e-09,
    2.702725173267304e-09, 4.96458590322717e-10, -3.42520872276392e-10,
)  # fmt: skip


# erf(x) = x + x P(x^2) for |x| <= 1, to 7e-18; for erfc where it is above 1/3
NEAR_ERF, NEAR_ERFC = 1.0, 0.65
NEAR = (
    0.12837916709551256, -0.37612638903183543, 0.11283791670945006, -0.02686617064323777,
    0.0052239776071164225, -0.0008548325975389692, 0.00012055294904839707, -1.492473690741966e-05,
    1.6447424703317362e-06, -1.6208483801871705e-07, 1.3720064546777686e-08,
    -7.795898827002142e-10,
)  # fmt: skip
# erfc(x) = t exp(Q - x^2) with t = 2 / (2 + x): for float32 Q(t), x <= 10.5, to 3e-9; for erf
# Q(4.8 t - 2.2), 1 <= x <= 6, so that erf has an error of 1e-19
ERFC32 = (
    -1.2655409418855887, 1.0008276790618942, 0.3647143077145449, 0.15596871366954884,
    -0.4069538047710786, 0.7725420438077707, -1.750339983434629, 1.7424096810258343,
    -0.45021486413926265, -0.4427058568435787, 0.3572794179632887, -0.0779863945576351,
)  # fmt: skip
FAR_ERF = (
    -0.7274922853522042, 0.2765835893613121, 0.010174695380256196, -0.0031116996674214266,
    -0.0004014712041645086, 9.56000637579709e-05, 1.6041266348882173e-05, -4.527152133600417e-06,
    -6.019924001109505e-07, 2.564373734449632e-07, 1.4524347300627904e-08, -1.460651853459555e-08,
    5.094778498180579e-10, 7.27781750751347e-10, -1.0292374797044583e-10, -2.4944763820833785e-11,
    6.971521082137717e-12,
)  # fmt: skip


def near_erf(x: Value) -> Value:
    """Compute erf(x) for |x| <= 1 in float64."""
    return x.fma(horner(NEAR, x * x), x)


def single_erfc(x: Value) -> Value:
    """Compute erfc(|x|) of float32 in float64, by one fit: at 0, where it is 1, it is off by 3e-9.

    A step of Newton's makes the quotient of float32 exact to 1e-13, sooner than float64 divides.
    """
    size = clamp(x.raw("abs"), 0.0, 10.5)  # where erfc is 0
    wide = size.cast(float64)
    quick = (size.constant(2.0) / (size + 2.0)).cast(float64)
    off = (-quick).fma(wide.fma(0.5, 1.0), 1.0)
    t = quick.fma(off, quick)
    power = horner(ERFC32, t) - wide * wide
    whole, m = exp_core(power)
    return rounded(m.fma(t, t)) * power_of_two(whole)


def far_erfc(size: Value) -> Value:
    """Compute erfc(size) for size >= 0 in float64."""
    size = clamp(size, 0.0, 27.5)  # where erfc is 0
    t = size.constant(2.0) / (size + 2.0)
    power = -two_product(size, size) + horner(ERFC, t * 2.0 - 1.0)
    whole, m = exp_core(power)
    return rounded(scaled(rounded((m + 1.0) * t), whole))


def erfc(x: Value) -> Value:
    """Compute 1 - erf(x), accurate far out, where erf is nearly 1."""
    if x.dtype is float32:
        far = single_erfc(x)
        result = (x < 0.0).where(far.constant(2.0) - far, far).cast(float32)
        return x.raw("not_equal", x, dtype=bool_).where(x, result)
    size = x.raw("abs")
    far = far_erfc(size)
    far = (x < 0.0).where(far.constant(2.0) - far, far)
    middle = clamp(x, -NEAR_ERFC, NEAR_ERFC)
    near = size.constant(1.0) - near_erf(middle)
    is_near = size < NEAR_ERFC
    result = is_near.where(near, far)
    return x.raw("not_equal", x, dtype=bool_).where(x, result)


def erf(x: Value) -> Value:
    """Compute erf(x) in float64."""
    size = clamp(x.raw("abs"), 0.0, 6.0)  # where it is 1
    t = size.constant(2.0) / (size + 2.0)
    far = size.constant(1.0) - exp((-size).fma(size, horner(FAR_ERF, t.fma(4.8, -2.2)))) * t
    return (size < NEAR_ERF).where(near_erf(x), (x < 0.0).where(-far, far))

"""Functions of float32 on a CPU for what is rounded to 16 bits: off by 2^-17 of the result at most.

They have the names of those of quick.py, which stand for them in formulas, and no branches.
"""

from collections.abc import Callable

from picograd.codegen import polynomial
from picograd.codegen.polynomial import BIAS, clamp, horner, power_of_bits
from picograd.codegen.quick import ERF_RATIO, INVERSE_LN2_HIGH, beyond_series
from picograd.codegen.value import Value

# 2^r = 1 + r P(r) for |r| <= 1/2, to 2^-17; interpolation at Chebyshev's nodes
EXP2 = 0.6931367338836215, 0.24022530097412598, 0.05583828294621813, 0.009656710288525713
LEAST, MOST = -126.0, 128.0  # of powers of 2: a normal number, infinity


def exp2(x: Value) -> Value:
    """Compute 2 ** x, of less than LEAST the power of that; NaN stays NaN."""
    limited = clamp(x, LEAST, MOST)
    shifted = limited + BIAS
    r = limited - (shifted - BIAS)
    scale = power_of_bits(shifted)
    return r.fma(horner(EXP2, r), 1.0) * scale


def exp(x: Value) -> Value:
    """Compute exp(x); it overflows, and has denormals, as an exact one."""
    return polynomial.exp(x)


def div(x: Value, y: Value) -> Value:
    """Compute x / y."""
    return x / y


def sigmoid(x: Value) -> Value:
    """Compute 1 / (1 + exp(-x))."""
    return x.constant(1.0) / (exp2(x * -INVERSE_LN2_HIGH) + 1.0)


def silu(x: Value) -> Value:
    """Compute x / (1 + exp(-x)); NaN at minus infinity, as in PyTorch."""
    return x * sigmoid(x)


def tanh(x: Value) -> Value:
    """Compute tanh(x): three terms of its series near 0, else 1 - 2 / (exp(2x) + 1)."""
    power = exp2(x * (2 * INVERSE_LN2_HIGH))
    far = x.constant(1.0) - x.constant(2.0) / (power + 1.0)
    return beyond_series(x, far)


def one_plus_erf(x: Value) -> Value:
    """Compute 1 + erf(x); off by 2^-25 where it is small, which exact terms are too."""
    ratio = exp2(x * horner(ERF_RATIO, x * x))
    return x.constant(2.0) / (ratio + 1.0)


FUNCTIONS = exp, div, sigmoid, silu, tanh, one_plus_erf
RELAXED: dict[str, Callable[..., Value]] = {f"relaxed_{each.__name__}": each for each in FUNCTIONS}

"""Arithmetic beyond the operators: NaN-aware extremes, bits of floats, divisors, comparisons.

Functions of tensors made of their methods; operands promote and broadcast as in `a + b`.
"""

import math
from typing import Any, NamedTuple

from picograd.dtype import complex128, float32, int16, int32, int64, promote
from picograd.errors import DTypeError
from picograd.graph.build_composite import custom
from picograd.graph.node import Node
from picograd.tensor.core.annotations import Scalar, Tensor, TensorLike
from picograd.tensor.core.arguments import as_float, is_tensor, need_tensor, promoted
from picograd.tensor.core.function import composed, within
from picograd.tensor.core.recording import apply
from picograd.tensor.core.type_info import FORMATS
from picograd.tensor.math import elementwise, transcendental

WHOLE = {16: int16, 32: int32, 64: int64}  # integers of the widths of floats
LDEXP_SPAN = {32: 279, 64: 2100}  # a larger power of two leaves nothing of any number
# steps of Euclid's algorithm for the worst pair, neighbours among Fibonacci's numbers
EUCLID = {8: 12, 16: 23, 32: 46, 64: 92}


class Parts(NamedTuple):
    """This class holds x = mantissa * 2 ** exponent."""

    mantissa: Tensor
    exponent: Tensor


@composed()
def positive(input: Tensor) -> Tensor:
    """Give the tensor itself: +x. DTypeError for bool.

    >>> picograd.positive(picograd.Tensor([1, -2])).tolist()
    [1, -2]
    """
    if input.dtype.kind == "bool":
        raise DTypeError("positive", "is not defined for bool", "call .int() first")
    return input


@composed(in_place=True)
def clamp_min(input: Tensor, min: TensorLike) -> Tensor:
    """Raise values below `min` to it.

    >>> picograd.clamp_min(picograd.Tensor([1.0, 3.0]), 2).tolist()
    [2.0, 3.0]
    """
    return input.clamp(min, None)


@composed(in_place=True)
def clamp_max(input: Tensor, max: TensorLike) -> Tensor:
    """Lower values above `max` to it.

    >>> picograd.clamp_max(picograd.Tensor([1.0, 3.0]), 2).tolist()
    [1.0, 2.0]
    """
    return input.clamp(None, max)


@composed()
def fmax(input: Tensor, other: TensorLike) -> Tensor:
    """Compute the larger of two; a NaN loses against a number. The first of equal ones gets
    the gradient.

    >>> picograd.fmax(picograd.Tensor([1.0, float("nan")]), 2.0).tolist()
    [2.0, 2.0]
    """
    a, b = promoted("fmax", input, other)
    return extreme(a, b, a >= b)


@composed()
def fmin(input: Tensor, other: TensorLike) -> Tensor:
    """Compute the smaller of two; a NaN loses against a number. The first of equal ones gets
    the gradient.

    >>> picograd.fmin(picograd.Tensor([1.0, float("nan")]), 2.0).tolist()
    [1.0, 2.0]
    """
    a, b = promoted("fmin", input, other)
    return extreme(a, b, a <= b)


def extreme(a: Tensor, b: Tensor, is_first: Tensor) -> Tensor:
    """Choose the first where it wins or the other is NaN."""
    if a.dtype.is_float:
        is_first = is_first.logical_or(b.isnan())
    return is_first.where(a, b)


@composed(in_place=True)
def float_power(input: TensorLike, exponent: TensorLike) -> Tensor:
    """Compute input ** exponent in float64, or complex128.

    >>> picograd.float_power(picograd.Tensor([2, 3]), -1).dtype
    picograd.float64
    """
    a, b = wide(input), wide(exponent)
    need_tensor("float_power", a if is_tensor(a) else b)
    return a**b


def wide(x: Any) -> Any:
    """Convert a tensor to float64, or complex128."""
    if not is_tensor(x):
        return x
    return x.cast(complex128) if x.dtype.is_complex else x.double()


@composed()
def logaddexp2(input: Tensor, other: TensorLike) -> Tensor:
    """Compute log2(2 ** a + 2 ** b) without overflow.

    >>> picograd.logaddexp2(picograd.Tensor([3.0]), 3.0).tolist()
    [4.0]
    """
    x, y = promoted("logaddexp2", input, other, floating=True)
    a, b = (each.cast(promote(x.dtype, float32)) for each in (x, y))
    larger = a.maximum(b)
    gap = (a == b).where(0.0, -(a - b).abs())
    return (larger + gap.exp2().log1p() / math.log(2)).cast(x.dtype)


@within("special")
def xlog1py(input: TensorLike, other: TensorLike) -> Tensor:
    """Compute a log(1 + b); 0 where a is 0, unless b is NaN.

    >>> picograd.special.xlog1py(picograd.Tensor([0.0]), -1.0).tolist()
    [0.0]
    """
    return apply(transcendental.xlog1py, input, other)


# numbers as bits


@composed()
def frexp(input: Tensor) -> Parts:
    """Split floats into a mantissa of size [1/2, 1) and an int32 exponent: x = m 2^e.

    Zero, infinities and NaN are their own mantissas with exponent 0. Gradients reach x.

    >>> [part.tolist() for part in picograd.frexp(picograd.Tensor([6.0, -0.5]))]
    [[0.75, -0.5], [3, 0]]
    """
    if input.dtype.kind != "float":
        raise DTypeError("frexp", f"needs a float dtype, got {input.dtype.name}", "call .float()")
    digits, bias = FORMATS[input.dtype.name]
    lift = digits + 1  # a factor of 2 ** lift makes subnormal numbers normal
    x = input.detach()
    is_small = (x.abs() < 2.0 ** (1 - bias)).logical_and(x != 0)
    lifted = is_small.where(x * 2.0**lift, x)
    bits = lifted.bitcast(WHOLE[x.dtype.bits]).long() >> digits
    exponent = (bits & (2 * bias + 1)) - (bias - 1) - is_small.long() * lift
    exponent = x.isfinite().logical_and(x != 0).where(exponent, 0)
    half = exponent // 2  # the whole power may be beyond the largest number
    rest = power_of_two(half - exponent, x)
    mantissa = input * power_of_two(-half, x) * rest
    return Parts(mantissa, exponent.int())


def power_of_two(exponent: Tensor, like: Tensor) -> Tensor:
    """Make 2 ** exponent from its bits, exactly, for the exponents of normal numbers."""
    digits, bias = FORMATS[like.dtype.name]
    bits = ((exponent + bias) << digits).cast(WHOLE[like.dtype.bits])
    return bits.bitcast(like.dtype)


@composed(in_place=True)
def ldexp(input: Tensor, other: TensorLike) -> Tensor:
    """Compute input * 2 ** other.

    >>> picograd.ldexp(picograd.Tensor([0.75]), 3).tolist()
    [6.0]
    """
    x = as_float(input)
    if not is_tensor(other):
        power: Any = other
        return x * 2.0**power
    if other.dtype.is_differentiable:
        return input * other.exp2()
    if x.dtype.is_complex:
        return x * other.cast(x.dtype).exp2()
    wide = x.cast(promote(x.dtype, float32))
    span = LDEXP_SPAN[wide.dtype.bits]
    whole = other.long().clamp(-span, span)
    third = whole // 3  # a power of two that is too large may meet a tiny number
    rest = whole - third - third
    step = third.cast(wide.dtype).exp2()
    wide = wide * step
    wide = wide * step
    wide = wide * rest.cast(wide.dtype).exp2()
    return wide.cast(x.dtype)


@composed(in_place=True)
def nextafter(input: Tensor, other: TensorLike) -> Tensor:
    """Give the next number after `input` towards `other`.

    >>> picograd.nextafter(picograd.Tensor([1.0]), 2.0).item() == 1 + 2**-23
    True
    """
    a, b = promoted("nextafter", input, other)
    if a.dtype.kind != "float":
        raise DTypeError("nextafter", f"needs floats, got {a.dtype.name}", "call .float() first")
    given, a, b = (a, b), a.detach(), b.detach()
    whole = WHOLE[a.dtype.bits]
    bits = a.bitcast(whole)
    grows = (a < b) == (a > 0)
    stepped = (bits + grows.where(1, -1).cast(whole)).bitcast(a.dtype)
    least = (b.signbit().cast(whole) << (whole.bits - 1)) + 1
    stepped = (a == 0).where(least.bitcast(a.dtype), stepped)
    result = (a == b).where(b, stepped)
    is_nan = a.isnan().logical_or(b.isnan())
    value = is_nan.where(a + b, result)
    return apply(steady, value, *given)


# whole numbers


def steady(value: Node, a: Node, b: Node) -> Node:
    """Pass the gradient of a value to the first operand it was computed from."""
    return custom(value, (a, b), lambda gradient, output, a, b: (gradient, gradient * 0))


@composed(in_place=True)
def gcd(input: Tensor, other: TensorLike) -> Tensor:
    """Compute the greatest common divisor of whole numbers, >= 0 (Euclid's algorithm).

    >>> picograd.gcd(picograd.Tensor([12, -18, 0]), 8).tolist()
    [4, 2, 8]
    """
    a, b = promoted("gcd", input, other)
    if not a.dtype.is_integer:
        raise DTypeError("gcd", f"needs whole numbers, got {a.dtype.name}", "call .long() first")
    a, b = a.abs(), b.abs()
    for _ in range(EUCLID[a.dtype.bits]):
        is_done = b == 0
        rest = apply(remainder, a, is_done.where(1, b))
        a, b = is_done.where(a, b), is_done.where(b, rest)
    return a.abs()  # the least number has no absolute value


@composed(in_place=True)
def lcm(input: Tensor, other: TensorLike) -> Tensor:
    """Compute the least common multiple of whole numbers, >= 0.

    >>> picograd.lcm(picograd.Tensor([4, 0]), 6).tolist()
    [12, 0]
    """
    a, b = promoted("lcm", input, other)
    divisor = gcd(a, b)
    return (apply(quotient, a, (divisor == 0).where(1, divisor)) * b).abs()


def remainder(a: Node, b: Node) -> Node:
    """Divide by what is not 0: the remainder."""
    return a.binary("mod", b)


def quotient(a: Node, b: Node) -> Node:
    """Divide by what is not 0, rounding down."""
    return a.binary("floordiv", b)


# tests


@composed()
def isposinf(input: Tensor) -> Tensor:
    """Tell which elements are positive infinity.

    >>> picograd.isposinf(picograd.Tensor([float("inf"), 1.0])).tolist()
    [True, False]
    """
    return input.isinf().logical_and(input > 0)


@composed()
def isneginf(input: Tensor) -> Tensor:
    """Tell which elements are negative infinity.

    >>> picograd.isneginf(picograd.Tensor([-float("inf"), 1.0])).tolist()
    [True, False]
    """
    return input.isinf().logical_and(input < 0)


@composed()
def isreal(input: Tensor) -> Tensor:
    """Tell which elements have no imaginary part.

    >>> picograd.isreal(picograd.Tensor([1.0])).tolist()
    [True]
    """
    if input.dtype.is_complex:
        return input.imag == 0
    return (input == input).logical_or(True)


@composed()
def is_nonzero(input: Tensor) -> bool:
    """Tell whether the only element is not zero; computes.

    >>> picograd.is_nonzero(picograd.Tensor([0.0]))
    False
    """
    return bool(input)


@composed()
def equal(input: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors have the same shape and elements; computes. NaN differs.

    >>> picograd.equal(picograd.Tensor([1, 2]), picograd.Tensor([1, 2]))
    True
    """
    return input.shape == other.shape and bool((input == other).all().item())


@composed()
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors have the same shape.

    >>> picograd.is_same_size(picograd.Tensor([1]), picograd.Tensor([2]))
    True
    """
    return input.shape == other.shape


@composed(method=False)
def rsub(input: Tensor, other: TensorLike, *, alpha: Scalar = 1) -> Tensor:
    """Compute other - alpha * input.

    >>> picograd.rsub(picograd.Tensor([1, 2]), 5).tolist()
    [4, 3]
    """
    return apply(elementwise.add_scaled, "sub", other, input, alpha)

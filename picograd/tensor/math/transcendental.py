"""Special functions on nodes: circular and hyperbolic ones, the error and gamma functions.

Values are composed of the table's rows; gradients are written by hand (`custom`), so that they are
as accurate as the values. 16-bit floats compute in float32. Functions that need many digits inside
(erfc, gamma) compute in float64 and round once. Coefficients were fitted for this project:
interpolation at Chebyshev nodes in 40 digits (mpmath).
"""

import math
from collections.abc import Callable, Sequence

from picograd.codegen import hyperbolic
from picograd.dtype import bool_, float64, int16, int32, int64
from picograd.errors import DTypeError, check_known
from picograd.graph import build
from picograd.graph.build_composite import custom
from picograd.graph.composites import Smooth
from picograd.graph.node import Node
from picograd.tensor.core.demands import demand_divisor
from picograd.tensor.core.function import recorded
from picograd.tensor.core.operands import Operand, check_computed, floating, need_float, pair
from picograd.tensor.math import elementwise
from picograd.tensor.math.zeta import polygamma_of

# digamma(3/2 + u) = (3/2 + u - root) P(u), |u| <= 1/2; relative error 2e-17
DIGAMMA_ROOT = (1.4616321449683622, 9.549995429965697e-17)  # as a sum
DIGAMMA = (
    0.951055876031833, -0.4236274212814605, 0.2405424842407742, -0.14840492305390884,
    0.09498872445494122, -0.061922133273064534, 0.04076083381242074, -0.02697579675613825,
    0.0179072524394512, -0.011908218001568644, 0.007926944646403797, -0.005279964873257405,
    0.003519006401502276, -0.002345267632540769, 0.0015566317474486838, -0.0010376374098418604,
    0.0007233266279287554, -0.0004821990530566789, 0.0002272331660987376, -0.00015148586836773365,
    0.00025968482126430747, -0.00017312261802727394,
)  # fmt: skip
# atanh(y) = y + y t P(t), t = y^2, |y| <= 1/2; relative error 9e-11 and 5e-18
ATANH = {32: hyperbolic.ATANH, 64: (
    0.3333333333333333, 0.20000000000000864, 0.14285714285490106, 0.11111111133938968,
    0.09090907881509189, 0.07692345940270638, 0.06665886352701884, 0.05893099692590042,
    0.05160769881147162, 0.05441915418234587, 0.012292448728540531, 0.13557903913692299,
    -0.14450491183414468, 0.21098097885975797,
)}  # fmt: skip
# Stirling's series: B(2k) / 2k and B(2k), Bernoulli's numbers
DIGAMMA_TAIL = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
TRIGAMMA_TAIL = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
SHIFT = 10  # from here on Stirling's series is exact; trigamma moves smaller arguments up to it
ROOT_PI = math.sqrt(math.pi)
BITS = {16: int16, 32: int32, 64: int64}
Pieces = Callable[..., Node]
Slope = Callable[..., Node]


def smooth(
    op: str, node: Node, value: Pieces, slope: Slope, in_double: bool = False, **which: int
) -> Node:
    """Compute a value with its slope as `known_slope` does, in float32 or float64."""
    x = floating(op, node)
    need_float(op, x)
    # 16-bit floats have enough digits in float32
    wide = x.cast(float64) if in_double and x.dtype.bits == 32 else x.accumulated()
    return known_slope(wide, value, slope, **which).cast(x.dtype)


def known_slope(x: Node, value: Pieces, slope: Slope, **which: int) -> Node:
    """Compute `value(x, **which)` with the gradient `slope(x, y, **which)`.

    Functions that have names of their own are one node until a kernel is made of them.
    """
    if not any("<" in each.__qualname__ for each in (value, slope)):
        arg = Smooth(value, slope, tuple(which.items()))
        return Node("smooth", (x,), arg, x.shape, x.dtype, x.device)
    return custom(value(x, **which), (x,), lambda g, y, x: (g * slope(x, y, **which),))


def above(x: Node, limit: float) -> Node:
    """Tell which elements are greater than a number."""
    return x.const_like(limit).binary("less", x)


def polynomial(coefficients: Sequence[float], x: Node) -> Node:
    """Evaluate a polynomial, lowest coefficient first."""
    total = x.const_like(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total.multiply_add(x, coefficient)
    return total


@recorded()
def signbit(x: Node) -> Node:
    """Tell which elements have a minus sign, negative zero included.

    >>> Tensor([-1.0, 0.0, -0.0]).signbit().tolist()
    [True, False, True]
    """
    if not x.dtype.is_float:
        return elementwise.compare("less", x, 0)
    check_computed("signbit", x.dtype)
    return build.bitcast(x, BITS[x.dtype.bits]).binary("less", 0)


@recorded(in_place=True)
def copysign(a: Operand, other: Operand) -> Node:
    """Give |self| the sign of other.

    >>> Tensor([1.0, 2.0, -3.0]).copysign(Tensor([-1.0, 1.0, 1.0])).tolist()
    [-1.0, 2.0, 3.0]
    """
    x, y = pair("copysign", a, other, floating=True)

    def vjp(g: Node, result: Node, x: Node, y: Node) -> tuple[Node, Node]:
        zero = g.const_like(0)
        differs = signbit(x).binary("not_equal", signbit(y))
        return x.binary("equal", 0.0).where(zero, differs.where(-g, g)), zero

    differs = signbit(x).binary("not_equal", signbit(y))
    return custom(differs.where(-x, x), (x, y), vjp)


def with_sign(magnitude: Node, x: Node) -> Node:
    """Give a magnitude the sign of `x`; zero keeps its sign."""
    return signbit(x).where(-magnitude, magnitude)


# circular functions


def elementary(op: str, node: Node) -> Node:
    """Compute a function of the op table; of 16-bit floats in float32, gradients too."""
    x = floating(op, node)
    return x.accumulated().unary(op).cast(x.dtype)


def of_two(op: str, a: Operand, b: Operand) -> Node:
    """Compute a function of two of the op table; of 16-bit floats in float32, gradients too."""
    first, second = pair(op, a, b, floating=True)
    need_float(op, first)
    return first.accumulated().binary(op, second.accumulated()).cast(first.dtype)


@recorded(in_place=True)
def tan(x: Node) -> Node:
    """Compute the tangent.

    >>> Tensor([0.0, 1.0, 2.0]).tan().tolist()
    [0.0, 1.5574..., -2.1850...]
    """
    return elementary("tan", x)


@recorded("atan", "arctan", in_place=True)
def atan(x: Node) -> Node:
    """Compute the inverse tangent, in -pi/2..pi/2.

    >>> Tensor([-1.0, 0.0, 2.0]).atan().tolist()
    [-0.7853..., 0.0, 1.1071...]
    """
    return elementary("atan", x)


@recorded("asin", "arcsin", in_place=True)
def asin(x: Node) -> Node:
    """Compute the inverse sine; NaN outside -1..1.

    >>> Tensor([-1.0, 0.0, 1.0]).asin().tolist()
    [-1.5707..., 0.0, 1.5707...]
    """
    return elementary("asin", x)


@recorded("acos", "arccos", in_place=True)
def acos(x: Node) -> Node:
    """Compute the inverse cosine; NaN outside -1..1.

    >>> Tensor([-1.0, 0.0, 1.0]).acos().tolist()
    [3.1415..., 1.5707..., 0.0]
    """
    return elementary("acos", x)


@recorded("atan2", "arctan2", in_place=True)
def atan2(x: Operand, other: Operand) -> Node:
    """Compute the angle of the point (other, self).

    >>> Tensor([1.0, -1.0, 0.0]).atan2(Tensor([1.0, 1.0, -1.0])).tolist()
    [0.7853..., -0.7853..., 3.1415...]
    """
    return of_two("atan2", x, other)


def sinc_value(x: Node) -> Node:
    """Compute sin(pi x) / (pi x) from x less the nearest whole number, which is exact."""
    is_zero = x.binary("equal", 0.0)
    safe = is_zero.where(x.const_like(1.0), x)
    whole = safe.unary("round")
    half = whole * 0.5
    sine = ((safe - whole) * math.pi).unary("sin")
    sine = half.unary("floor").binary("equal", half).where(sine, -sine)
    return is_zero.where(sinc_near_zero(x), sine / (safe * math.pi))


def sinc_near_zero(x: Node) -> Node:
    """Begin the series: what it is at 0, and its first three derivatives."""
    angle = x * math.pi
    return 1 - angle * angle * (1 / 6)


@recorded(in_place=True)
def sinc(node: Node) -> Node:
    """Compute sin(pi x) / (pi x); 1 at 0.

    >>> Tensor([0.0, 0.5, 1.5]).sinc().tolist()
    [1.0, 0.6366..., -0.2122...]
    """
    x = floating("sinc", node)
    if x.dtype.is_complex:  # which has no nearest whole number
        is_zero = x.binary("equal", 0.0)
        angle = is_zero.where(x.const_like(1.0), x) * math.pi
        return is_zero.where(sinc_near_zero(x), angle.unary("sin") / angle)
    return sinc_value(x.accumulated()).cast(x.dtype)


def sine_over(node: Node) -> Node:
    """Compute sin(x) / x: 1 at 0, and 0 at the infinities."""
    x = floating("spherical_bessel_j0", node)
    wide = x.accumulated()
    is_zero = wide.binary("equal", 0.0)
    is_infinite = wide.unary("abs").binary("equal", math.inf)
    one = wide.const_like(1.0)
    safe = is_zero.where(one, is_infinite.where(one, wide))
    found = is_zero.where(sinc_near_zero(wide * (1 / math.pi)), safe.unary("sin") / safe)
    return is_infinite.where(wide.const_like(0.0), found).cast(x.dtype)


def logit_value(x: Node) -> Node:
    """Compute log(x / (1 - x)); near 1/2, where that is 0, as 2 atanh(y) of y = 2 x - 1."""
    y = x * 2 - 1
    square = y * y
    near = (y * square).multiply_add(polynomial(ATANH[x.dtype.bits], square), y) * 2
    far = (x / (1 - x)).unary("log")
    return y.unary("abs").binary("less", 0.5).where(near, far)


# exponentials and hyperbolic functions


@recorded(in_place=True)
def expm1(x: Node) -> Node:
    """Compute e ** x - 1, exact near 0.

    >>> Tensor([0.0, 1.0, 2.0]).expm1().tolist()
    [0.0, 1.7182..., 6.3890...]
    """
    return elementary("expm1", x)


@recorded(in_place=True)
def log1p(x: Node) -> Node:
    """Compute log(1 + x), exact near 0.

    >>> Tensor([0.0, 1.0, 3.0]).log1p().tolist()
    [0.0, 0.6931..., 1.3862...]
    """
    return elementary("log1p", x)


@recorded(in_place=True)
def sinh(x: Node) -> Node:
    """Compute the hyperbolic sine.

    >>> Tensor([-1.0, 0.0, 2.0]).sinh().tolist()
    [-1.1752..., 0.0, 3.6268...]
    """
    return elementary("sinh", x)


@recorded(in_place=True)
def cosh(x: Node) -> Node:
    """Compute the hyperbolic cosine.

    >>> Tensor([0.0, 1.0, 2.0]).cosh().tolist()
    [1.0, 1.5430..., 3.7621...]
    """
    return elementary("cosh", x)


@recorded("asinh", "arcsinh", in_place=True)
def asinh(x: Node) -> Node:
    """Compute the inverse hyperbolic sine.

    >>> Tensor([-1.0, 0.0, 2.0]).asinh().tolist()
    [-0.8813..., 0.0, 1.4436...]
    """
    return elementary("asinh", x)


@recorded("acosh", "arccosh", in_place=True)
def acosh(x: Node) -> Node:
    """Compute the inverse hyperbolic cosine; NaN below 1.

    >>> Tensor([1.0, 2.0, 3.0]).acosh().tolist()
    [0.0, 1.3169..., 1.7627...]
    """
    return elementary("acosh", x)


@recorded("atanh", "arctanh", in_place=True)
def atanh(x: Node) -> Node:
    """Compute the inverse hyperbolic tangent; NaN outside -1..1.

    >>> Tensor([-0.5, 0.0, 0.5]).atanh().tolist()
    [-0.5493..., 0.0, 0.5493...]
    """
    return elementary("atanh", x)


# error and gamma functions


@recorded(in_place=True)
def erfc(x: Node) -> Node:
    """Compute 1 - erf(x), accurate where erf is nearly 1.

    >>> Tensor([-1.0, 0.0, 2.0]).erfc().tolist()
    [1.8427..., 1.0, 0.0046...]
    """
    return elementary("erfc", x)


def shifted(x: Node) -> list[Node]:
    """List x, x + 1, ... x + SHIFT: the last is where Stirling's series is good."""
    return [x + step for step in range(SHIFT + 1)]


def lowered(x: Node, limit: float) -> tuple[Node, list[tuple[Node, Node]]]:
    """Subtract 1 from x < SHIFT while it is above a limit; also what each step found: (did, x)."""
    steps = []
    for _ in range(math.ceil(SHIFT - limit)):
        is_above = above(x, limit)
        x = is_above.where(x - 1, x)
        steps.append((is_above, x))
    return x, steps


def to_whole(x: Node) -> Node:
    """Compute x less the nearest whole number, exactly."""
    return x - x.unary("round")


def digamma_positive(x: Node) -> Node:
    """Compute the derivative of log(gamma(x)) for x > 0 in float64, by the same steps.

    The fit holds for 1 to 2 and has the factor x - root.
    """
    is_large, is_low = above(x, SHIFT), x.binary("less", 1.0)
    y, steps = lowered(is_large.where(x.const_like(2.0), x), 2.0)
    top, bottom = x.const_like(0.0), x.const_like(1.0)  # of the sum of 1 / each, divided once
    for is_above, each in steps:
        top = is_above.where(top.multiply_add(each, bottom), top)
        bottom = is_above.where(bottom * each, bottom)
    total = is_low.where(x.const_like(-1.0), top) / is_low.where(x, bottom)
    y = is_low.where(y + 1, y)
    near = (y - DIGAMMA_ROOT[0] - DIGAMMA_ROOT[1]) * polynomial(DIGAMMA, y - 1.5) + total
    inverse = x.unary("reciprocal")
    square = inverse * inverse
    far = x.unary("log") - inverse * 0.5 - square * polynomial(DIGAMMA_TAIL, square)
    return is_large.where(far, near)


def digamma_value(x: Node) -> Node:
    """Compute the derivative of log|gamma(x)|, by reflection below 0."""
    is_low = x.binary("less", 0.0)
    inner = digamma_positive(is_low.where(1 - x, x))
    part = to_whole(x)
    reflected = inner - math.pi / (part * math.pi).unary("tan")
    is_pole = part.binary("equal", 0.0).binary("logical_and", is_low)
    reflected = is_pole.where(x.const_like(math.nan), reflected)
    at_zero = signbit(x).where(x.const_like(math.inf), -math.inf)
    return x.binary("equal", 0.0).where(at_zero, is_low.where(reflected, inner))


def trigamma_positive(x: Node) -> Node:
    """Compute the second derivative of log(gamma(x)) for x > 0 in float64."""
    is_small = x.binary("less", float(SHIFT))
    *below, top = shifted(x)
    z = is_small.where(top, x)
    inverse = z.unary("reciprocal")
    square = inverse * inverse
    main = inverse + square * 0.5 + square * inverse * polynomial(TRIGAMMA_TAIL, square)
    steps = main
    for each in reversed(below):  # small ones first
        steps = steps + (each * each).unary("reciprocal")
    return is_small.where(steps, main)


def trigamma_value(x: Node) -> Node:
    """Compute the second derivative of log|gamma(x)|, by reflection below 0."""
    is_low = x.binary("less_equal", 0.0)
    inner = trigamma_positive(is_low.where(1 - x, x))
    sine = (to_whole(x) * math.pi).unary("sin")
    return is_low.where(math.pi**2 / (sine * sine) - inner, inner)


def trigamma_slope(x: Node, y: Node) -> Node:
    """Compute the third derivative of log|gamma(x)|, which can be differentiated again."""
    return polygamma_of(2, x)


def digamma_slope(x: Node, y: Node) -> Node:
    """Compute the derivative of digamma, which can be differentiated again."""
    return known_slope(x, trigamma_value, trigamma_slope)


@recorded(in_place=True)
def digamma(x: Node) -> Node:
    """Compute the derivative of log|gamma(x)|.

    >>> Tensor([1.0, 2.0, 3.0]).digamma().tolist()
    [-0.5772..., 0.4227..., 0.9227...]
    """
    return smooth("digamma", x, digamma_value, digamma_slope, True)


# functions of two


@recorded(in_place=True)
def hypot(a: Operand, other: Operand) -> Node:
    """Compute sqrt(self^2 + other^2).

    >>> Tensor([3.0, 5.0, 8.0]).hypot(Tensor([4.0, 12.0, 15.0])).tolist()
    [5.0, 13.0, 17.0]
    """
    x, y = pair("hypot", a, other)
    need_float("hypot", x)
    return of_two("hypot", x, y)


@recorded()
def logaddexp(x: Operand, other: Operand) -> Node:
    """Compute log(exp(self) + exp(other)).

    >>> Tensor([0.0, 1.0, 2.0]).logaddexp(Tensor([0.0, 1.0, 2.0])).tolist()
    [0.6931..., 1.6931..., 2.6931...]
    """
    a, b = pair("logaddexp", x, other, floating=True)
    if not a.dtype.is_complex:
        return of_two("logaddexp", a, b)
    return elementwise.complex_logaddexp(a, b)


@recorded(in_place=True)
def xlogy(a: Operand, other: Operand) -> Node:
    """Compute self * log(other); 0 where self is 0, unless other is NaN.

    >>> Tensor([0.0, 1.0, 2.0]).xlogy(Tensor([0.0, 2.0, 2.0])).tolist()
    [0.0, 0.6931..., 1.3862...]
    """
    x, y = pair("xlogy", a, other, floating=True)
    return times_log(x, y, lambda y: y.unary("log"), lambda y: y, 0.0)


def xlog1py(a: Operand, b: Operand) -> Node:
    """Compute a log(1 + b); 0 where a is 0, unless b is NaN."""
    x, y = pair("xlog1py", a, b, floating=True)
    return times_log(x, y, log1p, lambda y: y + 1, -1.0)


def times_log(x: Node, y: Node, log: Pieces, inner: Pieces, edge: float) -> Node:
    """Compute x log(inner(y)), 0 where x is 0 and y is a number.

    Where x is 0, its gradient is the logarithm, and 0 from the edge down, where that is none.
    """
    is_zero = x.binary("equal", 0.0)
    is_cut = is_zero.binary("logical_and", y.binary("equal", y))
    value = is_cut.where(x.const_like(0.0), x * log(is_cut.where(1.0, y)))

    def vjp(g: Node, result: Node, x: Node, y: Node) -> tuple[Node, Node]:
        is_out = y.binary("less_equal", edge).binary("logical_and", x.binary("equal", 0.0))
        for_x = times_log(g, is_out.where(1.0, y), log, inner, edge)  # 0, not NaN, where g is 0
        return is_out.where(0.0, for_x), g * x / inner(y)

    return custom(value, (x, y), vjp)


@recorded(in_place=True)
def fmod(a: Operand, other: Operand) -> Node:
    """Compute the remainder with the sign of the dividend, as C's fmod.

    >>> Tensor([-5.0, 5.0, 7.5]).fmod(3).tolist()
    [-2.0, 2.0, 1.5]
    """
    x, y = pair("fmod", a, other)
    if x.dtype is bool_:
        raise DTypeError("fmod", "truth values have no remainder", "cast one to an integer")
    if not x.dtype.is_float and x.size:
        demand_divisor("fmod", other)
    if x.dtype.kind == "uint":
        return x.binary("mod", y)
    is_negative = x.binary("less", 0)
    if x.dtype.kind == "int":  # the size of the lowest number does not fit
        rest = x.binary("mod", y)
        is_off = rest.binary("less", 0).binary("not_equal", is_negative)
        is_off = is_off.binary("logical_and", rest.binary("not_equal", 0))
        return is_off.where(rest - y, rest)
    size = y.unary("abs")
    rest = is_negative.where(-x, x).binary("mod", size)

    def vjp(g: Node, result: Node, x: Node, y: Node) -> tuple[Node, Node]:
        return g, -g * (x / y).unary("trunc")

    return custom(is_negative.where(-rest, rest), (x, y), vjp)


def divide_rounded(op: str, a: Operand, b: Operand, mode: str) -> Node:
    """Divide and round down ("floor") or towards 0 ("trunc"); integers stay integers."""
    check_known(op, "rounding_mode", mode, (None, "floor", "trunc"))
    if mode == "floor":
        return elementwise.arithmetic("floordiv", a, b)
    x, y = pair(op, a, b)
    if x.dtype.is_float:
        return (x / y).unary("trunc")
    if x.size:
        demand_divisor(op, b)
    quotient = x.binary("floordiv", y)
    if x.dtype.kind == "uint":
        return quotient
    is_off = quotient.binary("less", 0).binary("logical_and", (quotient * y).binary("not_equal", x))
    return is_off.where(quotient + 1, quotient)

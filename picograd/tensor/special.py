"""Special functions on nodes: circular and hyperbolic ones, the error and gamma functions.

Values are composed of the table's rows; gradients are written by hand (`custom`), so that they are
as accurate as the values. 16-bit floats compute in float32. Functions that need many digits inside
(erfc, erfinv, gamma) compute in float64 and round once. Coefficients were fitted for this project:
interpolation at Chebyshev nodes in 40 digits (mpmath).
"""

import math
from collections.abc import Callable, Sequence

from picograd.dtype import float32, float64, int16, int32, int64
from picograd.errors import ValueRangeError
from picograd.graph import build
from picograd.graph.build_composite import custom
from picograd.graph.node import Node
from picograd.tensor import elementwise
from picograd.tensor.known import check_divisor
from picograd.tensor.operands import (
    Operand,
    check_computed,
    floating,
    need_float,
    pair,
)
from picograd.tensor.zeta import polygamma_of

# atan(z) = z + z t P(t), t = z^2, |z| <= tan(pi/8); relative error of P 5e-8 and 4e-18
ATAN32 = (
    -0.33333331609023487,
    0.19999505867535297,
    -0.14262768286688918,
    0.10731026480104598,
    -0.06410238534587707,
)
ATAN64 = (
    -0.3333333333333333,
    0.19999999999999762,
    -0.1428571428564902,
    0.1111111110411266,
    -0.09090908702135893,
    0.07692294904895292,
    -0.06666398746373535,
    0.05878631460173418,
    -0.052282847666252616,
    0.04541795446312359,
    -0.03432108202704706,
    0.016012008462212284,
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
# Stirling's series: B(2k) / (2k (2k - 1)), B(2k) / 2k and B(2k), Bernoulli's numbers
LGAMMA_TAIL = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
)
DIGAMMA_TAIL = (
    1 / 12,
    -1 / 120,
    1 / 252,
    -1 / 240,
    1 / 132,
    -691 / 32760,
    1 / 12,
)
TRIGAMMA_TAIL = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
SHIFT = 10  # arguments below are moved up to 10 and more, where Stirling's series is exact
ROOT_PI = math.sqrt(math.pi)
BITS = {16: int16, 32: int32, 64: int64}
Pieces = Callable[[Node], Node]
Slope = Callable[[Node, Node], Node]


def smooth(
    op: str, node: Node, value: Pieces, slope: Slope, in_double: bool = False
) -> Node:
    """Compute `value(x)` with the gradient `slope(x, y)`, in float32 or float64."""
    x = floating(op, node)
    # 16-bit floats have enough digits in float32
    wide = (
        x.cast(float64) if in_double and x.dtype.bits == 32 else x.accumulated()
    )
    return known_slope(wide, value, slope).cast(x.dtype)


def known_slope(x: Node, value: Pieces, slope: Slope) -> Node:
    """Compute `value(x)` with the gradient `slope(x, y)`."""
    return custom(value(x), (x,), lambda g, y, x: (g * slope(x, y),))


def above(x: Node, limit: float) -> Node:
    """Tell which elements are greater than a number."""
    return x.const_like(limit).binary("less", x)


def polynomial(coefficients: Sequence[float], x: Node) -> Node:
    """Evaluate a polynomial, lowest coefficient first."""
    total = x.const_like(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def signbit(node: Node) -> Node:
    """Tell which elements have a minus sign, negative zero included."""
    if not node.dtype.is_float:
        return elementwise.compare("less", node, 0)
    check_computed("signbit", node.dtype)
    return build.bitcast(node, BITS[node.dtype.bits]).binary("less", 0)


def copysign(a: Operand, b: Operand) -> Node:
    """Give |a| the sign of b; the gradient of b is 0, and that of a where a is 0."""
    x, y = pair("copysign", a, b, floating=True)

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


def tan(node: Node) -> Node:
    """Compute the tangent."""
    return smooth(
        "tan",
        node,
        lambda x: x.unary("sin") / x.unary("cos"),
        lambda x, y: y * y + 1,
    )


def atan_value(x: Node) -> Node:
    """Compute atan(x): x is brought to |z| <= tan(pi/8) by atan(x) = pi/4 + atan((x-1)/(x+1))."""
    size = x.unary("abs")
    is_far, is_middle = (
        above(size, math.tan(3 * math.pi / 8)),
        above(size, math.tan(math.pi / 8)),
    )
    middle = (size - 1) / (size + 1)
    z = is_far.where(-size.unary("reciprocal"), is_middle.where(middle, size))
    start = is_far.where(
        x.const_like(math.pi / 2), is_middle.where(x.const_like(math.pi / 4), 0)
    )
    square = z * z
    tail = polynomial(ATAN64 if x.dtype is float64 else ATAN32, square)
    return with_sign(start + (z * square * tail + z), x)


def atan(node: Node) -> Node:
    """Compute the inverse tangent, in -pi/2..pi/2."""
    return smooth(
        "atan", node, atan_value, lambda x, y: (x * x + 1).unary("reciprocal")
    )


def asin(node: Node) -> Node:
    """Compute the inverse sine; NaN outside -1..1."""
    return smooth(
        "asin",
        node,
        lambda x: atan_value(x * ((1 - x) * (x + 1)).unary("rsqrt")),
        lambda x, y: ((1 - x) * (x + 1)).unary("rsqrt"),
    )


def acos(node: Node) -> Node:
    """Compute the inverse cosine; NaN outside -1..1."""
    return smooth(
        "acos",
        node,
        lambda x: atan_value(((1 - x) / (x + 1)).unary("sqrt")) * 2,
        lambda x, y: -((1 - x) * (x + 1)).unary("rsqrt"),
    )


def atan2_value(y: Node, x: Node) -> Node:
    """Compute the angle of (x, y) from the ratio of the smaller to the larger size."""
    wide, high = x.unary("abs"), y.unary("abs")
    is_steep = wide.binary("less", high)
    large, small = is_steep.where(high, wide), is_steep.where(wide, high)
    is_one = small.binary("equal", large)  # both infinite, or both zero
    is_zero = large.binary("equal", 0.0)
    ratio = is_one.where(is_zero.where(x.const_like(0.0), 1.0), small / large)
    angle = atan_value(ratio)
    angle = is_steep.where(math.pi / 2 - angle, angle)
    angle = signbit(x).where(math.pi - angle, angle)
    is_nan = wide.binary("not_equal", wide).binary(
        "logical_or", high.binary("not_equal", high)
    )
    return is_nan.where(x + y, with_sign(angle, y))


def atan2(a: Operand, b: Operand) -> Node:
    """Compute the angle of the point (x = b, y = a), in -pi..pi."""
    first, second = pair("atan2", a, b, floating=True)
    y, x = first.accumulated(), second.accumulated()

    def vjp(g: Node, angle: Node, y: Node, x: Node) -> tuple[Node, Node]:
        square = x * x + y * y
        is_zero = square.binary("equal", 0.0)
        share = is_zero.where(0.0, g / is_zero.where(1.0, square))
        return share * x, -share * y

    return custom(atan2_value(y, x), (y, x), vjp).cast(first.dtype)


def sinc(node: Node) -> Node:
    """Compute sin(pi x) / (pi x); 1 at 0."""
    x = floating("sinc", node)
    is_zero = x.binary("equal", 0.0)
    angle = is_zero.where(x.const_like(1.0), x) * math.pi
    return is_zero.where(x.const_like(1.0), angle.unary("sin") / angle)


# exponentials and hyperbolic functions


def expm1_value(x: Node) -> Node:
    """Compute exp(x) - 1: tanh(x/2) (exp(x) + 1) near 0, which has no cancellation."""
    is_near = x.unary("abs").binary("less", 1.0)
    small = is_near.where(x, 0.0)
    near = (small * 0.5).unary("tanh") * (small.unary("exp") + 1)
    return is_near.where(near, x.unary("exp") - 1)


def expm1(node: Node) -> Node:
    """Compute exp(x) - 1, exact near 0."""
    return smooth("expm1", node, expm1_value, lambda x, y: y + 1)


def log1p_value(x: Node) -> Node:
    """Compute log(1 + x): log(u) x / (u - 1) with u = 1 + x, rounded (Kahan, HP-15C)."""
    u = x + 1
    excess = u - 1
    is_small, is_huge = excess.binary("equal", 0.0), u.binary("equal", math.inf)
    safe = is_small.binary("logical_or", is_huge).where(
        x.const_like(1.0), excess
    )
    logarithm = u.unary("log")
    return is_small.where(x, is_huge.where(logarithm, logarithm * (x / safe)))


def log1p(node: Node) -> Node:
    """Compute log(1 + x), exact near 0."""
    return smooth(
        "log1p", node, log1p_value, lambda x, y: (x + 1).unary("reciprocal")
    )


def half_exp(size: Node) -> Node:
    """Compute exp(size) / 2 without overflow of exp alone."""
    root = (size * 0.5).unary("exp")
    return root * 0.5 * root


def sinh_value(x: Node) -> Node:
    """Compute (e + e / (e + 1)) / 2 with e = exp(|x|) - 1."""
    size = x.unary("abs")
    is_large = above(size, 20.0)
    e = expm1_value(is_large.where(x.const_like(0.0), size))
    return with_sign(is_large.where(half_exp(size), (e + e / (e + 1)) * 0.5), x)


def cosh_value(x: Node) -> Node:
    """Compute (exp(x) + exp(-x)) / 2."""
    size = x.unary("abs")
    is_large = above(size, 20.0)
    e = is_large.where(x.const_like(0.0), size).unary("exp")
    return is_large.where(half_exp(size), (e + e.unary("reciprocal")) * 0.5)


def sinh(node: Node) -> Node:
    """Compute the hyperbolic sine."""
    return smooth("sinh", node, sinh_value, lambda x, y: cosh(x))


def cosh(node: Node) -> Node:
    """Compute the hyperbolic cosine."""
    return smooth("cosh", node, cosh_value, lambda x, y: sinh(x))


def asinh_value(x: Node) -> Node:
    """Compute log1p(s + s^2 / (1 + sqrt(s^2 + 1))) with s = |x|; log(s) + log(2) far out."""
    size = x.unary("abs")
    is_large = above(size, 1e8)
    s = is_large.where(x.const_like(0.0), size)
    square = s * s
    near = log1p_value(s + square / ((square + 1).unary("sqrt") + 1))
    return with_sign(is_large.where(size.unary("log") + math.log(2), near), x)


def acosh_value(x: Node) -> Node:
    """Compute log1p(t + sqrt(t (t + 2))) with t = x - 1; log(x) + log(2) far out."""
    is_large, is_out = above(x, 1e8), x.binary("less", 1.0)
    t = is_large.where(x.const_like(1.0), x) - 1
    near = log1p_value(t + (t * (t + 2)).unary("sqrt"))
    value = is_large.where(x.unary("log") + math.log(2), near)
    return is_out.where(x.const_like(math.nan), value)


def asinh(node: Node) -> Node:
    """Compute the inverse hyperbolic sine."""
    return smooth(
        "asinh", node, asinh_value, lambda x, y: (x * x + 1).unary("rsqrt")
    )


def acosh(node: Node) -> Node:
    """Compute the inverse hyperbolic cosine; NaN below 1."""
    return smooth(
        "acosh",
        node,
        acosh_value,
        lambda x, y: ((x - 1) * (x + 1)).unary("rsqrt"),
    )


def atanh(node: Node) -> Node:
    """Compute the inverse hyperbolic tangent; NaN outside -1..1."""
    return smooth(
        "atanh",
        node,
        lambda x: with_sign(
            log1p_value((s := x.unary("abs")) * 2 / (1 - s)) * 0.5, x
        ),
        lambda x, y: ((1 - x) * (x + 1)).unary("reciprocal"),
    )


# error and gamma functions


def erfc_value(x: Node) -> Node:
    """Compute 1 - erf(x) in float64; accurate far out, where erf is 1."""
    size = x.unary("abs").binary("minimum", 30.0)
    t = 2 / (size + 2)
    tail = t * (polynomial(ERFC, t * 2 - 1) - size * size).unary("exp")
    value = signbit(x).where(2 - tail, tail)
    return x.unary("isnan").where(x, value)


def erfc_slope(x: Node, y: Node) -> Node:
    """Compute -2/sqrt(pi) exp(-x^2)."""
    return (-(x * x)).unary("exp") * (-2 / ROOT_PI)


def erfc(node: Node) -> Node:
    """Compute 1 - erf(x), accurate where erf is nearly 1."""
    return smooth("erfc", node, erfc_value, erfc_slope, True)


def erfinv_value(x: Node) -> Node:
    """Invert erf: Winitzki's estimate (2008) and three steps of Newton's method."""
    size = x.unary("abs")
    rest = 1 - size
    is_inside = above(rest, 0.0)
    safe = is_inside.where(rest, 1.0)
    logarithm = (safe * (2 - safe)).unary("log")
    a = 0.147
    half = logarithm * 0.5 + 2 / (math.pi * a)
    root = (half * half - logarithm / a).unary("sqrt") - half
    y = root.binary("maximum", 0.0).unary("sqrt")
    is_near = size.binary("less", 0.5)
    for _ in range(3):
        excess = is_near.where(size - y.unary("erf"), erfc_value(y) - safe)
        y = y + excess * ((y * y).unary("exp") * (ROOT_PI / 2))
    edge = rest.binary("equal", 0.0).where(x.const_like(math.inf), math.nan)
    return with_sign(is_inside.where(y, edge), x)


def erfinv(node: Node) -> Node:
    """Invert erf: infinite at -1 and 1, NaN outside."""
    return smooth("erfinv", node, erfinv_value, erfinv_slope, True)


def erfinv_slope(x: Node, y: Node) -> Node:
    """Compute sqrt(pi)/2 exp(y^2)."""
    return (y * y).unary("exp") * (ROOT_PI / 2)


def shifted(x: Node) -> list[Node]:
    """List x, x + 1, ... x + SHIFT: the last is where Stirling's series is good."""
    return [x + step for step in range(SHIFT + 1)]


def lgamma_positive(x: Node) -> Node:
    """Compute log(gamma(x)) for x > 0 in float64 by Stirling's series."""
    is_small = x.binary("less", float(SHIFT))
    *below, top = shifted(x)
    factor = below[0]
    for each in below[1:]:
        factor = factor * each
    z = is_small.where(top, x)
    inverse = z.unary("reciprocal")
    tail = inverse * polynomial(LGAMMA_TAIL, inverse * inverse)
    main = (z - 0.5) * z.unary("log") - z + (0.5 * math.log(2 * math.pi)) + tail
    value = main - is_small.where(factor, 1.0).unary("log")
    return x.binary("equal", math.inf).where(x, value)


def lgamma_value(x: Node) -> Node:
    """Compute log|gamma(x)|, by reflection below 1/2."""
    is_low = x.binary("less", 0.5)
    inner = lgamma_positive(is_low.where(1 - x, x))
    sine = ((x - x.unary("floor")) * math.pi).unary("sin")
    reflected = math.log(math.pi) - sine.unary("abs").unary("log") - inner
    is_infinite = x.binary("equal", -math.inf)
    return is_infinite.where(
        x.const_like(math.inf), is_low.where(reflected, inner)
    )


def digamma_positive(x: Node) -> Node:
    """Compute the derivative of log(gamma(x)) for x > 0 in float64."""
    is_small = x.binary("less", float(SHIFT))
    *below, top = shifted(x)
    steps = below[0].unary("reciprocal")
    for each in below[1:]:
        steps = steps + each.unary("reciprocal")
    z = is_small.where(top, x)
    inverse = z.unary("reciprocal")
    square = inverse * inverse
    main = (
        z.unary("log")
        - inverse * 0.5
        - square * polynomial(DIGAMMA_TAIL, square)
    )
    return main - is_small.where(steps, 0.0)


def digamma_value(x: Node) -> Node:
    """Compute the derivative of log|gamma(x)|, by reflection below 0."""
    is_low = x.binary("less", 0.0)
    inner = digamma_positive(is_low.where(1 - x, x))
    part = (x - x.unary("floor")) * math.pi
    reflected = inner - part.unary("cos") / part.unary("sin") * math.pi
    is_pole = part.binary("equal", 0.0).binary("logical_and", is_low)
    reflected = is_pole.where(x.const_like(math.nan), reflected)
    at_zero = signbit(x).where(x.const_like(math.inf), -math.inf)
    return x.binary("equal", 0.0).where(at_zero, is_low.where(reflected, inner))


def trigamma_positive(x: Node) -> Node:
    """Compute the second derivative of log(gamma(x)) for x > 0 in float64."""
    is_small = x.binary("less", float(SHIFT))
    *below, top = shifted(x)
    steps = (below[0] * below[0]).unary("reciprocal")
    for each in below[1:]:
        steps = steps + (each * each).unary("reciprocal")
    z = is_small.where(top, x)
    inverse = z.unary("reciprocal")
    square = inverse * inverse
    main = (
        inverse
        + square * 0.5
        + square * inverse * polynomial(TRIGAMMA_TAIL, square)
    )
    return main + is_small.where(steps, 0.0)


def trigamma_value(x: Node) -> Node:
    """Compute the second derivative of log|gamma(x)|, by reflection below 1/2."""
    is_low = x.binary("less", 0.5)
    inner = trigamma_positive(is_low.where(1 - x, x))
    sine = ((x - x.unary("floor")) * math.pi).unary("sin")
    return is_low.where(math.pi**2 / (sine * sine) - inner, inner)


def trigamma_slope(x: Node, y: Node) -> Node:
    """Compute the third derivative of log|gamma(x)|, which can be differentiated again."""
    return polygamma_of(2, x)


def digamma_slope(x: Node, y: Node) -> Node:
    """Compute the derivative of digamma, which can be differentiated again."""
    return known_slope(x, trigamma_value, trigamma_slope)


def lgamma_slope(x: Node, y: Node) -> Node:
    """Compute digamma, which can be differentiated again."""
    return known_slope(x, digamma_value, digamma_slope)


def digamma(node: Node) -> Node:
    """Compute the derivative of log|gamma(x)|."""
    return smooth("digamma", node, digamma_value, digamma_slope, True)


def lgamma(node: Node) -> Node:
    """Compute log|gamma(x)|."""
    return smooth("lgamma", node, lgamma_value, lgamma_slope, True)


# functions of two


def hypot(a: Operand, b: Operand) -> Node:
    """Compute sqrt(a^2 + b^2) without overflow on the way."""
    x, y = pair("hypot", a, b, floating=True)
    need_float("hypot", x)
    if x.dtype.name == "float32":  # float64 holds all squares, and rounds once
        x, y = x.cast(float64), y.cast(float64)
        return (x * x + y * y).unary("sqrt").cast(float32)
    return hypot_scaled(x.accumulated(), y.accumulated()).cast(x.dtype)


def hypot_scaled(x: Node, y: Node) -> Node:
    """Compute sqrt(x^2 + y^2) of the quotients by the larger size."""
    largest = x.unary("abs").binary("maximum", y.unary("abs"))
    is_plain = above(largest, 0.0).binary(
        "logical_and", largest.binary("less", math.inf)
    )
    scale = build.detach(is_plain.where(largest, 1.0))
    u, v = x / scale, y / scale
    return scale * (u * u + v * v).unary("sqrt")


def logaddexp(a: Operand, b: Operand) -> Node:
    """Compute log(exp(a) + exp(b)) without overflow."""
    first, second = pair("logaddexp", a, b, floating=True)
    x, y = first.accumulated(), second.accumulated()
    largest = x.binary("maximum", y)
    gap = x.binary("equal", y).where(x.const_like(0.0), (x - y).unary("abs"))
    value = largest + log1p_value((-gap).unary("exp"))

    def vjp(g: Node, total: Node, x: Node, y: Node) -> tuple[Node, Node]:
        is_equal = x.binary("equal", y)
        share = is_equal.where(g.const_like(0.5), (x - y).composite("sigmoid"))
        return g * share, g * (1 - share)

    return custom(value, (x, y), vjp).cast(first.dtype)


def xlogy(a: Operand, b: Operand) -> Node:
    """Compute a log(b); 0 where a is 0, unless b is NaN."""
    x, y = pair("xlogy", a, b, floating=True)
    return times_log(x, y, lambda y: y.unary("log"), lambda y: y, 0.0)


def xlog1py(a: Operand, b: Operand) -> Node:
    """Compute a log(1 + b); 0 where a is 0, unless b is NaN."""
    x, y = pair("xlog1py", a, b, floating=True)
    return times_log(x, y, log1p, lambda y: y + 1, -1.0)


def times_log(
    x: Node, y: Node, log: Pieces, inner: Pieces, edge: float
) -> Node:
    """Compute x log(inner(y)), 0 where x is 0 and y is a number.

    Where x is 0, its gradient is the logarithm, and 0 from the edge down, where that is none.
    """
    is_zero = x.binary("equal", 0.0)
    is_cut = is_zero.binary("logical_and", y.binary("equal", y))
    value = is_cut.where(x.const_like(0.0), x * log(is_cut.where(1.0, y)))

    def vjp(g: Node, result: Node, x: Node, y: Node) -> tuple[Node, Node]:
        is_out = y.binary("less_equal", edge).binary(
            "logical_and", x.binary("equal", 0.0)
        )
        for_x = is_out.where(0.0, g * log(is_out.where(1.0, y)))
        return for_x, g * x / inner(y)

    return custom(value, (x, y), vjp)


def fmod(a: Operand, b: Operand) -> Node:
    """Compute the remainder with the sign of the dividend, as C's fmod."""
    x, y = pair("fmod", a, b)
    if not x.dtype.is_float:
        check_divisor("fmod", b)
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


def divide_rounded(a: Operand, b: Operand, mode: str) -> Node:
    """Divide and round down ("floor") or towards 0 ("trunc"); integers stay integers."""
    if mode not in ("floor", "trunc"):
        raise ValueRangeError(
            "div", f"rounding_mode={mode!r}", 'use None, "floor" or "trunc"'
        )
    if mode == "floor":
        return elementwise.arithmetic("floordiv", a, b)
    x, y = pair("div", a, b)
    if x.dtype.is_float:
        return (x / y).unary("trunc")
    check_divisor("div", b)
    quotient = x.binary("floordiv", y)
    if x.dtype.kind == "uint":
        return quotient
    is_off = quotient.binary("less", 0).binary(
        "logical_and", (quotient * y).binary("not_equal", x)
    )
    return is_off.where(quotient + 1, quotient)

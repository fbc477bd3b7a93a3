"""The normal distribution's functions: erfcx, erfinv, its cumulative probability and its inverse.

Values are computed in float64 and rounded once. Definitions: NIST Digital Library of Mathematical
Functions, 7.2 and 7.12.
"""

import math
from collections.abc import Sequence

from picograd.codegen.error_function import ERFC
from picograd.dtype import float32, float64
from picograd.graph.node import Node
from picograd.tensor.core.function import recorded, within
from picograd.tensor.math.transcendental import (
    ROOT_PI,
    above,
    known_slope,
    polynomial,
    signbit,
    smooth,
    with_sign,
)

ROOT_2, ROOT_HALF = math.sqrt(2), math.sqrt(0.5)
ROOT_TWO_PI = math.sqrt(2 * math.pi)
# sqrt(pi) x erfcx(x) = 1 - 1 / (2 x^2) + 1 3 / (2 x^2)^2 - 1 3 5 / (2 x^2)^3 ...
TAIL = (1.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0)
# erfinv(x) by w = -log(1 - x^2): x P(0.32 w - 1) for w < 6.25; then with s = sqrt(w) s P(y), where
# float64 has y = (2 s - 8.75) / 3.75 for s < 6.25, else y of 1/s in 1/28..0.16, and float32 y of
# 1/s in 1/11..0.4; relative errors 7e-18, 1e-17, 3e-17, 7e-9 and 3e-9
SPLIT, LAST = 6.25, 6.25  # in w, and in s
NEAR = {
    64: (
    1.6536545626831027, 0.7504943200799635, -0.05892256710377784, -0.022604447453449802,
    0.017808361818295655, -0.00413731437741443, -0.0012716922684373015, 0.0012324855686812834,
    -0.0002643936684366174, -0.0001168888399309713, 9.33673917780479e-05, -1.5027710420277575e-05,
    -1.1257319182677936e-05, 7.1300572630824496e-06, -6.83718721812117e-07, -1.059321402540731e-06,
    5.394320648707009e-07, -1.0185147576818285e-08, -9.867713140174249e-08, 3.915473114023045e-08,
    4.792369996100387e-09, -8.562787796742932e-09, 1.5401738716654886e-09, 7.689312733742569e-10,
    -2.7032254091069344e-10,
    ),
    32: (
    1.6536545680743835, 0.7504943180579087, -0.05892295548787911, -0.02260430140959772,
    0.017812905613285045, -0.004139045760389229, -0.0012911827111619905, 0.0012401178688580216,
    -0.00022648746467734878, -0.00013252552754013339, 5.930168428740801e-05, 6.543455592547639e-07,
    ),
}  # fmt: skip
FAR64 = (
    0.9642241594024157, 0.01967377729984161, -0.008027312855496955, 0.0026716720380576854,
    -0.0006517758147873707, 2.5320289708295434e-05, 0.0001067433500861581, -9.59316899730578e-05,
    6.021786399832071e-05, -3.108384910040855e-05, 1.269324117600998e-05, -2.6936040655300213e-06,
    -1.7562985596005082e-06, 2.869729449769426e-06, -2.3034117693742417e-06, 1.2281058086384768e-06,
    -3.0832560115268477e-07, -1.8857387717763232e-07, 2.619507373871643e-07, -1.395485559910774e-07,
    5.908329737634401e-08, -2.75447525222415e-08, -1.754333008352336e-08, 3.412356575580957e-08,
    -9.421852619838411e-09, -5.710410207391786e-09, 2.6082406577103865e-09,
)  # fmt: skip
TAIL64 = (
    0.9894216201200989, -0.010412974858428247, -0.0013919856240389241, 0.0004019194585740948,
    -6.537542642762428e-05, 1.6136314797236373e-05, -5.227111530704011e-06, 1.905606428291025e-06,
    -7.5582925310703e-07, 3.1980357487700435e-07, -1.4233270809531406e-07, 6.573995222287915e-08,
    -3.050488408014746e-08, 1.483744868971613e-08, -9.293217763514063e-09, 4.825925152489727e-09,
    4.99513669241731e-10, -3.795611089564232e-10, -2.9204568915017303e-09, 1.6451565732946442e-09,
    1.179068369903999e-09, -6.753111868700288e-10, -4.160880456931565e-10, 2.356189700168396e-10,
)  # fmt: skip
FAR32 = (
    0.9608483924796926, -0.030737677130069897, 0.001733305969812643, 0.00210301671533949,
    -0.0005108155913811855, 8.589505958183239e-05, -4.378690639203393e-05, -4.6181399027940595e-06,
    -5.232884291552807e-06, 7.3464994265116995e-06,
)  # fmt: skip


def square_rest(x: Node, square: Node) -> Node:
    """Compute x^2 - square, the rounding error of the square, by Dekker's halves (1971)."""
    scaled = x * float(2**27 + 1)
    high = scaled - (scaled - x)
    low = x - high
    return high * high - square + high * low * 2 + low * low


def exp_square(x: Node) -> Node:
    """Compute exp(x^2) for |x| <= 30: an error in x^2 would be one of exp."""
    square = x * x
    return square.unary("exp") * (square_rest(x, square) + 1)


def over_root_two(x: Node) -> tuple[Node, Node]:
    """Compute x / sqrt(2), rounded, and what the rounding left out."""
    if x.dtype is float32:
        wide = x.cast(float64) * ROOT_HALF
        size = wide.cast(float32)
        return size, (wide - size.cast(float64)).cast(float32)
    size = x * ROOT_HALF
    whole = x * x  # 2 size^2 - x^2 = 4 size (size - x / sqrt(2)), nearly
    square = size * size
    rest = (whole * 0.5 - square) + square_rest(x, whole) * 0.5 - square_rest(size, square)
    safe = size.binary("equal", 0.0).where(size.const_like(1.0), size)
    return size, rest / (safe * 2)


def half_erfc(x: Node) -> Node:
    """Compute erfc(x / sqrt(2)) / 2; the slope makes good what rounding x / sqrt(2) left out."""
    limited = x.binary("minimum", 50.0).binary("maximum", -50.0)
    size, rest = over_root_two(limited)
    share = rest * (size * size * -1).unary("exp") * (1 / ROOT_PI)
    value = size.unary("erfc") * 0.5 - share
    return x.unary("isnan").where(x, value)


def erfcx_value(x: Node) -> Node:
    """Compute exp(x^2) erfc(x): the fit of erfc without its exponential; beyond 50 the series."""
    size = x.unary("abs")
    is_far = above(size, 50.0)
    near = is_far.where(x.const_like(50.0), size)
    t = 2 / (near + 2)
    value = t * polynomial(ERFC, t * 2 - 1).unary("exp")
    inverse = is_far.where(size, 50.0).unary("reciprocal")
    tail = inverse * polynomial(TAIL, inverse * inverse * 0.5) * (1 / ROOT_PI)
    value = is_far.where(tail, value)
    return signbit(x).where(exp_square(x.binary("maximum", -30.0)) * 2 - value, value)


def erfcx_slope(x: Node, y: Node) -> Node:
    """Compute 2 x y - 2 / sqrt(pi)."""
    return x * y * 2 - 2 / ROOT_PI


@within("special", is_recorded=True)
def erfcx(node: Node) -> Node:
    """Compute exp(x^2) erfc(x) without overflow.

    >>> picograd.special.erfcx(picograd.Tensor([0.0])).tolist()
    [1.0]
    """
    return smooth("erfcx", node, erfcx_value, erfcx_slope, True)


@within("special", is_recorded=True)
def ndtr(node: Node) -> Node:
    """Compute the probability that a standard normal number is less than x.

    >>> picograd.special.ndtr(picograd.Tensor([0.0])).tolist()
    [0.5]
    """
    return smooth(
        "ndtr",
        node,
        lambda x: half_erfc(-x),
        lambda x, y: (x * x * -0.5).unary("exp") * (1 / ROOT_TWO_PI),
    )


def log_ndtr_value(x: Node) -> Node:
    """Compute log(ndtr(x)) without underflow of ndtr."""
    is_low = x.binary("less", -1.0)
    low = is_low.where(x, -1.0)
    tail = (erfcx_value(low * (-1 / ROOT_2)) * 0.5).unary("log") - low * low * 0.5
    high = is_low.where(x.const_like(0.0), x)
    return is_low.where(tail, (-half_erfc(high)).unary("log1p"))


def log_ndtr_slope(x: Node, y: Node) -> Node:
    """Compute sqrt(2 / pi) / erfcx(-x / sqrt(2))."""
    scaled = known_slope(x * (-1 / ROOT_2), erfcx_value, erfcx_slope)
    return scaled.unary("reciprocal") * math.sqrt(2 / math.pi)


@within("special", is_recorded=True)
def log_ndtr(node: Node) -> Node:
    """Compute log(ndtr(x)) without underflow.

    >>> round(picograd.special.log_ndtr(picograd.Tensor([-10.0])).item(), 2)
    -53.23
    """
    return smooth("log_ndtr", node, log_ndtr_value, log_ndtr_slope, True)


def fitted(coefficients: Sequence[float], x: Node, low: float, high: float) -> Node:
    """Evaluate a fit of low..high, whose polynomial is one of -1..1."""
    scale = 2 / (high - low)
    return polynomial(coefficients, x * scale - (low + high) / (high - low))


def inverse(x: Node, rest: Node, is_long: bool) -> Node:
    """Compute erfinv(x) of `rest` = 1 - x^2; `is_long`: of rests below those of 1 - x too."""
    w = -rest.unary("log")
    root = w.unary("sqrt")
    is_single = x.dtype is float32
    near = x * fitted(NEAR[x.dtype.bits], w, 0.0, SPLIT)
    if is_single:
        far = fitted(FAR32, root.unary("reciprocal"), 1 / 11, 0.4)
    else:
        far = fitted(FAR64, root, SPLIT**0.5, LAST)
    if is_long and not is_single:
        tail = fitted(TAIL64, root.unary("reciprocal"), 1 / 28, 1 / LAST)
        far = root.binary("less", LAST).where(far, tail)
    return w.binary("less", SPLIT).where(near, with_sign(root * far, x))  # infinite where w is


def erfinv_value(x: Node) -> Node:
    """Invert erf."""
    size = x.unary("abs")
    return inverse(x, (1 - size) * (1 + size), False)


def erfinv_slope(x: Node, y: Node) -> Node:
    """Compute sqrt(pi)/2 exp(y^2)."""
    return (y * y).unary("exp") * (ROOT_PI / 2)


@recorded(in_place=True)
def erfinv(x: Node) -> Node:
    """Invert erf: infinite at -1 and 1, NaN outside.

    >>> Tensor([-0.5, 0.0, 0.5]).erfinv().tolist()
    [-0.4769..., 0.0, 0.4769...]
    """
    return smooth("erfinv", x, erfinv_value, erfinv_slope)


def ndtri_value(p: Node) -> Node:
    """Invert ndtr: sqrt(2) erfinv(2 p - 1)."""
    low = p.binary("less", 0.5).where(p, 1 - p)
    return inverse(p * 2 - 1, low * (1 - low) * 4, True) * ROOT_2


def ndtri_slope(p: Node, y: Node) -> Node:
    """Compute sqrt(2 pi) exp(y^2 / 2)."""
    return (y * y * 0.5).unary("exp") * ROOT_TWO_PI


@within("special", is_recorded=True)
def ndtri(node: Node) -> Node:
    """Find the x whose ndtr is p.

    >>> picograd.special.ndtri(picograd.Tensor([0.5, 1.0])).tolist()
    [0.0, inf]
    """
    return smooth("ndtri", node, ndtri_value, ndtri_slope)


def entr_value(x: Node) -> Node:
    """Compute -x log(x): 0 at 0, -infinity below."""
    is_inside = above(x, 0.0)
    safe = is_inside.where(x, 1.0)
    is_zero = x.binary("equal", 0.0)
    edge = is_zero.where(x.const_like(0.0), -math.inf)
    value = is_inside.where(-(safe * safe.unary("log")), edge)
    return x.unary("isnan").where(x, value)


def entr_slope(x: Node, y: Node) -> Node:
    """Compute -log(x) - 1."""
    return -x.unary("log") - 1


@within("special", is_recorded=True)
def entr(node: Node) -> Node:
    """Compute -x log(x): 0 at 0, -infinity below.

    >>> picograd.special.entr(picograd.Tensor([0.0, -1.0])).tolist()
    [0.0, -inf]
    """
    return smooth("entr", node, entr_value, entr_slope)

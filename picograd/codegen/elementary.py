"""Exponentials, and logarithms of sums, to within 0.6 units in the last place, on every target.

A float64 argument is computed in pairs (`Pair` in value.py) and rounded once, by formulas that are
made of two cores: exp and log by argument reduction and a series. Lengths, and logarithms of sums,
of float32 are computed in float64; its other functions have formulas of their own (polynomial.py,
hyperbolic.py). Infinities, NaN, signed zeros and denormals come out as IEEE 754 says.

Circular functions and lengths are as precise. The inverse ones share one core: the angle of a ratio
of two numbers.
"""

from collections.abc import Callable
from math import inf, nan, pi
from math import tan as host_tan

from picograd.codegen.hyperbolic import softplus
from picograd.codegen.polynomial import (
    BASE_2,
    LN2_HIGH64,
    LN2_LOW64,
    LOG64,
    PI32,
    ROUND64,
    clamp,
    halves,
    horner,
    log2,
    log10,
    log_edges,
    power_of_two,
    split_float,
)
from picograd.codegen.portable import COS64, SIN64
from picograd.codegen.value import (
    Pair,
    Value,
    Wide,
    as_pair,
    choose,
    head,
    is_single_part,
    quick_sum,
    rounded,
    square_root,
    two_product,
    two_sum,
)
from picograd.dtype import bool_, float32, float64, int32, int64

# exp(r) = 1 + r + r^2 P(r) with |r| <= log(2)/2, to 7e-14 where the result is float32; for pairs
# 1 + r + r^2 / 2 + r^3 P(r), to 7e-19. They are fits (mpmath).
EXP = {32: (
    0.4999999999995475, 0.16666666666662555, 0.04166666678698556, 0.008333333344268395,
    0.0013888838910996056, 0.00019841224418291943, 2.4868002978056962e-05, 2.7617685465165067e-06,
), 64: (
    0.16666666666666669, 0.041666666666666664, 0.008333333333330062, 0.0013888888888886552,
    0.00019841269863053618, 2.4801587317144498e-05, 2.7557268459997064e-06, 2.755728296954995e-07,
    2.510038549551032e-08, 2.0911236630261545e-09,
)}  # fmt: skip
# tanh(x) = x + x t P(t), t = x^2, |x| <= 3/4; relative error 1e-17 (mpmath)
TANH64 = (
    -0.3333333333333333, 0.13333333333332661, -0.05396825396758208, 0.021869488509711037,
    -0.008863234987439102, 0.0035921213885060418, -0.0014557818253310693, 0.0005897469986953327,
    -0.00023809406936979282, 9.42476297649358e-05, -3.449472469998217e-05, 1.0048053928129499e-05,
    -1.6408599646831444e-06,
)  # fmt: skip
# log(1 + t) = t + t^2 P(t) for 0 <= t <= 1; relative error 6e-14 (mpmath)
LOG_ONE_MORE = (
    -0.49999999999991657, 0.3333333332905357, -0.24999999632892825, 0.19999987457070484,
    -0.16666439719037376, 0.14283206658163197, -0.1248158956114829, 0.11016229506292904,
    -0.09643382329068963, 0.08085209192082228, -0.0615472458014015, 0.03982266229407311,
    -0.020342659119451496, 0.007511421709417881, -0.001755810585706997, 0.00019326305782479852,
)  # fmt: skip
# Sums of two float64.
LN2, INVERSE_LN2 = (0.6931471805599453, 2.3190468138462996e-17), BASE_2[64][0]


def constant(number: tuple[float, float], like: Wide) -> Wide:
    """Make a constant of the precision of `like`."""
    high, low = (head(like).constant(part) for part in number)
    return Pair(high, low) if isinstance(like, Pair) else high


def signed(magnitude: Value, x: Value) -> Value:
    """Give a magnitude the sign of x; where x is 0 or NaN, x itself."""
    is_plain = (x < 0.0) | (x.constant(0.0) < x)
    return is_plain.where((x < 0.0).where(-magnitude, magnitude), x)


def scaled(x: Wide, whole: Value) -> Wide:
    """Multiply by 2 ** whole in two steps: 2 ** whole alone might overflow or underflow."""
    half = whole.raw("shift_right", 1)
    for factor in (power_of_two(half), power_of_two(whole - half)):
        x = x.scaled(factor) if isinstance(x, Pair) else x * factor
    return x


def split_whole(shifted: Value) -> tuple[Value, Value]:
    """Take the whole number out of x + ROUND64: as a float64 and as an int64."""
    return shifted - ROUND64, shifted.bitcast(int64) - 0x4338000000000000


# -- exponentials ---------------------------------------------------------------------------------


def exp_core(x: Wide) -> tuple[Value, Wide]:
    """Write exp(x) = 2^n (1 + m) with |x| <= 760: n in int64, and m."""
    high = head(x)
    n, whole = split_whole(high.fma(INVERSE_LN2[0], ROUND64))
    if not isinstance(x, Pair):
        return whole, exp_series(n.fma(-LN2[0], high))
    first = n.fma(-LN2_HIGH64, high)  # exact: LN2_HIGH64 has 32 bits
    second = n * LN2_LOW64
    rest = first - second
    low = (first - rest) - second
    r = Pair(rest, low) if is_single_part(x) else two_sum(rest, low + x.low)
    return whole, exp_series(r)


def exp_series(r: Wide) -> Wide:
    """Compute exp(r) - 1 = r + r^2 / 2 + ... for |r| <= 0.35: of a pair to 2^-58 or so."""
    if not isinstance(r, Pair):
        return (r * r).fma(halves(EXP[32], r), r)
    high = r.high
    square = two_product(high, high)
    start = quick_sum(high, square.high * 0.5)
    low = r.low.fma(high, r.low) + square.low.fma(0.5, start.low)
    return quick_sum(start.high, (square.high * high).fma(horner(EXP[64], high), low))


def exp(x: Value) -> Value:
    """Compute exp(x) in float64, to 0.6 units in the last place, of values alone: it is common."""
    x = clamp(x, -746.0, 710.0)
    n, whole = split_whole(x.fma(INVERSE_LN2[0], ROUND64))
    return exp_near(n.fma(-LN2_HIGH64, x), n * LN2_LOW64, whole)


def exp_near(first: Value, second: Value, whole: Value) -> Value:
    """Compute 2 ** whole exp(first - second), which is near 1 but for the power."""
    r = first - second
    rest = (first - r) - second
    series = (r * r).fma(horner((0.5, *EXP[64]), r), rest)
    head = r + 1.0
    return scaled(head + (series + (r - (head - 1.0))), whole)


def exp2(x: Value) -> Value:
    """Compute 2 ** x in float64, exactly where x is whole."""
    x = clamp(x, -1076.0, 1025.0)
    n, whole = split_whole(x + ROUND64)
    rest = x - n
    high = rest * LN2[0]
    return exp_near(high, (-rest).fma(LN2[0], high) - rest * LN2[1], whole)


def expm1(x: Value) -> Value:
    """Compute exp(x) - 1 = 2^n (m + (1 - 2^-n)) in float64, relatively exact near 0."""
    whole, m = exp_core(as_pair(clamp(x, -60.0, 711.0)))
    down = power_of_two(-clamp(whole, -100, 1000))
    result = scaled(rounded(m + (down.constant(1.0) - down)), whole)
    return (x.raw("abs") < 2.0**-60).where(x, result)


def grown(x: Value) -> tuple[Value, Pair, Pair]:
    """Compute of s = |x|: exp(s) / 2 for large s, exp(s) and exp(s) - 1 for s <= 40."""
    whole, m = exp_core(as_pair(clamp(x.raw("abs"), 0.0, 711.0)))
    large = scaled(rounded(m + 1.0), whole - 1)
    up = power_of_two(clamp(whole, 0, 60))
    near = as_pair(m).scaled(up)
    return large, near + up, near + (up - 1.0)


def sinh(x: Value) -> Value:
    """Compute (e + e / (e + 1)) / 2 with e = exp(|x|) - 1 in float64."""
    large, power, excess = grown(x)
    near = rounded(excess + excess / power) * 0.5
    result = (x.raw("abs") < 40.0).where(near, large)
    return (x.raw("abs") < 2.0**-28).where(x, signed(result, x))


def cosh(x: Value) -> Value:
    """Compute (exp(x) + exp(-x)) / 2 in float64."""
    large, power, _ = grown(x)
    near = rounded(power + constant((1.0, 0.0), power) / power) * 0.5
    result = (x.raw("abs") < 40.0).where(near, large)
    return x.raw("not_equal", x, dtype=bool_).where(x, result)


def tanh(x: Value) -> Value:
    """Compute tanh(x) in float64: a polynomial near 0, else 1 - 2 / (exp(2 |x|) + 1)."""
    size = clamp(x.raw("abs"), 0.0, 20.0)  # where it is 1
    square = size * size
    near = (size * square).fma(horner(TANH64, square), size)
    far = size.constant(1.0) - size.constant(2.0) / (exp(size + size) + 1.0)
    return signed((size < 0.75).where(near, far), x)


# -- logarithms -----------------------------------------------------------------------------------


def log_core(x: Pair) -> tuple[Value, Pair]:
    """Write log(x) = e log(2) + l for x > 0: e, a whole number, and l = log(m), m near 1."""
    high = x.high
    is_small = high < 2.0**-1022  # a denormal: scale it up
    whole, mantissa = split_float(is_small.where(high * 2.0**54, high))
    exponent = whole.cast(float64)
    exponent = is_small.where(exponent - 54.0, exponent)
    f = as_pair(mantissa - 1.0)
    if not is_single_part(x):
        f = two_sum(mantissa - 1.0, x.low * power_of_two(-clamp(whole, -1000, 1000)))
    return exponent, log_series(f)


def log_series(f: Pair) -> Pair:
    """Compute log(1 + f) for sqrt(1/2) <= 1 + f <= sqrt(2), by s = f / (2 + f).

    That is f - f^2/2 + s (f^2/2 + R(s^2)), to 2^-58 or so.
    """
    high = f.high
    s = high / (high + 2.0)
    square = s * s
    half = two_product(high, high * -0.5)
    start = quick_sum(high, half.high)
    slope = (s * 2.0).fma(s - 1.0, 1.0)  # of log(1 + f), nearly
    low = f.low.fma(slope, half.low) + start.low
    return quick_sum(start.high, s.fma(square.fma(horner(LOG64, square), -half.high), low))


def log_of(x: Pair, doublings: Value | float = 0.0) -> Pair:
    """Compute log(x 2^doublings) for x > 0."""
    exponent, part = log_core(x)
    exponent = exponent + doublings
    return part + exponent * LN2_LOW64 + exponent * LN2_HIGH64


def log1p(x: Value) -> Value:
    """Compute log(1 + x) in float64, relatively exact near 0."""
    u = two_sum(x, x.constant(1.0))
    value = log_edges(u.high, rounded(log_of(u)))
    return (x.raw("abs") < 2.0**-60).where(x, value)


def inverse_hyperbolic(x: Value, is_large: Value, near: Pair) -> Value:
    """Compute log(1 + near) with the sign of x; log(2 |x|) where that is large."""
    size, one = x.raw("abs"), x.constant(1.0)
    argument = choose(is_large, as_pair(size), near + 1.0)
    value = rounded(log_of(as_pair(argument), is_large.where(one, 0.0)))
    return signed(size.is_equal(inf).where(size, value), x)


def asinh(x: Value) -> Value:
    """Compute log(1 + t) in float64, with t = s + s^2 / (1 + sqrt(s^2 + 1)), s = |x|."""
    size = x.raw("abs")
    is_large = size.constant(2.0**30) < size
    s = as_pair(is_large.where(size.constant(1.0), size))
    square = s * s
    near = s + square / (as_pair(square_root(square + 1.0)) + 1.0)
    return (size < 2.0**-28).where(x, inverse_hyperbolic(x, is_large, near))


def acosh(x: Value) -> Value:
    """Compute log(1 + t) in float64, with t = x - 1 + sqrt((x - 1)(x + 1)); NaN below 1."""
    is_large = x.constant(2.0**30) < x
    is_outside = (x < 1.0) | is_large
    one = x.constant(1.0)
    safe = is_outside.where(one, x)
    excess = two_sum(safe, -one)
    near = excess + square_root(excess * two_sum(safe, one))
    value = inverse_hyperbolic(x, is_large, near)
    value = x.is_equal(1.0).where(x.constant(0.0), value)
    return (one <= x).where(value, nan)


def atanh(x: Value) -> Value:
    """Compute log(1 + 2 s / (1 - s)) / 2 in float64, with s = |x|; NaN outside -1..1."""
    size, one = x.raw("abs"), x.constant(1.0)
    is_inside = size < 1.0
    safe = is_inside.where(size, 0.5)
    ratio = as_pair(safe + safe) / two_sum(one, -safe)
    value = rounded(log_of(ratio + 1.0) * 0.5)
    value = is_inside.where(value, size.is_equal(1.0).where(x.constant(inf), nan))
    return (size < 2.0**-28).where(x, signed(value, x))


def log_one_more(t: Wide) -> Wide:
    """Compute log(1 + t) for 0 <= t <= 1."""
    if not isinstance(t, Pair):
        return (t * t).fma(halves(LOG_ONE_MORE, t), t)
    high = t.high
    is_far = high.constant(0.4142135623730951) < high
    part = log_series(choose(is_far, (t + -1.0).scaled(high.constant(0.5)), t))
    return (
        part + is_far.where(high.constant(LN2[1]), 0.0) + is_far.where(high.constant(LN2[0]), 0.0)
    )


def logaddexp(a: Value, b: Value) -> Value:
    """Compute log(exp(a) + exp(b)) = max + log(1 + exp(-|a - b|))."""
    for x, other in ((a, b), (b, a)):
        if x.dtype is float32 and other.emitter.constant_of(other.position) == 0.0:
            return softplus(x)  # in which nothing cancels
    is_less = a < b
    large, small = is_less.where(b, a), is_less.where(a, b)
    if a.dtype is float32:
        total = logaddexp_single(large.cast(float64), small.cast(float64))
    else:
        total = logaddexp_pair(large, small)
    is_nan = a.raw("not_equal", a, dtype=bool_) | b.raw("not_equal", b, dtype=bool_)
    return is_nan.where(a + b, total.cast(a.dtype))


def logaddexp_single(large: Value, small: Value) -> Value:
    """Compute it of float32 operands in float64; an infinite one is the larger, or unseen."""
    gap = small - large  # NaN where both are the same infinity
    whole, m = exp_core((gap.constant(-200.0) < gap).where(gap, -200.0))
    power = power_of_two(whole)
    return rounded(log_one_more(rounded(m).fma(power, power)) + large)


def logaddexp_pair(large: Value, small: Value) -> Value:
    """Compute it of float64 operands in pairs."""
    gap = two_sum(small, -large)
    is_near = gap.high.constant(-746.0) < gap.high  # whose exponential somebody sees
    edge = small.is_equal(large).where(large.constant(0.0), -746.0)  # they may be infinite
    whole, m = exp_core(Pair(is_near.where(gap.high, edge), is_near.where(gap.low, 0.0)))
    total = log_one_more(scaled(m + 1.0, whole)) + large
    return (large.raw("abs") < inf).where(rounded(total), large)


EXPONENTIALS: dict[str, Callable[..., Value]] = {
    "exp2": exp2, "expm1": expm1, "sinh": sinh, "cosh": cosh, "log2": log2, "log10": log10,
    "log1p": log1p, "asinh": asinh, "acosh": acosh, "atanh": atanh, "logaddexp": logaddexp,
}  # fmt: skip


# atan(z) = z + z t P(t), t = z^2, |z| <= tan(pi/8); relative error of P 4e-18
ATAN = (
    -0.3333333333333333, 0.19999999999999762, -0.1428571428564902, 0.1111111110411266,
    -0.09090908702135893, 0.07692294904895292, -0.06666398746373535, 0.05878631460173418,
    -0.052282847666252616, 0.04541795446312359, -0.03432108202704706, 0.016012008462212284,
)  # fmt: skip
# asin(z) = z + z t P(t), t = z^2, |z| <= 1/2; relative error of P 6e-8 and 8e-17
ASIN = {32: (
    0.1666666567325592, 0.07500094175338745, 0.04459948092699051,
    0.031099773943424225, 0.017153263092041016, 0.03368444740772247,
), 64: (
    0.16666666666666669, 0.07499999999998337, 0.04464285714654101, 0.0303819441245548,
    0.022372173485280193, 0.017352380280992664, 0.013971393436442964, 0.011477455339595318,
    0.010333769979776294, 0.005411494024235969, 0.017523379397993637, -0.015039171674951106,
    0.0288830848240179,
)}  # fmt: skip
# pi and its parts as sums of two float64, and of two float32
PI = (pi, 1.2246467991473532e-16)
PARTS_OF_PI = {32: PI32, 64: PI}
HALF_PI, QUARTER_PI = ((PI[0] * share, PI[1] * share) for share in (0.5, 0.25))
HALF_PI_REST = -1.4973849048591833e-33  # beyond those two


def is_minus(x: Value) -> Value:
    """Test the sign bit."""
    return x.bitcast(int32 if x.dtype is float32 else int64) < 0


def atan_ratio(top: Pair, bottom: Pair) -> Pair:
    """Compute atan(top / bottom) for numbers >= 0 of which at most one is 0.

    The ratio is brought to |z| <= tan(pi/8) by atan(u) = pi/4 + atan((u - 1) / (u + 1)) and
    atan(u) = pi/2 + atan(-1 / u).
    """
    is_far = bottom.high * host_tan(3 * pi / 8) < top.high
    is_middle = bottom.high * host_tan(pi / 8) < top.high
    less = choose(is_middle, top - bottom, top)
    more = choose(is_middle, top + bottom, bottom)
    z = as_pair(choose(is_far, -bottom, less)) / as_pair(choose(is_far, top, more))
    high = z.high  # the rest of a division says nothing where it may underflow
    z = Pair(high, (high.raw("abs") < 2.0**-900).where(high.constant(0.0), z.low))
    square = high * high
    middle = choose(is_middle, constant(QUARTER_PI, z), constant((0.0, 0.0), z))
    start = choose(is_far, constant(HALF_PI, z), middle)
    near = z + horner(ATAN, square) * square * high
    return as_pair(choose(is_far | is_middle, as_pair(start) + near, near))


def atan(x: Value) -> Value:
    """Compute the inverse tangent in float64, by the parts of the circle as `atan_ratio`."""
    return signed(atan_of_size(x.raw("abs")), x)


def atan_of_size(x: Value) -> Value:
    """Compute the inverse tangent of a float64 >= 0."""
    one, zero = x.constant(1.0), x.constant(0.0)
    is_far, is_middle = (x.constant(host_tan(k * pi / 8)) < x for k in (3, 1))
    top = is_far.where(-one, is_middle.where(x - 1.0, x))
    z = top / is_far.where(x, is_middle.where(x + 1.0, one))
    square = z * z
    start, low = (
        is_far.where(one.constant(half), is_middle.where(one.constant(quarter), zero))
        for half, quarter in zip(HALF_PI, QUARTER_PI)
    )
    return start + (z + (square * z).fma(horner(ATAN, square), low))


def asin_of_half(x: Value) -> tuple[Value, Value, Value]:
    """Compute asin(|x|) as a sum of two; beyond 1/2, where that is told, it is another.

    asin(|x|) = pi/2 - 2 asin(sqrt((1 - |x|) / 2)) has the angle of the root there.
    """
    size = x.raw("abs")
    is_far = size.constant(0.5) < size
    square = is_far.where(size.fma(-0.5, 0.5), size * size)
    root = is_far.where(square.raw("sqrt"), size)
    return is_far, root, horner(ASIN[x.dtype.bits], square) * square * root


def asin(x: Value) -> Value:
    """Compute the inverse sine; NaN outside -1..1."""
    high, low = PARTS_OF_PI[x.dtype.bits]
    is_far, root, rest = asin_of_half(x)
    less = root.fma(-2.0, high / 4) - rest.fma(2.0, -low / 2)  # below 1: rounded finely
    return signed(is_far.where(less + high / 4, root + rest), x)


def acos(x: Value) -> Value:
    """Compute the inverse cosine; NaN outside -1..1."""
    high, low = PARTS_OF_PI[x.dtype.bits]
    is_far, root, rest = asin_of_half(x)
    beyond = root.fma(-2.0, high) - rest.fma(2.0, -low)
    far = (x < 0.0).where(beyond, (root + rest) * 2.0)
    near = x + ((x < 0.0).where(-rest, rest) - low / 2)
    return is_far.where(far, -near + high / 2)


def moderate(a: Value, b: Value, large: float) -> tuple[Value, Value, Value]:
    """Scale two float64 numbers >= 0 so that they are neither tiny nor huge; also the way back.

    Huge ones are multiplied by `large`.
    """
    largest = (a < b).where(b, a)
    is_large, is_small = (largest.constant(2.0**500) < largest, largest < 2.0**-400)
    one = largest.constant(1.0)
    factor = is_large.where(one.constant(large), is_small.where(one.constant(2.0**600), one))
    back = is_large.where(one.constant(1 / large), is_small.where(one.constant(2.0**-600), one))
    return a * factor, b * factor, back


def atan2(y: Value, x: Value) -> Value:
    """Compute the angle of the point (x, y) in float64; infinities and zeros have one too."""
    wide, high = x.raw("abs"), y.raw("abs")
    is_infinite = wide.is_equal(inf) | high.is_equal(inf)
    one, zero = wide.constant(1.0), wide.constant(0.0)
    bottom = is_infinite.where(wide.is_equal(inf).where(one, zero), wide)
    top = is_infinite.where(high.is_equal(inf).where(one, zero), high)
    bottom = (top.is_equal(0.0) & bottom.is_equal(0.0)).where(one, bottom)
    first, second, _ = moderate(top, bottom, 2.0**-4)  # sums are in range: all digits stay
    angle = atan_ratio(as_pair(first), as_pair(second))
    value = rounded(choose(is_minus(x), constant(PI, angle) - angle, angle))
    value = is_minus(y).where(-value, value)
    is_nan = x.raw("not_equal", x, dtype=bool_) | y.raw("not_equal", y, dtype=bool_)
    return is_nan.where(x + y, value)


def hypot(x: Value, y: Value) -> Value:
    """Compute sqrt(x^2 + y^2); infinite if either is, whatever the other."""
    a, b = x.raw("abs"), y.raw("abs")
    if x.dtype is float32:
        wide, high = a.cast(float64), b.cast(float64)
        value = (wide * wide + high * high).raw("sqrt").cast(float32)
    else:
        wide, high, back = moderate(a, b, 2.0**-600)  # of squares
        value = rounded(square_root(two_product(wide, wide) + two_product(high, high))) * back
    return (a.is_equal(inf) | b.is_equal(inf)).where(x.constant(inf), value)


def reduce_angle(x: Value) -> tuple[Pair, Value]:
    """Write x = n pi/2 + r with |r| <= pi/4: r as a pair, n in the lowest bits of an int64.

    Up to |x| = RARE_FROM the first difference is exact, and what pi/2 has beyond three numbers less
    than the pair shows.
    """
    shifted = x.fma(1 / HALF_PI[0], ROUND64)
    n = shifted - ROUND64
    less = two_product(n, n.constant(HALF_PI[1]))
    r = two_sum(n.fma(-HALF_PI[0], x), -less.high)
    return Pair(r.high, n.fma(-HALF_PI_REST, r.low - less.low)), shifted.bitcast(int64)


def short_sine(r: Pair, square: Value) -> Pair:
    """Compute sin(r) for |r| <= pi/4 as a sum of two; `square` is that of its high part."""
    return Pair(r.high, (r.high * square).fma(horner(SIN64, square), r.low))


def short_cosine(r: Pair, square: Value) -> Pair:
    """Compute cos(r) for |r| <= pi/4 as a sum of two; `square` is that of its high part."""
    start = quick_sum(square.constant(1.0), square * -0.5)
    low = (-r.high).fma(r.low, start.low)
    return Pair(start.high, (square * square).fma(horner(COS64, square), low))


def quadrant(r: Pair, n: Value) -> Value:
    """Compute sin(r + n pi/2)."""
    square = r.high * r.high
    is_even = (n & 1).is_equal(0)
    size = is_even.where(rounded(short_sine(r, square)), rounded(short_cosine(r, square)))
    return size.bitcast(int64).raw("bitwise_xor", (n & 2).raw("shift_left", 62)).bitcast(float64)


def sin(x: Value) -> Value:
    """Compute the sine in float64."""
    return x.rare("sin", x.is_equal(0.0).where(x, quadrant(*reduce_angle(x))))


def cos(x: Value) -> Value:
    """Compute the cosine in float64."""
    r, n = reduce_angle(x)
    return x.rare("cos", quadrant(r, n + 1))


def tan_pair(x: Value) -> Value:
    """Compute the tangent in float64: a quotient of pairs."""
    r, n = reduce_angle(x)
    square = r.high * r.high
    sums = short_sine(r, square), short_cosine(r, square)
    sine, cosine = (quick_sum(each.high, each.low) for each in sums)
    is_even = (n & 1).is_equal(0)
    ratio = choose(is_even, sine, -cosine) / choose(is_even, cosine, sine)
    return x.rare("tan", x.is_equal(0.0).where(x, rounded(ratio)))


def tan(x: Value) -> Value:
    """Compute the tangent by the library's function of float64."""
    return x.cast(float64).raw("tan").cast(x.dtype)


ANGLES: dict[str, Callable[..., Value]] = {
    "tan": tan, "atan": atan, "asin": asin, "acos": acos, "atan2": atan2, "hypot": hypot,
}  # fmt: skip

"""Elementary functions of float32, and logarithms, as arithmetic: polynomials and selects.

Errors stay within 1.5 units in the last place; infinities, NaN and denormals come out right.
The coefficients were fitted for this project: Lawson's iteration (reweighted least squares towards
the minimax) at 2000 Chebyshev nodes, in float64. Argument reduction follows Cody and Waite.
"""

from collections.abc import Callable, Sequence
from math import inf, log, nan, pi

from picograd.codegen.value import Value
from picograd.dtype import bool_, float32, float64, int32, int64

# exp(r) = 1 + r + r^2 P(r) for |r| <= log(2)/2, relative error 3e-9 and 5e-17
EXP32 = (
    0.5000000100980201, 0.1666651288840479, 0.04166618728357115, 0.008369598410070603,
    0.0013951717249892298,
)  # fmt: skip
EXP64 = (
    0.5000000000000013, 0.16666666666666632, 0.041666666666509374, 0.008333333333343428,
    0.0013888888948613946, 0.00019841269856920912, 2.4801488402367233e-05, 2.7557258545256078e-06,
    2.763178115680101e-07, 2.510703451170982e-08,
)  # fmt: skip
# log(1+f) = f - f^2/2 + f^3 P(f) for sqrt(1/2) <= 1+f <= sqrt(2), relative error 6e-9
LOG32 = (
    0.3333331580100688, -0.2500082672891658, 0.20002374567509965, -0.1662399755978906,
    0.14178828197553583, -0.13132231213442858, 0.1290014204003128, -0.07872853361413801,
)  # fmt: skip
# log((1+s)/(1-s)) = s (2 + t P(t)) with t = s^2, s = f / (2+f); relative error 2e-19 (mpmath)
LOG64 = (
    0.6666666666666666, 0.4000000000000088, 0.2857142857080323, 0.2222222239180047,
    0.18181795630884753, 0.15386240205813478, 0.13268759668560612, 0.13086767009948175,
)  # fmt: skip
# tanh(x) = x + x t P(t), t = x^2, |x| <= 0.625
TANH = (
    -0.3333333090667181, 0.13333209763795972, -0.05394720426923191, 0.02170296710459361,
    -0.008182673856205847, 0.002147536859276264,
)  # fmt: skip
# erf(x) = x + x P(x^2) for |x| <= 1; erfc(x) = exp(-x Q(-x)) for 0.95 <= x <= 4
ERF_SMALL = (
    0.1283791670631576, -0.37612638483807803, 0.11283782747182, -0.026865445820315383,
    0.005221074875078969, -0.0008484711405986198, 0.0001127054418364142, -9.680135539049782e-06,
)  # fmt: skip
ERF_LARGE = (
    1.1284713104341337, -0.6360660654363698, 0.1042279561309113, 0.021316155198350215,
    0.001841141691994228, -0.0004965418341256962, -0.0002127557138173548, -3.3487087735888365e-05,
    -2.0819413439796525e-06,
)  # fmt: skip
# sin(x) = x + x t P(t), cos(x) = 1 - t/2 + t^2 Q(t), t = x^2, |x| <= pi/4
SIN = (-0.1666666663955762, 0.008333329143894869, -0.0001983925662858202, 2.7175644127073607e-06)
COS = (0.041666645652426997, -0.001388730602473925, 2.4431203146151428e-05)
# sin(x) as above for |x| <= pi/2, relative error 3e-11; and for |x| <= pi/4, 4e-9
SIN_HALF_TURN = (
    -0.16666666625942037, 0.008333331099535978, -0.00019840866989237867, 2.7525320145616457e-06,
    -2.388775015640062e-08,
)  # fmt: skip
SIN_SHORT = (-0.1666665457314762, 0.008332158410258741, -0.00019514957699675014)

# atan(z) = z + z t P(t), t = z^2, 0 <= z <= 1; relative error 5e-10, of these float32
ATAN = (
    -0.333333283662796, 0.1999971568584442, -0.14280343055725098, 0.11061233282089233,
    -0.08821462094783783, 0.06763648986816406, -0.04498325660824776, 0.02277761697769165,
    -0.007425363175570965, 0.0011345221428200603,
)  # fmt: skip
LARGEST_TANGENT = 1e30  # atan is pi/2 from here on
PI32 = (3.1415927410125732, -8.742277657347586e-08)  # pi as two float32

# log2((1+s)/(1-s)) = s P(s^2) for the same s; relative error 4e-12
LOG2 = (
    2.885390081789987, 0.9617966734515485, 0.5770835660048659, 0.41167376623771057,
    0.3407120415619086,
)  # fmt: skip

LN2_HIGH32, LN2_LOW32 = (0.693145751953125, 1.42860682030941723212e-06)  # the first has 17 bits
# 1 / log(b) and log(2) / log(b) as sums of two numbers; the second's first has 16 bits, or 32, so
# that its product with an exponent is exact.
BASE_2 = {32: ((1.4426950216293335, 1.9259629911266175e-08), (1.0, 0.0)),
          64: ((1.4426950408889634, 2.0355273740931033e-17), (1.0, 0.0))}  # fmt: skip
BASE_10 = {32: ((0.4342944920063019, -1.0103050052231683e-08),
                (0.30103302001953125, -3.0243555500547862e-06)),
           64: ((0.4342944819032518, 1.098319650216765e-17),
                (0.3010299955494702, 1.1451100898021838e-10))}  # fmt: skip
LN2_HIGH64, LN2_LOW64 = (0.6931471803691238, 1.9082149292705877e-10)  # the first has 32 bits
LEAST_EXP = -254 * log(2)
ROUND32, ROUND64 = (1.5 * 2.0**23, 1.5 * 2.0**52)  # adding it rounds to an integer in the low bits
BIAS = ROUND32 + 127  # adding it rounds to n, and leaves the exponent of 2^n in the low bits
SATURATED = 10.0  # tanh is 1 from here on
PI_LOW = 1.2246467991473532e-16  # of pi, beyond float64


def horner(coefficients: Sequence[float], x: Value) -> Value:
    """Evaluate a polynomial, lowest coefficient first."""
    total = x.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total.fma(x, coefficient)
    return total


def halves(coefficients: Sequence[float], x: Value) -> Value:
    """Evaluate a polynomial, its even and its odd powers apart: half of the steps in a row."""
    square = x * x
    return horner(coefficients[1::2], square).fma(x, horner(coefficients[::2], square))


def clamp(x: Value, low: float, high: float) -> Value:
    """Limit to low..high; NaN passes."""
    x = (x < low).where(x.constant(low), x)
    return (x.constant(high) < x).where(x.constant(high), x)


def power_of_two(n: Value) -> Value:
    """Compute 2.0 ** n in float32 for -126 <= n <= 127, or in float64 for -1022 <= n <= 1023."""
    bias, bits, result = (127, 23, float32) if n.dtype is int32 else (1023, 52, float64)
    return (n + bias).raw("shift_left", bits).bitcast(result)


def exp(x: Value) -> Value:
    """Compute exp(x) in float32: 2^n exp(r) with r = x - n log(2).

    The least n, -254, is two halves that are 0: a CPU takes 100 cycles for products that are tiny.
    """
    excess, first, second = exp_parts(clamp(x, LEAST_EXP, 89.0))
    return excess.fma(first, first) * second


def exp_parts(x: Value) -> tuple[Value, Value, Value]:
    """Write exp(x) = (1 + q) a b for LEAST_EXP <= x <= 90: q, and the powers of two a and b.

    A single one would overflow at 128 and underflow below -126.
    """
    shifted = x.fma(1 / log(2), ROUND32)
    n = shifted - ROUND32
    r = n.fma(-LN2_LOW32, n.fma(-LN2_HIGH32, x))
    first, second = shifted_powers(shifted, x.fma(0.5 / log(2), ROUND32))
    return exp_excess(r), first, second


def power(x: Value) -> Value:
    """Compute exp(x) where it is a normal number: 2^n exp(r) with r = x - n log(2)."""
    shifted = x.fma(1 / log(2), BIAS)
    n = shifted - BIAS
    r = n.fma(-LN2_LOW32, n.fma(-LN2_HIGH32, x))
    scale = power_of_bits(shifted)
    return exp_excess(r).fma(scale, scale)


def power_of_bits(shifted: Value) -> Value:
    """Compute 2^n of n + BIAS: the low bits are its exponent, the high bits shift out."""
    return shifted.bitcast(int32).raw("shift_left", 23).bitcast(float32)


def exp2(x: Value) -> Value:
    """Compute 2 ** x in float32, exactly where x is whole; the least x as `exp`."""
    x = clamp(x, -254.0, 128.0)
    shifted = x + ROUND32
    first, second = shifted_powers(shifted, x.fma(0.5, ROUND32))
    return exp_excess((x - (shifted - ROUND32)) * log(2)).fma(first, first) * second


def exp_excess(r: Value) -> Value:
    """Compute exp(r) - 1 for |r| <= log(2)/2 to a unit in the last place of exp(r) or less."""
    square = r * r
    high = square.fma(EXP32[4], r.fma(EXP32[3], EXP32[2]))
    return square.fma(square.fma(high, r.fma(EXP32[1], EXP32[0])), r)


def shifted_powers(shifted: Value, half: Value) -> tuple[Value, Value]:
    """Compute 2^h and 2^(n - h) of n and h in the low bits of n + ROUND, h + ROUND.

    The high bits of the one shift out, those of the other cancel.
    """
    integer, bits, one = (int32, 23, 127) if shifted.dtype is float32 else (int64, 52, 1023)
    whole = half.bitcast(integer)
    powers = (whole, shifted.bitcast(integer) - whole)
    first, second = (n.raw("shift_left", bits) + (one << bits) for n in powers)
    return first.bitcast(half.dtype), second.bitcast(half.dtype)


def log_natural(x: Value) -> Value:
    """Compute log(x): e log(2) + log(m) with m near 1."""
    e, f = exponent_of(x)
    return log_edges(x, log_sum(e, f, e * (LN2_LOW32 if x.dtype is float32 else LN2_LOW64)))


def log2(x: Value) -> Value:
    """Compute log(x) / log(2), exactly for powers of two."""
    return log_to_base(x, *BASE_2[x.dtype.bits])


def log10(x: Value) -> Value:
    """Compute log(x) / log(10), exactly for powers of ten."""
    return log_to_base(x, *BASE_10[x.dtype.bits])


def log_to_base(x: Value, base: tuple[float, float], doubled: tuple[float, float]) -> Value:
    """Compute log(x) / log(b) of sums of two: exactly where the result is whole."""
    (scale, scale_low), (double, double_low) = base, doubled
    e, f = exponent_of(x)
    square = f * f
    head = square.fma(-0.5, f)
    low = square.fma(-0.5, f - head) - f.fma(f, -square) * 0.5  # head + low = f - f^2/2
    rest = log_rest(f, square, low)
    near, far = head * scale, e * double
    total = far + near
    less = head.fma(scale, -near) + (near - (total - far))  # |far| > |near|, or far is 0
    return log_edges(x, total + rest.fma(scale, head.fma(scale_low, e.fma(double_low, less))))


def exponent_of(x: Value) -> tuple[Value, Value]:
    """Write a positive number as 2^e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2)."""
    digits, least = (23, 2.0**-126) if x.dtype is float32 else (54, 2.0**-1022)
    is_small = x < least  # a denormal: scale it up
    whole, mantissa = split_float(is_small.where(x * 2.0**digits, x))
    e = whole.cast(x.dtype)
    return is_small.where(e - digits, e), mantissa - 1.0


def split_float(x: Value) -> tuple[Value, Value]:
    """Write a positive number as 2^e m with sqrt(1/2) <= m < sqrt(2)."""
    narrow, wide = (int32, 23, 0x3F3504F3), (int64, 52, 0x3FE6A09E667F3BCD)
    integer, digits, root = narrow if x.dtype is float32 else wide  # the bits of sqrt(1/2)
    bits = x.bitcast(integer) - root
    mantissa = (bits & ((1 << digits) - 1)) + root
    return bits.raw("shift_right", digits), mantissa.bitcast(x.dtype)


def log_sum(e: Value, f: Value, rest: Value) -> Value:
    """Compute e LN2_HIGH + log(1 + f) + rest."""
    square = f * f
    high = LN2_HIGH32 if f.dtype is float32 else LN2_HIGH64
    return e.fma(high, f + square.fma(-0.5, log_rest(f, square, rest)))


def log_rest(f: Value, square: Value, rest: Value) -> Value:
    """Compute log(1 + f) - f + f^2/2 + rest for sqrt(1/2) <= 1 + f < sqrt(2)."""
    if f.dtype is float32:
        return (square * f).fma(horner(LOG32, f), rest)
    s = f / (f + 2.0)
    t = s * s
    return s.fma(t.fma(horner(LOG64, t), square * 0.5), rest)


def log1p(x: Value) -> Value:
    """Compute log(1 + x) in float32: as log(u), u + rest = 1 + x exactly."""
    u = x + 1.0
    part = u - x  # exact sum (Knuth)
    low = (u.constant(1.0) - part) + (x - (u - part))
    result = log_edges(u, log_pair(u, low))
    return (x.raw("abs") < 2.0**-24).where(x, result)


def log_pair(x: Value, rest: Value, doublings: Value | None = None) -> Value:
    """Compute log((x + rest) 2^doublings) in float32 for x >= 2^-24, far above the rest."""
    whole, mantissa = split_float(x)
    low = rest * power_of_two(-clamp(whole, -24, 126))  # exact, or of no account
    above = mantissa - 1.0
    f = above + low
    e = whole.cast(float32)
    e = e if doublings is None else e + doublings
    return log_sum(e, f, e.fma(LN2_LOW32, low - (f - above)))


def log_edges(x: Value, result: Value) -> Value:
    """Put the logarithms of infinity, zero, negative numbers and NaN into a result."""
    result = x.is_equal(inf).where(x, result)
    result = x.is_equal(0.0).where(x.constant(-inf), result)
    return (x.constant(0.0) <= x).where(result, nan)


def copy_sign(magnitude: Value, sign: Value) -> Value:
    """Give a non-negative number the sign of another."""
    dtype = sign.dtype
    bits = int32 if dtype is float32 else int64
    bit = sign.bitcast(bits) & -(1 << (dtype.bits - 1))
    return (magnitude.bitcast(bits) | bit).bitcast(dtype)


def tanh(x: Value) -> Value:
    """Compute tanh(x) in float32: a polynomial near 0, else 1 - 2 / (exp(2|x|) + 1)."""
    size = x.raw("abs")
    square = x * x
    near = (size * square).fma(horner(TANH, square), size)
    limited = (size < SATURATED).where(size, SATURATED)
    far = x.constant(1.0) - x.constant(2.0) / (power(limited + limited) + 1.0)
    is_far = x.constant(0.625) <= size  # not where it is NaN
    return copy_sign(is_far.where(far, near), x)


def erf(x: Value) -> Value:
    """Compute erf(x) in float32: a polynomial near 0, else 1 - exp(-|x| Q(-|x|))."""
    near = x.fma(horner(ERF_SMALL, x * x), x)
    below = -x.raw("abs")
    limited = (x.constant(-4.0) < below).where(below, -4.0)  # erf(4) is 1 in float32
    rate = horner(ERF_LARGE, limited)
    far = x.constant(1.0) - power(limited * rate)
    is_far = below <= -1.0  # not where it is NaN
    return is_far.where(copy_sign(far, x), near)


def reduce_angle(x: Value, unit: float, start: float = 0.0) -> tuple[Value, Value]:
    """Write x = (n + start) unit + r with |r| <= unit / 2 for a unit of pi or pi/2.

    Gives r in float64 and an int64 with the lowest bits of n. The reduction is exact enough up to
    |x| = 2^45; `rare` takes those beyond.
    """
    wide = x.cast(float64)
    shifted = wide.fma(1 / unit, -start) + ROUND64 if start else wide.fma(1 / unit, ROUND64)
    n = shifted - ROUND64
    n = n + start if start else n
    return n.fma(-PI_LOW * (unit / pi), n.fma(-unit, wide)), shifted.bitcast(int64)


def short_sine(r: Value, coefficients: Sequence[float]) -> Value:
    """Compute sin(r) by a polynomial of its range."""
    square = r * r
    return (r * square).fma(horner(coefficients, square), r)


def sine(x: Value, start: float) -> Value:
    """Compute sin(x - start pi) in float32: a polynomial over half a turn in float64."""
    r, n = reduce_angle(x, pi, start)
    sign = n.raw("shift_left", 63)  # an odd number of half turns is a minus
    bits = short_sine(r, SIN_HALF_TURN).bitcast(int64).raw("bitwise_xor", sign)
    return bits.bitcast(float64).cast(float32)


def quadrant_sine(
    r: Value, n: Value, for_sine: Sequence[float], for_cosine: Sequence[float]
) -> Value:
    """Compute sin(r + n pi/2) for |r| <= pi/4, by polynomials as `SIN` and `COS`."""
    square = r * r
    sine = (r * square).fma(horner(for_sine, square), r)
    cosine = (square * square).fma(horner(for_cosine, square), square.fma(-0.5, 1.0))
    result = (n & 1).is_equal(0).where(sine, cosine)
    return (n & 2).is_equal(0).where(result, -result)


def sin(x: Value) -> Value:
    """Compute sin(x) in float32."""
    return x.rare("sin", x.is_equal(0.0).where(x, sine(x, 0.0)))


def cos(x: Value) -> Value:
    """Compute cos(x) in float32, as -sin(x - pi/2) = sin(x - pi/2 - n pi) with n odd."""
    return x.rare("cos", -sine(x, 0.5))


def tan(x: Value) -> Value:
    """Compute tan(x) in float32: a quotient of polynomials in float64."""
    r, n = reduce_angle(x, pi / 2)
    square = r * r
    sine = short_sine(r, SIN_SHORT)
    cosine = (square * square).fma(horner(COS, square), square.fma(-0.5, 1.0))
    is_zero, is_even = x.is_equal(0.0), (n & 1).is_equal(0)
    ratio = is_even.where(sine, -cosine) / is_even.where(cosine, sine)
    return x.rare("tan", is_zero.where(x, ratio.cast(float32)))


def arc(low: Value, high: Value, quarters: Value, is_less: Value) -> Value:
    """Compute quarters pi/2 + atan(low / high), or less it, for low <= high."""
    inverse = high.constant(1.0) / high
    z = low * inverse
    rest = (-z).fma(high, low) * inverse
    square = z * z
    rest = (z * square).fma(horner(ATAN, square), rest)
    z, rest = is_less.where(-z, z), is_less.where(-rest, rest)
    start = quarters * (PI32[0] / 2)
    total = start + z
    return total + (((start - total) + z) + quarters.fma(PI32[1] / 2, rest))


def atan(x: Value) -> Value:
    """Compute the inverse tangent: beyond 1 as pi/2 - atan(1 / x)."""
    size, one = x.raw("abs"), x.constant(1.0)
    size = (size.constant(LARGEST_TANGENT) < size).where(size.constant(LARGEST_TANGENT), size)
    is_far = one < size
    low, high = is_far.where(one, size), is_far.where(size, one)
    return copy_sign(arc(low, high, is_far.where(one, 0.0), is_far), x)


def atan2(y: Value, x: Value) -> Value:
    """Compute the angle of the point (x, y), in -pi..pi; infinities and zeros have one too."""
    wide, tall = x.raw("abs"), y.raw("abs")
    one, zero = wide.constant(1.0), wide.constant(0.0)
    is_infinite = wide.is_equal(inf) | tall.is_equal(inf)
    wide, tall = (is_infinite.where(a.is_equal(inf).where(one, zero), a) for a in (wide, tall))
    is_steep, is_left = wide < tall, x.bitcast(int32) < 0
    low, high = is_steep.where(wide, tall), is_steep.where(tall, wide)
    high = high.is_equal(0.0).where(one, high)
    factor = (one.constant(2.0**64) < high).where(
        one.constant(2.0**-64), one
    )  # so that 1 / high is a number
    factor = (high < 2.0**-64).where(one.constant(2.0**96), factor)
    quarters = is_steep.where(one, is_left.where(one.constant(2.0), zero))
    is_less = is_steep.raw("not_equal", is_left, dtype=bool_)
    value = copy_sign(arc(low * factor, high * factor, quarters, is_less), y)
    is_nan = x.raw("not_equal", x, dtype=bool_) | y.raw("not_equal", y, dtype=bool_)
    return is_nan.where(x + y, value)


def log2_wide(x: Value) -> Value:
    """Compute log2 of a positive float32 in float64 to about 1e-11; 1e300 and -1e300 at its edges.

    A step of Newton's makes the quotient of float32 exact to 1e-14, sooner than float64 divides.
    """
    is_tiny = x < 2.0**-126
    whole, mantissa = split_float(is_tiny.where(x * 2.0**24, x))
    e = whole.cast(float32)
    e = is_tiny.where(e - 24.0, e)
    f = mantissa - 1.0
    wide, quick = f.cast(float64), (f.constant(1.0) / (f + 2.0)).cast(float64)
    off = (-quick).fma(wide + 2.0, 1.0)
    s = quick.fma(off, quick) * wide
    value = s.fma(horner(LOG2, s * s), e.cast(float64))
    limit = (x < 1.0).where(value.constant(-1e300), 1e300)
    return (x.is_equal(0.0) | x.is_equal(inf)).where(limit, value)


def pow_float(x: Value, y: Value) -> Value:
    """Compute x ** y in float32 as 2 ** (y log2|x|), then the special cases.

    The exponent is a float64, whose nearest whole number is taken off before it is rounded.
    """
    exponent = clamp(y.cast(float64) * log2_wide(x.raw("abs")), -250.0, 130.0)
    shifted = exponent + ROUND64
    r = (exponent - (shifted - ROUND64)).cast(float32)
    whole = shifted.bitcast(int64).cast(int32)  # the low bits
    half = whole.raw("shift_right", 1)
    first = power_of_two(half)
    narrow = exp_excess(r * log(2)).fma(first, first) * power_of_two(whole - half)
    is_whole = y.raw("floor").is_equal(y)
    half = y * 0.5
    is_odd = is_whole & ~half.raw("floor").is_equal(half)
    is_minus = x.bitcast(int32) < 0
    narrow = (is_minus & is_odd).where(-narrow, narrow)
    is_bad = (x < 0.0) & ~is_whole & (x.raw("abs") < inf)
    narrow = is_bad.where(x.constant(nan), narrow)
    is_nan = x.raw("not_equal", x, dtype=bool_) | y.raw("not_equal", y, dtype=bool_)
    narrow = is_nan.where(x + y, narrow)
    # |x| = 1 with infinite y, and y = 0 or x = 1 with anything, NaN included
    is_one = y.is_equal(0.0) | x.is_equal(1.0)
    is_one = is_one | (x.is_equal(-1.0) & y.raw("abs").is_equal(inf))
    return is_one.where(x.constant(1.0), narrow)


FLOAT32: dict[str, Callable[..., Value]] = {
    "exp": exp, "log": log_natural, "tanh": tanh, "erf": erf, "sin": sin, "cos": cos, "tan": tan,
    "exp2": exp2, "quick_exp2": exp2, "log1p": log1p, "pow": pow_float,
    "atan": atan, "atan2": atan2,
}  # fmt: skip

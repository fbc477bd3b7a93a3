"""Functions of float32 for GPUs: few instructions, and no branches.

`tanh` stays within 1.5 units in the last place (bench/accuracy.py, on a GPU). A division in IEEE's
way has a branch for rare operands, across which nothing is scheduled: the reciprocal is the
function unit's, made good by a step of Newton's.

`RELAXED` are for what is rounded to 16 bits. They use the unit's powers of 2, and are off by 2^-17
of the result at most. `TERMS` are for terms of long sums, and off by 2^-22.

sigmoid and silu of float32 and float64 to within 1.2 and 2 units in the last place.

With t = exp(-|x|) the sigmoid is 1 / (1 + t), or t / (1 + t) where x < 0. What the rounding of t,
of 1 + t and of the quotient leaves out is carried along and made good at the end.
"""

from collections.abc import Callable, Iterable, Sequence
from math import log
from operator import is_

from picograd.codegen.elementary import EXP, INVERSE_LN2
from picograd.codegen.polynomial import (
    BIAS,
    LN2_HIGH32,
    LN2_HIGH64,
    LN2_LOW32,
    LN2_LOW64,
    ROUND32,
    ROUND64,
    SATURATED,
    TANH,
    copy_sign,
    exp_excess,
    horner,
    power,
    power_of_bits,
    shifted_powers,
)
from picograd.codegen.value import Value
from picograd.dtype import float32
from picograd.schedule.loop import Expr, dynamic_children, walk
from picograd.schedule.score_masks import is_constant

LEAST_NORMAL, MOST_NORMAL = -87.0, 88.0  # 2^n is a normal number
INVERSE_LN2_HIGH, INVERSE_LN2_LOW = 1.44269502162933349609375, 1.9259630335e-8  # a float32, a rest
STEPS = {"floor", "ceil", "round", "trunc", "sign", "floordiv", "mod"}
NEAR_TANH = 0.3
TANH_SERIES = (-1 / 3, 2 / 15, -17 / 315)
# log2(erfc(x) / (1 + erf(x))) = x P(x^2) for |x| <= 4, and falls further out
ERF_RATIO = (
    -3.2557942867279053,
    -0.29659754037857056,
    0.0006142089841887355,
    0.0017710161628201604,
    -0.00025255174841731787,
    1.681298454059288e-05,
    -4.5093253220333e-07,
)


def tanh(x: Value) -> Value:
    """Compute tanh(x) in float32: a polynomial near 0, else 1 - 2 / (exp(2|x|) + 1)."""
    size = x.raw("abs")
    square = x * x
    near = (size * square).fma(horner(TANH, square), size)
    limited = (size < SATURATED).where(size, SATURATED)
    far = reciprocal(power(limited + limited) + 1.0).fma(-2.0, 1.0)
    is_far = x.constant(0.625) <= size  # not where it is NaN
    return copy_sign(is_far.where(far, near), x)


def reciprocal(x: Value) -> Value:
    """Compute 1 / x of a number far from the largest and the least, by one step of Newton's."""
    first = x.raw("quick_reciprocal")
    return first.fma((-x).fma(first, 1.0), first)


def relaxed_exp(x: Value) -> Value:
    """Compute exp(x), off by |x| 2^-24 of it; denormals are right."""
    return (x * INVERSE_LN2_HIGH).raw("whole_exp2")


def relaxed_div(x: Value, y: Value) -> Value:
    """Compute x / y to 2 units in the last place; of all numbers."""
    return x.raw("quick_divide", y)


def term_exp(x: Value) -> Value:
    """Compute exp(x) to 2 units in the last place; denormals are right."""
    limited = x.raw("quick_maximum", LEAST_NORMAL).raw("quick_minimum", MOST_NORMAL)
    shifted = limited.fma(INVERSE_LN2_HIGH, BIAS)
    rest = x.fma(INVERSE_LN2_LOW, x.fma(INVERSE_LN2_HIGH, -(shifted - BIAS)))
    return rest.raw("quick_exp2") * power_of_bits(shifted)


def term_sigmoid(x: Value) -> Value:
    """Compute 1 / (1 + exp(-x)) to 3 units in the last place; 0 where it is denormal."""
    return (term_exp(-x) + 1.0).raw("quick_reciprocal")


def term_silu(x: Value) -> Value:
    """Compute x / (1 + exp(-x)); NaN at minus infinity, as in PyTorch."""
    return x * term_sigmoid(x)


def least_exp(x: Value) -> Value:
    """Compute exp(x) of x <= 0, off by 2^-25 at most, which is little beside exp(0)."""
    return (x * INVERSE_LN2_HIGH).raw("quick_exp2")


def relaxed_tanh(x: Value) -> Value:
    """Compute tanh(x): three terms of its series near 0, else 1 - 2 / (exp(2x) + 1)."""
    power = (x * (2 * INVERSE_LN2_HIGH)).raw("quick_exp2")
    far = (power + 1.0).raw("quick_reciprocal").fma(-2.0, 1.0)
    return beyond_series(x, far)


def beyond_series(x: Value, far: Value) -> Value:
    """Give tanh(x) by three terms of its series near 0, else what was computed of it."""
    square = x * x
    near = x * square.fma(horner(TANH_SERIES, square), 1.0)  # the zero of its sign at 0
    return (x.raw("abs") < NEAR_TANH).where(near, far)


def relaxed_sigmoid(x: Value) -> Value:
    """Compute 1 / (1 + exp(-x))."""
    return ((x * -INVERSE_LN2_HIGH).raw("quick_exp2") + 1.0).raw("quick_reciprocal")


def relaxed_silu(x: Value) -> Value:
    """Compute x / (1 + exp(-x)); NaN at minus infinity, as in PyTorch."""
    return x * relaxed_sigmoid(x)


def relaxed_one_plus_erf(x: Value) -> Value:
    """Compute 1 + erf(x); off by 2^-25 where it is small, which exact terms are too."""
    ratio = (x * horner(ERF_RATIO, x * x)).raw("quick_exp2")
    return (ratio + 1.0).raw("quick_reciprocal") * 2.0


QUICK: dict[str, Callable[[Value], Value]] = {formula.__name__: formula for formula in (tanh,)}
RELAXED: dict[str, Callable[..., Value]] = {
    "relaxed_exp": relaxed_exp,
    "relaxed_div": relaxed_div,
    "relaxed_tanh": relaxed_tanh,
    "relaxed_sigmoid": relaxed_sigmoid,
    "relaxed_silu": relaxed_silu,
    "relaxed_one_plus_erf": relaxed_one_plus_erf,
}
FORMULAS = {"add 1.0 erf": "one_plus_erf"}
TERMS: dict[str, Callable[..., Value]] = {
    "term_exp": term_exp,
    "term_div": relaxed_div,
    "term_sigmoid": term_sigmoid,
    "term_silu": term_silu,
}
LEAST: dict[str, Callable[..., Value]] = {"least_exp": least_exp}


def relaxed(root: Expr, names: Iterable[str] = tuple(RELAXED)) -> Expr:
    """Name functions in the place of exact ones, in a formula whose last digits nobody sees.

    Of parts that the formula rounds to 16 bits itself nobody sees them in any case.
    """
    chosen = by_exact_name(names)
    order = walk(root)
    rounded = rounded_parts(order)
    exact, done = exact_parts(order), dict[int, Expr]()
    for expr in order:
        args = tuple([done[id(each)] for each in expr.args])
        is_single = expr.dtype.is_float and expr.dtype.bits <= 32
        is_quick = is_single and id(expr) not in exact
        quick = OF_ROUNDED if id(expr) in rounded else chosen
        op = quick.get(name_of(expr), expr.op) if is_quick else expr.op
        if op == "relaxed_one_plus_erf" != expr.op:
            args = next(each.args for each in args if each.args)
        is_same = op == expr.op and all(map(is_, args, expr.args))
        done[id(expr)] = expr if is_same else Expr(op, args, expr.arg, expr.dtype)
    return done[id(root)]


def by_exact_name(names: Iterable[str]) -> dict[str, str]:
    """Find functions by the exact ones that they stand for."""
    return {name.partition("_")[2]: name for name in names}


OF_ROUNDED = by_exact_name(RELAXED)


def name_of(expr: Expr) -> str:
    """Name what an expression computes: its op, or one of the FORMULAS of a few."""
    terms = sorted(str(each.arg) if is_constant(each) else each.op for each in expr.args)
    return FORMULAS.get(" ".join((expr.op, *terms)), expr.op)


def rounded_parts(order: Sequence[Expr]) -> set[int]:
    """Find what is seen only after it was rounded to 16 bits; `order` is what `walk` lists."""
    seen = {id(order[-1])}
    for expr in reversed(order):
        is_rounding = expr.dtype.is_float and expr.dtype.bits <= 16
        if id(expr) in seen and not is_rounding:
            seen.update(map(id, expr.args))
    return {id(expr) for expr in order} - seen


def exact_parts(order: Sequence[Expr]) -> set[int]:
    """Find what steps are taken by: a last digit of it may change what comes of that altogether.

    `order` is what `walk` lists; the parts are found by identity.
    """
    found: set[int] = set()
    for expr in reversed(order):
        is_step = expr.op in STEPS or not expr.dtype.is_float
        if is_step or id(expr) in found:
            found.update(map(id, expr.args))
        found.update(map(id, dynamic_children(expr)))
    return found


def negative_exp(size: Value, most: float) -> tuple[Value, Value, Value]:
    """Write exp(-size) = (1 + q) a b for 0 <= size <= most: q, and the powers of two a and b."""
    size = (size.constant(most) < size).where(size.constant(most), size)
    is_single = size.dtype is float32
    to_whole = ROUND32 if is_single else ROUND64
    shifted = size.fma(-INVERSE_LN2[0], to_whole)
    n = shifted - to_whole
    first, second = shifted_powers(shifted, size.fma(-0.5 * INVERSE_LN2[0], to_whole))
    if is_single:
        excess = exp_excess(n.fma(-LN2_LOW32, n.fma(-LN2_HIGH32, -size)))
        return excess, first, second
    high, low = n.fma(-LN2_HIGH64, -size), n * LN2_LOW64
    r = high - low
    series = horner((0.5, *EXP[64]), r)
    return r + (r * r).fma(series, (high - r) - low), first, second


def share(is_minus: Value, t: Value, low: Value, top: Value, top_low: Value) -> Value:
    """Compute (top + top_low) / (1 + t + low), the numerator being 1 where not minus."""
    total = t + 1.0
    below = t - (total - 1.0) + low  # what the rounding of the total left out
    above = is_minus.where(top, 1.0)
    inverse = total.constant(1.0) / total
    quotient = above * inverse
    rest = (-quotient).fma(total, above)
    rest = rest + (-quotient).fma(below, is_minus.where(top_low, 0.0))
    return rest.fma(inverse, quotient)


def sigmoid(x: Value) -> Value:
    """Compute 1 / (1 + exp(-x)); the least is of two powers of two that are 0, as `exp`."""
    most = 254.0 * log(2) if x.dtype is float32 else 2046.0 * log(2)
    excess, first, second = negative_exp(x.raw("abs"), most)
    power = first * second  # exact, as a denormal too
    t = excess.fma(power, power)
    low = excess.fma(power, power - t)
    return share(x < 0.0, t, low, t, low)


def silu(x: Value) -> Value:
    """Compute x / (1 + exp(-x)); NaN at minus infinity, as in PyTorch.

    The second power of two comes last: a denormal sigmoid has lost digits. It is 0 where x is
    minus infinity.
    """
    most = 254.0 * log(2) if x.dtype is float32 else 2046.0 * log(2)
    excess, first, second = negative_exp(x.raw("abs"), most)
    top = excess.fma(first, first)
    top_low = excess.fma(first, first - top)
    is_minus = x < 0.0
    result = share(is_minus, top * second, top_low * second, top, top_low)
    return result * x * is_minus.where(second, 1.0)


LOGISTIC: dict[str, Callable[..., Value]] = {"sigmoid": sigmoid, "silu": silu}

"""Elementwise operations written with simpler instructions, per language.

`COMMON` serves every language: integer division that cannot trap, shifts that are always defined,
and names that reduce to others. `PORTABLE`, a part of it, is all that CUDA C needs.
`LLVM` adds polynomials (polynomial.py for float32, elementary.py for float64), because LLVM would
call one scalar library function per element; pow of float64 does.
"""

from collections.abc import Callable, Mapping

from picograd.codegen import elementary, error_function, polynomial, portable, quick, quick_cpu
from picograd.codegen.emit import Emitter, Function
from picograd.codegen.hyperbolic import HYPERBOLIC
from picograd.codegen.quick import LEAST, QUICK, RELAXED, TERMS
from picograd.codegen.value import Value, encode_bfloat16
from picograd.dtype import DType, bool_, float32, float64


def reciprocal(emitter: Emitter, dtype: DType, x: int) -> int:
    """Compute 1 / x."""
    return emitter.raw("div", dtype, emitter.const(1.0, dtype), x)


def rsqrt(emitter: Emitter, dtype: DType, x: int) -> int:
    """Compute 1 / sqrt(x)."""
    return reciprocal(emitter, dtype, emitter.raw("sqrt", dtype, x))


def sign(emitter: Emitter, dtype: DType, x: int) -> int:
    """Compute -1, 0 or 1; 0 for NaN."""
    if dtype is bool_:
        return x
    value = Value(emitter, x)
    zero = value.constant(0)
    result = (zero < value).where(value.constant(1), zero)
    if dtype.kind == "uint":
        return result.position
    return (value < zero).where(value.constant(-1), result).position


def isnan(emitter: Emitter, dtype: DType, x: int) -> int:
    """Test x != x; integers are never NaN."""
    if not emitter.dtype(x).is_float:
        return emitter.const(False, bool_)
    return emitter.raw("not_equal", bool_, x, x)


def logical(op: str) -> Function:
    """Make a logical operation on operands of any dtype."""

    def build(emitter: Emitter, dtype: DType, *args: int) -> int:
        return emitter.raw(op, bool_, *(emitter.cast(a, bool_) for a in args))

    return build


def on_bool(op: str, bool_op: str) -> Function:
    """Make an operation that is `bool_op` on bool."""

    def build(emitter: Emitter, dtype: DType, *args: int) -> int:
        name = bool_op if dtype is bool_ else op
        return emitter.raw(name, dtype, *args)

    return build


def shift(op: str) -> Function:
    """Make a shift that is defined for every count: too far left (or unsigned right) gives 0."""

    def build(emitter: Emitter, dtype: DType, x: int, count: int) -> int:
        value, by, bits = Value(emitter, x), Value(emitter, count), dtype.bits
        known = emitter.constant_of(count)
        if known is not None and 0 <= known < bits:
            return value.raw(op, by).position
        is_inside = (by < bits) if dtype.kind == "uint" else (by < bits) & ~(by < 0)
        if op == "shift_right" and dtype.kind == "int":
            return value.raw(op, is_inside.where(by, bits - 1)).position
        moved = value.raw(op, is_inside.where(by, 0))
        return is_inside.where(moved, 0).position

    return build


def safe_divisor(x: Value, divisor: Value) -> Value:
    """Replace a divisor that would trap by 1: zero, and -1 (whose quotient is a negation)."""
    is_bad = divisor.is_equal(0)
    if x.dtype.kind == "int":
        is_bad = is_bad | divisor.is_equal(-1)
    return is_bad.where(x.constant(1), divisor)


def near_quotient(emitter: Emitter, x: Value, divisor: Value) -> Value:
    """Divide integers: the quotient, or the next one, so that the rest is less than the divisor.

    CPUs divide one pair of integers at a time, but vectors of float64: what is left out of 64 bits
    is divided once more.
    """
    dtype, is_known = x.dtype, emitter.constant_of(divisor.position) is not None
    if is_known or dtype.kind != "int" or dtype.bits < 32:
        return x.raw("quotient", divisor)
    wide = divisor.cast(float64)
    quotient = (x.cast(float64) / wide).raw("trunc").cast(dtype)
    if dtype.bits == 64:
        rest = x - quotient * divisor
        quotient = quotient + (rest.cast(float64) / wide).raw("trunc").cast(dtype)
    return quotient


def has_other_sign(rest: Value, divisor: Value) -> Value:
    """Test whether the remainder of a truncated float division is one divisor off the floored."""
    is_negative, below = rest < 0.0, divisor < 0.0
    differs = is_negative.raw("not_equal", below, dtype=bool_)
    is_inexact = rest.raw("not_equal", 0.0, dtype=bool_)
    return differs & is_inexact


def floordiv(emitter: Emitter, dtype: DType, a: int, b: int) -> int:
    """Divide and floor as Python does; an integer divided by 0 gives 0."""
    x, y = Value(emitter, a), Value(emitter, b)
    if dtype.is_float:
        # By the exact remainder: floor(1 / 0.1) would be 10, but 0.1 goes into 1 only 9 times.
        rest = Value(emitter, emitter.apply("remainder", a, b))
        quotient = (x - rest) / y
        is_off = has_other_sign(rest, y)
        whole = is_off.where(quotient - 1.0, quotient).raw("round")
        # Zero has the sign of x / y, which the remainder of x has lost.
        positive = whole.is_equal(0.0).where(x.constant(0.0), whole)
        is_exact = y.is_equal(0.0) | x.is_equal(0.0)
        return is_exact.where(x / y, positive).position
    safe = safe_divisor(x, y)
    quotient = near_quotient(emitter, x, safe)
    if dtype.kind == "int":
        rest = x - quotient * safe
        is_off = (rest.raw("bitwise_xor", safe) < 0) & rest.raw("not_equal", 0, dtype=bool_)
        quotient = is_off.where(quotient - 1, quotient)
        quotient = y.is_equal(-1).where(-x, quotient)
    return y.is_equal(0).where(x.constant(0), quotient).position


def remainder(emitter: Emitter, dtype: DType, a: int, b: int) -> int:
    """Divide and truncate, exactly: the rest has the sign of the dividend.

    The quotient is rounded and may be one too far: so it is wherever the rest crosses 0. An fma
    computes the rest without error, which has no more digits than the divisor.
    """
    x, y = Value(emitter, a), Value(emitter, b)
    if not dtype.is_float:
        return x.raw("remainder", y).position
    top, bottom = x.cast(float64), y.cast(float64)
    quotient = top / bottom
    whole = quotient.raw("trunc")
    rest = (-whole).fma(bottom, top)
    size = bottom.raw("abs")
    rest = has_other_sign(rest, top).where(rest + polynomial.copy_sign(size, top), rest)
    rest = polynomial.copy_sign(rest.raw("abs"), top)
    rest = whole.is_equal(0.0).where(top, rest)  # also of an infinite divisor
    return quotient.rare("remainder", rest, top, bottom).cast(dtype).position


def mod(emitter: Emitter, dtype: DType, a: int, b: int) -> int:
    """Find the remainder with the sign of the divisor; an integer modulo 0 gives 0."""
    x, y = Value(emitter, a), Value(emitter, b)
    if dtype.is_float:
        rest = Value(emitter, emitter.apply("remainder", a, b))
        is_off = has_other_sign(rest, y)
        return is_off.where(rest + y, rest).position
    safe = safe_divisor(x, y)
    rest = x - near_quotient(emitter, x, safe) * safe
    if dtype.kind == "int":
        is_off = (rest.raw("bitwise_xor", safe) < 0) & rest.raw("not_equal", 0, dtype=bool_)
        rest = is_off.where(rest + safe, rest)
        rest = y.is_equal(-1).where(x.constant(0), rest)
    return y.is_equal(0).where(x.constant(0), rest).position


def power(emitter: Emitter, dtype: DType, a: int, b: int) -> int:
    """Raise to a power; integers by repeated squaring, wrapping like multiplication."""
    if dtype.is_float:
        return emitter.raw("pow", dtype, a, b)
    base, exponent = Value(emitter, a), Value(emitter, b)
    result = one = base.constant(1)
    square = base
    for bit in range(dtype.bits if dtype.kind == "uint" else dtype.bits - 1):
        is_set = (exponent.raw("shift_right", bit) & 1).raw("not_equal", 0, dtype=bool_)
        result = is_set.where(result * square, result)
        square = square * square
    if dtype.kind == "uint":
        return result.position
    is_odd = (exponent & 1).is_equal(1)
    minus = is_odd.where(base.constant(-1), one)
    negative = base.is_equal(1).where(one, base.is_equal(-1).where(minus, 0))
    return (exponent < 0).where(negative, result).position


def by_formula(formula: Callable[..., Value]) -> Function:
    """Make a function out of a formula."""
    return lambda emitter, dtype, *args: formula(*(Value(emitter, a) for a in args)).position


def quick_exp2(emitter: Emitter, dtype: DType, x: int) -> int:
    """Let a special function unit compute a power of 2 in float32, where there is one."""
    if dtype is not float32:
        return elementary.exp2(Value(emitter, x)).position
    return emitter.raw("quick_exp2", dtype, x)


OF_SINGLE = {**polynomial.FLOAT32, **HYPERBOLIC, **QUICK}
OF_BOTH = {**elementary.EXPONENTIALS, **elementary.ANGLES}


def by_width(
    op: str, of_bits: Mapping[int, Callable[..., Value] | None], other: Function | None
) -> Function:
    """Make a function of the formulas for floats of some bits, and else of another: the library's,
    if there is none."""

    def build(emitter: Emitter, dtype: DType, *args: int) -> int:
        formula = of_bits.get(dtype.bits) if dtype.is_float else None
        if formula:
            return formula(*(Value(emitter, a) for a in args)).position
        return other(emitter, dtype, *args) if other else emitter.raw(op, dtype, *args)

    return build


def in_single(op: str) -> Function:
    """Make a function of our own for float32; that of float64 is the library's, if not ours."""
    other = by_formula(OF_BOTH[op]) if op in OF_BOTH else None
    return by_width(op, {32: OF_SINGLE[op]}, other)


PORTABLE: dict[str, Function] = {
    "portable_log": by_formula(portable.log),
    "portable_exp": by_formula(portable.exp),
    "portable_cos_turn": by_formula(portable.cos_turn),
    **{op: by_formula(formula) for op, formula in OF_BOTH.items()},
    **{op: in_single(op) for op in OF_BOTH if op in OF_SINGLE},
    **{op: by_formula(formula) for op, formula in quick.LOGISTIC.items()},
    "erfc": by_formula(error_function.erfc),
    "quick_exp2": quick_exp2,
    "multiply_add": by_formula(Value.fma),
}
COMMON: dict[str, Function] = {
    **PORTABLE,
    "reciprocal": reciprocal,
    "rsqrt": rsqrt,
    "sign": sign,
    "isnan": isnan,
    "logical_not": logical("not"),
    "logical_and": logical("and"),
    "logical_or": logical("or"),
    "bitwise_and": on_bool("bitwise_and", "and"),
    "bitwise_or": on_bool("bitwise_or", "or"),
    "bitwise_xor": on_bool("bitwise_xor", "not_equal"),
    "bitwise_not": on_bool("bitwise_not", "not"),
    "mul": on_bool("mul", "and"),
    "add": on_bool("add", "or"),
    "maximum": on_bool("maximum", "or"),
    "minimum": on_bool("minimum", "and"),
    "shift_left": shift("shift_left"),
    "shift_right": shift("shift_right"),
    "floordiv": floordiv,
    "mod": mod,
    "pow": power,
}


FLOAT64 = {"exp": elementary.exp, "log": polynomial.log_natural, "tanh": elementary.tanh,
           "erf": error_function.erf, "sin": elementary.sin, "cos": elementary.cos,
           "tan": elementary.tan_pair}  # fmt: skip


def polynomials(op: str) -> Function:
    """Make a function of polynomials where there are any, and else `COMMON` or the library."""
    return by_width(op, {32: polynomial.FLOAT32[op], 64: FLOAT64.get(op)}, COMMON.get(op))


def to_bfloat16(emitter: Emitter, dtype: DType, x: int) -> int:
    """Round to bfloat16 by way of float32; other 16-bit floats widen to that exactly."""
    return encode_bfloat16(Value(emitter, emitter.cast(x, float32))).position


# CUDA's library promises 1 unit in the last place of log in float32, but 2 to 4 of these (CUDA C++
# programming guide, mathematical functions appendix). Its functions of float64 cost the least.
CUDA: dict[str, Function] = {
    **PORTABLE,
    **{op: in_single(op) for op in ("exp", "tanh", "sin", "cos", "pow")},
    **{name: by_formula(formula) for name, formula in {**RELAXED, **TERMS, **LEAST}.items()},
}
LLVM: dict[str, Function] = {
    **COMMON,
    "cast to bfloat16": to_bfloat16,
    "remainder": remainder,
    **{op: polynomials(op) for op in polynomial.FLOAT32},
    **{name: by_formula(formula) for name, formula in quick_cpu.RELAXED.items()},
}

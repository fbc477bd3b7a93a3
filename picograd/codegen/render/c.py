"""The spelling of every elementwise op in the C family: CUDA C's, or that of another `Dialect`.

An op of the table that has no row here is the function of its name in C's library. A row is a C
expression over {0}, {1}, {2}; C++ overloads choose the function of the right width, so `exp({0})`
is `expf` for a float. What C lacks (floor division, NaN-propagating maximum, guarded
integer division) is a function of `FUNCTIONS`, part of every prologue. 16-bit floats compute in
float and are rounded by `round_to` after every operation.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from picograd.codegen.program import RARE_FROM
from picograd.dtype import DType
from picograd.errors import internal
from picograd.graph.row import Role, ops_of
from picograd.late_methods import dataclass

INFIX = {  # between two operands
    "add": "+", "sub": "-", "mul": "*", "div": "/", "less": "<", "less_equal": "<=", "equal": "==",
    "not_equal": "!=", "logical_and": "&&", "and": "&&", "logical_or": "||", "or": "||",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
}  # fmt: skip
OF_ONE = {  # functions of one operand, and of two
    "abs": "absolute", "sign": "sign_of", "round": "rint", "bitwise_not": "invert",
    "popcount": "__popc", "quick_exp2": "quick_exp2", "whole_exp2": "whole_exp2",
    "quick_reciprocal": "quick_reciprocal",
}  # fmt: skip
OF_TWO = {
    "floordiv": "floor_divide", "mod": "floor_remainder", "pow": "power", "quotient": "quotient",
    "remainder": "modulo", "maximum": "maximum", "minimum": "minimum", "shift_left": "shift_left",
    "shift_right": "shift_right", "quick_divide": "quick_divide",
    "quick_maximum": "quick_maximum", "quick_minimum": "quick_minimum",
}  # fmt: skip
IS_USUAL = f"absolute({{0}}) < {RARE_FROM!r}f"
SPELLING = {
    **{op: f"{{0}} {sign} {{1}}" for op, sign in INFIX.items()},
    **{op: f"{function}({{0}})" for op, function in OF_ONE.items()},
    **{op: f"{function}({{0}}, {{1}})" for op, function in OF_TWO.items()},
    "neg": "-{0}",
    "rsqrt": "1 / sqrt({0})",
    "reciprocal": "1 / {0}",
    "isnan": "({0} != {0})",
    "logical_not": "!{0}",
    "not": "!{0}",
    "where": "{0} ? {1} : {2}",
    "fma": "multiply_add({0}, {1}, {2})",
    "rare_sin": f"{IS_USUAL} ? {{1}} : large_sin({{0}})",
    "rare_cos": f"{IS_USUAL} ? {{1}} : large_cos({{0}})",
    "rare_tan": f"{IS_USUAL} ? {{1}} : large_tan({{0}})",
}
IDENTITY_ON_INTEGERS = ("floor", "ceil", "round", "trunc")

OWN_NAMES = ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int64", "bfloat16")
TYPE_NAMES = {
    **{name: name for name in OWN_NAMES},
    "int16": "short",
    "int32": "int",
    "float8_e4m3fn": "uint8",  # bytes: codegen/value.py converts them
    "float8_e5m2": "uint8",
    "float16": "half",
    "float32": "float",
    "float64": "double",
}

FUNCTIONS = """\
template <typename T> DEVICE T absolute(T a) { return a < T(0) ? T(0) - a : a; }
DEVICE float absolute(float a) { return fabsf(a); }
DEVICE double absolute(double a) { return fabs(a); }
template <typename T> DEVICE T sign_of(T a) { return a > T(0) ? T(1) : a < T(0) ? T(-1) : T(0); }
template <typename T> DEVICE T invert(T a) { return ~a; }
template <> DEVICE bool invert(bool a) { return !a; }
template <typename T> DEVICE T maximum(T a, T b) { return a > b || a != a ? a : b; }
template <typename T> DEVICE T minimum(T a, T b) { return a < b || a != a ? a : b; }
DEVICE int quotient(int a, int b) { return (int)((unsigned int)a / (unsigned int)b); }
DEVICE int modulo(int a, int b) { return (int)((unsigned int)a % (unsigned int)b); }
DEVICE long long quotient(long long a, long long b) {
  return (long long)((unsigned long long)a / (unsigned long long)b);
}
DEVICE long long modulo(long long a, long long b) {
  return (long long)((unsigned long long)a % (unsigned long long)b);
}
template <typename T> DEVICE T floor_divide(T a, T b) {
  if (b == T(0)) return T(0);
  if (T(-1) < T(0) && b == T(-1)) return T(0) - a;
  T quotient = a / b;
  return quotient * b != a && (a < T(0)) != (b < T(0)) ? quotient - T(1) : quotient;
}
template <typename T> DEVICE T floor_remainder(T a, T b) {
  if (b == T(0) || (T(-1) < T(0) && b == T(-1))) return T(0);
  T rest = a % b;
  return rest != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
}
template <typename T> DEVICE T float_remainder(T a, T b) {
  T rest = fmod(a, b);
  if (rest == T(0)) return copysign(T(0), b);
  return (rest < T(0)) != (b < T(0)) ? rest + b : rest;
}
template <typename T> DEVICE T float_divide(T a, T b) {
  if (b == T(0)) return a / b;
  T rest = fmod(a, b);
  T quotient = (a - rest) / b;
  if (rest != T(0) && (rest < T(0)) != (b < T(0))) quotient -= T(1);
  if (quotient == T(0)) return copysign(T(0), a / b);
  T whole = floor(quotient);
  return quotient - whole > T(0.5) ? whole + T(1) : whole;
}
DEVICE float floor_divide(float a, float b) { return float_divide(a, b); }
DEVICE double floor_divide(double a, double b) { return float_divide(a, b); }
DEVICE float floor_remainder(float a, float b) { return float_remainder(a, b); }
DEVICE double floor_remainder(double a, double b) { return float_remainder(a, b); }
template <typename T> DEVICE T power(T a, T b) {
  if (b < T(0)) return a == T(1) ? T(1) : a == T(-1) ? (b % T(2) ? T(-1) : T(1)) : T(0);
  T result = T(1);
  for (; b > T(0); b /= T(2), a *= a) if (b % T(2)) result *= a;
  return result;
}
DEVICE float power(float a, float b) { return powf(a, b); }
DEVICE double power(double a, double b) { return pow(a, b); }
template <typename T> DEVICE T multiply_add(T a, T b, T c) { return a * b + c; }
DEVICE float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
DEVICE double multiply_add(double a, double b, double c) { return fma(a, b, c); }
DEVICE float large_sin(float a) { return (float)sin((double)a); }
DEVICE float large_cos(float a) { return (float)cos((double)a); }
DEVICE float large_tan(float a) { return (float)tan((double)a); }
template <typename T> DEVICE bool is_shift(T b) { return b >= T(0) && b < T(8 * sizeof(T)); }
template <typename T> DEVICE T shift_left(T a, T b) { return is_shift(b) ? a << b : T(0); }
template <typename T> DEVICE T shift_right(T a, T b) {
  return is_shift(b) ? a >> b : a < T(0) ? T(-1) : T(0);
}
"""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What languages of the family write in their own ways; as it stands here, CUDA C.

    `instance` is a function for one type, by its name and the type's, `value` a value of a type,
    by the type's name and the parts, `lane` one lane of a vector.
    """

    vector: str = "Vector<{}, {}>"
    instance: str = "{}<{}>"
    value: str = "{}{{{}}}"
    lane: str = "{}[{}]"
    long: str = "ll"  # ends a constant of 64 bits
    as_float: str = "__int_as_float"  # of an int with the same bits
    as_double: str = "__longlong_as_double"
    types: Mapping[str, str] = field(default_factory=lambda: TYPE_NAMES)
    spelling: Mapping[str, str] = field(default_factory=lambda: SPELLING)


CUDA_C = Dialect()


def type_name(dtype: DType, lanes: int = 1, dialect: Dialect = CUDA_C) -> str:
    """Name the type of a value: a scalar, or a vector of several lanes."""
    name = dialect.types[dtype.name]
    return name if lanes == 1 else dialect.vector.format(name, lanes)


def is_half(dtype: DType) -> bool:
    """Tell whether values of this dtype are 16-bit floats, which compute in float."""
    return dtype.is_float and dtype.bits == 16


def literal(value: Any, dtype: DType, dialect: Dialect = CUDA_C) -> str:
    """Write a constant so that it has exactly this dtype in C."""
    name = type_name(dtype, 1, dialect)
    if dtype.name == "bool":
        return "true" if value else "false"
    if is_half(dtype):
        return dialect.value.format(name, half_bits(float(value), dtype))
    if dtype.is_float:
        return float_literal(float(value), dtype, dialect)
    long = dialect.long
    suffix = {"uint32": "u", "int64": long, "uint64": f"u{long}"}.get(dtype.name, "")
    wrapped = int(value) & (1 << dtype.bits) - 1
    if dtype.kind == "int" and wrapped >> dtype.bits - 1:
        return f"({name})({wrapped - (1 << dtype.bits) + 1}{suffix} - 1)"
    return f"{wrapped}{suffix}" if dtype.bits >= 32 else f"({name}){wrapped}"


def half_bits(value: float, dtype: DType) -> str:
    """Raw bits of a 16-bit float constant, rounded to nearest even."""
    if dtype.name == "float16":
        with np.errstate(over="ignore"):
            return f"0x{int(np.float16(value).view(np.uint16)):04x}"
    with np.errstate(over="ignore"):
        bits = int(np.float32(value).view(np.uint32))
    return "0x7fc0" if math.isnan(value) else f"0x{(bits + 0x7FFF + (bits >> 16 & 1)) >> 16:04x}"


def float_literal(value: float, dtype: DType, dialect: Dialect = CUDA_C) -> str:
    """Write a float or double constant; infinities and NaN by their bits."""
    is_double = dtype.bits == 64
    if is_double:
        if not math.isfinite(value):
            (bits,) = struct.unpack("<q", struct.pack("<d", value))
            return f"{dialect.as_double}({bits}{dialect.long})"
        return repr(value) if value >= 0 else f"({value!r})"
    with np.errstate(over="ignore"):
        single = np.float32(value)
    if not math.isfinite(single):
        return f"{dialect.as_float}(0x{int(single.view(np.uint32)):08x})"
    text = f"{float(single)!r}f"
    return f"({text})" if text.startswith("-") else text


def convert(text: str, source: DType, to: DType, dialect: Dialect = CUDA_C) -> str:
    """Convert a value: truncation to integers that saturates, with nan as 0; != 0 to bool."""
    if source is to:
        return text
    name = type_name(to, 1, dialect)
    if is_half(source):
        text, source = f"to_float({text})", source
        if to.name == "float32":
            return text
    if to.name == "bool":
        return f"({text} != 0)"
    if is_half(to):
        return f"{dialect.instance.format('round_to', name)}((float)({text}))"
    if source.is_float and to.is_integer:
        return f"{dialect.instance.format('saturate', name)}({text})"
    return f"({name})({text})"


def spelling_of(op: str, count: int, dialect: Dialect = CUDA_C) -> str:
    """Find the expression of an op: its row, or the library's function of its name."""
    if op not in dialect.spelling and op not in ops_of(Role.ELEMENTWISE):
        internal(f"op {op!r} has no spelling in C")
    arguments = ", ".join(f"{{{number}}}" for number in range(count))
    return dialect.spelling.get(op, f"{op}({arguments})")


def elementwise(
    op: str, args: list[str], dtypes: list[DType], dtype: DType, dialect: Dialect = CUDA_C
) -> str:
    """Write one scalar elementwise operation; `dtypes` are those of the arguments."""
    name = type_name(dtype, 1, dialect)
    if op == "cast":
        return convert(args[0], dtypes[0], dtype, dialect)
    if op == "bitcast":
        return f"{dialect.instance.format('bit_cast', name)}({args[0]})"
    spelling = spelling_of(op, len(args), dialect)
    if op == "where":
        return spelling.format(*args)
    if op in IDENTITY_ON_INTEGERS and not dtypes[0].is_float:
        return args[0]
    if op in ("add", "mul", "maximum", "minimum") and dtype.name == "bool":
        return f"{args[0]} {'||' if op in ('add', 'maximum') else '&&'} {args[1]}"
    widened = [f"to_float({a})" if is_half(d) else a for a, d in zip(args, dtypes, strict=True)]
    text = spelling.format(*widened)
    if is_half(dtype):
        return f"{dialect.instance.format('round_to', name)}({text})"
    is_narrow = dtype.bits < 32 and dtype.name != "bool"
    return f"({name})({text})" if is_narrow else text

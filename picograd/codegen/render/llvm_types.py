"""How LLVM IR spells types and constants."""

import struct
from typing import Any

from picograd.dtype import DType, bool_
from picograd.errors import check

# bfloat16 values are integers: LLVM 20 cannot select shuffles of vectors of bfloat, and aborts.
NAMES = {"float16": "half", "bfloat16": "i16", "float32": "float", "float64": "double"}


def type_name(dtype: DType, lanes: int = 1) -> str:
    """Spell the type of a value; a bool is an i1."""
    name = "i1" if dtype is bool_ else NAMES.get(dtype.name, f"i{dtype.bits}")
    return vector_type(name, lanes)


def vector_type(name: str, lanes: int) -> str:
    """Spell a type of one lane, or of several."""
    return name if lanes == 1 else f"<{lanes} x {name}>"


def memory_type(dtype: DType, lanes: int = 1) -> str:
    """Spell the type in memory; a bool is a byte."""
    return vector_type("i8" if dtype is bool_ else type_name(dtype), lanes)


def literal(value: Any, dtype: DType) -> str:
    """Spell a constant."""
    if dtype is bool_:
        return "true" if value else "false"
    if not dtype.is_float:
        wrapped = int(value) & ((1 << dtype.bits) - 1)
        is_negative = wrapped >> (dtype.bits - 1)
        return str(wrapped - (1 << dtype.bits) if is_negative else wrapped)
    number = float(value)
    if dtype.bits == 32:
        number = round_float32(number)
    check(dtype.bits >= 32, f"constants of {dtype.name} are carried as float32")
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def round_float32(number: float) -> float:
    """Round to float32; too large becomes infinite."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


MANTISSA = {16: 11, 32: 24, 64: 53}  # binary digits of a float of so many bits


def integer_bounds(source: DType, target: DType) -> tuple[float, float]:
    """Find the least and the greatest of a dtype's floats that an integer of another one holds."""
    is_signed = target.kind == "int"
    bits = target.bits - is_signed
    gap = 2.0 ** max(bits - MANTISSA[source.bits], 0)
    most = 65504.0 if source.bits == 16 else float("inf")
    return max(-(2.0**bits) * is_signed, -most), min(2.0**bits - gap, most)


def widened(number: int, value: str, lanes: int) -> list[str]:
    """Write lines that convert the 16 bits of a bfloat16 to a float: they are its upper half."""
    wide, result = vector_type("i32", lanes), vector_type("float", lanes)
    shift = "16" if lanes == 1 else "splat (i32 16)"
    return [
        f"%z{number} = zext {value} to {wide}",
        f"%h{number} = shl {wide} %z{number}, {shift}",
        f"%v{number} = bitcast {wide} %h{number} to {result}",
    ]


def saturating(number: int, value: str, source: DType, target: DType, lanes: int) -> list[str]:
    """Write lines that convert a float to an integer: too large saturates, NaN gives 0.

    LLVM's own function for that is no vector in a loop. What a conversion gives for a number that
    has no integer is chosen by no selection here.
    """
    vector = type_name(source, lanes)
    result = type_name(target, lanes)
    truth = vector_type("i1", lanes)
    low, high = integer_bounds(source, target)
    is_signed = target.kind == "int"
    most = (1 << target.bits - is_signed) - 1
    least = -most - 1 if is_signed else 0
    op = "fptosi" if is_signed else "fptoui"
    found = f"%whole{number}"
    lines = [f"{found} = {op} {value} to {result}"]
    for test, bound, whole in (("ogt", high, most), ("olt", low, least), ("uno", low, 0)):
        limit = f"{bound:.1f}" if source.bits == 16 else literal(bound, source)
        limit = repeated(vector, limit, lanes)
        instead = repeated(result, str(whole), lanes)
        name = f"%v{number}" if test == "uno" else f"%{test}{number}"
        lines.append(f"%is_{test}{number} = fcmp {test} {value}, {limit}")
        chosen = f"{result} {instead}, {result} {found}"
        lines.append(f"{name} = select {truth} %is_{test}{number}, {chosen}")
        found = name
    return lines


def repeated(vector: str, number: str, lanes: int) -> str:
    """Spell a number in all lanes of a vector."""
    if lanes == 1:
        return number
    one = vector.partition(" x ")[2][:-1]
    return f"splat ({one} {number})"


def mangle(name: str) -> str:
    """Spell a type inside an intrinsic's name."""
    return {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}.get(name, name)


def mangled(dtype: DType, lanes: int) -> str:
    """Spell a dtype inside an intrinsic's name."""
    return ("" if lanes == 1 else f"v{lanes}") + mangle(type_name(dtype))


def masked(access: str, dtype: DType, lanes: int) -> tuple[str, str]:
    """Name the function that loads or stores some lanes, and declare it."""
    memory = memory_type(dtype, lanes)
    function = f"llvm.masked.{access}.v{lanes}{mangle(memory_type(dtype))}.p0"
    place, mask = "ptr, i32", f"<{lanes} x i1>"
    if access == "load":
        return function, f"declare {memory} @{function}({place}, {mask}, {memory})"
    return function, f"declare void @{function}({memory}, {place}, {mask})"


def in_turn(lanes: int, half: str) -> str:
    """Spell the order of a shuffle that takes the lanes of a half of two vectors in turn."""
    first = lanes // 2 if half == "high" else 0
    pairs = [f"i32 {lane}, i32 {lanes + lane}" for lane in range(first, first + lanes // 2)]
    return f"<{lanes} x i32> <{', '.join(pairs)}>"

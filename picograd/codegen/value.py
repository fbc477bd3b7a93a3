"""Value: a position in an emitter with operators, so that decompositions read like formulas.

Pair: an unevaluated sum high + low of two float64 values, about 106 bits of precision.

The formulas of elementary.py are written once: on float64 values, which is enough digits for a
float32 result, and on pairs for a float64 result. Sums and products follow Dekker (1971) and Knuth
(TAOCP 2, 4.2.2); the error of a product comes from an fma.

Casts that no language has an instruction for, as integer arithmetic on the bits.

8-bit floats are bytes in every language. Sources: the OCP specification of 8-bit floating point; S.
Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums" (2008), for rounding to odd.
"""

from typing import Any, Protocol, Union

from picograd.conversion import FLOAT8
from picograd.dtype import DType, bfloat16, bool_, float32, int32, uint8, uint16, uint32
from picograd.late_methods import dataclass

Operand = Union["Value", float, int]


class Emitter(Protocol):
    """What a Value asks of the emitter (codegen/emit.py, which casts with Values)."""

    def add(
        self, op: str, dtype: DType, args: tuple[int, ...], arg: Any = None, lanes: int = 1
    ) -> int:
        """Append one instruction."""

    def const(self, value: Any, dtype: DType) -> int:
        """Find or make a constant."""

    def constant_of(self, value: int) -> Any:
        """Find the number that a value is in every lane, None if it is not a constant."""

    def dtype(self, value: int) -> DType:
        """Find the dtype of a value."""

    def lanes(self, value: int) -> int:
        """Count the lanes of a value."""

    def raw(self, op: str, dtype: DType, *args: int) -> int:
        """Append an elementwise operation as it is."""

    def cast(self, value: int, dtype: DType) -> int:
        """Convert a value."""


class Value:
    """A position in an emitter with operators, so that polynomials read like formulas."""

    __slots__ = ("emitter", "position")

    def __init__(self, emitter: Emitter, position: int) -> None:
        self.emitter: Emitter = emitter
        self.position: int = position

    @property
    def dtype(self) -> DType:
        """Find the dtype."""
        return self.emitter.dtype(self.position)

    def lift(self, other: Operand) -> int:
        """Find the position of an operand; a number becomes a constant of this dtype."""
        if isinstance(other, Value):
            return other.position
        return self.emitter.const(other, self.dtype)

    def constant(self, number: float | int) -> "Value":
        """Make a constant of this dtype."""
        return Value(self.emitter, self.lift(number))

    def raw(self, op: str, *others: Operand, dtype: DType | None = None) -> "Value":
        """Append `op(self, *others)`."""
        positions = [self.lift(o) for o in others]
        result = self.emitter.raw(op, dtype or self.dtype, self.position, *positions)
        return Value(self.emitter, result)

    def __add__(self, other: Operand) -> "Value":
        return self.raw("add", other)

    def __sub__(self, other: Operand) -> "Value":
        return self.raw("sub", other)

    def __mul__(self, other: Operand) -> "Value":
        return self.raw("mul", other)

    def __truediv__(self, other: Operand) -> "Value":
        return self.raw("div", other)

    def __neg__(self) -> "Value":
        return self.raw("neg")

    def __and__(self, other: Operand) -> "Value":
        return self.raw("and" if self.dtype is bool_ else "bitwise_and", other)

    def __or__(self, other: Operand) -> "Value":
        return self.raw("or" if self.dtype is bool_ else "bitwise_or", other)

    def __invert__(self) -> "Value":
        return self.raw("not")

    def __lt__(self, other: Operand) -> "Value":
        return self.raw("less", other, dtype=bool_)

    def __le__(self, other: Operand) -> "Value":
        return self.raw("less_equal", other, dtype=bool_)

    def is_equal(self, other: Operand) -> "Value":
        """Compare; false for NaN."""
        return self.raw("equal", other, dtype=bool_)

    def rare(self, op: str, usual: "Value", *operands: "Value") -> "Value":
        """Append op(operands), or op(self), where |self| is large, else `usual`: see program.py."""
        args = (self.position, usual.position, *(each.position for each in operands))
        lanes = self.emitter.lanes(self.position)
        return Value(self.emitter, self.emitter.add("rare", self.dtype, args, op, lanes))

    def fma(self, factor: Operand, addend: Operand) -> "Value":
        """Append self * factor + addend, rounded once."""
        return self.raw("fma", factor, addend)

    def where(self, a: "Value", b: Operand) -> "Value":
        """Choose a where self (a mask) holds, else b."""
        other = b if isinstance(b, Value) else Value(self.emitter, a.lift(b))
        return self.raw("where", a, other, dtype=a.dtype)

    def cast(self, dtype: DType) -> "Value":
        """Convert."""
        return Value(self.emitter, self.emitter.cast(self.position, dtype))

    def bitcast(self, dtype: DType) -> "Value":
        """Reinterpret the bits."""
        lanes = self.emitter.lanes(self.position)
        position = self.emitter.add("bitcast", dtype, (self.position,), lanes=lanes)
        return Value(self.emitter, position)


def goes_before(key: Value, other: Value, place: Value, other_place: Value) -> Value:
    """Tell whether a key comes first in order: of equal ones, the one that stands first."""
    is_less = key < other
    return is_less | (key.is_equal(other) & (place < other_place))


Wide = Any  # a Value or a Pair: formulas are written for either


def two_sum(a: Value, b: Value) -> "Pair":
    """Add exactly."""
    total = a + b
    part = total - a
    return Pair(total, (a - (total - part)) + (b - part))


def quick_sum(a: Value, b: Value) -> "Pair":
    """Add exactly if |a| >= |b|, or a is 0."""
    total = a + b
    return Pair(total, b - (total - a))


def two_product(a: Value, b: Value) -> "Pair":
    """Multiply exactly."""
    product = a * b
    return Pair(product, a.fma(b, -product))


@dataclass(frozen=True, slots=True)
class Pair:
    """A sum of two float64 values; |low| is at most about half a unit of high's last place."""

    high: Value
    low: Value

    def __add__(self, other: Wide) -> "Pair":
        if isinstance(other, Pair):
            total = two_sum(self.high, other.high)
            return quick_sum(total.high, total.low + (self.low + other.low))
        total = two_sum(self.high, as_value(other, self))
        return quick_sum(total.high, total.low + self.low)

    def __neg__(self) -> "Pair":
        return Pair(-self.high, -self.low)

    def __sub__(self, other: Wide) -> "Pair":
        return self + -other

    def __mul__(self, other: Wide) -> "Pair":
        if isinstance(other, Pair):
            product = two_product(self.high, other.high)
            low = self.high.fma(other.low, product.low)
            return quick_sum(product.high, self.low.fma(other.high, low))
        factor = as_value(other, self)
        product = two_product(self.high, factor)
        return quick_sum(product.high, self.low.fma(factor, product.low))

    def __truediv__(self, other: "Pair") -> "Pair":
        quotient = self.high / other.high
        rest = (-quotient).fma(other.high, self.high)
        rest = (-quotient).fma(other.low, rest + self.low)
        return quick_sum(quotient, rest / other.high)

    def scaled(self, power: Value) -> "Pair":
        """Multiply by a power of two."""
        return Pair(self.high * power, self.low * power)


def as_value(number: Value | float, like: Pair) -> Value:
    """Make a float64 value of a number."""
    return number if isinstance(number, Value) else like.high.constant(number)


def square_root(x: Wide) -> Wide:
    """Compute the root; of a pair by one step of Heron's. The root of 0 is 0."""
    if isinstance(x, Value):
        return x.raw("sqrt")
    root = x.high.raw("sqrt")
    rest = (-root).fma(root, x.high) + x.low
    low = rest / (root + root)
    return Pair(root, root.is_equal(0.0).where(root, low))


def choose(mask: Value, a: Wide, b: Wide) -> Wide:
    """Choose a where a mask holds, else b."""
    if isinstance(a, Pair) or isinstance(b, Pair):
        first, second = as_pair(a), as_pair(b)
        return Pair(mask.where(first.high, second.high), mask.where(first.low, second.low))
    return mask.where(a, b)


def as_pair(x: Wide) -> Pair:
    """See a value as a pair."""
    return x if isinstance(x, Pair) else Pair(x, x.constant(0.0))


def head(x: Wide) -> Value:
    """Take the larger part of a pair."""
    return x.high if isinstance(x, Pair) else x


def is_single_part(x: Pair) -> bool:
    """Tell whether a pair was made of one value."""
    return x.low.emitter.constant_of(x.low.position) == 0.0


def rounded(x: Wide) -> Value:
    """Round to one float64 value."""
    return x.high + x.low if isinstance(x, Pair) else x


# Bits of a float32, as int32: the sign, infinity, and what makes a NaN quiet.
SIGN32 = -(1 << 31)
INFINITY32 = 0x7F800000
QUIET32 = 0x400000


def encode_float8(x: Value, dtype: DType) -> Value:
    """Round float32 to an 8-bit float.

    Among the normal numbers, adding half a step to the bits carries into the exponent where it
    should. The others are multiples of one step: adding a number whose last bit is that step
    rounds to it.
    """
    form, bits = FLOAT8[dtype], x.bitcast(int32)
    size = (bits & 0x7FFFFFFF).raw("minimum", INFINITY32)
    is_odd = size.raw("shift_right", form.shift) & 1
    rounded = size + is_odd + ((1 << (form.shift - 1)) - 1)
    normal = rounded.raw("shift_right", form.shift) - form.offset
    magic = form.smallest * 2.0**23
    near = (size.bitcast(float32) + magic).bitcast(int32)
    tiny = near - x.constant(magic).bitcast(int32)
    code = (size < form.normal_bits).where(tiny, normal)
    code = (code < form.limit).where(code, form.limit)
    code = x.is_equal(x).where(code, 0x7F)
    sign = (bits < 0).where(bits.constant(0x80), 0)
    return (code | sign).cast(uint8).bitcast(dtype)


def decode_float8(x: Value) -> Value:
    """Widen an 8-bit float to float32, exactly; NaN becomes quiet."""
    form, code = (FLOAT8[x.dtype], x.bitcast(uint8).cast(int32))
    size, sign = (code & 0x7F, (code < 0x80).where(code.constant(0), SIGN32))
    tiny = (size.cast(float32) * form.smallest).bitcast(int32)
    bits = (size + form.offset).raw("shift_left", form.shift)
    bits = (size < 1 << form.mantissa).where(tiny, bits)
    payload = size.raw("shift_left", form.shift) & 0x7FFFFF
    quiet = (size <= form.limit).where(size.constant(0), QUIET32)
    special = payload | quiet | INFINITY32
    bits = (size <= form.largest).where(bits, special)
    return (bits | sign).bitcast(float32)


def encode_bfloat16(x: Value) -> Value:
    """Round float32 to its upper half.

    CPUs that have an instruction for it (VCVTNEPS2BF16) take numbers that are not normal for 0.
    """
    bits = x.bitcast(uint32)
    is_odd = bits.raw("shift_right", 16) & 1
    rounded = (bits + is_odd + 0x7FFF).raw("shift_right", 16)
    quiet = bits.raw("shift_right", 16) | 0x40
    half = x.is_equal(x).where(rounded, quiet)
    return half.cast(uint16).bitcast(bfloat16)


def round_to_odd(x: Value) -> Value:
    """Round float64 to float32 so that rounding once more, to 16 bits, gives the nearest of those.

    That is towards 0, with the last bit set when something was lost.
    """
    near = x.raw("cast", dtype=float32)
    wide, bits = (near.raw("cast", dtype=x.dtype), near.bitcast(int32))
    below = (x.raw("abs") < wide.raw("abs")).where(bits - 1, bits)
    is_inexact = wide.raw("not_equal", x, dtype=bool_)
    return is_inexact.where(below | 1, bits).bitcast(float32)

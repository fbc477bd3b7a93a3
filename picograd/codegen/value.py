"""Value: a position in an emitter with operators, so that decompositions read like formulas."""

from typing import Any, Protocol, Union

from picograd.dtype import DType, bool_

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

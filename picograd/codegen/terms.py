"""Term: a loop expression with operators, so that what the steps of a template do reads as it is.

Numbers of Python beside a term have its dtype.
"""

from typing import Union

from picograd.dtype import DType, bool_, int32
from picograd.schedule.index import Axis, Dynamic, Index, atom_index, axis_index
from picograd.schedule.loop import Expr, const

Operand = Union["Term", float, int]


class Term:
    """This class holds an expression."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr: Expr = expr

    @property
    def dtype(self) -> DType:
        """The dtype of the value."""
        return self.expr.dtype

    def of(self, op: str, *others: Operand) -> "Term":
        """Apply a row of the op table to numbers of one dtype."""
        terms = [as_term(other, self.dtype) for other in others]
        args = [term.expr for term in (self, *terms)]
        made = Expr(op, tuple(args), None, self.dtype)
        return Term(made)

    def holds(self, op: str, *others: Operand) -> "Term":
        """Apply a comparison, or what joins two."""
        made = self.of(op, *others).expr
        return Term(Expr(op, made.args, None, bool_))

    def __add__(self, other: Operand) -> "Term":
        return self.of("add", other)

    def __sub__(self, other: Operand) -> "Term":
        return self.of("sub", other)

    def __mul__(self, other: Operand) -> "Term":
        return self.of("mul", other)

    def __truediv__(self, other: Operand) -> "Term":
        return self.of("div", other)

    def __floordiv__(self, other: Operand) -> "Term":
        return self.of("floordiv", other)

    def __mod__(self, other: Operand) -> "Term":
        return self.of("mod", other)

    def __lt__(self, other: Operand) -> "Term":
        return self.holds("less", other)

    def __le__(self, other: Operand) -> "Term":
        return self.holds("less_equal", other)

    def __and__(self, other: "Term") -> "Term":
        return self.holds("logical_and", other)

    def __invert__(self) -> "Term":
        return self.holds("logical_not")

    def is_at(self, other: Operand) -> "Term":
        """Tell whether both are equal."""
        return self.holds("equal", other)

    def where(self, yes: "Term", no: Operand) -> "Term":
        """Choose by what holds."""
        other = as_term(no, yes.dtype)
        args = self.expr, yes.expr, other.expr
        made = Expr("where", args, None, yes.dtype)
        return Term(made)

    def cast(self, dtype: DType) -> "Term":
        """Convert."""
        made = Expr("cast", (self.expr,), None, dtype)
        return Term(made)

    def index(self, size: int) -> Index:
        """Use the value as a position among `size`, which it is promised to be."""
        found = Dynamic(self.expr, 0, size - 1)
        return atom_index(found)


def as_term(value: Operand, dtype: DType) -> Term:
    """Make a term of a number."""
    if isinstance(value, Term):
        return value
    return Term(const(value, dtype))


def position(index: Index | Axis) -> Term:
    """Make a term of a position."""
    place = as_place(index)
    made = Expr("index", (), place, int32)
    return Term(made)


def as_place(index: Index | Axis) -> Index:
    """Give an axis as an index."""
    if isinstance(index, Axis):
        return axis_index(index)
    return index


def tile_at(name: str, index: tuple[Index, ...], dtype: DType) -> Term:
    """Read a tile."""
    found = Expr("tile", (), (name, index), dtype)
    return Term(found)

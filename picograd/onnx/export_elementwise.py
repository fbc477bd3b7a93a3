"""The elementwise ops of Graph IR as ONNX operators: a row is `row(writer, dtype, *values)`.

`dtype` is that of the result. Where ONNX has no such operator the row is composed of some.
"""

import math
from collections.abc import Callable
from typing import Any

from picograd.dtype import DType, bool_, float64, int64
from picograd.onnx.writer import Writer, Written, broadcast

Row = Callable[..., Written]
ROWS: dict[str, Row] = {}
SAME = {  # op -> operator
    "neg": "Neg", "exp": "Exp", "log": "Log", "sin": "Sin", "cos": "Cos", "tanh": "Tanh",
    "sqrt": "Sqrt", "reciprocal": "Reciprocal", "abs": "Abs", "sign": "Sign", "floor": "Floor",
    "ceil": "Ceil", "round": "Round", "erf": "Erf", "sigmoid": "Sigmoid",
    "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
    "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "portable_log": "Log",
    "portable_exp": "Exp", "isnan": "IsNaN", "logical_not": "Not",
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "pow": "Pow", "less": "Less",
    "less_equal": "LessOrEqual", "equal": "Equal", "logical_and": "And", "logical_or": "Or",
    "relu": "Relu",
}  # fmt: skip
ON_BOOLS = {  # op -> operator of bools, and of others
    "maximum": ("Or", "Max"), "minimum": ("And", "Min"), "bitwise_not": ("Not", "BitwiseNot"),
    "bitwise_and": ("And", "BitwiseAnd"), "bitwise_or": ("Or", "BitwiseOr"),
    "bitwise_xor": ("Xor", "BitwiseXor"),
}  # fmt: skip


def row(*names: str) -> Callable[[Row], Row]:
    """Add a row for each op."""

    def add(definition: Row) -> Row:
        ROWS.update(dict.fromkeys(names, definition))
        return definition

    return add


def direct(kind: str) -> Row:
    """Make the row of an op that ONNX has."""
    return lambda w, dtype, *values: w.apply(kind, *values, dtype=dtype)


def of_bools(kind: str, other: str) -> Row:
    """Make the row of an op that has another name on bools."""

    def written(w: Writer, dtype: DType, *values: Written) -> Written:
        return w.apply(kind if dtype is bool_ else other, *values)

    return written


ROWS.update({op: direct(kind) for op, kind in SAME.items()})
ROWS.update({op: of_bools(*kinds) for op, kinds in ON_BOOLS.items()})


class Formula:
    """This class is a value in arithmetic: `Formula(w, x) * 2 + y` adds the nodes."""

    def __init__(self, writer: Writer, value: Written) -> None:
        self.writer, self.value = writer, value

    def two(self, kind: str, other: Any, is_turned: bool = False) -> "Formula":
        """Add a node of two values, or of a value and a number."""
        if not isinstance(other, Formula):
            other = Formula(self.writer, self.writer.number(other, self.value.dtype))
        pair = (other.value, self.value) if is_turned else (self.value, other.value)
        is_test = kind in ("Less", "Equal")
        dtype = bool_ if is_test else self.value.dtype
        return Formula(self.writer, self.writer.apply(kind, *pair, dtype=dtype))

    def one(self, kind: str) -> "Formula":
        """Add a node of one value."""
        return Formula(self.writer, self.writer.apply(kind, self.value))

    def choose(self, yes: Any, no: Any) -> "Formula":
        """Choose where this is true."""
        like = next(each for each in (yes, no) if isinstance(each, Formula)).value
        pair = []
        for each in (yes, no):
            is_number = not isinstance(each, Formula)
            pair.append(self.writer.number(each, like.dtype) if is_number else each.value)
        return Formula(self.writer, chosen(self.writer, like.dtype, self.value, *pair))

    def __add__(self, other: Any) -> "Formula":
        return self.two("Add", other)

    def __sub__(self, other: Any) -> "Formula":
        return self.two("Sub", other)

    def __rsub__(self, other: Any) -> "Formula":
        return self.two("Sub", other, True)

    def __mul__(self, other: Any) -> "Formula":
        return self.two("Mul", other)

    def __truediv__(self, other: Any) -> "Formula":
        return self.two("Div", other)

    def __lt__(self, other: Any) -> "Formula":
        return self.two("Less", other)

    def __gt__(self, other: Any) -> "Formula":
        return self.two("Less", other, True)

    def equals(self, other: Any) -> "Formula":
        """Compare."""
        return self.two("Equal", other)


def formula(*names: str) -> Callable[[Callable[..., Formula]], Any]:
    """Add a row that is a formula of its inputs."""

    def add(definition: Callable[..., Formula]) -> Any:
        def written(w: Writer, dtype: DType, *values: Written) -> Written:
            return definition(*[Formula(w, each) for each in values]).value

        row(*names)(written)
        return definition

    return add


FORMULAS: dict[str, Callable[[Formula], Formula]] = {  # of one expression
    "rsqrt": lambda x: x.one("Sqrt").one("Reciprocal"),
    "silu": lambda x: x * x.one("Sigmoid"),
    "erfc": lambda x: 1 - x.one("Erf"),
    "trunc": lambda x: (x < 0).choose(x.one("Ceil"), x.one("Floor")),
    "exp2": lambda x: x.two("Pow", 2, True),
    "quick_exp2": lambda x: x.two("Pow", 2, True),
    # near 0 too: it is tanh(x / 2) (exp(x) + 1)
    "expm1": lambda x: (x * 0.5).one("Tanh") * (x.one("Exp") + 1),
    "log2": lambda x: x.one("Log") * (1 / math.log(2)),
    "log10": lambda x: x.one("Log") * (1 / math.log(10)),
    "portable_cos_turn": lambda x: ((x - x.one("Round")) * (2 * math.pi)).one("Cos"),
}
for op, definition in FORMULAS.items():
    formula(op)(definition)


@row("where")
def chosen(w: Writer, dtype: DType, condition: Written, yes: Written, no: Written) -> Written:
    """Choose elements."""
    return w.apply("Where", condition, yes, no, dtype=dtype)


@row("multiply_add")
def multiply_add(w: Writer, dtype: DType, x: Written, y: Written, z: Written) -> Written:
    """Multiply and add: runtimes may round once or twice."""
    product = w.apply("Mul", x, y, dtype=dtype)
    return w.apply("Add", product, z, dtype=dtype)


@row("cast")
def cast(w: Writer, dtype: DType, x: Written) -> Written:
    """Convert."""
    return w.cast(x, dtype)


@row("not_equal")
def not_equal(w: Writer, dtype: DType, x: Written, y: Written) -> Written:
    """Compare, and turn it round."""
    return w.apply("Not", w.apply("Equal", x, y, dtype=bool_))


@row("tan")
def tan(w: Writer, dtype: DType, x: Written) -> Written:
    """Give the tangent; of float64 by sines, as ONNX Runtime (1.32) has no other."""
    if dtype is not float64:
        return w.apply("Tan", x)
    return w.apply("Div", w.apply("Sin", x), w.apply("Cos", x))


@formula("log1p")
def log1p(x: Formula) -> Formula:
    """log(1 + x), near 0 too: the rounding of 1 + x is made up for. Source: Kahan (1980)."""
    u = x + 1
    near = u.one("Log") * x / (u - 1)
    return u.equals(1).choose(x, (x > 1).choose(u.one("Log"), near))


@formula("hypot")
def hypot(x: Formula, y: Formula) -> Formula:
    """sqrt(x x + y y), without overflow."""
    a, b = x.one("Abs"), y.one("Abs")
    most, least = a.two("Max", b), a.two("Min", b)
    share = most.equals(0).choose(0.0, least / most)
    return most * (share * share + 1).one("Sqrt")


@formula("logaddexp")
def logaddexp(x: Formula, y: Formula) -> Formula:
    """log(exp(x) + exp(y)); equal operands, infinite ones too, add log(2)."""
    away = (x - y).one("Abs").one("Neg").one("Exp")
    return x.equals(y).choose(x + math.log(2), x.two("Max", y) + log1p(away))


@formula("atan2")
def atan2(y: Formula, x: Formula) -> Formula:
    """Angle of a point."""
    angle = (y / x).one("Atan")
    half = (y < 0).choose(y * 0 - math.pi, y * 0 + math.pi)
    upright = y.one("Sign") * (math.pi / 2)
    return (x < 0).choose(angle + half, x.equals(0).choose(upright, angle))


@row("floordiv")
def floor_divide(w: Writer, dtype: DType, x: Written, y: Written) -> Written:
    """Divide and round down; ONNX divides integers towards zero."""
    if dtype.is_float:
        return w.apply("Floor", w.apply("Div", x, y))
    return w.apply("Div", w.apply("Sub", x, w.apply("Mod", x, y)), y)


@row("mod")
def modulo(w: Writer, dtype: DType, x: Written, y: Written) -> Written:
    """Take the remainder, with the sign of the divisor."""
    if not dtype.is_float:
        return w.apply("Mod", x, y)
    name = w.emit("Mod", x.name, y.name, fmod=1)
    rest, divisor = Formula(w, Written(name, broadcast(x.shape, y.shape), dtype)), Formula(w, y)
    is_other = rest * divisor.one("Sign") < 0
    return is_other.choose(rest + divisor, rest).value


@row("shift_left")
def shift_left(w: Writer, dtype: DType, x: Written, y: Written) -> Written:
    """Multiply by a power of two."""
    power = w.apply("Pow", w.number(2, int64), w.cast(y, int64))
    return w.cast(w.apply("Mul", w.cast(x, int64), power), dtype)


@row("shift_right")
def shift_right(w: Writer, dtype: DType, x: Written, y: Written) -> Written:
    """Divide by a power of two, and round down."""
    power = w.apply("Pow", w.number(2, int64), w.cast(y, int64))
    return w.cast(floor_divide(w, int64, w.cast(x, int64), power), dtype)

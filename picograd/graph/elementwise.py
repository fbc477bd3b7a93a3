"""The elementwise rows of the op table. A new elementwise op is one row here, and is tested."""

import math
import operator
from dataclasses import replace
from typing import Any

import numpy as np

from picograd.conversion import from_bits, to_bits
from picograd.dtype import bool_
from picograd.graph import bounds
from picograd.graph.complex_rules import OF_COMPLEX
from picograd.graph.node import Gradients
from picograd.graph.row import (
    ANY,
    BITS,
    COMPARE,
    EQUALITY,
    FACTOR,
    FLOAT,
    FLOAT_TEST,
    INTEGER,
    LOGICAL,
    NUMBER,
    ORDERED,
    DTypeRule,
    Op,
    Role,
    table,
)
from picograd.graph.shape import equal_shape
from picograd.number import is_given

Array = Any
Node = Any  # graph.node.Node, which imports this table
TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
ERF, ERFC = np.frompyfunc(math.erf, 1, 1), np.frompyfunc(math.erfc, 1, 1)


def unary(name: str, rule: DTypeRule, numpy: Any = None, vjp: Any = None, **options: Any) -> Op:
    """Make the row of an op with one input."""
    rule, options = with_complex(name, rule, options)
    return Op(name, Role.ELEMENTWISE, 1, rule, numpy, vjp, shape=equal_shape, **options)


def binary(name: str, rule: DTypeRule, numpy: Any, vjp: Any = None, **options: Any) -> Op:
    """Make the row of an op with two inputs of one shape and dtype."""
    rule, options = with_complex(name, rule, options)
    return Op(name, Role.ELEMENTWISE, 2, rule, numpy, vjp, shape=equal_shape, **options)


def with_complex(name: str, rule: DTypeRule, options: Any) -> tuple[DTypeRule, Any]:
    """Let an op that has a rule for complex inputs take them."""
    if name not in OF_COMPLEX:
        return rule, options
    kinds = dict.fromkeys((*rule.kinds, "complex"))
    of_complex = OF_COMPLEX[name]
    slopes = getattr(of_complex, "slopes", None)
    options = {**options, "of_complex": of_complex, "slopes": slopes}
    return replace(rule, kinds=tuple(kinds)), options


def erf(x: Array) -> Array:
    """Error function of every element."""
    return np.asarray(ERF(np.asarray(x, np.float64)), np.float64)


def erfc(x: Array) -> Array:
    """1 - erf(x), accurate where erf is nearly 1."""
    return np.asarray(ERFC(np.asarray(x, np.float64)), np.float64)


def sign(x: Array) -> Array:
    """-1, 0 or 1; 0 for NaN, as PyTorch."""
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


def cos_turn(x: Array) -> Array:
    """Cosine of a number of whole turns."""
    return np.cos((x - np.round(x)) * (2 * math.pi))


def floor_divide(a: Array, b: Array) -> Array:
    """Divide and round down; a float divided by zero is infinite or NaN, as in PyTorch."""
    if a.dtype.kind != "f":
        return np.floor_divide(a, b)
    return np.where(b == 0, np.divide(a, b), np.floor_divide(a, b))


def zero_vjp(gradient: Node, output: Node, *inputs: Node) -> Gradients:
    """The gradient of a step function: zero."""
    return tuple(gradient.const_like(0) for _ in inputs)


def cos_turn_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """-2 pi sin(2 pi x), which is the cosine a quarter turn on."""
    return (gradient * (x + 0.25).unary("portable_cos_turn") * (2 * math.pi),)


def cast_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Cast back; integers carry no gradient."""
    return (gradient.cast(x.dtype) if x.dtype.is_differentiable else None,)


def pow_vjp(gradient: Node, output: Node, a: Node, b: Node) -> Gradients:
    """d(a^b) = b a^(b-1) da + a^b log(a) db; as in PyTorch 0 where b, or a beside b >= 0, is 0."""
    zero, one = gradient.const_like(0), gradient.const_like(1)
    no_power, no_base = b.binary("equal", zero), a.binary("equal", zero)
    slope = b * a.binary("pow", no_power.where(one, b) - 1)
    for_a = no_power.where(zero, gradient * slope)
    is_flat = no_base.binary("logical_and", zero.binary("less_equal", b))
    for_b = is_flat.where(zero, gradient * output * is_flat.where(one, a).unary("log"))
    return for_a, for_b


def simpler_power(base: Node, exponent: Node) -> Node | None:
    """Record a power by a constant otherwise: those that PyTorch computes without `pow` too."""
    power = exponent.arg
    if is_given(power):  # any other number may be next
        return None
    if power in (1, 2):
        return base if power == 1 else base * base
    named = {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}.get(power)
    return base.unary(named) if named and base.dtype.is_float else None


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


def silu(x: Array) -> Array:
    """x sigmoid(x), where the sigmoid is denormal too."""
    half = np.exp(-np.abs(x) / 2)
    return x * np.where(x < 0, half, 1) / (1 + half * half) * np.where(x < 0, half, 1)


def silu_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """s (1 + x (1 - s)) with s = sigmoid(x)."""
    s = x.unary("sigmoid")
    return (gradient * (s * (1.0 + x * (1.0 - s))),)


def extremum_vjp(gradient: Node, a: Node, b: Node) -> Gradients:
    """Gradients of the chosen input `a` and the other `b`, given the order `a >= b` wanted."""
    zero, half = gradient.const_like(0), gradient * 0.5
    is_tie = a.binary("equal", b)
    for_a = is_tie.where(half, a.binary("less", b).where(zero, gradient))
    for_b = is_tie.where(half, b.binary("less", a).where(zero, gradient))
    return for_a, for_b


def only_choice(node: Node) -> Node | None:
    """Leave out what a constant condition never chooses, which gradients alone need (build.py)."""
    condition, a, b = node.inputs
    if condition.row.role is not Role.NUMBER or is_given(condition.arg):
        return None
    return a if condition.arg else b


def where_vjp(gradient: Node, output: Node, condition: Node, *rest: Node) -> Gradients:
    """Route by selection, never by multiplication: 0 x infinity is NaN."""
    zero = gradient.const_like(0)
    return (None, condition.where(gradient, zero), condition.where(zero, gradient))


def quotient_vjp(scale: float) -> Any:
    """Make the gradient of a logarithm: 1 / (scale x)."""
    return lambda g, y, x: (g / (x * scale),)


def one_minus_square(x: Node) -> Node:
    """1 - x^2, without cancellation."""
    return (1 - x) * (x + 1)


def atan2_vjp(gradient: Node, output: Node, y: Node, x: Node) -> Gradients:
    """(x dy - y dx) / (x^2 + y^2); 0 where both are 0, as in PyTorch."""
    square = x * x + y * y
    is_zero = square.binary("equal", 0.0)
    share = is_zero.where(0.0, gradient / is_zero.where(1.0, square))
    return share * x, -share * y


def logaddexp_vjp(gradient: Node, output: Node, a: Node, b: Node) -> Gradients:
    """Share by exp(a) : exp(b); equal infinite operands halve it."""
    is_same = a.binary("equal", b)
    is_far = a.unary("abs").binary("equal", math.inf)
    is_lost = is_same.binary("logical_and", is_far)
    above = is_lost.where(0.0, a - b)  # of either share, 1 less the other has no small digits
    return gradient * above.unary("sigmoid"), gradient * (-above).unary("sigmoid")


UNARY = (
    unary("neg", NUMBER, np.negative, lambda g, y, x: (-g,), factors=(-1,), linear=(0,)),
    unary("exp", FLOAT, np.exp, lambda g, y, x: (g * y,), cost=6, is_exponential=True,
        logarithm="log"),
    unary("log", FLOAT, np.log, lambda g, y, x: (g / x,), domain=(0.2, 4.0), cost=6),
    unary("sin", FLOAT, np.sin, lambda g, y, x: (g * x.unary("cos"),), cost=8),
    unary("cos", FLOAT, np.cos, lambda g, y, x: (-g * x.unary("sin"),), cost=8),
    unary("tanh", FLOAT, np.tanh, lambda g, y, x: (g * (1 - y * y),), cost=8),
    unary("sqrt", FLOAT, np.sqrt, lambda g, y, x: (g / (y + y),), domain=(0.2, 4.0), cost=2),
    unary("rsqrt", FLOAT, lambda x: 1 / np.sqrt(x), lambda g, y, x: (g * (y * y * y) * -0.5,),
        domain=(0.2, 4.0), cost=2),
    unary("reciprocal", FLOAT, lambda x: 1 / x, lambda g, y, x: (-g * (y * y),), domain=(0.2, 4.0)),
    unary("abs", FACTOR, np.abs, lambda g, y, x: (g * x.unary("sign"),), bounds=bounds.abs_bounds),
    unary("sign", NUMBER, sign, zero_vjp),
    unary("floor", FLOAT, np.floor, zero_vjp),
    unary("ceil", FLOAT, np.ceil, zero_vjp),
    unary("round", FLOAT, np.round, zero_vjp),
    unary("trunc", FLOAT, np.trunc, zero_vjp),
    unary("erf", FLOAT, erf, lambda g, y, x: (g * (-(x * x)).unary("exp") * TWO_OVER_ROOT_PI,),
        cost=8),
    unary("sigmoid", FLOAT, sigmoid, lambda g, y, x: (g * (y * (1.0 - y)),), cost=10),
    unary("silu", FLOAT, silu, silu_vjp, cost=10),
    unary("exp2", FLOAT, np.exp2, lambda g, y, x: (g * y * math.log(2),), cost=6,
        is_exponential=True, logarithm="log2"),
    unary("expm1", FLOAT, np.expm1, lambda g, y, x: (g * (y + 1),), cost=30),
    unary("log2", FLOAT, np.log2, quotient_vjp(math.log(2)), domain=(0.2, 4.0), cost=20),
    unary("log10", FLOAT, np.log10, quotient_vjp(math.log(10)), domain=(0.2, 4.0), cost=20),
    unary("log1p", FLOAT, np.log1p, lambda g, y, x: (g / (x + 1),), domain=(-0.8, 4.0), cost=30),
    unary("tan", FLOAT, np.tan, lambda g, y, x: (g * (y * y + 1),), domain=(-1.2, 1.2), cost=20),
    unary("asin", FLOAT, np.arcsin, lambda g, y, x: (g * one_minus_square(x).unary("rsqrt"),),
        domain=(-0.9, 0.9), cost=30),
    unary("acos", FLOAT, np.arccos, lambda g, y, x: (-g * one_minus_square(x).unary("rsqrt"),),
        domain=(-0.9, 0.9), cost=30),
    unary("atan", FLOAT, np.arctan, lambda g, y, x: (g / (x * x + 1),), cost=30),
    unary("sinh", FLOAT, np.sinh, lambda g, y, x: (g * x.unary("cosh"),), cost=30),
    unary("cosh", FLOAT, np.cosh, lambda g, y, x: (g * x.unary("sinh"),), cost=30),
    unary("asinh", FLOAT, np.arcsinh, lambda g, y, x: (g * (x * x + 1).unary("rsqrt"),), cost=30),
    unary("acosh", FLOAT, np.arccosh, lambda g, y, x: (g * ((x - 1) * (x + 1)).unary("rsqrt"),),
        domain=(1.2, 4.0), cost=30),
    unary("atanh", FLOAT, np.arctanh, lambda g, y, x: (g / one_minus_square(x),),
        domain=(-0.9, 0.9), cost=30),
    unary("erfc", FLOAT, erfc, lambda g, y, x: (g * (-(x * x)).unary("exp") * -TWO_OVER_ROOT_PI,),
        cost=40),
    # The same bits on every device, for random numbers; NumPy's last bits may differ.
    unary("portable_log", FLOAT, np.log, lambda g, y, x: (g / x,), domain=(0.2, 4.0), cost=10),
    unary("portable_exp", FLOAT, np.exp, lambda g, y, x: (g * y,), cost=6),
    # As fast as the device has it, to two units in the last place: for exponentials of scores.
    unary("quick_exp2", FLOAT, np.exp2, lambda g, y, x: (g * y * math.log(2),), cost=2,
        is_exponential=True),
    unary("portable_cos_turn", FLOAT, cos_turn, cos_turn_vjp, cost=10),
    unary("isnan", FLOAT_TEST, np.isnan),
    unary("logical_not", LOGICAL, np.logical_not, logic="not"),
    unary("bitwise_not", BITS, np.invert, logic="not"),
    # What it gives is converted to the node's dtype.
    unary("cast", ANY, lambda x: x, cast_vjp, keeps_value=True, bounds=bounds.cast_bounds,
        linear=(0,)),
    unary("bitcast", ANY, reinterpret=lambda x, dtype, other: from_bits(to_bits(x, dtype), other)),
)  # fmt: skip

BINARY = (
    binary("add", NUMBER, np.add, lambda g, y, a, b: (g, g), identities=(0, 0), factors=(1, 1),
        on_bools="logical_or", operand="wide", bounds=bounds.arithmetic(operator.add)),
    binary("sub", NUMBER, np.subtract, lambda g, y, a, b: (g, -g), identities=(None, 0),
        factors=(1, -1), operand="wide", bounds=bounds.arithmetic(operator.sub)),
    binary("mul", NUMBER, np.multiply, lambda g, y, a, b: (g * b, g * a), identities=(1, 1),
        linear=(0, 1), on_bools="logical_and", operand="wide",
        bounds=bounds.arithmetic(operator.mul)),
    binary("div", FLOAT, np.divide, lambda g, y, a, b: (g / b, -(g / b) * y), domain=(0.2, 4.0),
        identities=(None, 1), linear=(0,), operand="wide", cost=2),
    binary("floordiv", NUMBER, floor_divide, zero_vjp, domain=(0.2, 4.0),
        bounds=bounds.floordiv_bounds, operand="code", cost=3),
    binary("mod", NUMBER, np.mod, lambda g, y, a, b: (g, -g * a.binary("floordiv", b)),
        domain=(0.2, 4.0), bounds=bounds.mod_bounds, operand="code", cost=3),
    binary("pow", NUMBER, np.power, pow_vjp, domain=(0.2, 3.0), simpler=simpler_power,
        operand="code", cost=12),
    binary("maximum", ORDERED, np.maximum, lambda g, y, a, b: extremum_vjp(g, a, b),
        bounds=bounds.extreme(max), on_bools="logical_or"),
    binary("minimum", ORDERED, np.minimum, lambda g, y, a, b: extremum_vjp(g, b, a),
        bounds=bounds.extreme(min), on_bools="logical_and"),
    binary("atan2", FLOAT, np.arctan2, atan2_vjp, domain=(0.2, 3.0), cost=30),
    binary("hypot", FLOAT, np.hypot, lambda g, y, a, b: (g * (a / y), g * (b / y)),
        domain=(0.2, 3.0), cost=30),
    binary("logaddexp", FLOAT, np.logaddexp, logaddexp_vjp, cost=30),
    binary("less", COMPARE, np.less, least=1),
    binary("less_equal", COMPARE, np.less_equal, least=0),
    binary("equal", EQUALITY, np.equal, logic="same"),
    binary("not_equal", EQUALITY, np.not_equal, logic="other"),
    binary("logical_and", LOGICAL, np.logical_and, logic="both", identities=(True, True)),
    binary("logical_or", LOGICAL, np.logical_or, logic="either", identities=(False, False)),
    binary("bitwise_and", BITS, np.bitwise_and, logic="both", bounds=bounds.common_bits_bounds),
    binary("bitwise_or", BITS, np.bitwise_or, logic="either"),
    binary("bitwise_xor", BITS, np.bitwise_xor),
    binary("shift_left", INTEGER, np.left_shift, domain=(0.0, 6.0), operand="code"),
    binary("shift_right", INTEGER, np.right_shift, domain=(0.0, 6.0), bounds=bounds.shift_bounds,
        operand="code"),
)  # fmt: skip

WHERE = Op(
    "where",
    Role.ELEMENTWISE,
    3,
    ANY,
    np.where,
    where_vjp,
    shape=equal_shape,
    data=(1, None),
    check=lambda node: "" if node.inputs[0].dtype is bool_ else "the condition is not bool",
    bounds=bounds.where_bounds,
    linear=(1, 2),
    operand="value",
    expand=only_choice,
)

# a b + c, rounded once: of polynomials, where it is half the work; a user's sums stay as written
MULTIPLY_ADD = Op(
    "multiply_add",
    Role.ELEMENTWISE,
    3,
    FLOAT,
    lambda a, b, c: a * b + c,
    lambda g, y, a, b, c: (g * b, g * a, g),
    shape=equal_shape,
)

ELEMENTWISE = table(*UNARY, *BINARY, WHERE, MULTIPLY_ADD)

"""Elementwise functions on nodes: arithmetic, comparisons, and activations made of them."""

import math
from typing import Any

from picograd.dtype import DType, bool_, complex64, float32, int64, promote, uint8
from picograd.errors import DTypeError, ValueRangeError
from picograd.graph import build
from picograd.graph.build_composite import check_device, custom
from picograd.graph.node import Node, Nodes
from picograd.graph.ops import OPS
from picograd.graph.shape import broadcast_shapes
from picograd.number import converted, given, is_whole
from picograd.tensor.core.annotations import Scalar
from picograd.tensor.core.demands import demand_divisor
from picograd.tensor.core.function import recorded
from picograd.tensor.core.operands import (
    Operand,
    broadcast_to,
    constant,
    fitting_integer,
    floating,
    pair,
    read_factor,
    read_scalar,
)
from picograd.tensor.core.repeated import recorded_once, repeated


def arithmetic(op: str, a: Operand, b: Operand) -> Node:
    """Compute add, sub, mul, floordiv, mod, pow, maximum or minimum with promotion."""
    if op == "sub":
        check_difference(a, b)
    first, second = pair(op, a, b)
    if first.dtype is bool_:
        return arithmetic_bool(op, first, second)
    if op in ("floordiv", "mod") and first.dtype.is_integer and first.size:
        demand_divisor(op, b)
    return build.binary(op, first, second)


def add_scaled(op: str, a: Operand, b: Operand, alpha: Scalar) -> Node:
    """Compute a + alpha b or, for "sub", a - alpha b, in the dtype of a + b from the start."""
    if op == "sub":
        check_difference(a, b)
    first, second = pair(op, a, b)
    factor = read_factor(op, alpha, first.dtype)
    if factor == 1:
        return arithmetic(op, first, second)
    if first.dtype is bool_:
        return arithmetic(op, first, second) if factor else first
    wide = arithmetic("mul", second.accumulated(), factor)
    return build.binary(op, first.accumulated(), wide).cast(first.dtype)


def check_difference(a: Operand, b: Operand) -> None:
    """Raise DTypeError where a bool tensor is an operand of a difference, as PyTorch.

    A number minus bools counts them, as in NumPy: `1 - Tensor(done)` where `done` is an array.
    """
    if isinstance(a, (int, float)) and not isinstance(a, bool):
        return
    for each in (a, b):
        if isinstance(each, bool) or (isinstance(each, Node) and each.dtype is bool_):
            text = "is not defined for bool tensors"
            raise DTypeError("sub", text, "use ^ or logical_xor, or call .int() first")


def arithmetic_bool(op: str, a: Node, b: Node) -> Node:
    """Compute with two bool operands: `+` is or, `*` is and; the rest has no meaning."""
    logical = OPS[op].on_bools
    if not logical:
        raise DTypeError(op, "is not defined for two bool tensors", "call .int() first")
    return build.elementwise(logical, a, b)


def subtract(a: Operand, b: Operand) -> Node:
    """Compute a - b."""
    return arithmetic("sub", a, b)


def division(op: str, a: Operand, b: Operand) -> Node:
    """Compute true division; integers divide in float32."""
    first, second = pair(op, a, b, floating=True)
    return build.binary(op, first, second)


def divide(a: Operand, b: Operand) -> Node:
    """Compute a / b."""
    return division("div", a, b)


def power(op: str, a: Operand, b: Operand) -> Node:
    """Compute a ** b; squares, cubes, roots and reciprocals take short cuts."""
    if isinstance(a, Node) and not isinstance(b, Node):
        exponent = read_scalar("pow", b)
        if a.dtype is bool_ and isinstance(exponent, bool):  # only False to the 0 differs
            return a if exponent else a.const_like(True)
        is_whole_base = a.dtype.is_integer or a.dtype is bool_
        if is_whole_base and isinstance(exponent, int) and exponent < 0:
            text = "integers to negative integer powers are not allowed"
            raise DTypeError("pow", text, "call .float() first")
        if a.dtype.is_integer and isinstance(exponent, int):
            fitting_integer("pow", exponent, a.dtype)
        short = short_power(a, exponent)
        if short is not None:
            return short
    return arithmetic(op, a, b)


def short_power(a: Node, exponent: Scalar) -> Node | None:
    """Spell a power by multiplication or a root where that is exact."""
    is_whole_base = not a.dtype.is_differentiable
    if isinstance(exponent, bool) or (is_whole_base and isinstance(exponent, float)):
        return None
    if exponent == 2 and a.dtype is not bool_:
        return build.elementwise("mul", a, a)
    if exponent == 3 and a.dtype is not bool_:
        return build.elementwise("mul", build.elementwise("mul", a, a), a)
    if exponent == 0.5:
        return build.elementwise("sqrt", a)
    if exponent == -0.5:
        return build.elementwise("rsqrt", a)
    if exponent == -1:
        return build.elementwise("reciprocal", a)
    return None


def compare(op: str, a: Operand, b: Operand) -> Node:
    """Compute less, less_equal, equal or not_equal: a bool node."""
    if is_whole(b) and isinstance(a, Node):
        a, b = compare_range(a, b)
    elif is_whole(a) and isinstance(b, Node):
        b, a = compare_range(b, a)
    first, second = pair(op, a, b)
    return build.binary(op, first, second)


def compare_swapped(op: str, a: Operand, b: Operand) -> Node:
    """Compute b < a or b <= a: `greater` and its like."""
    return compare(op, b, a)


def compare_range(a: Node, number: Any) -> tuple[Node, Operand]:
    """Compare an integer with a number outside its range by a pair in the same order."""
    if (a.dtype.is_integer and not -128 <= number < 128) or a.dtype.kind == "uint":
        least, most = a.dtype.ends
        if not least <= number <= most:
            is_above = number > 0
            return a.const_like(0 if is_above else 1), 1 if is_above else 0
    return a, number


def bitwise(op: str, a: Operand, b: Operand) -> Node:
    """Compute bitwise and, or, xor and shifts of integers (and, or, xor of bools)."""
    first, second = pair(op, a, b)
    if first.dtype.is_float:
        raise DTypeError(op, f"needs integers or bool, got {first.dtype.name}", "cast first")
    return build.elementwise(op, first, second)


def logical(op: str, a: Operand, b: Operand) -> Node:
    """Compute logical and, or of truth values (non-zero is true)."""
    first, second = pair(op, a, b)
    return build.elementwise(op, truth(first), truth(second))


def logical_xor(op: str, a: Operand, b: Operand) -> Node:
    """Compute exclusive or of truth values."""
    first, second = pair(op, a, b)
    return build.elementwise("not_equal", truth(first), truth(second))


def truth(node: Node) -> Node:
    """Turn numbers into bools: non-zero is true."""
    return build.cast(node, bool_)


@recorded(in_place=True)
def logical_not(x: Node) -> Node:
    """Negate truth values.

    >>> Tensor([0, 1, 2]).logical_not().tolist()
    [True, False, False]
    """
    return build.elementwise("logical_not", truth(x))


def bitwise_not(node: Node) -> Node:
    """Invert bits; bools are negated."""
    return logical_not(node) if node.dtype is bool_ else build.elementwise("bitwise_not", node)


def negate(node: Node) -> Node:
    """Compute -x."""
    if node.dtype is bool_:
        raise DTypeError("neg", "is not defined for bool tensors", "use ~x or x.logical_not()")
    return build.elementwise("neg", node)


def unary(op: str, node: Node) -> Node:
    """Compute a float function: integers become float32 first."""
    return build.elementwise(op, floating(op, node))


@recorded("round", in_place=True)
def rounded(x: Node, *, decimals: int = 0) -> Node:
    """Round to so many decimals, halves to even.

    >>> Tensor([1.24, 2.5]).round().tolist(), Tensor([1.24]).round(decimals=1).tolist()
    ([1.0, 2.0], [1.2000...])
    """
    if not isinstance(decimals, int):
        text = f"decimals must be an int, not {decimals!r}"
        raise DTypeError("round", text, "pass a whole number")
    return round_decimals(x, decimals) if decimals and x.dtype.is_float else rounding("round", x)


def rounding(op: str, node: Node) -> Node:
    """Compute floor, ceil, round or trunc; integers stay."""
    return node if node.dtype.kind in ("bool", "int", "uint") else build.elementwise(op, node)


def round_decimals(a: Node, decimals: int) -> Node:
    """Round to so many decimals; negative ones round to tens, hundreds and so on."""
    scale = 10.0 ** min(abs(decimals), 308)  # the largest power of float64
    x = a.accumulated()
    if decimals < 0:
        return ((x / scale).unary("round") * scale).cast(a.dtype)
    return ((x * scale).unary("round") / scale).cast(a.dtype)


@recorded("abs", "absolute", in_place=True)
def absolute(x: Node) -> Node:
    """Compute |x|; unsigned integers stay.

    >>> Tensor([-1.0, 2.0, -3.0]).abs().tolist()
    [1.0, 2.0, 3.0]
    """
    return x if x.dtype.kind in ("uint", "bool") else build.elementwise("abs", x)


@recorded(in_place=True)
def sign(x: Node) -> Node:
    """Compute -1, 0 or 1.

    >>> Tensor([-3.0, 0.0, 2.0]).sign().tolist()
    [-1.0, 0.0, 1.0]
    """
    if x.dtype.is_complex:
        raise DTypeError("sign", f"is not defined for {x.dtype.name}", "use sgn: x / |x|")
    return x if x.dtype is bool_ else build.elementwise("sign", x)


@recorded("isnan")
def is_nan(x: Node) -> Node:
    """Tell which elements are NaN.

    >>> Tensor([1.0, float("inf"), float("nan")]).isnan().tolist()
    [False, False, True]
    """
    if x.dtype.is_differentiable:
        return build.elementwise("isnan", x)
    return build.const(False, x.shape, bool_, x.device)


@recorded("isinf")
def is_infinite(x: Node) -> Node:
    """Tell which elements are infinite.

    >>> Tensor([1.0, float("inf"), float("nan")]).isinf().tolist()
    [False, True, False]
    """
    if x.dtype.is_complex:
        return logical("logical_or", *map(is_infinite, x.parts()))
    if x.dtype.is_float:
        return compare("equal", build.elementwise("abs", x), math.inf)
    return build.const(False, x.shape, bool_, x.device)


def complex_logaddexp(a: Node, b: Node) -> Node:
    """Compute log(exp(a) + exp(b)) of complex numbers, from the one of larger real part."""
    is_first = b.parts()[0].binary("less", a.parts()[0])
    larger, gap = is_first.where(a, b), is_first.where(b - a, a - b)
    gap = is_finite(larger).where(gap, 0)  # an infinity less itself is NaN
    return larger + (gap.unary("exp") + 1).unary("log")


@recorded("isfinite")
def is_finite(x: Node) -> Node:
    """Tell which elements are neither infinite nor NaN.

    >>> Tensor([1.0, float("inf"), float("nan")]).isfinite().tolist()
    [True, False, False]
    """
    if x.dtype.is_complex:
        return logical("logical_and", *map(is_finite, x.parts()))
    if x.dtype.is_float:
        return compare("less", build.elementwise("abs", x), math.inf)
    return build.const(True, x.shape, bool_, x.device)


@repeated
def where(condition: Node, a: Operand, b: Operand) -> Node:
    """Choose from `a` where the condition holds, else from `b`; all three broadcast."""
    if condition.dtype is uint8:  # the bools of older programs
        condition = condition.cast(bool_)
    if condition.dtype is not bool_:
        text = f"condition must be bool, got {condition.dtype.name}"
        raise DTypeError("where", text, "compare it, or call .bool()")
    first, second = choices(condition, a, b)
    check_device("where", (condition, first))
    shape = broadcast_shapes(condition.shape, first.shape, op="where")
    nodes = [broadcast_to(node, shape) for node in (condition, first, second)]
    return build.elementwise("where", *nodes)


def choices(condition: Node, a: Operand, b: Operand) -> tuple[Node, Node]:
    """Pair the two branches of `where`; two Python numbers take their default dtype."""
    if isinstance(a, Node) or isinstance(b, Node):
        return pair("where", a, b)
    dtype = scalar_pair_dtype(read_scalar("where", a), read_scalar("where", b))
    first = constant("where", given(a), (), dtype, condition.device)
    return first, constant("where", given(b), (), dtype, condition.device)


def scalar_pair_dtype(a: Scalar, b: Scalar) -> DType:
    """Find the default dtype of two Python numbers."""
    if isinstance(a, complex) or isinstance(b, complex):
        return complex64
    if isinstance(a, float) or isinstance(b, float):
        return float32
    return bool_ if isinstance(a, bool) and isinstance(b, bool) else int64


@recorded_once("clamp", "clip", in_place=True)
def clamp(node: Node, min: Operand | None = None, max: Operand | None = None) -> Node:
    """Limit values to [min, max].

    On a limit the gradient passes, from NaN it does not; that of limits that are tensors is where
    they are taken. Limits that cross give the upper one.

    >>> Tensor([-1.0, 0.5, 3.0]).clamp(0, 1).tolist()
    [0.0, 0.5, 1.0]
    """
    if min is None and max is None:
        raise ValueRangeError("clamp", "min and max are both None", "pass at least one")
    if node.shape and isinstance(max, Node) and max.shape:  # a limit without axes widens less
        node = build.cast(node, promote(node.dtype, max.dtype))
    value = node if min is None else limited(node, min, True)
    value = value if max is None else limited(value, max, False)
    if not value.dtype.is_float or not all(isinstance(x, Node) or x is None or x == x
                                           for x in (min, max)):  # fmt: skip
        return value
    wide = [in_form(x, value) for x in (node, min, max) if x is not None]
    has_low, has_high = min is not None, max is not None
    return custom(
        value, wide, lambda g, _, x, *ends: clamp_gradients(g, x, ends, has_low, has_high)
    )


def in_form(operand: Operand, like: Node) -> Node:
    """Broadcast an operand to the shape and dtype of a result."""
    if not isinstance(operand, Node):
        return like.const_like(given(converted(float, read_scalar("clamp", operand))))
    return broadcast_to(build.cast(operand, like.dtype), like.shape)


def clamp_gradients(
    gradient: Node, x: Node, ends: Nodes, has_low: bool, has_high: bool
) -> list[Node]:
    """Send the gradient to what was taken: the value, the lower or the upper limit."""
    low, high = ends[0] if has_low else None, ends[-1] if has_high else None
    tests: list[Node] = []
    if low is not None:
        tests.append(low.binary("less_equal", x))
    if high is not None:
        tests.append(x.binary("less_equal", high))
    chosen = [tests[0] if len(tests) == 1 else tests[0].binary("logical_and", tests[1])]
    if low is not None:
        is_low = x.binary("less", low)
        fits = is_low if high is None else low.binary("less", high)
        chosen.append(is_low.binary("logical_and", fits))
    if high is not None:
        is_high = high.binary("less", x)
        crossed = is_high if low is None else high.binary("less", low)
        chosen.append(is_high.binary("logical_or", crossed))
    return [test.where(gradient, 0) for test in chosen]


def limited(node: Node, limit: Operand, is_low: bool) -> Node:
    """Replace what lies beyond one limit by it; integer limits take the tensor's dtype."""
    if not isinstance(limit, Node):
        number = read_scalar("clamp", limit)
        if number != number:
            return arithmetic("mul", node, number)
        if node.dtype.is_integer and not isinstance(number, float):
            limit = constant("clamp", given(number), (), node.dtype, node.device)
    pairing = (node, limit) if is_low else (limit, node)
    is_beyond = compare("less", *pairing)
    if isinstance(limit, Node) and limit.dtype.is_float:
        is_beyond = logical("logical_or", is_beyond, is_nan(limit))
    return where(is_beyond, limit, node)


@recorded_once(in_place=True)
def lerp(x: Node, end: Operand, weight: Operand) -> Node:
    """Interpolate: self + weight * (end - self), from the nearer end, so that weight 1 is exact.

    >>> Tensor([0.0, 2.0, 4.0]).lerp(Tensor([4.0, 4.0, 4.0]), 0.25).tolist()
    [1.0, 2.5, 4.0]
    """
    if isinstance(weight, Node):
        is_first = compare("less", absolute(weight), 0.5)
        share: Any = where(is_first, weight, arithmetic("sub", weight, 1))
    else:
        number = read_scalar("lerp", weight)
        size = abs(number)  # compared in the graph: one kernel is for all
        is_first = compare("less", constant("lerp", given(size), (), float32, x.device), 0.5)
        share = number if size < 0.5 else number - 1
    way = arithmetic("sub", end, x)
    return arithmetic("add", where(is_first, x, end), arithmetic("mul", share, way))

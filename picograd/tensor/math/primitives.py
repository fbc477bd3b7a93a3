"""Functions that are one op each, in every dtype: powers, logarithms, roots, rounding, extremes."""

from picograd.graph.node import Node
from picograd.tensor.core.function import recorded, within
from picograd.tensor.core.operands import Operand
from picograd.tensor.math import elementwise
from picograd.tensor.math.elementwise import arithmetic, logical, power, rounding, unary


@recorded(in_place=True)
def exp(x: Node) -> Node:
    """Compute e ** x.

    >>> Tensor([0.0, 1.0, 2.0]).exp().tolist()
    [1.0, 2.7182..., 7.3890...]
    """
    return unary("exp", x)


@recorded(in_place=True)
def exp2(x: Node) -> Node:
    """Compute 2 ** x.

    >>> Tensor([0.0, 1.0, 3.0]).exp2().tolist()
    [1.0, 2.0, 8.0]
    """
    return unary("exp2", x)


@recorded(in_place=True)
def log(x: Node) -> Node:
    """Compute the natural logarithm.

    >>> Tensor([1.0, 2.0, 4.0]).log().tolist()
    [0.0, 0.6931..., 1.3862...]
    """
    return unary("log", x)


@recorded(in_place=True)
def log2(x: Node) -> Node:
    """Compute the logarithm to base 2.

    >>> Tensor([1.0, 2.0, 8.0]).log2().tolist()
    [0.0, 1.0, 3.0]
    """
    return unary("log2", x)


@recorded(in_place=True)
def log10(x: Node) -> Node:
    """Compute the logarithm to base 10.

    >>> Tensor([1.0, 10.0, 1000.0]).log10().tolist()
    [0.0, 1.0, 3.0]
    """
    return unary("log10", x)


@recorded(in_place=True)
def sqrt(x: Node) -> Node:
    """Compute the square root.

    >>> Tensor([1.0, 4.0, 9.0]).sqrt().tolist()
    [1.0, 2.0, 3.0]
    """
    return unary("sqrt", x)


@recorded(in_place=True)
def rsqrt(x: Node) -> Node:
    """Compute 1 / sqrt(x).

    >>> Tensor([1.0, 4.0, 16.0]).rsqrt().tolist()
    [1.0, 0.5, 0.25]
    """
    return unary("rsqrt", x)


@recorded(in_place=True)
def reciprocal(x: Node) -> Node:
    """Compute 1 / x.

    >>> Tensor([1.0, 2.0, 4.0]).reciprocal().tolist()
    [1.0, 0.5, 0.25]
    """
    return unary("reciprocal", x)


@recorded(in_place=True)
def square(x: Node) -> Node:
    """Compute x * x.

    >>> Tensor([1.0, -2.0, 3.0]).square().tolist()
    [1.0, 4.0, 9.0]
    """
    return power("pow", x, 2)


@recorded(in_place=True)
def sin(x: Node) -> Node:
    """Compute the sine.

    >>> Tensor([0.0, 1.0, 2.0]).sin().tolist()
    [0.0, 0.8414..., 0.9092...]
    """
    return unary("sin", x)


@recorded(in_place=True)
def cos(x: Node) -> Node:
    """Compute the cosine.

    >>> Tensor([0.0, 1.0, 2.0]).cos().tolist()
    [1.0, 0.5403..., -0.4161...]
    """
    return unary("cos", x)


@within("functional", is_recorded=True)
@recorded(in_place=True)
def tanh(x: Node) -> Node:
    """Compute the hyperbolic tangent.

    >>> Tensor([-1.0, 0.0, 2.0]).tanh().tolist()
    [-0.7615..., 0.0, 0.9640...]
    """
    return unary("tanh", x)


@recorded(in_place=True)
def erf(x: Node) -> Node:
    """Compute the error function.

    >>> Tensor([-1.0, 0.0, 2.0]).erf().tolist()
    [-0.8427..., 0.0, 0.9953...]
    """
    return unary("erf", x)


@recorded(in_place=True)
def floor(x: Node) -> Node:
    """Round down.

    >>> Tensor([-1.5, 0.2, 2.0]).floor().tolist()
    [-2.0, 0.0, 2.0]
    """
    return rounding("floor", x)


@recorded(in_place=True)
def ceil(x: Node) -> Node:
    """Round up.

    >>> Tensor([-1.5, 0.2, 2.0]).ceil().tolist()
    [-1.0, 1.0, 2.0]
    """
    return rounding("ceil", x)


@recorded("trunc", "fix", in_place=True)
def trunc(x: Node) -> Node:
    """Round towards 0.

    >>> Tensor([-1.5, 0.2, 2.0]).trunc().tolist()
    [-1.0, 0.0, 2.0]
    """
    return rounding("trunc", x)


@recorded()
def maximum(x: Node, other: Operand) -> Node:
    """Compute the larger of two; NaN propagates.

    >>> Tensor([1.0, 5.0, 3.0]).maximum(Tensor([2.0, 4.0, 3.0])).tolist()
    [2.0, 5.0, 3.0]
    """
    return arithmetic("maximum", x, other)


@recorded()
def minimum(x: Node, other: Operand) -> Node:
    """Compute the smaller of two; NaN propagates.

    >>> Tensor([1.0, 5.0, 3.0]).minimum(Tensor([2.0, 4.0, 3.0])).tolist()
    [1.0, 4.0, 3.0]
    """
    return arithmetic("minimum", x, other)


@recorded(in_place=True)
def pow(x: Node, exponent: Operand) -> Node:
    """Raise to a power.

    >>> Tensor([1.0, 2.0, 3.0]).pow(2).tolist()
    [1.0, 4.0, 9.0]
    """
    return power("pow", x, exponent)


@recorded(in_place=True)
def logical_and(x: Node, other: Operand) -> Node:
    """Compute `and` of truth values.

    >>> Tensor([0, 1, 2]).logical_and(Tensor([1, 0, 1])).tolist()
    [False, False, True]
    """
    return logical("logical_and", x, other)


@recorded(in_place=True)
def logical_or(x: Node, other: Operand) -> Node:
    """Compute `or` of truth values.

    >>> Tensor([0, 1, 2]).logical_or(Tensor([1, 0, 1])).tolist()
    [True, True, True]
    """
    return logical("logical_or", x, other)


@recorded(in_place=True)
def logical_xor(x: Node, other: Operand) -> Node:
    """Compute exclusive or of truth values.

    >>> Tensor([0, 1, 2]).logical_xor(Tensor([1, 0, 1])).tolist()
    [True, True, False]
    """
    return elementwise.logical_xor("logical_xor", x, other)

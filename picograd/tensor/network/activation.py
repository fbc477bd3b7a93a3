"""Activations on nodes."""

import math

from picograd.dtype import float32
from picograd.errors import ValueRangeError
from picograd.graph import build_composite as composite
from picograd.graph.node import Node
from picograd.tensor.core.annotations import Scalar
from picograd.tensor.core.function import recorded, within
from picograd.tensor.core.operands import floating
from picograd.tensor.core.repeated import repeated
from picograd.tensor.math.elementwise import arithmetic, compare, divide, negate, where
from picograd.tensor.math.transcendental import expm1

FAR = 64.0  # as far is an exponential moved up


@within("functional", is_recorded=True, inplace=True, in_place=True)
@recorded(function=False)
@repeated
def leaky_relu(x: Node, negative_slope: float = 0.01) -> Node:
    """Compute x where positive, else negative_slope * x (Maas et al., 2013).

    >>> Tensor([-1.0, 0.0, 2.0]).leaky_relu(0.5).tolist()
    [-0.5, 0.0, 2.0]
    """
    is_above = composite.side(compare("less", 0, x))
    return where(is_above, x, arithmetic("mul", x, negative_slope))


@repeated
def weighted_below(x: Node, weight: Node) -> Node:
    """Compute x where positive, else the weight of all, or of its channel (axis 1), times x."""
    count = weight.size
    column: tuple[int, ...] = ()
    if count != 1:
        column = (count, *(1,) * (x.rank - 2))
    is_above = composite.side(compare("less", 0, x))
    below = arithmetic("mul", weight.reshape(column), x)
    return where(is_above, x, below)


@within("functional", is_recorded=True, inplace=True, in_place=True)
@recorded(function=False)
@repeated
def elu(x: Node, alpha: float = 1.0) -> Node:
    """Compute x where positive, else alpha * (exp(x) - 1) (Clevert et al., 2016).

    >>> Tensor([-1.0, 0.0, 2.0]).elu().tolist()
    [-0.6321..., 0.0, 2.0]
    """
    is_below = compare("less", x, 0)  # false for NaN, whose gradient is 1
    below = where(is_below, x, 0.0)
    curve = arithmetic("mul", expm1(below), alpha)
    if alpha == 1:
        return where(is_below, curve, x)
    tangent = arithmetic("mul", x, alpha)
    return where(is_below, curve, where(compare("equal", x, 0), tangent, x))


@within("functional", is_recorded=True)
@recorded(function=False)
@repeated
def softplus(x: Node, beta: float = 1.0, threshold: float = 20.0) -> Node:
    """Compute log(1 + exp(beta x)) / beta; linear above the threshold, as PyTorch.

    >>> Tensor([-1.0, 0.0, 2.0]).softplus().tolist()
    [0.3132..., 0.6931..., 2.1269...]
    """
    scaled = arithmetic("mul", x, beta)
    is_linear = compare("less", threshold, scaled)
    bounded = where(is_linear, 0.0, scaled)
    smooth = divide(arithmetic("logaddexp", bounded, 0.0), beta)
    return where(is_linear, x, smooth)


@within("functional", "logsigmoid", is_recorded=True)
@recorded("logsigmoid", function=False)
@repeated
def log_sigmoid(x: Node) -> Node:
    """Compute log(sigmoid(x)) without overflow.

    >>> Tensor([-1.0, 0.0, 2.0]).logsigmoid().tolist()
    [-1.3132..., -0.6931..., -0.1269...]
    """
    other = softplus(negate(x), 1.0, math.inf)
    return negate(other)


@repeated
def mish(node: Node) -> Node:
    """Compute x tanh(log(1 + e)) = x n / (n + 2) with e = exp(x) and n = e (e + 2).

    Far below 0, where e has lost digits as a denormal, that is x e, by exp(x + FAR).
    """
    x = floating("mish", node).accumulated()
    is_far = x.binary("less", -80.0 if x.dtype is float32 else -700.0)
    is_large = x.const_like(20.0).binary("less", x)
    e = is_large.where(0.0, is_far.where(x + FAR, x)).unary("exp")
    n = e * (e + 2.0)
    near = is_large.where(x, x * (n / (n + 2.0)))
    return is_far.where(x * e * math.exp(-FAR), near).cast(floating("mish", node).dtype)


@within("functional", is_recorded=True, inplace=True, in_place=True)
@recorded(in_place=True)
def relu(x: Node) -> Node:
    """Compute max(x, 0).

    >>> Tensor([-1.0, 0.0, 2.0]).relu().tolist()
    [0.0, 0.0, 2.0]
    """
    return composite.relu(x) if x.dtype.is_float else arithmetic("maximum", x, 0)


@within("functional", is_recorded=True)
@recorded(in_place=True)
def sigmoid(x: Node) -> Node:
    """Compute 1 / (1 + exp(-x)).

    >>> Tensor([-1.0, 0.0, 2.0]).sigmoid().tolist()
    [0.2689..., 0.5, 0.8807...]
    """
    return composite.sigmoid(floating("sigmoid", x))


@within("functional", "hardtanh", is_recorded=True, inplace=True, in_place=True)
@recorded("hardtanh", function=False)
@repeated
def hard_limit(x: Node, min_val: Scalar = -1.0, max_val: Scalar = 1.0) -> Node:
    """Limit values like `clamp`; the gradient is zero on the limits, as PyTorch's hardtanh.

    >>> Tensor([-3.0, 0.5, 2.0]).hardtanh().tolist()
    [-1.0, 0.5, 1.0]
    """
    if min_val > max_val:
        text = f"min_val={min_val} is larger than max_val={max_val}"
        raise ValueRangeError("hardtanh", text, "swap them")
    if not x.dtype.is_differentiable:  # limits of whole numbers are whole
        min_val, max_val = int(min_val), int(max_val)
    return limited(x, min_val, max_val, x)


def limited(x: Node, least: Scalar, most: Scalar, between: Node, shift: Scalar = 0) -> Node:
    """Give `between` where x is inside its limits, else the limit, moved by `shift`."""
    below = composite.side(compare("less_equal", x, least))
    above = composite.side(compare("less_equal", most, x))
    high = where(above, most + shift, between)
    return where(below, least + shift, high)


@within("functional", is_recorded=True, inplace=True)
@recorded(function=False)
@repeated
def relu6(x: Node) -> Node:
    """Compute min(max(x, 0), 6) (Howard et al., 2017).

    >>> Tensor([-1.0, 3.0, 8.0]).relu6().tolist()
    [0.0, 3.0, 6.0]
    """
    return hard_limit(x, 0, 6)


def ramp(x: Node) -> Node:
    """Compute relu6(x + 3); x itself is compared, as x + 3 reaches 6 early in 16 bits."""
    return limited(x, -3.0, 3.0, x + 3.0, 3.0)


@repeated
def hard_share(node: Node) -> Node:
    """Compute relu6(x + 3) / 6."""
    return ramp(floating("hardsigmoid", node)) / 6.0


@repeated
def hard_swish(node: Node) -> Node:
    """Compute x * relu6(x + 3) / 6."""
    x = floating("hardswish", node)
    return x * ramp(x) / 6.0


@within("functional", is_recorded=True, inplace=True)
@recorded(function=False)
def silu(x: Node) -> Node:
    """Compute x * sigmoid(x).

    >>> Tensor([-1.0, 0.0, 2.0]).silu().tolist()
    [-0.2689..., 0.0, 1.7615...]
    """
    return x * composite.sigmoid(x) if x.dtype.is_complex else composite.silu(x)


@within("functional", is_recorded=True)
@recorded(function=False)
def gelu(x: Node, approximate: str = "none") -> Node:
    """Compute x * Phi(x); approximate="tanh" for the usual approximation.

    >>> Tensor([-1.0, 0.0, 2.0]).gelu().tolist()
    [-0.1586..., 0.0, 1.9544...]
    """
    return composite.gelu(x, approximate)

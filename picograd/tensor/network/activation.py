"""Activations on nodes."""

import math

from picograd.dtype import float32
from picograd.errors import ValueRangeError
from picograd.graph import build_composite as composite
from picograd.graph.node import Node
from picograd.tensor.core.annotations import Scalar
from picograd.tensor.core.operands import floating
from picograd.tensor.math.elementwise import (
    absolute,
    arithmetic,
    compare,
    divide,
    negate,
    unary,
    where,
)
from picograd.tensor.math.transcendental import expm1, log1p

FAR = 64.0  # as far is an exponential moved up


def leaky_relu(node: Node, slope: float) -> Node:
    """Compute x where positive, else slope x."""
    return where(compare("less", 0, node), node, arithmetic("mul", node, slope))


def elu(node: Node, alpha: float) -> Node:
    """Compute x where positive, else alpha (exp(x) - 1)."""
    is_below = compare("less_equal", node, 0)  # false for NaN, whose gradient is 1
    below = where(is_below, node, 0.0)
    return where(is_below, arithmetic("mul", expm1(below), alpha), node)


def softplus(node: Node, beta: float, threshold: float) -> Node:
    """Compute log(1 + exp(beta x)) / beta; linear above the threshold, as PyTorch."""
    scaled = arithmetic("mul", node, beta)
    is_linear = compare("less", threshold, scaled)
    bounded = where(is_linear, 0.0, scaled)
    positive = arithmetic("maximum", bounded, 0.0)
    tail = log1p(unary("exp", negate(absolute(bounded))))
    smooth = divide(arithmetic("add", positive, tail), beta)
    return where(is_linear, node, smooth)


def log_sigmoid(node: Node) -> Node:
    """Compute log(sigmoid(x)) without overflow."""
    return negate(softplus(negate(node), 1.0, math.inf))


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


def relu(node: Node) -> Node:
    """Compute max(x, 0)."""
    return composite.relu(node) if node.dtype.is_float else arithmetic("maximum", node, 0)


def sigmoid(node: Node) -> Node:
    """Compute 1 / (1 + exp(-x))."""
    return composite.sigmoid(floating("sigmoid", node))


def hard_limit(node: Node, low: Scalar, high: Scalar) -> Node:
    """Limit values like `clamp`; the gradient is zero on the limits, as PyTorch's hardtanh."""
    if low > high:
        text = f"min_val={low} is larger than max_val={high}"
        raise ValueRangeError("hardtanh", text, "swap them")
    below, above = (compare("less_equal", node, low), compare("less_equal", high, node))
    return where(below, low, where(above, high, node))

"""Composite rows of variance, layer norm and batch norm.

The statistics of a norm are inputs of its node, so that forward and backward share them; its VJP
returns the whole derivative with respect to x, statistics included, and none for the statistics.
"""

from picograd.graph.batch_rules import batch_batch_norm, first_axes_next, next_axes
from picograd.graph.composites import composite, widen
from picograd.graph.node import Node
from picograd.graph.row import table
from picograd.graph.shape import reduce_shape
from picograd.helpers import product

Gradients = tuple[Node | None, ...]


def count_of(x: Node, axes: tuple[int, ...]) -> int:
    """Number of elements reduced into one."""
    return product(x.shape[axis] for axis in axes)


def mean_of(x: Node, axes: tuple[int, ...]) -> Node:
    """Mean over axes, which are dropped."""
    return x.reduce("sum", axes) / count_of(x, axes)


def deviation(x: Node, axes: tuple[int, ...]) -> Node:
    """Subtract the mean over axes."""
    return x - widen(mean_of(x, axes), x.shape, axes)


def expand_var(node: Node) -> Node:
    """Two passes: the mean, then the squared distances from it, less what the mean is off by.

    The mean of the distances, 0 but for rounding, is how far the first pass missed the mean.
    Source: Chan, Golub and LeVeque (1983), the corrected two-pass algorithm.
    """
    x, (axes, correction) = node.inputs[0], node.arg
    away, count = deviation(x, axes), count_of(x, axes)
    missed = away.reduce("sum", axes)
    squares = (away * away).reduce("sum", axes)
    total = (squares - missed * missed / max(count, 1)).binary("maximum", 0)
    return total / max(count - correction, 0)


def var_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """2 g (x - mean) / (n - correction); the path through the mean adds up to zero."""
    axes, correction = output.arg
    scale = widen(gradient * 2 / max(count_of(x, axes) - correction, 0), x.shape, axes)
    return (deviation(x, axes) * scale,)


def standardised(x: Node, mean: Node, scale: Node, axes: tuple[int, ...]) -> Node:
    """(x - mean) scale, with `scale` = 1 / standard deviation."""
    return (x - widen(mean, x.shape, axes)) * widen(scale, x.shape, axes)


def expand_layer_norm(node: Node) -> Node:
    """Standardise; the affine part is separate, because weight varies along the reduced axes."""
    x, mean, scale = node.inputs
    return standardised(x, mean, scale, node.arg)


def layer_norm_vjp(gradient: Node, output: Node, x: Node, mean: Node, scale: Node) -> Gradients:
    """scale (g - mean(g) - y mean(g y))."""
    axes = output.arg
    level = widen(mean_of(gradient, axes), x.shape, axes)
    slope = widen(mean_of(gradient * output, axes), x.shape, axes)
    return ((gradient - level - output * slope) * widen(scale, x.shape, axes), None, None)


def batch_axes(x: Node) -> tuple[int, ...]:
    """Every axis but the channels."""
    return tuple(axis for axis in range(len(x.shape)) if axis != 1)


def expand_batch_norm(node: Node) -> Node:
    """Standardise each channel, then weight and bias."""
    x, weight, bias, mean, scale = node.inputs
    axes = batch_axes(x)
    y = standardised(x, mean, scale, axes)
    return y * widen(weight, x.shape, axes) + widen(bias, x.shape, axes)


def batch_norm_vjp(
    gradient: Node, output: Node, x: Node, weight: Node, bias: Node, mean: Node, scale: Node
) -> Gradients:
    """With y standardised: weight scale (g - sum(g)/n - y sum(g y)/n), sum(g y), sum(g)."""
    axes = batch_axes(x)
    count = count_of(x, axes)
    y = standardised(x, mean, scale, axes)
    for_bias = gradient.reduce("sum", axes)
    for_weight = (gradient * y).reduce("sum", axes)
    level = widen(for_bias / count, x.shape, axes)
    slope = widen(for_weight / count, x.shape, axes)
    factor = widen(weight * scale, x.shape, axes)
    return (factor * (gradient - level - y * slope), for_weight, for_bias, None, None)


NORMS = table(
    composite(
        "var",
        1,
        expand_var,
        var_vjp,
        shape=lambda arg, x: reduce_shape(x, arg[0]),
        batch_arg=first_axes_next,
    ),
    composite("layer_norm", 3, expand_layer_norm, layer_norm_vjp, batch_arg=next_axes),
    composite("batch_norm", 5, expand_batch_norm, batch_norm_vjp, batch=batch_batch_norm),
)

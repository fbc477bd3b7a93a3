"""The rows of gather and scatter, adjoint to each other.

A scatter that overwrites has one more input than its axes need if not every update is wanted: a
bool, true where one is.
"""

from typing import Any

import numpy as np

from picograd.graph.node import Node
from picograd.graph.row import ANY, Op, table
from picograd.graph.scattering import UPDATES, axes_first, expand_scatter

Array = Any
Gradients = tuple[Node | None, ...]


def gather(node: Node, x: Array, *indices: Array) -> Array:
    """Index the axes, put first."""
    return axes_first(x, node.arg)[indices]


def scatter(node: Node, base: Array, values: Array, *rest: Array) -> Array:
    """Update a copy in the order of the index, so that the last one wins."""
    axes, monoid = node.arg
    out, indices = base.copy(), rest[: len(axes)]
    turned = axes_first(out, axes)
    if len(rest) > len(axes):
        wanted = np.nonzero(rest[-1])
        indices, values = tuple(index[wanted] for index in indices), values[wanted]
    if monoid is not None:
        UPDATES[monoid].at(turned, indices, values)
    else:
        for position in np.ndindex(*indices[0].shape):
            turned[tuple(index[position] for index in indices)] = values[position]
    return out


def gather_vjp(gradient: Node, output: Node, x: Node, *indices: Node) -> Gradients:
    """Add the gradients up where the elements came from."""
    zeros = x.const_like(0)
    return (zeros.scatter(gradient, indices, output.arg, "sum"), *(None for _ in indices))


def scatter_vjp(gradient: Node, output: Node, base: Node, values: Node, *rest: Node) -> Gradients:
    """Split the gradient between the base and the values.

    Overwriting with repeated indices gives every one of the values the gradient, as PyTorch does.
    """
    axes, monoid = output.arg
    indices, inside = rest[: len(axes)], rest[len(axes) :]
    for_values = gradient.gather(indices, axes)
    if inside:
        for_values = is_wanted(inside[0], values).where(for_values, 0)
    if monoid == "sum":
        for_base = gradient
    elif monoid is None:
        for_base = gradient.scatter(values.const_like(0), indices, axes, None, *inside)
    elif monoid == "prod":
        for_base, for_values = product_gradients(gradient, base, values, indices, axes)
    else:
        for_base, for_values = extremum_gradients(gradient, output, base, values, indices)
    return (for_base, for_values, *(None for _ in rest))


def is_wanted(inside: Node, values: Node) -> Node:
    """Repeat what says of each update whether it is wanted, for its elements."""
    ones = (1,) * (len(values.shape) - len(inside.shape))
    return inside.reshape((*inside.shape, *ones)).expand(values.shape)


def product_gradients(
    gradient: Node, base: Node, values: Node, indices: tuple[Node, ...], axes: tuple[int, ...]
) -> tuple[Node, Node]:
    """Multiply the other factors: a zero's own gradient is their product, and two leave nothing."""
    one, is_zero = base.const_like(1), values.binary("equal", 0)
    for_base = gradient * one.scatter(values, indices, axes, "prod")
    safe, own_zero = is_zero.where(1, values), is_zero.cast(base.dtype)
    others = gradient * base.scatter(safe, indices, axes, "prod")
    zeros = base.const_like(0).scatter(own_zero, indices, axes, "sum")
    is_only = zeros.gather(indices, axes).binary("equal", own_zero)
    return for_base, is_only.where(others.gather(indices, axes) / safe, 0)


def extremum_gradients(
    gradient: Node, output: Node, base: Node, values: Node, indices: tuple[Node, ...]
) -> tuple[Node, Node]:
    """Share the gradient evenly among the base and the values that attain the extremum."""
    axes, _ = output.arg
    output = output.again()
    base_wins = base.binary("equal", output)
    value_wins = values.binary("equal", output.gather(indices, axes))
    one = base_wins.cast(gradient.dtype)
    count = one.scatter(value_wins.cast(gradient.dtype), indices, axes, "sum")
    share = gradient / count
    rest = share * 0  # NaN where the extremum is: it equals nothing
    return base_wins.where(share, rest), value_wins.where(
        share.gather(indices, axes), rest.gather(indices, axes)
    )


INDEX_ROWS = table(
    Op("gather", "index", -1, ANY, gather, gather_vjp, cost=2),
    Op("scatter", "index", -1, ANY, scatter, scatter_vjp, expand_on=expand_scatter),
)

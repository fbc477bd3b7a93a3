"""The rows of gather and scatter, adjoint to each other."""

from typing import Any

import numpy as np

from picograd.graph.node import Node
from picograd.graph.row import ANY, Op, table

Array = Any
Gradients = tuple[Node | None, ...]
UPDATES: dict[str, Any] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def axes_first(x: Array, axes: tuple[int, ...]) -> Array:
    """Move the indexed axes to the front."""
    return np.moveaxis(x, axes, range(len(axes)))


def gather(node: Node, x: Array, *indices: Array) -> Array:
    """Index the axes, put first."""
    return axes_first(x, node.arg)[indices]


def scatter(node: Node, base: Array, values: Array, *indices: Array) -> Array:
    """Update a copy in the order of the index, so that the last one wins."""
    axes, monoid = node.arg
    out = base.copy()
    turned = axes_first(out, axes)
    if monoid is not None:
        UPDATES[monoid].at(turned, indices, values)
    else:
        for position in np.ndindex(*indices[0].shape):
            turned[tuple(index[position] for index in indices)] = values[
                position
            ]
    return out


def gather_vjp(
    gradient: Node, output: Node, x: Node, *indices: Node
) -> Gradients:
    """Add the gradients up where the elements came from."""
    zeros = x.const_like(0)
    return (
        zeros.scatter(gradient, indices, output.arg, "sum"),
        *(None for _ in indices),
    )


def scatter_vjp(
    gradient: Node,
    output: Node,
    base: Node,
    values: Node,
    *indices: Node,
) -> Gradients:
    """Split the gradient between the base and the values.

    Overwriting with repeated indices gives every one of the values the gradient, as PyTorch does.
    """
    axes, monoid = output.arg
    for_values = gradient.gather(indices, axes)
    if monoid == "sum":
        for_base = gradient
    elif monoid is None:
        for_base = gradient.scatter(values.const_like(0), indices, axes, None)
    elif monoid == "prod":
        for_base = gradient * output / base
        for_values = (gradient * output).gather(indices, axes) / values
    else:
        for_base, for_values = extremum_gradients(
            gradient, output, base, values, indices
        )
    return (for_base, for_values, *(None for _ in indices))


def extremum_gradients(
    gradient: Node,
    output: Node,
    base: Node,
    values: Node,
    indices: tuple[Node, ...],
) -> tuple[Node, Node]:
    """Share the gradient evenly among the base and the values that attain the extremum."""
    axes, _ = output.arg
    base_wins = base.binary("equal", output)
    value_wins = values.binary("equal", output.gather(indices, axes))
    one = base_wins.cast(gradient.dtype)
    count = one.scatter(value_wins.cast(gradient.dtype), indices, axes, "sum")
    share = gradient / count
    return base_wins.where(share, 0), value_wins.where(
        share.gather(indices, axes), 0
    )


INDEX_ROWS = table(
    Op("gather", "index", -1, ANY, gather, gather_vjp),
    Op("scatter", "index", -1, ANY, scatter, scatter_vjp),
)

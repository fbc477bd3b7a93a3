"""The rows of gather and scatter, adjoint to each other.

A scatter that overwrites has one more input than its axes need if not every update is wanted: a
bool, true where one is.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.dtype import bool_
from picograd.graph.axes import link_gather, link_scatter
from picograd.graph.batch_rules import batch_gather, batch_scatter
from picograd.graph.bounded_rules import bound_gather, bound_scatter
from picograd.graph.bounds import same_element
from picograd.graph.node import Node
from picograd.graph.row import ANY, Op, Role, Sizes, table
from picograd.graph.scattering import UPDATES, axes_first, expand_scatter
from picograd.graph.shape import first_shape, gather_shape

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
    """Multiply the other factors of each: a zero among them is there as itself, two leave nothing.

    It adds nothing, but its own gradient is that of the product.
    """

    def added(part: Node) -> Node:
        """Add up what the other factors of the same product have."""
        total = base.const_like(0).scatter(part, indices, axes, "sum")
        return total.gather(indices, axes) - part

    one, is_zero = base.const_like(1), values.binary("equal", 0)
    for_base = gradient * one.scatter(values, indices, axes, "prod")
    safe = is_zero.where(1, values)
    whole = gradient * base.scatter(safe, indices, axes, "prod")
    others = whole.gather(indices, axes) / safe
    zeros = added(is_zero.cast(base.dtype))
    with_zero = others * added(is_zero.where(values, 0))
    more = zeros.binary("equal", 1).where(with_zero, 0)
    return for_base, zeros.binary("equal", 0).where(others, more)


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


def index_problem(indices: Sequence[Node], axes: tuple[int, ...]) -> str:
    """Say what is wrong with the indices of some axes, and what follows them."""
    if not all(index.dtype.is_integer for index in indices[: len(axes)]):
        return "an index is not an integer"
    if not all(each.dtype is bool_ for each in indices[len(axes) :]):
        return "what says where to write is not bool"
    return ""


INDEX_ROWS = table(
    Op(
        "gather",
        Role.GATHER,
        -1,
        ANY,
        gather,
        gather_vjp,
        shape=lambda axes, x, index, *others: gather_shape(x, index, axes),
        data=(0, 1),
        check=lambda node: index_problem(node.inputs[1:], node.arg),
        batch=batch_gather,
        is_shifting=True,
        sizes=Sizes(link_gather, bound_gather),
        bounds=same_element,
        cost=2,
    ),
    Op(
        "scatter",
        Role.SCATTER,
        -1,
        ANY,
        scatter,
        scatter_vjp,
        hero="scatter",
        expand_on=expand_scatter,
        shape=first_shape,
        data=(0, 2),
        check=lambda node: index_problem(node.inputs[2:], node.arg[0]),
        batch=batch_scatter,
        sizes=Sizes(link_scatter, bound_scatter),
    ),
)

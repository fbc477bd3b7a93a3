"""The gradients of products, as ops of their own: what they give is fast, how they vary is exact.

A gradient that divides by a factor leaves zeros out, and says nothing about how it changes with
them: its own gradients would be wrong there. So each is a composite with two forms.

    expand     divides: one pass, whatever the length
    exact      multiplies alone, 1, 2, 4, ... places on: right for any number of zeros, in
               derivatives of every order
"""

from picograd.graph.batch_rules import second_axes_next
from picograd.graph.node import Node, Number
from picograd.graph.row import FACTOR, Op, Role, table
from picograd.helpers import product


def product_gradient(gradient: Node, x: Node, axes: tuple[int, ...]) -> Node:
    """Multiply the gradient of each product over axes, repeated, by the other factors."""
    inputs = (gradient, x)
    arg = ("prod", axes)
    return Node("prod_gradient", inputs, arg, x.shape, x.dtype, x.device)


def divided_product(node: Node) -> Node:
    """Divide by the factor: with one zero only its place has a gradient, with two nothing has."""
    gradient, x = node.inputs
    is_zero = x.binary("equal", 0)
    safe = is_zero.where(1, x)
    zeros = combined("sum", is_zero.cast(x.accumulated().dtype), node)
    others = combined("prod", safe, node) * gradient
    at_zero = zeros.binary("equal", 1).where(others, 0)
    elsewhere = zeros.binary("equal", 0).where(others / safe, 0)
    return is_zero.where(at_zero, elsewhere)


def combined(monoid: str, x: Node, node: Node) -> Node:
    """Reduce the axes of a product, and repeat the result along them."""
    _, axes = node.arg
    return x.reduce(monoid, axes, keepdim=True).expand(x.shape)


def multiplied_product(node: Node) -> Node:
    """Multiply what is before each factor by what is behind it, the axes joined to a last one."""
    gradient, x = (each.accumulated() for each in node.inputs)
    _, axes = node.arg
    kept = [axis for axis in range(x.rank) if axis not in axes]
    order = (*kept, *axes)
    turned = x.permute(order)
    last = len(kept)
    count = product(turned.shape[last:])
    rows = turned.reshape((*turned.shape[:last], count))
    before = factors_before(rows, last)
    behind = reverse(factors_before(reverse(rows, last), last), last)
    others = (before * behind).reshape(turned.shape)
    back = tuple(order.index(axis) for axis in range(x.rank))
    return (gradient * others.permute(back)).cast(node.dtype)


def factors_before(x: Node, axis: int) -> Node:
    """Multiply all elements before each along an axis, 1 before the first."""
    found = earlier(x, axis, 1, 1)
    step = 1
    while step < x.shape[axis]:
        found = found * earlier(found, axis, step, 1)
        step *= 2
    return found


def earlier(x: Node, axis: int, step: int, fill: Number) -> Node:
    """Move the elements of an axis so many places on, with a value in the first ones."""
    size = x.shape[axis]
    step = min(step, size)
    ranges = [(0, n, 1) for n in x.shape]
    ranges[axis] = (0, size - step, 1)
    return padded(x.slice(tuple(ranges)), axis, step, 0, fill)


def padded(node: Node, axis: int, low: int, high: int, fill: Number) -> Node:
    """Pad one axis."""
    pads = [(0, 0)] * node.rank
    pads[axis] = (low, high)
    return node.pad(tuple(pads), fill)


def reverse(x: Node, axis: int) -> Node:
    """Put an axis in the other order."""
    return x.flip((axis,))


FACTOR_ROWS = table(
    Op(
        "prod_gradient",
        Role.COMPOSITE,
        2,
        FACTOR,
        None,
        expand=divided_product,
        exact=multiplied_product,
        shape=lambda arg, gradient, x: x,
        batch_arg=second_axes_next,
    )
)

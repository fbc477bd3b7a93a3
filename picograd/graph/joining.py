"""Composite row of `cat`: arrays one behind another along an axis.

One node, whatever the number of parts: recording, keys of plans and gradients look at each once.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any

from picograd.dtype import bool_
from picograd.graph.batch_rules import next_axis
from picograd.graph.bounds import Bounds, Look, union
from picograd.graph.composites import composite
from picograd.graph.node import Node, Number
from picograd.graph.row import ANY, table
from picograd.graph.shape import Shape

TOGETHER = 64  # arrays that one kernel joins: CUDA has room for 400 pointers
FEW = 16  # of more: 64 of 0.4 MB take 104 ms so, and 619 ms at once (measured, one thread)


def joined_shape(axis: int, *shapes: Shape) -> Shape:
    """Shape of parts joined along an axis; a size that is traced stays one."""
    size: Any = shapes[0][axis]
    for shape in shapes[1:]:
        size = size + shape[axis]
    return (*shapes[0][:axis], size, *shapes[0][axis + 1 :])


def join(parts: Sequence[Node], axis: int) -> Node:
    """Join parts of one dtype and rank along an axis."""
    first = parts[0]
    if first.dtype.kind == "complex":
        real, imag = zip(*(part.parts() for part in parts))
        return join(real, axis).paired(join(imag, axis))
    shape = joined_shape(axis, *[part.shape for part in parts])
    return Node("cat", tuple(parts), axis, shape, first.dtype, first.device)


def expand_join(node: Node) -> Node:
    """Choose each element from its part: a `where` on the position, a binary tree over parts.

    A kernel looks for each element in all of its parts. So many are joined in groups, which are
    stored and joined again.
    """
    parts: Sequence[Node] = node.inputs
    while len(parts) > TOGETHER:
        starts = range(0, len(parts), FEW)
        groups = [place_range(parts[start : start + FEW], node.arg) for start in starts]
        parts = [each.composite("contiguous") for each in groups]
    return place_range(parts, node.arg)


def place_range(parts: Sequence[Node], axis: int) -> Node:
    """Join parts pairwise: pad both halves to the joined size and select by position."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    left, right = place_range(parts[:half], axis), place_range(parts[half:], axis)
    a, b = left.shape[axis], right.shape[axis]
    if not a or not b:
        return right if not a else left
    low, high = padded(left, axis, (0, b)), padded(right, axis, (a, 0))
    place = low.iota(axis)
    return place.binary("less", place.const_like(a)).where(low, high)


def padded(part: Node, axis: int, ends: tuple[int, int]) -> Node:
    """Add zeros to both ends of an axis."""
    pads = tuple(ends if at == axis else (0, 0) for at in range(part.rank))
    return part.pad(pads, zero_of(part))


def zero_of(node: Node) -> Number:
    """Zero as a constant of the node's dtype."""
    if node.dtype.is_float:
        return 0.0
    return False if node.dtype is bool_ else 0


def join_vjp(gradient: Node, output: Node, *parts: Node) -> tuple[Node, ...]:
    """Cut the gradient of each part out."""
    found, start, axis = [], 0, output.arg
    whole = [(0, size, 1) for size in output.shape]
    for part in parts:
        end = start + part.shape[axis]
        found.append(gradient.slice((*whole[:axis], (start, end, 1), *whole[axis + 1 :])))
        start = end
    return tuple(found)


def joined_bounds(node: Node, look: Look) -> Bounds | None:
    """An element of one of the parts."""
    return reduce(union, map(look, node.inputs))


JOINS = table(
    composite(
        "cat",
        -1,
        expand_join,
        join_vjp,
        ANY,
        joined_shape,
        batch_arg=next_axis,
        bounds=joined_bounds,
    )
)

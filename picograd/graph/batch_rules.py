"""Rules of vmap that rows name: how an op computes a whole batch, its first axis (graph/batch.py).

A rule gets the batch, a node of one sample, and the batched form of each of its inputs: None where
samples share it. An op whose axes are only counted anew has an argument in its place: what it is
for `size` samples, made of that of one.
"""

from collections.abc import Callable, Sequence
from typing import Any

from picograd.errors import GradientError
from picograd.graph.node import Node
from picograd.graph.shape import ConvSpec, Shape, Window

Found = Sequence[Node | None]
Rule = Callable[[Any, Node, Found], Node]


def refused(problem: str, fix: str = "report this") -> Rule:
    """Make the rule of an op that has no meaning for a batch."""

    def refuse(batch: Any, node: Node, found: Found) -> Node:
        raise GradientError(f"vmap of {node.op}", problem, fix)

    return refuse


# ops that only count their axes anew


def same(arg: Any, size: int) -> Any:
    """Keep the argument: it names no axis."""
    return arg


def whole_shape(arg: Shape, size: int) -> Shape:
    """Give the shape of the batch."""
    return (size, *arg)


def next_axis(arg: int, size: int) -> int:
    """Count one axis further."""
    return arg + 1


def next_axes(arg: Shape, size: int) -> Shape:
    """Count several axes further."""
    return shifted(arg)


def next_order(arg: Shape, size: int) -> Shape:
    """Leave the batch in front of an order of axes."""
    return (0, *shifted(arg))


def next_ranges(arg: Any, size: int) -> Any:
    """Take the whole batch."""
    return ((0, size, 1), *arg)


def next_pads(arg: Any, size: int) -> Any:
    """Add nothing to the batch."""
    pads, fill = arg
    return ((0, 0), *pads), fill


def next_windows(arg: Window, size: int) -> Window:
    """Count the axes of windows one further."""
    return tuple((axis + 1, *rest) for axis, *rest in arg)  # type: ignore[misc]


def first_next(arg: Any, size: int) -> tuple[Any, ...]:
    """Count the axis further that leads an argument: (axis, ...)."""
    return (arg[0] + 1, *arg[1:])


def second_next(arg: Any, size: int) -> tuple[Any, ...]:
    """Count the axis further that is second in an argument: (monoid, axis, ...)."""
    return (arg[0], arg[1] + 1, *arg[2:])


def second_axes_next(arg: Any, size: int) -> tuple[Any, ...]:
    """Count the axes further that are second in an argument: (monoid, axes)."""
    return (arg[0], shifted(arg[1]))


def first_axes_next(arg: Any, size: int) -> tuple[Any, ...]:
    """Count the axes further that lead an argument: (axes, ...)."""
    return (shifted(arg[0]), *arg[1:])


def first_windows_next(arg: Any, size: int) -> tuple[Any, ...]:
    """Count the axes of windows further that lead an argument: (windows, sizes)."""
    return (next_windows(arg[0], size), *arg[1:])


def shifted(axes: Shape) -> Shape:
    """Count axes one further."""
    return tuple(axis + 1 for axis in axes)


# rules


def to_front(node: Node, axis: int) -> Node:
    """Move an axis to the front."""
    rest = tuple(at for at in range(node.rank) if at != axis)
    return node.permute((axis, *rest))


def from_front(node: Node, axis: int) -> Node:
    """Move the first axis to a place."""
    rest = tuple(range(1, node.rank))
    return node.permute((*rest[:axis], 0, *rest[axis:]))


def batch_contract(batch: Any, node: Node, found: Found) -> Node:
    """Give the batch a label of its own: "ij,jk->ik" becomes "bij,jk->bik"."""
    labels_a, labels_b, out = node.arg
    letter = max((*labels_a, *labels_b), default=-1) + 1
    labels = [
        own if each is None else (letter, *own) for own, each in zip((labels_a, labels_b), found)
    ]
    a, b = (child if each is None else each for child, each in zip(node.inputs, found))
    return a.contract(b, (labels[0], labels[1], (letter, *out)))


def batch_conv(batch: Any, node: Node, found: Found) -> Node:
    """Fold the batch into the rows (inputs differ), the outputs (weights do), or the groups."""
    (x, weight), size = found, batch.size
    spec: ConvSpec = node.arg
    own_x, own_weight = node.inputs
    n, g, o = node.shape[:3]
    spatial = node.shape[3:]
    if weight is None and x is not None:
        rows = x.reshape((size * n, *own_x.shape[1:]))
        return rows.conv(own_weight, spec).reshape((size, *node.shape))
    if x is None and weight is not None:
        joined = from_front(weight, 1).reshape((g, size * o, *own_weight.shape[2:]))
        y = own_x.conv(joined, spec)
        return to_front(y.reshape((n, g, size, o, *spatial)), 2)
    x, weight = batch.filled(node, found)
    groups = from_front(x, 1).reshape((n, size * g, *own_x.shape[2:]))
    y = groups.conv(weight.reshape((size * g, *own_weight.shape[1:])), spec)
    return to_front(y.reshape((n, size, g, o, *spatial)), 1)


def batched_indices(batch: Any, node: Node, found: Found, first: int) -> list[Node]:
    """Give the indices of a node, inputs from `first` on, with one more that counts samples."""
    indices = batch.filled(node, found)[first:]
    return [indices[0].iota(0), *indices]


def batch_gather(batch: Any, node: Node, found: Found) -> Node:
    """Shared indices read every sample; else the sample's number is one more index."""
    x, axes = found[0], node.arg
    if all(each is None for each in found[1:]) and x is not None:
        return to_front(x.gather(node.inputs[1:], shifted(axes)), node.inputs[1].rank)
    if x is None:
        return node.inputs[0].gather(batch.filled(node, found)[1:], axes)
    return x.gather(batched_indices(batch, node, found, 1), (0, *shifted(axes)))


def batch_scatter(batch: Any, node: Node, found: Found) -> Node:
    """Write into every sample: its number is one more index."""
    base, values = batch.filled(node, found)[:2]
    axes, monoid = node.arg
    indices = batched_indices(batch, node, found, 2)
    inside = indices[len(axes) + 1 :]
    return base.scatter(values, indices[: len(axes) + 1], (0, *shifted(axes)), monoid, *inside)


def batch_batch_norm(batch: Any, node: Node, found: Found) -> Node:
    """Fold the batch into the channels, which have statistics of their own."""
    x, *others = batch.filled(node, found)
    n, c, *spatial = node.shape
    wide = (n, batch.size * c, *spatial)
    channels = [each.reshape((batch.size * c,)) for each in others]
    y = from_front(x, 1).reshape(wide).composite(node.op, node.arg, *channels)
    return to_front(y.reshape((n, batch.size, c, *spatial)), 1)

"""Nodes that tests make without the checks of what a user records."""

from collections.abc import Sequence

from picograd.buffer import Storage
from picograd.graph.node import Node
from picograd.graph.shape import Shape, Window, broadcast_shapes, normalise_axes


def buffer(storage: Storage, shape: Sequence[int]) -> Node:
    """Name the contents of a storage, row-major."""
    held = storage.buffer
    assert held is not None
    return Node("buffer", (), storage, tuple(shape), held.dtype, held.device)


def broadcast(*nodes: Node) -> tuple[Node, ...]:
    """Give all nodes their common shape."""
    shape = broadcast_shapes(*(node.shape for node in nodes), op="broadcast")
    return tuple(node.broadcast_to(shape) for node in nodes)


def reduce(
    monoid: str, node: Node, axes: int | Sequence[int] | None = None, keepdim: bool = False
) -> Node:
    """Reduce axes; without any, all."""
    return node.reduce(monoid, normalise_axes(axes, node.rank, monoid), keepdim)


def window(node: Node, windows: Window) -> Node:
    """Gather sliding windows."""
    return node.window(tuple(windows))


def gather(node: Node, indices: Sequence[Node], axes: Shape) -> Node:
    """Read node[index0, index1, ...] along axes."""
    return node.gather(tuple(indices), tuple(axes))


def scatter(
    base: Node, values: Node, indices: Sequence[Node], axes: Shape, monoid: str | None = None
) -> Node:
    """Copy `base` with out[index] monoid= values."""
    return base.scatter(values, tuple(indices), tuple(axes), monoid)

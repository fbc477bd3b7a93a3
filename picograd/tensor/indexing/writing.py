"""Writing by index on nodes: fills, puts, scatters with a reduction; the input stays as it is."""

from typing import Any

from picograd.dtype import bool_, int64
from picograd.engine.tracing import is_tracing
from picograd.errors import AxisError, DTypeError, ShapeError, ValueRangeError
from picograd.graph.node import Node
from picograd.helpers import product
from picograd.tensor.core.known_values import known_values
from picograd.tensor.core.operands import Operand, as_axis, broadcast_to, constant, need_integer
from picograd.tensor.indexing import indexing, masking, selecting
from picograd.tensor.math import elementwise
from picograd.tensor.shaping import movement

REDUCTIONS = {"sum": "sum", "prod": "prod", "amax": "max", "amin": "min", "mean": "sum"}


def index_fill(node: Node, axis: Any, index: Node, value: Operand) -> Node:
    """Write one number over the slices that a 1-d index names."""
    at = as_axis(axis, len(node.shape), "index_fill")
    rest = (*node.shape[:at], *node.shape[at + 1 :])
    filled = broadcast_to(indexing.value_node(node, value), (index.size, *rest))
    return write_slices("index_fill", node, at, index, filled, None)


def index_copy(node: Node, axis: Any, index: Node, source: Node) -> Node:
    """Write slices of `source` over the slices that a 1-d index names."""
    at = as_axis(axis, len(node.shape), "index_copy")
    moved = movement.move_axis(source, at, 0)
    return write_slices("index_copy", node, at, index, moved, None)


def write_slices(
    op: str, node: Node, axis: int, index: Node, values: Node, monoid: str | None
) -> Node:
    """Write (count, *rest) over slices along an axis."""
    need_integer(op, index)
    if not node.shape:  # a number is one slice
        flat = values.reshape((values.size,))
        return write_slices(op, node.reshape((1,)), 0, index, flat, monoid).reshape(())
    if len(index.shape) > 1:
        raise AxisError(op, f"index {index.shape} is not 1-d", "flatten it")
    wanted = (index.size, *node.shape[:axis], *node.shape[axis + 1 :])
    if values.shape != wanted:
        text = f"values {values.shape} do not fit {node.shape} at {index.size} indices"
        raise ShapeError(op, text, "give one slice per index")
    wraps = op == "index_fill"
    flat = index.reshape((index.size,))
    safe, inside = selecting.placed(op, flat, node.shape[axis], axis, wraps)
    return indexing.store(node, values.cast(node.dtype), [safe], (axis,), monoid, inside)


def take(node: Node, index: Node) -> Node:
    """Read elements by their position in the flattened tensor."""
    need_integer("take", index)
    flat = node.reshape((product(node.shape),))
    safe = selecting.checked("take", index, flat.size, 0)
    return flat.gather([safe], (0,))


def put(node: Node, index: Node, source: Node, accumulate: bool) -> Node:
    """Write elements by their position in the flattened tensor; or add to what is there."""
    need_integer("put", index)
    if index.size != source.size:
        text = f"{source.size} values for {index.size} indices"
        raise AxisError("put", text, "give one value per index")
    flat = node.reshape((product(node.shape),))
    places = index.reshape((index.size,))
    safe, inside = selecting.placed("put", places, flat.size, 0)
    values = source.cast(node.dtype).reshape((index.size,))
    monoid = "sum" if accumulate else None
    written = indexing.store(flat, values, [safe], (0,), monoid, inside)
    return written.reshape(node.shape)


def scatter_reduce(
    node: Node, axis: Any, index: Node, source: Node, reduction: str, include_self: bool
) -> Node:
    """Reduce source[i][j] into out[i][index[i][j]] (axis 1) by sum, prod, mean, amax or amin.

    Without `include_self` the places written to start empty instead of at their value.
    """
    op = "scatter_reduce"
    if reduction not in REDUCTIONS:
        text = f"unknown reduce={reduction!r}"
        raise ValueRangeError(op, text, 'use "sum", "prod", "mean", "amax" or "amin"')
    if source.dtype is not node.dtype:
        text = f"source is {source.dtype.name} but the tensor is {node.dtype.name}"
        raise DTypeError(op, text, "cast the source")
    at = as_axis(axis, len(node.shape), op)
    need_integer(op, index)
    size = node.shape[at] if node.shape else 1
    safe, inside = selecting.placed(op, index, size, at, wraps=False)
    monoid = REDUCTIONS[reduction]
    base = node if include_self else emptied(node, at, safe, monoid, inside)
    total = indexing.scatter(op, base, at, safe, source, monoid, inside)
    if reduction != "mean":
        return total
    start = count_zero(node) + 1 if include_self else count_zero(node)
    count = indexing.scatter(op, start, at, safe, ones_like(index), "sum", inside)
    count = elementwise.arithmetic("maximum", count, 1)
    if not node.dtype.is_float:
        return total.binary("floordiv", count.cast(node.dtype))
    return total / count.cast(node.dtype)


def emptied(node: Node, axis: int, index: Node, monoid: str, inside: Node | None) -> Node:
    """Put the identity of a reduction where an index writes."""
    op, ones = "scatter_reduce", ones_like(index)
    hits = indexing.scatter(op, count_zero(node), axis, index, ones, "max", inside)
    empty = node.const_like(identity(node, monoid))
    return hits.binary("not_equal", 0).where(empty, node)


def count_zero(node: Node) -> Node:
    """Make int64 zeros of the shape of a node."""
    return constant("scatter_reduce", 0, node.shape, int64, node.device)


def ones_like(index: Node) -> Node:
    """Make int64 ones of the shape of an index."""
    return constant("scatter_reduce", 1, index.shape, int64, index.device)


def identity(node: Node, monoid: str) -> Any:
    """Find what leaves the other operand of a reduction unchanged."""
    if monoid in ("sum", "prod"):
        return 0 if monoid == "sum" else 1
    if node.dtype.is_float:
        return -float("inf") if monoid == "max" else float("inf")
    bits, is_signed = node.dtype.bits, node.dtype.kind == "int"
    low = -(1 << (bits - 1)) if is_signed else 0
    return low if monoid == "max" else low + (1 << bits) - 1


def masked_scatter(node: Node, mask: Node, source: Node) -> Node:
    """Write the elements of `source`, in order, where the mask holds; computes the mask."""
    if mask.dtype is not bool_:
        raise DTypeError("masked_scatter", f"mask is {mask.dtype.name}", "compare it")
    wide = broadcast_to(mask, node.shape)
    if is_tracing() and known_values(wide) is None:
        return masking.masked_scatter(node, wide, source)
    found = selecting.nonzero(wide.reshape((wide.size,)))
    places = found.reshape((found.shape[0],))
    if source.size < places.size:
        text = f"{source.size} values for {places.size} places"
        raise ShapeError("masked_scatter", text, "give at least one value per place")
    values = movement.cut(source.reshape((source.size,)), 0, 0, places.size).cast(node.dtype)
    flat = node.reshape((node.size,))
    return flat.scatter(values, [places], (0,), None).reshape(node.shape)

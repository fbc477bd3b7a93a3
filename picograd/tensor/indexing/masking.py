"""Writes where a mask holds whose values are not known: choices between the old and the new.

While a function is traced nobody knows how many elements a mask chooses, but what is written has
the shape of the tensor: x[mask, 1:3] = v becomes x[:, 1:3] = where(mask, v, x[:, 1:3]).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.buffer import Storage
from picograd.dtype import bool_, int64
from picograd.errors import ShapeError
from picograd.graph.node import Node
from picograd.graph.scanning import scan
from picograd.graph.shape import Shape
from picograd.helpers import product, reached
from picograd.late_methods import dataclass
from picograd.tensor.core.demands import report
from picograd.tensor.core.known_values import known_values
from picograd.tensor.core.operands import broadcast_to
from picograd.tensor.indexing import indexing


@dataclass(frozen=True, slots=True)
class Region:
    """What an index expression with one mask chooses from: numbers and ranges alone.

    The mask covers the axes of the region from `axis` on.
    """

    items: tuple[Any, ...]
    mask: Node
    axis: int

    def split(self, shape: Shape) -> tuple[Shape, Shape]:
        """Give the sizes of a region before the mask, and after it."""
        return shape[: self.axis], shape[self.axis + len(self.mask.shape) :]

    def wide(self, shape: Shape) -> Node:
        """Broadcast the mask to the region."""
        before, after = self.split(shape)
        first = (1,) * len(before)
        last = (1,) * len(after)
        mask = self.mask.reshape((*first, *self.mask.shape, *last))
        return broadcast_to(mask, shape)

    def is_like(self, other: "Region") -> bool:
        """Tell whether two masks are one, or computed alike of the same."""
        return self.axis == other.axis and is_same(self.mask, other.mask)


def region_of(shape: Shape, items: Sequence[Any]) -> Region | None:
    """Find the region of an index expression with one mask of unknown values; else None."""
    masks = [item for item in items if is_unknown(item)]
    rest = [item for item in items if not is_unknown(item)]
    if len(masks) != 1 or not masks[0].shape or not all(map(is_basic, rest)):
        return None
    mask = masks[0]
    covered = len(mask.shape)
    covered += sum(1 for item in rest if item is not None and item is not ...)
    hidden = max(len(shape) - covered, 0)
    found: list[Any] = []
    axis = source = at = 0
    for item in items:
        if item is mask:
            indexing.check_mask(shape, mask, source)
            at = axis
            found += [slice(None)] * len(mask.shape)
            continue
        found.append(item)
        if item is ...:
            axis += hidden
            source += hidden
            continue
        axis += int(item is None or isinstance(item, slice))
        source += int(item is not None)
    return Region(tuple(found), mask, at)


def is_unknown(item: Any) -> bool:
    """Tell whether an index is a mask whose values are not known."""
    return isinstance(item, Node) and item.dtype is bool_ and known_values(item) is None


def is_basic(item: Any) -> bool:
    """Tell whether an index is a number or a range."""
    if isinstance(item, (bool, np.bool_)):
        return False
    if item is None or item is ...:
        return True
    return isinstance(item, (int, slice, np.integer))


def is_same(first: Node, second: Node) -> bool:
    """Tell whether two nodes are computed alike of the same."""
    waiting = [(first, second)]
    for a, b in reached(waiting):
        if a is b:
            continue
        if a.realized is not None or isinstance(a.arg, Storage):
            return False
        if describe(a) != describe(b):
            return False
        waiting += zip(a.inputs, b.inputs)
    return True


def describe(node: Node) -> tuple[Any, ...]:
    """Say what a node computes of its inputs."""
    kind = node.op, node.arg, len(node.inputs)
    return *kind, node.shape, node.dtype


def aligned(region: Region, shape: Shape, value: Node) -> Node:
    """Broadcast a value to a region: as to what the mask chooses, of which it is one row."""
    before, after = region.split(shape)
    row = indexing.fit_value(value, (*before, 1, *after))
    ones = (1,) * len(region.mask.shape)
    return broadcast_to(row.reshape((*before, *ones, *after)), shape)


def rows_of(region: Region, shape: Shape, value: Node) -> Node:
    """Give a value that may have a row for every place of a mask, in their order."""
    before, after = region.split(shape)
    count = 1
    if len(value.shape) > len(after):
        count = value.shape[-len(after) - 1]
    if count == 1:
        return aligned(region, shape, value)
    rows = indexing.fit_value(value, (*before, count, *after))
    place, total = order_of(region.mask, count)
    text = f"a value of shape {value.shape} does not have a row for every place of the mask"
    failed = total.binary("not_equal", count)
    report(failed, ShapeError("setitem", text, "assign a value that broadcasts, or use where"))
    return indexing.index_select(rows, len(before), place).reshape(shape)


def order_of(mask: Node, count: int) -> tuple[Node, Node]:
    """Number the places where a mask holds, below `count`; and tell how many there are."""
    row = mask.reshape((mask.size,)).cast(int64)
    if not mask.size:
        return row, row.reduce("sum", (0,)).reshape(())
    running = scan(row, "sum", 0) - 1
    first = running.binary("maximum", 0)
    place = first.binary("minimum", count - 1)
    total = row.reduce("sum", (0,)).reshape(())
    return indexing.bounded(place, count, True, False), total


def masked_scatter(node: Node, mask: Node, source: Node) -> Node:
    """Write the elements of `source`, in order, where a mask of the node's shape holds."""
    flat = source.cast(node.dtype).reshape((source.size,))
    text = f"{source.size} values for more places of the mask"
    error = ShapeError("masked_scatter", text, "give at least one value per place")
    if not source.size:
        report(mask.reduce("max", tuple(range(len(mask.shape)))), error)
        return node
    place, total = order_of(mask, source.size)
    if source.size < mask.size:
        fits = total.binary("less", source.size + 1)
        report(fits.binary("equal", False), error)
    return mask.where(flat.gather([place], (0,)).reshape(node.shape), node)


def count_of(region: Region, shape: Shape) -> tuple[Node, int]:
    """Count the places where a mask holds, and the elements of each."""
    before, after = region.split(shape)
    axes = tuple(range(len(region.mask.shape)))
    places = region.mask.cast(int64).reduce("sum", axes)
    return places.reshape(()), product((*before, *after))

"""Cells of adaptive pooling: the n-th of k covers floor(n size / k) to ceil((n + 1) size / k).

Cells may overlap and differ in length by one. Many of them are gathered from a table: the graph
does not grow with their number.
"""

from typing import Any

import numpy as np

from picograd.dtype import int64
from picograd.engine.realize import node_from_numpy
from picograd.graph.node import Node
from picograd.graph.room import check_host, check_size
from picograd.graph.shape import Shape
from picograd.helpers import product
from picograd.tensor.shaping import movement

SPELT_OUT = 16  # cells that are each an average of their own


def average_cells(op: str, x: Node, axis: int, size: int) -> Node:
    """Average many cells: gather each as a row, the short ones filled up with zeros."""
    check_size(op, (*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype.itemsize)
    table, counts = cells(op, x.shape[axis], size)
    index = node_from_numpy(table, int64, x.device)
    length = node_from_numpy(counts, int64, x.device)
    rows = x.gather([index], (axis,))  # cells, longest, *rest
    shape = (size,) + (1,) * (rows.rank - 1)
    ends = length.reshape(shape).expand(rows.shape)
    inside = rows.iota(1).binary("less", ends)
    wide = inside.where(rows.accumulated(), 0)
    total = wide.reduce("sum", (1,))
    count = length.cast(total.dtype).reshape(shape[:-1])
    means = total / count.expand(total.shape)
    return movement.move_axis(means.cast(x.dtype), 0, axis)


def cells(op: str, full: int, size: int) -> tuple[Any, Any]:
    """List the positions of each cell, (size, longest), and how many are its own.

    Short cells repeat their last position.
    """
    check_host(op, size * (full // size + 2))
    number = np.arange(size)
    low: Any = number * full // size
    high: Any = -(-(number + 1) * full // size)
    counts = high - low
    step = np.arange(counts.max())
    inside = np.minimum(step, counts[:, None] - 1)
    return low[:, None] + inside, counts


def cell_table(op: str, spatial: Shape, wanted: Shape) -> Any:
    """List the flat positions of every cell, (cells, longest): short cells repeat their last."""
    tables: Any = [cells(op, full, size) for full, size in zip(spatial, wanted)]
    check_host(op, product(table.size for table, _ in tables))
    flat: Any = np.zeros((1, 1), np.int64)
    for (table, _), full in zip(tables, spatial):
        outer: Any = flat[:, None, :, None] * full
        both = outer + table[None, :, None, :]
        count = len(flat) * len(table)
        flat = both.reshape(count, -1)
    return flat

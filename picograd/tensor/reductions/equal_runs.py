"""Runs of equal slices along an axis, found on the host at once: unique slices, and repetitions."""

from typing import Any

import numpy as np

from picograd.dtype import int64
from picograd.engine.realize import node_from_numpy
from picograd.graph.node import Node
from picograd.tensor.core.operands import as_axis
from picograd.tensor.indexing.selecting import computed_values

Array = Any
Runs = tuple[Node, Node, Node]


def rows_of(op: str, node: Node, axis: Any) -> Array:
    """Compute a node, and lay its slices along an axis out as rows."""
    position = as_axis(axis, max(len(node.shape), 1), op)
    values = np.atleast_1d(computed_values(node))
    count = values.shape[position]
    width = values.size // count if count else 1
    moved = np.moveaxis(values, position, 0)
    return moved.reshape(count, width)


def unique_slices(node: Node, axis: Any) -> Runs:
    """Find the distinct slices, sorted: their places, each slice's number among them, counts."""
    rows = rows_of("unique", node, axis)
    order = np.arange(len(rows))
    if rows.shape[1]:
        order = np.lexsort(rows.T[::-1])
    return grouped(node, rows, order)


def consecutive_slices(node: Node, axis: Any) -> Runs:
    """Find the runs of equal slices: the first's place, each slice's run, and their lengths."""
    rows = rows_of("unique_consecutive", node, axis)
    return grouped(node, rows, np.arange(len(rows)))


def grouped(node: Node, rows: Array, order: Array) -> Runs:
    """Keep one of each run of equal rows in an order."""
    ordered = rows[order]
    starts: Array = np.ones(len(rows), bool)
    starts[1:] = (ordered[1:] != ordered[:-1]).any(1)
    run = np.cumsum(starts) - 1
    inverse: Array = np.empty(len(rows), np.int64)
    inverse[order] = run
    total = int(starts.sum())
    lengths = np.bincount(run, minlength=total)
    nodes = []
    for each in (order[starts], inverse, lengths):
        whole = each.astype(np.int64)
        nodes.append(node_from_numpy(whole, int64, node.device))
    places, numbers, counts = nodes
    return places, numbers, counts

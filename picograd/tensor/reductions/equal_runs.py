"""Runs of equal slices along an axis, found on the host at once: unique slices, and repetitions."""

from typing import Any

import numpy as np

from picograd.dtype import int64
from picograd.engine.realize import node_from_numpy
from picograd.graph.node import Node
from picograd.tensor.core.operands import as_axis
from picograd.tensor.indexing.selecting import computed_values

Array = Any


def rows_of(op: str, node: Node, axis: Any) -> Array:
    """Compute a node, and lay its slices along an axis out as rows."""
    position = as_axis(axis, max(len(node.shape), 1), op)
    values = np.atleast_1d(computed_values(node))
    count = values.shape[position]
    width = values.size // count if count else 1
    moved = np.moveaxis(values, position, 0)
    return moved.reshape(count, width)


def unique_slices(node: Node, axis: Any, *wanted: bool) -> list[Node]:
    """Find the distinct slices, sorted: their places, each slice's number among them, counts.

    The last two are `wanted` or not.
    """
    rows = rows_of("unique", node, axis)
    count, width = rows.shape
    order = np.arange(count)
    if width:
        last_first = rows.T[::-1]
        order = np.lexsort(last_first)
    return grouped(node, rows, order, *wanted)


def consecutive_slices(node: Node, axis: Any, *wanted: bool) -> list[Node]:
    """Find the runs of equal slices: the first's place, each slice's run, and their lengths.

    The last two are `wanted` or not.
    """
    rows = rows_of("unique_consecutive", node, axis)
    return grouped(node, rows, None, *wanted)


def grouped(
    node: Node, rows: Array, order: Array | None, has_inverse: bool = True, has_counts: bool = True
) -> list[Node]:
    """Keep one of each run of equal rows, in an order if there is one."""
    ordered = rows if order is None else rows[order]
    starts: Array = np.ones(len(rows), bool)
    differ = ordered[1:] != ordered[:-1]
    starts[1:] = differ[:, 0] if rows.shape[1] == 1 else differ.any(1)
    places = np.flatnonzero(starts)
    found = [places if order is None else order[places]]
    if has_inverse:
        inverse = run = np.cumsum(starts) - 1
        if order is not None:
            inverse = np.empty(len(rows), np.int64)
            inverse[order] = run
        found.append(inverse)
    if has_counts:
        lengths = np.diff(places, append=len(rows))
        found.append(lengths)
    return [node_from_numpy(each, int64, node.device) for each in found]

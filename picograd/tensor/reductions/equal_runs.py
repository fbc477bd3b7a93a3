"""Runs of equal elements or slices along an axis: distinct ones, and repetitions.

On a CPU, and where they are few, NumPy finds those of slices at once. On a GPU slices are sorted by
keys: the columns of whole numbers beside one another, as many bytes of each as there are, or those
of floats; words of up to 64 bits, the last one first.
"""

from typing import Any

import numpy as np

from picograd.dtype import int64, uint8, uint64
from picograd.engine import pending
from picograd.engine.backends import get_device
from picograd.engine.realize import node_from_numpy
from picograd.graph import sorting as graph_sorting
from picograd.graph.indexing import last_of_runs
from picograd.graph.node import Node
from picograd.graph.scanning import scan
from picograd.helpers import ceil_div
from picograd.target import is_host
from picograd.tensor.core.operands import as_axis
from picograd.tensor.indexing.selecting import SMALL_MASK, computed_values, first_rows, held
from picograd.tensor.shaping import movement

MOST_WORDS = 8  # that slices are sorted by, one after the other
WORD = 64  # bits

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
    found = slices_there("unique", node, axis)
    order = None if found is None else order_of(found)
    if found is not None and order is not None:
        return slices_grouped(found, order.stored(), *wanted)
    rows = rows_of("unique", node, axis)
    count, width = rows.shape
    by_columns = np.arange(count)
    if width:
        last_first = rows.T[::-1]
        by_columns = np.lexsort(last_first)
    return grouped(node, rows, by_columns, *wanted)


def consecutive_slices(node: Node, axis: Any, *wanted: bool) -> list[Node]:
    """Find the runs of equal slices: the first's place, each slice's run, and their lengths.

    The last two are `wanted` or not.
    """
    found = slices_there("unique_consecutive", node, axis)
    if found is not None:
        return slices_grouped(found, None, *wanted)
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


# runs on a device


def runs_of(
    is_first: Node, order: Node | None, made: Any, has_inverse: bool, has_counts: bool
) -> list[Node]:
    """Compute what is made of the first and last places of runs, each element's run, and counts.

    `is_first` tells where one begins, in an order if there is one. How many there are is known
    behind it: there is room for all elements, so that one plan serves whatever they are.
    """
    size, target = is_first.size, get_device(is_first.device).target
    group = scan(is_first.cast(int64), "sum", 0) - 1
    last = last_of_runs(group.iota(0), group, size, target)
    shorter = ((0, size - 1, 1),)
    before = last.slice(shorter).pad(((1, 0),), -1)
    first = before + 1
    first = first.binary("minimum", size - 1)  # behind the last run there is none
    listed = [made(first, last)]
    if has_counts:
        listed.append(last - before)
    inverse = []
    if has_inverse:
        inverse = [group if order is None else last_of_runs(group, order, size, target)]
    end = ((size - 1, size, 1),)
    most = group.slice(end)
    pending.compute([most, *listed, *inverse])
    (number,) = computed_values(most)
    groups = int(number) + 1
    found, *counts = (first_rows(each, groups) for each in listed)
    return [found, *inverse, *counts]


def consecutive_elements(row: Node, has_inverse: bool, has_counts: bool) -> list[Node] | None:
    """Keep one element of each run of a vector on a GPU, as `elements_grouped` does.

    None for few elements, and for complex ones.
    """
    is_few = is_host(row.device) or row.size < SMALL_MASK
    if is_few or row.dtype.is_complex:
        return None
    return elements_grouped(row, None, has_inverse, has_counts)


def elements_grouped(
    ordered: Node, order: Node | None, has_inverse: bool = True, has_counts: bool = True
) -> list[Node]:
    """Keep one element of each run of equal ones, in an order if there is one.

    Elements that are kept alone are written by the kernel that finds where they go.
    """
    if order is not None:
        ordered = ordered.stored()  # read thrice
    shorter = ((0, ordered.size - 1, 1),)
    before = ordered.slice(shorter).pad(((1, 0),))
    differs = ordered.binary("not_equal", before)
    place = differs.iota(0)
    is_start = place.binary("equal", 0)
    is_first = differs.binary("logical_or", is_start)
    if not has_inverse and not has_counts:
        return held(is_first, values=ordered)

    def made(first: Node, last: Node) -> Node:
        return ordered.gather((last,), (0,))

    return runs_of(is_first, order, made, has_inverse, has_counts)


def slices_there(op: str, node: Node, axis: Any) -> Node | None:
    """Lay slices of many elements on a GPU out as rows; None for others."""
    if is_host(node.device) or node.size < SMALL_MASK or node.dtype.is_complex:
        return None
    position = as_axis(axis, len(node.shape), op)
    count = node.shape[position]
    if count < 2:
        return None
    moved = movement.move_axis(node, position, 0)
    return moved.reshape((count, node.size // count))


def slices_grouped(
    rows: Node, order: Node | None, has_inverse: bool = True, has_counts: bool = True
) -> list[Node]:
    """Find where the first of each run of equal rows is, in an order if there is one."""
    count, width = rows.shape
    ordered = rows if order is None else rows.gather((order,), (0,)).stored()
    columns = (0, width, 1)
    above = ordered.slice(((0, count - 1, 1), columns))
    below = ordered.slice(((1, count, 1), columns))
    differs = below.binary("not_equal", above)
    differs = differs.reduce("max", (1,))
    is_first = differs.pad(((1, 0),), True)

    def made(first: Node, last: Node) -> Node:
        return first if order is None else order.gather((first,), (0,))

    return runs_of(is_first, order, made, has_inverse, has_counts)


def order_of(rows: Node) -> Node | None:
    """Find the order of rows, equal ones as they lie; None where sorting takes long.

    The words of their keys are sorted one after the other, the last one first.
    """
    bits, keys = keys_of_columns(rows)
    words = words_of(bits)
    if len(words) > MOST_WORDS:
        return None
    order: Node | None = None
    for first, stop in reversed(words):
        widths = bits[first:stop]
        word = packed(keys[first:stop], widths)
        if order is not None:
            word = word.gather((order,), (0,))
        found = graph_sorting.ordered(word, 0, sum(widths), True)
        if order is not None:
            found = order.gather((found,), (0,))
        order = found
    return order


def keys_of_columns(rows: Node) -> tuple[list[int], list[Node]]:
    """Give the columns of rows as unsigned numbers of the same order, and the bits of each."""
    count, width = rows.shape
    if rows.dtype.kind == "bool":
        rows = rows.cast(uint8)
    bits = [rows.dtype.bits] * width
    if rows.dtype.is_float:
        rows = graph_sorting.ordered_keys(rows, False)
    else:
        ends = movement.stack([rows.reduce(monoid, (0,)) for monoid in ("min", "max")])
        low, high = computed_values(ends).astype(object)
        spans = map(int, high - low)
        bits = [bytes_of(span) * 8 for span in spans]
        first = ((0, 1, 1), (0, width, 1))
        least = ends.slice(first).expand(rows.shape)
        if rows.dtype.bits < 64:  # what is between them has a bit more
            rows, least = rows.cast(int64), least.cast(int64)
        rows = rows - least
    rows = rows.cast(uint64)
    keys = []
    for number in range(width):
        column = ((0, count, 1), (number, number + 1, 1))
        key = rows.slice(column)
        keys.append(key.reshape((count,)))
    return bits, keys


def bytes_of(span: int) -> int:
    """Count the bytes of a number, at least one."""
    return max(ceil_div(span.bit_length(), 8), 1)


def words_of(bits: list[int]) -> list[tuple[int, int]]:
    """Cut columns into words, from the first one on: first and last of each."""
    words, first = [], 0
    for number in range(1, len(bits) + 1):
        if number == len(bits) or sum(bits[first : number + 1]) > WORD:
            words.append((first, number))
            first = number
    return words


def packed(keys: list[Node], bits: list[int]) -> Node:
    """Put columns beside one another in one number."""
    word = keys[0]
    for key, width in zip(keys[1:], bits[1:], strict=True):
        word = word.binary("shift_left", width).binary("bitwise_or", key)
    return word

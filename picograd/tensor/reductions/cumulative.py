"""Running sums, products and extremes on nodes, as PyTorch's cumsum and its relatives.

A zero-dim tensor counts as one element. Bool and integers give int64 sums and products.
"""

from collections.abc import Callable
from typing import Any

from picograd.dtype import DType, bool_, int64, uint8
from picograd.graph.node import Node
from picograd.graph.scanning import extremum_index, scan
from picograd.tensor.core.operands import as_axis, check_computed, need_float


def with_axis(node: Node, function: Callable[[Node], Node]) -> Node:
    """Apply a function of tensors with axes to any tensor."""
    return node if not node.size else function(node) if node.rank else lifted(node, function)


def lifted(node: Node, function: Callable[[Node], Node]) -> Node:
    """Treat a zero-dim tensor as one element."""
    return function(node.reshape((1,))).reshape(())


def cumulative(op: str, monoid: str, node: Node, axis: Any, dtype: DType | None) -> Node:
    """Compute `cumsum` or `cumprod`; bool and integers accumulate in int64, as PyTorch."""
    position = as_axis(axis, max(node.rank, 1), op)
    if dtype is None and not node.dtype.is_float:
        dtype = int64
    wide = node if dtype is None else node.cast(dtype)
    check_computed(op, wide.dtype)
    return with_axis(wide, lambda x: scan(x, monoid, position))


def running_extreme(op: str, monoid: str, node: Node, axis: Any) -> Node:
    """Compute the values of `cummax` or `cummin`; NaN propagates."""
    position = as_axis(axis, max(node.rank, 1), op)
    check_computed(op, node.dtype)
    wide = node.cast(uint8) if node.dtype is bool_ else node
    found = with_axis(wide, lambda x: scan(x, monoid, position))
    return found.cast(node.dtype)


def running_index(op: str, monoid: str, node: Node, axis: Any) -> Node:
    """Compute the indices of `cummax` or `cummin`: the last of equal ones."""
    position = as_axis(axis, max(node.rank, 1), op)
    wide = node.cast(uint8) if node.dtype is bool_ else node
    if not node.size:
        return node.cast(int64)
    return with_axis(wide, lambda x: extremum_index(x, scan(x, monoid, position), position))


def log_cumulative(node: Node, axis: Any) -> Node:
    """Compute log(cumsum(exp(x))) without leaving the logarithms."""
    need_float("logcumsumexp", node)
    position = as_axis(axis, max(node.rank, 1), "logcumsumexp")
    return with_axis(node, lambda x: scan(x, "logaddexp", position))

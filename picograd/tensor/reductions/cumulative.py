"""Running sums, products and extremes on nodes, as PyTorch's cumsum and its relatives.

A zero-dim tensor counts as one element. Bool and integers give int64 sums and products.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from picograd.dtype import DType, bool_, int64, uint8
from picograd.graph import build
from picograd.graph.factors import earlier
from picograd.graph.node import Node
from picograd.graph.scanning import extremum_index, scan
from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.function import recorded
from picograd.tensor.core.operands import as_axis, check_computed, check_ordered, need_float
from picograd.tensor.math.elementwise import complex_logaddexp


class Ordered(NamedTuple):
    """This class holds values, and the indices along the axis they came from."""

    values: Tensor
    indices: Tensor


@recorded(in_place=True)
def cumsum(x: Node, dim: int = 0, dtype: DType | None = None) -> Node:
    """Compute running sums along an axis; bool and integers give int64.

    >>> Tensor([1.0, 2.0, 3.0]).cumsum(0).tolist()
    [1.0, 3.0, 6.0]
    """
    return cumulative("cumsum", "sum", x, dim, dtype)


@recorded(in_place=True)
def cumprod(x: Node, dim: int = 0, dtype: DType | None = None) -> Node:
    """Compute running products along an axis; bool and integers give int64.

    >>> Tensor([1.0, 2.0, 3.0]).cumprod(0).tolist()
    [1.0, 2.0, 6.0]
    """
    return cumulative("cumprod", "prod", x, dim, dtype)


@recorded(returns=Ordered)
def cummax(x: Node, dim: int = 0) -> tuple[Node, Node]:
    """Compute running maxima and where each came from: the last of equal ones.

    >>> values, indices = Tensor([1.0, 3.0, 2.0]).cummax(0)
    >>> values.tolist(), indices.tolist()
    ([1.0, 3.0, 3.0], [0, 1, 1])
    """
    return running_extreme("cummax", "max", x, dim), running_index("cummax", "max", x, dim)


@recorded(returns=Ordered)
def cummin(x: Node, dim: int = 0) -> tuple[Node, Node]:
    """Compute running minima and where each came from: the last of equal ones.

    >>> values, indices = Tensor([2.0, 3.0, 1.0]).cummin(0)
    >>> values.tolist(), indices.tolist()
    ([2.0, 2.0, 1.0], [0, 0, 2])
    """
    return running_extreme("cummin", "min", x, dim), running_index("cummin", "min", x, dim)


def with_axis(node: Node, function: Callable[[Node], Node]) -> Node:
    """Apply a function of tensors with axes to any tensor."""
    return node if not node.size else function(node) if node.rank else lifted(node, function)


def lifted(node: Node, function: Callable[[Node], Node]) -> Node:
    """Treat a zero-dim tensor as one element."""
    return function(node.reshape((1,))).reshape(())


def cumulative(op: str, monoid: str, node: Node, axis: Any, dtype: DType | None) -> Node:
    """Compute `cumsum` or `cumprod`; bool and integers accumulate in int64, as PyTorch."""
    position = as_axis(axis, max(node.rank, 1), op)
    if dtype is None and not node.dtype.is_differentiable:
        dtype = int64
    wide = node if dtype is None else build.cast(node, dtype)
    if wide.dtype.is_complex:
        return running_complex(op, wide, position)
    check_computed(op, wide.dtype)
    return with_axis(wide, lambda x: scan(x, monoid, position))


def running_complex(op: str, node: Node, axis: int) -> Node:
    """Add complex numbers up by parts; combine others with the one 1, 2, 4, ... places before."""
    if not node.rank or not node.size:
        return node
    if op == "cumsum":
        real, imag = (scan(part, "sum", axis) for part in node.parts())
        return real.paired(imag)
    size, step = node.shape[axis], 1
    while step < size:
        if op == "cumprod":
            node = node * earlier(node, axis, step, 1)
        else:
            node = complex_logaddexp(node, earlier(node, axis, step, -math.inf))
        step *= 2
    return node


def running_extreme(op: str, monoid: str, node: Node, axis: Any) -> Node:
    """Compute the values of `cummax` or `cummin`; NaN propagates."""
    position = as_axis(axis, max(node.rank, 1), op)
    check_ordered(op, node.dtype)
    wide = node.cast(uint8) if node.dtype is bool_ else node
    found = with_axis(wide, lambda x: scan(x, monoid, position))
    return found.cast(node.dtype)


def running_index(op: str, monoid: str, node: Node, axis: Any) -> Node:
    """Compute the indices of `cummax` or `cummin`: the last of equal ones."""
    check_ordered(op, node.dtype)
    position = as_axis(axis, max(node.rank, 1), op)
    wide = node.cast(uint8) if node.dtype is bool_ else node
    if not node.size:
        return node.cast(int64)
    return with_axis(wide, lambda x: extremum_index(x, scan(x, monoid, position), position))


@recorded()
def logcumsumexp(node: Node, dim: int = 0) -> Node:
    """Compute log(cumsum(exp(self))) along an axis, without overflow.

    >>> Tensor([0.0, 0.0, 0.0]).logcumsumexp(0).tolist()
    [0.0, 0.6931..., 1.0986...]
    """
    position = as_axis(dim, max(node.rank, 1), "logcumsumexp")
    if node.dtype.is_complex:
        return running_complex("logcumsumexp", node, position)
    need_float("logcumsumexp", node)
    return with_axis(node, lambda x: scan(x, "logaddexp", position))

"""Reductions on nodes: sums, extremes, statistics, and what is made of them."""

import math
from typing import Any

from picograd.dtype import DType, bool_, int64
from picograd.errors import AxisError, DTypeError
from picograd.graph import build_composite as composite
from picograd.graph.build_composite import custom
from picograd.graph.node import Node
from picograd.helpers import product
from picograd.tensor.core.operands import (
    Operand,
    as_axes,
    as_axis,
    check_computed,
    floating,
    need_float,
    read_scalar,
)
from picograd.tensor.math import elementwise


def reduce(op: str, monoid: str, node: Node, axis: Any, keepdim: bool) -> Node:
    """Reduce over one axis, several, or all of them (None)."""
    axes = as_axes(axis, len(node.shape), op)
    check_computed(op, node.dtype)
    return node.reduce(monoid, axes, keepdim)


def count(node: Node, axis: Any, op: str) -> int:
    """Count the elements one result is made of."""
    return product(node.shape[each] for each in as_axes(axis, len(node.shape), op))


def total(op: str, node: Node, axis: Any, keepdim: bool, dtype: DType | None) -> Node:
    """Compute `sum` or `prod`; bool and integers accumulate in int64, as PyTorch."""
    if dtype is None and not node.dtype.is_float:
        dtype = int64
    if dtype is not None:
        node = node.cast(dtype)
    return reduce(op, op, node, axis, keepdim)


def mean(node: Node, axis: Any, keepdim: bool) -> Node:
    """Average; 16-bit floats accumulate in float32 and round once."""
    need_float("mean", node)
    return composite.mean(node, as_axes(axis, len(node.shape), "mean"), keepdim)


def extreme(op: str, node: Node, axis: Any, keepdim: bool) -> Node:
    """Compute `max` or `min` over axes; NaN propagates, the gradient is shared by ties."""
    need_elements(op, node, axis)
    if node.dtype is bool_:
        whole = reduce(op, op, node.cast(int64), axis, keepdim)
        return whole.cast(bool_)
    return reduce(op, op, node, axis, keepdim)


def extreme_of_all(op: str, node: Node, keepdim: bool) -> Node:
    """Compute `max` or `min` of all elements; those that are NaN share its gradient."""
    value = extreme(op, node, None, keepdim)
    return shared_by_equals(value, node) if node.dtype.is_float else value


def shared_by_equals(value: Node, node: Node) -> Node:
    """Split the gradient of one element's value evenly among the elements that equal it."""

    def vjp(gradient: Node, output: Node, x: Node) -> tuple[Node]:
        axes, ones = tuple(range(x.rank)), (1,) * x.rank
        wide = output.reshape(ones).expand(x.shape)
        both = x.unary("isnan").binary("logical_and", wide.unary("isnan"))
        equals = x.binary("equal", wide).binary("logical_or", both)
        share = gradient.accumulated()
        share = share / equals.cast(share.dtype).reduce("sum", axes).reshape(share.shape)
        return (equals.where(share.cast(x.dtype).reshape(ones).expand(x.shape), 0),)

    return custom(value, (node,), vjp)


def need_elements(op: str, node: Node, axis: Any) -> None:
    """Raise AxisError when an extreme of no elements is asked for."""
    if count(node, axis, op) == 0:
        text = f"has no value over an empty axis of {node.shape}"
        raise AxisError(op, text, "check .numel() first")


def arg_extreme(op: str, node: Node, axis: Any, keepdim: bool) -> Node:
    """Find the position of the first largest or smallest element; all axes flatten first."""
    need_elements(op, node, axis)
    if node.dtype is bool_:
        node = node.cast(int64)
    find = composite.argmin if op in ("argmin", "min") else composite.argmax
    if axis is None:
        found = find(node.reshape((node.size,)), 0)
        return found.reshape((1,) * len(node.shape)) if keepdim else found
    return find(node, as_axis(axis, len(node.shape), op), keepdim)


def picked(node: Node, index: Node, axis: Any, keepdim: bool) -> Node:
    """Take the element at `index` (kept axis) of each row: its gradient goes there alone."""
    position = as_axis(axis, len(node.shape), "max")
    if not node.shape:
        return node
    chosen = node.iota(position).binary("equal", index.expand(node.shape))
    return chosen.where(node, 0).reduce("sum", (position,), keepdim)


def variance(op: str, node: Node, axis: Any, keepdim: bool, correction: float) -> Node:
    """Average squared distance from the mean, divided by count - correction."""
    need_float(op, node)
    axes = as_axes(axis, len(node.shape), op)
    return composite.var(node, axes, read_scalar(op, correction), keepdim)


def deviation(node: Node, axis: Any, keepdim: bool, correction: float) -> Node:
    """Compute the standard deviation; its gradient at 0 is 0, as PyTorch's."""
    need_float("std", node)
    wide = variance("std", node.accumulated(), axis, keepdim, correction)
    return root(wide).cast(node.dtype)


def truth_test(op: str, monoid: str, node: Node, axis: Any, keepdim: bool) -> Node:
    """Compute `any` (sum of truths > 0) or `all` (number of falsehoods = 0)."""
    flags = elementwise.truth(node)
    if monoid == "all":
        flags = elementwise.logical_not(flags)
    found = reduce(op, "sum", flags.cast(int64), axis, keepdim)
    test = "equal" if monoid == "all" else "not_equal"
    return elementwise.compare(test, found, 0)


def softmax(op: str, node: Node, axis: Any, dtype: DType | None = None) -> Node:
    """Compute `softmax` or `log_softmax` along one axis, in `dtype` if that is given.

    Refused for integers, as in PyTorch: it would not say in which dtype the result is.
    """
    x = node if dtype is None else node.cast(dtype)
    need_float(op, x)
    position = as_axis(axis, len(x.shape), op)
    make = composite.softmax if op == "softmax" else composite.log_softmax
    return make(x, position)


def logsumexp(node: Node, axis: Any, keepdim: bool) -> Node:
    """Compute log(sum(exp(x))) over axes, shifted by the largest value."""
    x = floating("logsumexp", node)
    axes = as_axes(axis, len(x.shape), "logsumexp")
    return composite.logsumexp(x, axes, keepdim) if axes else x


def norm(node: Node, order: Any, axis: Any, keepdim: bool) -> Node:
    """Compute the vector norm of the given order; infinite orders are extremes.

    The powers of 16-bit floats are computed in float32.
    """
    need_float("norm", node)
    return wide_norm(node.accumulated(), order, axis, keepdim).cast(node.dtype)


def wide_norm(node: Node, order: Any, axis: Any, keepdim: bool) -> Node:
    """Compute the vector norm of float32 or float64 numbers."""
    size = elementwise.absolute(node)
    if order == math.inf:
        return extreme("max", size, axis, keepdim)
    if order == -math.inf:
        return extreme("min", size, axis, keepdim)
    if order == 0:
        present = elementwise.compare("not_equal", node, 0).cast(node.dtype)
        counted = custom(present, (node,), lambda g, y, x: (g.const_like(0),))
        return reduce("norm", "sum", counted, axis, keepdim)
    if order == 1:
        return reduce("norm", "sum", size, axis, keepdim)
    if order == 2 or order == "fro":
        return root(reduce("norm", "sum", elementwise.power("pow", node, 2), axis, keepdim))
    if not isinstance(order, (int, float)):
        raise DTypeError("norm", f"unknown order {order!r}", "pass a number")
    return power_norm(size, float(order), axis, keepdim)


def power_norm(size: Node, order: float, axis: Any, keepdim: bool) -> Node:
    """Compute sum(size^p)^(1/p); where the formula has no gradient, at zeros, it is 0."""
    powers = elementwise.power("pow", size, order)
    if order < 1:
        is_zero = elementwise.compare("equal", size, 0.0)
        raised = elementwise.power("pow", elementwise.where(is_zero, 1.0, size), order)
        powers = elementwise.where(is_zero, 0.0 if order > 0 else math.inf, raised)
    total = reduce("norm", "sum", powers, axis, keepdim)
    is_zero = elementwise.compare("equal", total, 0.0)
    safe = elementwise.where(is_zero, 1.0, total)
    edge: Operand = total if order > 0 else math.inf
    return elementwise.where(is_zero, edge, elementwise.power("pow", safe, 1 / order))


def root(squares: Node) -> Node:
    """Square root whose gradient at 0 is 0, as PyTorch's norm."""
    is_zero = elementwise.compare("equal", squares, 0.0)
    safe = elementwise.where(is_zero, 1.0, squares)
    return elementwise.where(is_zero, squares, elementwise.unary("sqrt", safe))

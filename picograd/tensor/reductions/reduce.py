"""Reductions: sums, extremes, statistics, norms."""

import math
from collections.abc import Sequence
from typing import NamedTuple, overload

from picograd.dtype import DType, bool_, int64, uint8
from picograd.errors import AxisError, DTypeError
from picograd.graph import build
from picograd.graph import build_composite as composite
from picograd.graph.build_composite import custom
from picograd.graph.node import Node
from picograd.helpers import product
from picograd.number import given
from picograd.tensor.core.annotations import Scalar, Tensor
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.function import recorded
from picograd.tensor.core.operands import (
    Axes,
    Operand,
    as_axes,
    as_axis,
    check_computed,
    floating,
    need_float,
    read_scalar,
)
from picograd.tensor.core.repeated import recorded_once
from picograd.tensor.linalg import host
from picograd.tensor.math import elementwise
from picograd.traced_number import SIZED


class Extreme(NamedTuple):
    """This class holds the result of `max` and `min` along an axis."""

    values: Tensor
    indices: Tensor


class Extremes(NamedTuple):
    """This class holds the result of `aminmax`."""

    min: Tensor
    max: Tensor


@recorded()
def sum(x: Node, dim: Axes = None, keepdim: bool = False, *, dtype: DType | None = None) -> Node:
    """Add up; bool and integers give int64.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).sum(1).tolist()
    [3.0, 7.0]
    """
    return total("sum", x, all_of_none(dim), keepdim, dtype)


@recorded()
def prod(x: Node, dim: Axes = None, keepdim: bool = False, *, dtype: DType | None = None) -> Node:
    """Multiply up; bool and integers give int64.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).prod(1).tolist()
    [2.0, 12.0]
    """
    return total("prod", x, dim, keepdim, dtype)


@recorded_once()
def mean(x: Node, dim: Axes = None, keepdim: bool = False, *, dtype: DType | None = None) -> Node:
    """Average; 16-bit floats accumulate in float32 and round once.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).mean(0).tolist()
    [2.0, 3.0]
    """
    x = x if dtype is None else build.cast(x, dtype)
    dim = all_of_none(dim)
    if x.dtype.is_complex:
        real, imag = (mean(part, dim, keepdim) for part in x.parts())
        return real.paired(imag)
    need_float("mean", x)
    return composite.mean(x, as_axes(dim, x.rank, "mean"), keepdim)


@recorded()
def nansum(x: Node, dim: Axes = None, keepdim: bool = False, *, dtype: DType | None = None) -> Node:
    """Add up what is not NaN.

    >>> Tensor([1.0, float("nan"), 3.0]).nansum().item()
    4.0
    """
    x = x if dtype is None else build.cast(x, dtype)
    clean = x.unary("isnan").where(0, x) if x.dtype.is_differentiable else x
    return total("sum", clean, all_of_none(dim), keepdim, dtype)


@recorded()
def nanmean(
    x: Node, dim: Axes = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Node:
    """Average what is not NaN.

    >>> Tensor([1.0, float("nan"), 3.0]).nanmean().item()
    2.0
    """
    x = x if dtype is None else build.cast(x, dtype)
    need_float("nanmean", x)
    present = x.unary("isnan").unary("logical_not").cast(x.dtype)
    count = reduce("nanmean", "sum", present, all_of_none(dim), keepdim)
    return elementwise.divide(nansum(x, dim, keepdim), count)


@overload
def max(x: Node, dim: int, keepdim: bool = False) -> tuple[Node, Node]: ...


@overload
def max(x: Node, dim: Sequence[int] | Node | None = None, keepdim: bool = False) -> Node: ...


@recorded(returns=Extreme, also=(("other", "dim"),))
def max(x: Node, dim: Axes | Node = None, keepdim: bool = False) -> Node | tuple[Node, Node]:
    """Find the largest element; along an axis (values, indices); or max(self, tensor).

    >>> values, indices = Tensor([[1.0, 2.0], [4.0, 3.0]]).max(1)
    >>> values.tolist(), indices.tolist()
    ([2.0, 4.0], [1, 0])
    """
    return extreme("max", x, dim, keepdim)


@overload
def min(x: Node, dim: int, keepdim: bool = False) -> tuple[Node, Node]: ...


@overload
def min(x: Node, dim: Sequence[int] | Node | None = None, keepdim: bool = False) -> Node: ...


@recorded(returns=Extreme, also=(("other", "dim"),))
def min(x: Node, dim: Axes | Node = None, keepdim: bool = False) -> Node | tuple[Node, Node]:
    """Find the smallest element; along an axis (values, indices); or min(self, tensor).

    >>> values, indices = Tensor([[1.0, 2.0], [4.0, 3.0]]).min(1)
    >>> values.tolist(), indices.tolist()
    ([1.0, 3.0], [0, 1])
    """
    return extreme("min", x, dim, keepdim)


@recorded()
def amax(x: Node, dim: Axes = None, keepdim: bool = False) -> Node:
    """Find the largest elements along axes; ties share the gradient, NaN propagates.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).amax(0).tolist()
    [3.0, 4.0]
    """
    return largest("max", x, all_of_none(dim), keepdim)


@recorded()
def amin(x: Node, dim: Axes = None, keepdim: bool = False) -> Node:
    """Find the smallest elements along axes; ties share the gradient, NaN propagates.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).amin(0).tolist()
    [1.0, 2.0]
    """
    return largest("min", x, all_of_none(dim), keepdim)


@recorded(returns=Extremes)
def aminmax(x: Node, *, dim: int | None = None, keepdim: bool = False) -> tuple[Node, Node]:
    """Find the smallest and the largest elements, as (min, max).

    >>> low, high = Tensor([3.0, 1.0, 2.0]).aminmax()
    >>> low.item(), high.item()
    (1.0, 3.0)
    """
    return largest("min", x, dim, keepdim), largest("max", x, dim, keepdim)


@recorded()
def argmax(x: Node, dim: int | None = None, keepdim: bool = False) -> Node:
    """Find the first position of the largest element, in int64.

    >>> Tensor([[1.0, 2.0], [4.0, 3.0]]).argmax(1).tolist()
    [1, 0]
    """
    return position("argmax", x, dim, keepdim)


@recorded()
def argmin(x: Node, dim: int | None = None, keepdim: bool = False) -> Node:
    """Find the first position of the smallest element, in int64.

    >>> Tensor([[1.0, 2.0], [4.0, 3.0]]).argmin(1).tolist()
    [0, 1]
    """
    return position("argmin", x, dim, keepdim)


@recorded_once()
def var(
    x: Node, dim: Axes | bool = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: Scalar | None = None,
) -> Node:  # fmt: skip
    """Compute the variance, divided by n - correction (1); unbiased=False is correction 0.

    >>> Tensor([1.0, 2.0, 3.0]).var().item()
    1.0
    """
    axes, lost = spread_over(dim, unbiased, correction)
    return variance("var", x, axes, keepdim, lost)


@recorded_once()
def std(
    x: Node, dim: Axes | bool = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: Scalar | None = None,
) -> Node:  # fmt: skip
    """Compute the standard deviation; its gradient at 0 is 0, as PyTorch's.

    >>> Tensor([1.0, 2.0, 3.0]).std().item()
    1.0
    """
    check_computed("std", x.dtype)
    axes, lost = spread_over(dim, unbiased, correction)
    return root(variance("std", x.accumulated(), axes, keepdim, lost)).cast(x.dtype.real)


@recorded_once()
def var_mean(
    x: Node, dim: Axes | bool = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: Scalar | None = None,
) -> tuple[Node, Node]:  # fmt: skip
    """Compute the variance and the mean.

    >>> var, mean = Tensor([1.0, 2.0, 3.0]).var_mean()
    >>> var.item(), mean.item()
    (1.0, 2.0)
    """
    axes, lost = spread_over(dim, unbiased, correction)
    return var(x, axes, keepdim=keepdim, correction=lost), mean(x, axes, keepdim)


@recorded()
def std_mean(
    x: Node, dim: Axes | bool = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: Scalar | None = None,
) -> tuple[Node, Node]:  # fmt: skip
    """Compute the standard deviation and the mean.

    >>> std, mean = Tensor([1.0, 2.0, 3.0]).std_mean()
    >>> std.item(), mean.item()
    (1.0, 2.0)
    """
    axes, lost = spread_over(dim, unbiased, correction)
    return std(x, axes, keepdim=keepdim, correction=lost), mean(x, axes, keepdim)


@recorded_once()
def any(x: Node, dim: Axes = None, keepdim: bool = False) -> Node:
    """Tell whether any element is non-zero: bool, of uint8 in uint8.

    >>> picograd.tensor([[True, False], [False, False]]).any(1).tolist()
    [True, False]
    """
    present = elementwise.truth(x).cast(int64)
    found = elementwise.compare("not_equal", reduce("any", "sum", present, dim, keepdim), 0)
    return found.cast(x.dtype) if x.dtype is uint8 else found


@recorded_once()
def all(x: Node, dim: Axes = None, keepdim: bool = False) -> Node:
    """Tell whether all elements are non-zero: bool, of uint8 in uint8.

    >>> picograd.tensor([[True, True], [True, False]]).all(1).tolist()
    [True, False]
    """
    absent = elementwise.logical_not(elementwise.truth(x)).cast(int64)
    found = elementwise.compare("equal", reduce("all", "sum", absent, dim, keepdim), 0)
    return found.cast(x.dtype) if x.dtype is uint8 else found


@recorded()
def count_nonzero(x: Node, dim: Axes = None) -> Node:
    """Count the elements that are not zero, in int64.

    >>> Tensor([0.0, 5.0, 6.0]).count_nonzero().item()
    2
    """
    flags = elementwise.truth(x).cast(int64)
    return reduce("count_nonzero", "sum", flags, all_of_none(dim), False)


@recorded_once()
def logsumexp(x: Node, dim: Axes = None, keepdim: bool = False) -> Node:
    """Compute log(sum(exp(x))) without overflow.

    >>> Tensor([[0.0, 0.0], [1.0, 1.0]]).logsumexp(1).tolist()
    [0.6931..., 1.6931...]
    """
    dim = all_of_none(dim)
    if x.dtype.is_complex:
        return complex_logsumexp(x, dim, keepdim)
    x = floating("logsumexp", x)
    axes = as_axes(dim, x.rank, "logsumexp")
    return composite.logsumexp(x, axes, keepdim) if axes else x


def complex_logsumexp(x: Node, dim: Axes, keepdim: bool) -> Node:
    """Compute log(sum(exp(x))) of complex numbers, scaled by the largest real part."""
    axes = as_axes(dim, x.rank, "logsumexp")
    largest = build.detach(x.parts()[0]).reduce("max", axes, True)
    largest = elementwise.is_finite(largest).where(largest, 0).cast(x.dtype)
    total = (x - largest.expand(x.shape)).unary("exp").reduce("sum", axes)
    return composite.kept(total.unary("log") + largest.reshape(total.shape), x, axes, keepdim)


@recorded()
def softmax(x: Node, dim: int = -1, dtype: DType | None = None) -> Node:
    """Normalise exp(x) to sum 1 along an axis (the last, unless given).

    >>> Tensor([1.0, 1.0, 1.0, 1.0]).softmax(0).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    x = x if dtype is None else build.cast(x, dtype)
    need_float("softmax", x)
    return composite.softmax(x, as_axis(dim, x.rank, "softmax"))


@recorded()
def log_softmax(x: Node, dim: int = -1, dtype: DType | None = None) -> Node:
    """Compute log(softmax(x)) along an axis (the last, unless given).

    >>> Tensor([1.0, 1.0, 1.0]).log_softmax(0).tolist()
    [-1.0986..., -1.0986..., -1.0986...]
    """
    x = x if dtype is None else build.cast(x, dtype)
    need_float("log_softmax", x)
    return composite.log_softmax(x, as_axis(dim, x.rank, "log_softmax"))


@recorded_once()
def norm(
    x: Node, p: Scalar | str | None = 2, dim: Axes = None, keepdim: bool = False,
    dtype: DType | None = None,
) -> Node:  # fmt: skip
    """Compute the vector norm of order p; powers of 16-bit floats are taken in float32.

    "fro" and None are order 2; "nuc" sums the singular values of the matrices in two axes.

    >>> Tensor([3.0, 4.0]).norm().item()
    5.0
    """
    x = x if dtype is None else build.cast(x, dtype)
    if p == "nuc":
        return nuclear(x, dim, keepdim)
    if x.dtype.is_complex:
        x = elementwise.absolute(x)
    need_float("norm", x)
    order = 2 if p is None else p
    return wide_norm(x.accumulated(), order, all_of_none(dim), keepdim).cast(x.dtype)


def nuclear(x: Node, dim: Axes, keepdim: bool) -> Node:
    """Sum the singular values of the matrices in two axes."""
    axes = as_axes(dim, x.rank, "norm")
    if len(axes) != 2:
        problem = f'"nuc" over {len(axes)} axes of {x.shape}'
        raise AxisError("norm", problem, "name two axes")
    others = tuple(n for n in range(x.rank) if n not in axes)
    values = host.svd(x.permute((*others, *axes)))[1]
    kept = tuple(1 if n in axes else size for n, size in enumerate(x.shape))
    found = values.reduce("sum", (values.rank - 1,))
    return found.reshape(kept) if keepdim else found


# what they are made of


def all_of_none(dim: Axes) -> Axes:
    """Read no axes as all of them, as PyTorch's sums and averages do: `x.sum(())`."""
    return None if isinstance(dim, (tuple, list)) and not dim else dim


def reduce(op: str, monoid: str, node: Node, axis: Axes, keepdim: bool) -> Node:
    """Reduce over one axis, several, or all of them (None)."""
    axes = as_axes(axis, node.rank, op)
    check_computed(op, node.dtype)
    return node.reduce(monoid, axes, keepdim)


def total(op: str, node: Node, axis: Axes, keepdim: bool, dtype: DType | None) -> Node:
    """Compute `sum` or `prod`; bool and integers accumulate in int64, as PyTorch."""
    if dtype is None and not node.dtype.is_differentiable:
        dtype = int64
    return reduce(op, op, node if dtype is None else build.cast(node, dtype), axis, keepdim)


def spread_over(
    dim: Axes | bool, unbiased: bool | None, correction: Scalar | None
) -> tuple[Axes, Scalar]:
    """Read which axes a variance is over, and how many elements less it is divided by.

    A flag where axes belong is `unbiased`, the older spelling of a correction: `x.var(False)`.
    """
    if isinstance(correction, complex):
        raise DTypeError("var", f"correction={correction} is complex", "pass a real number")
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    dim = all_of_none(dim)
    if unbiased is not None:
        return dim, int(unbiased)
    return dim, 1 if correction is None else correction


def extreme(op: str, x: Node, dim: Axes | Node, keepdim: bool) -> Node | tuple[Node, Node]:
    """Compute `max` and `min` in their three forms."""
    if isinstance(dim, Node) and keepdim:  # a tensor of one number is read, and this called again
        raise DTypeError(op, "two operands, and keepdim", f"pass an axis, or call {op}imum")
    if isinstance(dim, Node):
        return elementwise.arithmetic(f"{op}imum", x, dim)
    if dim is None:
        value = largest(op, x, None, keepdim)
        return shared_by_equals(value, x) if x.dtype.is_float else value
    if hasattr(dim, "__iter__"):
        return largest(op, x, dim, keepdim)
    return picked(op, x, dim, keepdim), position(op, x, dim, keepdim)


def largest(op: str, node: Node, axis: Axes, keepdim: bool) -> Node:
    """Compute `max` or `min` over axes."""
    need_elements(op, node, axis)
    if node.dtype is bool_:
        return reduce(op, op, node.cast(int64), axis, keepdim).cast(bool_)
    return reduce(op, op, node, axis, keepdim)


def picked(op: str, x: Node, axis: int, keepdim: bool) -> Node:
    """Compute `max` or `min` along an axis; one element of each row takes the gradient."""
    value = largest(op, x, axis, keepdim)
    if not (MODE.enabled and x.dtype.is_float and x.shape):
        return value
    at = as_axis(axis, x.rank, op)
    kept = (*x.shape[:at], 1, *x.shape[at + 1 :])

    def vjp(gradient: Node, output: Node, x: Node) -> tuple[Node]:
        index = position(op, x, at, True).expand(x.shape)
        chosen = x.iota(at).binary("equal", index)
        return (chosen.where(gradient.reshape(kept).expand(x.shape), 0),)

    return custom(value, (x,), vjp)


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


def need_elements(op: str, node: Node, axis: Axes) -> None:
    """Raise AxisError when an extreme of no elements is asked for."""
    if not SIZED and 0 not in node.shape:
        return
    if product(node.shape[each] for each in as_axes(axis, node.rank, op)) == 0:
        text = f"has no value over an empty axis of {node.shape}"
        raise AxisError(op, text, "check .numel() first")


def position(op: str, node: Node, axis: int | None, keepdim: bool) -> Node:
    """Find the position of the first largest or smallest element; all axes flatten first."""
    need_elements(op, node, axis)
    if node.dtype is bool_:
        node = node.cast(int64)
    find = composite.argmin if op in ("argmin", "min") else composite.argmax
    if axis is None:
        found = find(node.reshape((node.size,)), 0)
        return found.reshape((1,) * len(node.shape)) if keepdim else found
    return find(node, as_axis(axis, len(node.shape), op), keepdim)


def variance(op: str, node: Node, axis: Axes, keepdim: bool, correction: Scalar) -> Node:
    """Average squared distance from the mean, divided by count - correction."""
    if node.dtype.is_complex:
        real, imag = (variance(op, part, axis, keepdim, correction) for part in node.parts())
        return real + imag
    need_float(op, node)
    axes = as_axes(axis, len(node.shape), op)
    return composite.var(node, axes, read_scalar(op, correction), keepdim)


def wide_norm(node: Node, order: Scalar | str, axis: Axes, keepdim: bool) -> Node:
    """Compute the vector norm of float32 or float64 numbers."""
    size = elementwise.absolute(node)
    if order == math.inf:
        return largest("max", size, axis, keepdim)
    if order == -math.inf:
        return largest("min", size, axis, keepdim)
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
    return power_norm(size, given(float(order)), axis, keepdim)


def power_norm(size: Node, order: float, axis: Axes, keepdim: bool) -> Node:
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

"""The rows of the op table that are not elementwise: leaves, views, reductions, effects."""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from picograd.graph.indexing import INDEX_ROWS
from picograd.graph.node import Node
from picograd.graph.product_ops import PRODUCT_ROWS
from picograd.graph.random import random_bits
from picograd.graph.row import ANY, INTEGER, Op, table

Array = Any
Gradients = tuple[Node | None, ...]
REDUCTIONS: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


def broadcast_const(node: Node) -> Array:
    """Fill the shape with the value."""
    return np.full(node.shape, node.arg)


def iota(node: Node) -> Array:
    """Count along one axis."""
    sizes = [1] * len(node.shape)
    sizes[node.arg] = node.shape[node.arg]
    return np.broadcast_to(np.arange(sizes[node.arg]).reshape(sizes), node.shape)


def windows_of(node: Node, x: Array) -> Array:
    """Gather sliding windows with the kernel axes at the end."""
    for axis, kernel, stride, dilation in node.arg:
        rows = sliding_window_view(x, (kernel - 1) * dilation + 1, axis=axis)
        keep = (slice(None),) * axis + (slice(None, None, stride),)
        x = rows[keep][..., ::dilation]
    return x


def fold(node: Node, x: Array) -> Array:
    """Add every kernel position of the windows to where it was read."""
    windows, _ = node.arg
    out = np.zeros(node.shape, x.dtype)
    lead = x.ndim - len(windows)
    for position in np.ndindex(*x.shape[lead:]):
        where = [slice(None)] * lead
        for (axis, _, stride, gap), offset in zip(windows, position):
            start = offset * gap
            where[axis] = slice(start, start + (x.shape[axis] - 1) * stride + 1, stride)
        out[tuple(where)] += x[(slice(None),) * lead + position]
    return out


def pad(node: Node, x: Array) -> Array:
    """Put a border of the fill value around."""
    pads, fill = node.arg
    return np.pad(x, pads, constant_values=fill)


def reduce(node: Node, x: Array) -> Array:
    """Reduce with the monoid, in the dtype of `x`: the interpreter widens 16-bit floats."""
    monoid, axes = node.arg
    if monoid in ("sum", "prod"):
        return REDUCTIONS[monoid](x, axis=axes, dtype=x.dtype)
    return REDUCTIONS[monoid](x, axis=axes)


def permute_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Permute back."""
    return (gradient.permute(tuple(int(axis) for axis in np.argsort(output.arg))),)


def expand_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Sum what was repeated."""
    sizes = zip(x.shape, output.shape)
    axes = tuple(axis for axis, (size, wide) in enumerate(sizes) if size != wide)
    return (gradient.reduce("sum", axes, keepdim=True),)


def slice_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Put the gradient back between zeros; steps spread it by folding windows of one."""
    windows, sizes, pads = [], [], []
    for axis, ((start, _, step), count) in enumerate(zip(output.arg, output.shape)):
        stride = step if count > 1 else 1
        spread = (count - 1) * stride + 1 if count else 0
        if stride > 1:
            windows.append((axis, 1, stride, 1))
            sizes.append(spread)
        pads.append((start, x.shape[axis] - start - spread))
    if windows:
        column = gradient.reshape((*gradient.shape, *(1 for _ in windows)))
        gradient = column.fold(tuple(windows), tuple(sizes))
    return (gradient.pad(tuple(pads)),)


def pad_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Cut the border off."""
    pads, _ = output.arg
    ranges = tuple((lo, lo + size, 1) for (lo, _), size in zip(pads, x.shape))
    return (gradient.slice(ranges),)


def window_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Sum the windows back."""
    return (gradient.fold(output.arg, tuple(x.shape[window[0]] for window in output.arg)),)


def reduce_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Broadcast a sum's gradient; send an extremum's to the extremes, split evenly among ties.

    An extremum that is NaN equals nothing: all gradients behind it are NaN, as in PyTorch.
    """
    monoid, axes = output.arg
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    wide = gradient.reshape(kept).expand(x.shape)
    if monoid == "sum":
        return (wide,)
    if monoid == "prod":
        return (product_gradient(wide, x, axes),)
    extreme = output.again().reshape(kept)
    is_extreme = x.binary("equal", extreme.expand(x.shape))
    share = gradient.accumulated()
    count = is_extreme.cast(share.dtype).reduce("sum", axes)
    share = (share / count).cast(x.dtype).reshape(kept)
    rest = (share * 0).expand(x.shape)
    return (is_extreme.where(share.expand(x.shape), rest),)


def product_gradient(gradient: Node, x: Node, axes: tuple[int, ...]) -> Node:
    """Multiply the other elements: with one zero only its place, with two nothing is left."""
    is_zero = x.binary("equal", 0)
    safe = is_zero.where(1, x)
    zeros = is_zero.cast(x.accumulated().dtype).reduce("sum", axes, keepdim=True).expand(x.shape)
    others = safe.reduce("prod", axes, keepdim=True).expand(x.shape) * gradient
    at_zero = zeros.binary("equal", 1).where(others, 0)
    elsewhere = zeros.binary("equal", 0).where(others / safe, 0)
    return is_zero.where(at_zero, elsewhere)


def same_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Pass the gradient on."""
    return (gradient,)


def copy_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Copy the gradient back to the input's device."""
    return (gradient.copy(x.device),)


def missing(node: Node, *arrays: Array) -> Array:
    """Stand for a meaning that depends on memory: the interpreter reads it."""
    raise NotImplementedError(node.op)


def leaf(name: str, numpy: Any) -> Op:
    """Make the row of a node without inputs."""
    return Op(name, "leaf", 0, ANY, numpy)


def view(name: str, numpy: Any, vjp: Any) -> Op:
    """Make the row of a view: elements move, none is computed."""
    return Op(name, "view", 1, ANY, numpy, vjp)


def effect(name: str, arity: int, vjp: Any = None) -> Op:
    """Make the row of an op whose value is its last input."""
    return Op(name, "effect", arity, ANY, lambda node, *arrays: arrays[-1], vjp)


STRUCTURE = (
    table(
        leaf("buffer", missing),
        leaf("const", broadcast_const),
        leaf("iota", iota),
        leaf("scalar", lambda node: np.asarray(node.arg.value)),
        Op(
            "random_bits",
            "leaf",
            2,
            INTEGER,
            lambda n, offset, seed: random_bits(seed, offset, n.shape),
            cost=24,
        ),
        view(
            "reshape", lambda node, x: x.reshape(node.shape), lambda g, y, x: (g.reshape(x.shape),)
        ),
        view("permute", lambda node, x: x.transpose(node.arg), permute_vjp),
        view("expand", lambda node, x: np.broadcast_to(x, node.shape), expand_vjp),
        view("slice", lambda node, x: x[tuple(slice(*each) for each in node.arg)], slice_vjp),
        view("flip", lambda node, x: np.flip(x, node.arg), lambda g, y, x: (g.flip(y.arg),)),
        view("pad", pad, pad_vjp),
        view("window", windows_of, window_vjp),
        view("fold", fold, lambda g, y, x: (g.window(y.arg[0]),)),
        Op("reduce", "reduce", 1, ANY, reduce, reduce_vjp),
        effect("copy", 1, copy_vjp),
        effect("contiguous", 1, same_vjp),
        effect("detach", 1),
        effect("assign", 2),
    )
    | PRODUCT_ROWS
    | INDEX_ROWS
)

"""Pooling on nodes beyond plain maxima and averages: positions, adaptive sizes, unpooling, patches.

Shapes: (N, C, *S) or (C, *S), with `rank` spatial axes S at the end.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.dtype import int64
from picograd.engine.realize import node_from_numpy
from picograd.errors import ShapeError
from picograd.graph import build
from picograd.graph import build_composite as composite
from picograd.graph.node import Node
from picograd.graph.room import check_host, check_size
from picograd.graph.shape import Shape, Window, window_count
from picograd.helpers import product
from picograd.tensor.core.operands import need_integer, need_rank
from picograd.tensor.indexing import selecting
from picograd.tensor.math import elementwise
from picograd.tensor.network import convolution
from picograd.tensor.network.adaptive_cells import cell_table
from picograd.tensor.network.convolution import output_sizes, per_axis, window_stride
from picograd.tensor.shaping import movement


def positions(sizes: Shape, like: Node, pads: Sequence[tuple[int, int]]) -> Node:
    """Number the elements of the spatial axes in row-major order; padding is numbered 0."""
    check_host("max_pool", product(size + sum(pad) for size, pad in zip(sizes, pads)))
    count = np.arange(product(sizes)).reshape(sizes)
    return node_from_numpy(np.pad(count, pads), int64, like.device)


def max_pool_indices(rank: int, x: Node, options: dict[str, Any]) -> tuple[Node, Node]:
    """Find the largest element of each window and its flat position over the spatial axes."""
    op = f"max_pool{rank}d"
    padded, each = convolution.windows(op, rank, x, options, convolution.lowest(x))
    first = len(x.shape) - rank
    pads = [
        (low, padded.shape[first + n] - low - x.shape[first + n])
        for n, low in enumerate(per_axis(op, "padding", options["padding"], rank, 0))
    ]
    places = positions(x.shape[first:], x, pads)
    spatial = tuple((axis - first, kernel, stride, gap) for axis, kernel, stride, gap in each)
    rows, numbers = window_rows(padded, each), window_rows(places, spatial)
    best = composite.argmax(rows, len(rows.shape) - 1, True)
    numbers = build.expand(numbers.reshape((1,) * first + numbers.shape), rows.shape)
    chosen = rows.iota(len(rows.shape) - 1).binary("equal", best.expand(rows.shape))
    found = chosen.where(numbers, 0).reduce("sum", (len(rows.shape) - 1,))
    return composite.max_pool(padded, each, op), found


def window_rows(x: Node, each: Window) -> Node:
    """Lay every window out as one row: (..., *count, window)."""
    cut = x.window(each)
    return cut.reshape((*cut.shape[: len(x.shape)], product(cut.shape[len(x.shape) :])))


def adaptive_max_pool(rank: int, x: Node, sizes: Any) -> tuple[Node, Node]:
    """Find the largest element of each of `sizes` cells, and its flat position."""
    op = f"adaptive_max_pool{rank}d"
    wanted = output_sizes(op, rank, x, sizes)
    first = len(x.shape) - rank
    spatial = x.shape[first:]
    if min(wanted) < 1 or 0 in spatial:
        text = f"cannot reduce {spatial} to {wanted} elements"
        raise ShapeError(op, text, "pool non-empty axes to sizes of 1 or more")
    check_size(op, (*x.shape[:first], *wanted), x.dtype.itemsize)
    table = cell_table(op, spatial, wanted)
    flat = x.reshape((*x.shape[:first], product(spatial)))
    index = node_from_numpy(table, int64, x.device)
    rows = flat.gather([index], (first,))  # *cells, window, *lead
    order = (*range(2, 2 + first), 0, 1)
    rows = rows.permute(order)
    best = composite.argmax(rows, first + 1, True)
    chosen = rows.iota(first + 1).binary("equal", best.expand(rows.shape))
    number = build.expand(index.reshape((1,) * first + index.shape), rows.shape)
    shape = (*x.shape[:first], *wanted)
    found = chosen.where(number, 0).reduce("sum", (first + 1,)).reshape(shape)
    value = chosen.where(rows, 0).reduce("sum", (first + 1,)).reshape(shape)
    return value, found


def max_unpool(rank: int, x: Node, index: Node, options: dict[str, Any]) -> Node:
    """Put each element at its flat position in zeros: the partial inverse of max pooling."""
    op = f"max_unpool{rank}d"
    need_integer(op, index)
    if index.shape != x.shape:
        text = f"indices {index.shape} do not fit the input {x.shape}"
        raise ShapeError(op, text, "pass those that return_indices=True gave")
    first = len(x.shape) - rank
    spatial = unpool_sizes(op, rank, x, options)
    index, inside = selecting.placed(op, index, product(spatial), 1, wraps=False)
    lead, count = product(x.shape[:first]), product(x.shape[first:])
    values, places = x.reshape((lead, count)), index.reshape((lead, count))
    base = build.const(0, (lead, product(spatial)), x.dtype, x.device)
    rows = places.iota(0, places.dtype)
    if inside is not None:
        inside = inside.reshape((lead, count))
    result = base.scatter(values, (rows, places), (0, 1), None, inside)
    return result.reshape((*x.shape[:first], *spatial))


def unpool_sizes(op: str, rank: int, x: Node, options: dict[str, Any]) -> Shape:
    """Invert the size rule of max pooling; `output_size` chooses among what pools to the input."""
    kernel = per_axis(op, "kernel_size", options["kernel_size"], rank)
    stride = window_stride(op, options["stride"], kernel)
    margin = per_axis(op, "padding", options["padding"], rank, 0)
    spatial = x.shape[len(x.shape) - rank :]
    each = zip(spatial, stride, margin, kernel)
    usual = tuple((n - 1) * step - 2 * low + k for n, step, low, k in each)
    if options["output_size"] is None:
        return usual
    given = tuple(options["output_size"])[-rank:]
    for axis, (size, middle, step) in enumerate(zip(given, usual, stride)):
        if not middle - step < size < middle + step:
            bounds = f"{middle - step + 1} to {middle + step - 1}"
            text = f"output_size {given} is not possible: axis {axis} may have {bounds}"
            raise ShapeError(op, text, "pass the shape that was pooled")
    return given


def norm_pool(rank: int, x: Node, order: float, options: dict[str, Any]) -> Node:
    """Compute sum(x^p)^(1/p) over each window, as PyTorch: the mean times the kernel's size.

    So a window that `ceil_mode` lets reach over the end counts as a full one of the same mean.
    """
    op = f"lp_pool{rank}d"
    area = product(per_axis(op, "kernel_size", options["kernel_size"], rank))
    options = {**options, "padding": 0, "count_include_pad": True}
    if order in (math.inf, -math.inf):
        size = elementwise.absolute(x)
        if order > 0:
            return convolution.max_pool(rank, size, options)
        return -convolution.max_pool(rank, -size, options)
    powers = elementwise.power("pow", x, order)
    mean = convolution.average_pool(rank, powers, options)
    rectified = composite.relu(elementwise.absolute(mean))
    total = elementwise.arithmetic("mul", elementwise.sign(mean), rectified)
    total = elementwise.arithmetic("mul", total, area)
    return elementwise.power("pow", total, 1.0 / order)


# patches


def patch_options(op: str, options: dict[str, Any]) -> tuple[Shape, Shape, Shape, Shape]:
    """Read kernel_size, dilation, padding and stride of two axes."""
    kernel = per_axis(op, "kernel_size", options["kernel_size"], 2)
    dilation = per_axis(op, "dilation", options["dilation"], 2)
    margin = per_axis(op, "padding", options["padding"], 2, 0)
    return (kernel, dilation, margin, per_axis(op, "stride", options["stride"], 2))


def patch_windows(options: dict[str, Any], first: int, op: str) -> Window:
    """Describe the windows over two axes from `first` on."""
    kernel, dilation, _, stride = patch_options(op, options)
    return tuple((first + n, kernel[n], stride[n], dilation[n]) for n in range(2))


def patches(x: Node, options: dict[str, Any]) -> Node:
    """Lay the windows out as columns: (N, C, H, W) -> (N, C * kernel, count)."""
    op = "unfold"
    if len(x.shape) == 3:
        return movement.squeeze(patches(movement.unsqueeze(x, 0), options), 0)
    need_rank(op, x, 4)
    low, left = patch_options(op, options)[2]
    padded = movement.pad_constant(x, [(0, 0), (0, 0), (low, low), (left, left)], 0)
    each = patch_windows(options, 2, op)
    if any(window_count(padded.shape[a], k, s, d) < 1 for a, k, s, d in each):
        text = f"kernel {options['kernel_size']} is larger than {padded.shape[2:]}"
        raise ShapeError(op, text, "pad more or use a smaller kernel")
    cut = padded.window(each).permute((0, 1, 4, 5, 2, 3))
    n, c, kh, kw, rows, columns = cut.shape
    return cut.reshape((n, c * kh * kw, rows * columns))


def overlay(x: Node, output_size: Any, options: dict[str, Any]) -> Node:
    """Add columns back to images: (N, C * kernel, count) -> (N, C, H, W); adjoint of `patches`."""
    op = "fold"
    if len(x.shape) == 2:
        return movement.squeeze(overlay(movement.unsqueeze(x, 0), output_size, options), 0)
    sizes = per_axis(op, "output_size", output_size, 2)
    kernel, dilation, margin, stride = patch_options(op, options)
    full = [size + 2 * low for size, low in zip(sizes, margin)]
    counts = [window_count(full[n], kernel[n], stride[n], dilation[n]) for n in range(2)]
    area = product(kernel)
    if len(x.shape) != 3 or x.shape[1] % area or x.shape[2] != product(counts):
        text = f"input {x.shape} does not fit {area} kernel elements at {tuple(counts)} places"
        raise ShapeError(op, text, "pass (N, C * kernel, places)")
    shape = (x.shape[0], x.shape[1] // area, *kernel, *counts)
    spread = x.reshape(shape).permute((0, 1, 4, 5, 2, 3))
    each = patch_windows(options, 2, op)
    whole = spread.fold(each, tuple(full))
    cuts = [(0, 0), (0, 0), *((low, low) for low in margin)]
    return movement.crop(whole, cuts)

"""Convolutions and pooling on nodes, over any number of spatial axes."""

from collections.abc import Sequence
from typing import Any

from picograd.dtype import int64
from picograd.errors import DTypeError, ShapeError, ValueRangeError
from picograd.graph import build
from picograd.graph import build_composite as composite
from picograd.graph.node import Node
from picograd.graph.scanning import identity
from picograd.graph.shape import ConvSpec, Shape, Window, span
from picograd.helpers import ceil_div, product
from picograd.tensor.core.operands import as_sizes, need_float, need_rank
from picograd.tensor.core.repeated import repeated
from picograd.tensor.linalg.products import same_dtype
from picograd.tensor.math import elementwise
from picograd.tensor.math.transcendental import divide_rounded
from picograd.tensor.network.adaptive_cells import SPELT_OUT, average_cells
from picograd.tensor.reductions import reduce
from picograd.tensor.shaping import movement


def per_axis(op: str, name: str, value: Any, rank: int, least: int = 1) -> Shape:
    """Read an argument given as one int or one int per spatial axis."""
    sizes = as_sizes((value,), op)
    if len(sizes) == 1:
        sizes *= rank
    if len(sizes) != rank or any(size < least for size in sizes):
        text = f"{name}={value!r} does not fit {rank} spatial axes"
        raise ValueRangeError(op, text, f"pass one int >= {least}, or {rank} of them")
    return sizes


def window_stride(op: str, given: Any, kernel: Shape) -> Shape:
    """Read the stride of windows: their sizes where it is None, or empty, as in traces."""
    if given is None or (isinstance(given, (tuple, list)) and not given):
        return kernel
    return per_axis(op, "stride", given, len(kernel))


def same_padding(op: str, kernel: Shape, stride: Shape, dilation: Shape) -> list[tuple[int, int]]:
    """Split the padding that keeps the sizes, the odd element going to the high end."""
    if any(each != 1 for each in stride):
        raise ValueRangeError(op, "padding='same' needs stride 1", "pass numbers")
    totals = [gap * (size - 1) for size, gap in zip(kernel, dilation)]
    return [(total // 2, total - total // 2) for total in totals]


def read_padding(
    op: str, padding: Any, kernel: Shape, stride: Shape, dilation: Shape
) -> list[tuple[int, int]]:
    """Read padding: ints, one (low, high) pair per axis, "same" or "valid"."""
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding == "same":
        return same_padding(op, kernel, stride, dilation)
    listed = padding if isinstance(padding, (tuple, list)) else ()
    if len(listed) == len(kernel) and all(isinstance(p, (tuple, list)) for p in listed):
        return [(int(low), int(high)) for low, high in padding]
    return [(size, size) for size in per_axis(op, "padding", padding, len(kernel), 0)]


def check_conv(op: str, x: Node, weight: Node, groups: int, channels: int, outputs: int) -> None:
    """Raise ShapeError when channels, groups and ranks do not fit."""
    rank = len(weight.shape)
    if len(x.shape) != rank or rank < 3:
        text = f"input {x.shape} does not fit weight {weight.shape}"
        raise ShapeError(op, text, "both need batch, channel and spatial axes")
    if groups < 1 or outputs % groups or channels % groups:
        text = f"weight {weight.shape} cannot be cut into {groups} groups"
        raise ShapeError(op, text, "groups must divide both channel counts")
    if x.shape[1] != channels:
        text = f"input {x.shape} has {x.shape[1]} channels, the weight takes {channels}"
        fix = "channels are axis 1 of the input"
        raise ShapeError(op, text, fix + ": .movedim(-1, 1)" * (x.shape[-1] == channels))


@repeated
def convolve(
    op: str, rank: int, x: Node, weight: Node, bias: Node | None, options: dict[str, Any]
) -> Node:
    """Cross-correlate (N, C, *S) with (O, C / groups, *K) -> (N, O, *S'); batch is optional.

    16-bit floats accumulate in float32 and round once. Raises ShapeError for channels that do not
    fit or a kernel larger than the padded input.
    """
    x, weight = same_dtype(op, x, weight)
    if len(weight.shape) != rank + 2:
        text = f"weight {weight.shape} does not have {rank + 2} axes"
        raise ShapeError(op, text, "its axes are output channel, input channel, *kernel")
    if len(x.shape) == rank + 1:
        alone = build.reshape(x, (1, *x.shape))
        result = convolve(op, rank, alone, weight, bias, options)
        return build.reshape(result, result.shape[1:])
    groups, kernel = options["groups"], weight.shape[2:]
    outputs, channels = weight.shape[0], weight.shape[1] * groups
    check_conv(op, x, weight, groups, channels, outputs)
    stride = per_axis(op, "stride", options["stride"], rank)
    dilation = per_axis(op, "dilation", options["dilation"], rank)
    padding = tuple(read_padding(op, options["padding"], kernel, stride, dilation))
    check_kernel(op, x, kernel, padding, dilation)
    grouped = build.reshape(x, (x.shape[0], groups, weight.shape[1], *x.shape[2:]))
    filters = build.reshape(weight, (groups, outputs // groups, *weight.shape[1:]))
    result = build.conv(grouped, filters, ConvSpec(stride, padding, (1,) * rank, dilation))
    result = build.reshape(result, (x.shape[0], outputs, *result.shape[3:]))
    return add_bias(op, result, bias)


def check_kernel(
    op: str, x: Node, kernel: Shape, padding: Sequence[tuple[int, int]], dilation: Shape
) -> None:
    """Raise ShapeError when the kernel is larger than the padded input."""
    padded = tuple(size + low + high for size, (low, high) in zip(x.shape[2:], padding))
    reach = tuple(span(size, gap) for size, gap in zip(kernel, dilation))
    if any(size < need for size, need in zip(padded, reach)):
        text = f"kernel {kernel} is larger than the padded input {padded}"
        raise ShapeError(op, text, "pad more or use a smaller kernel")


def add_bias(op: str, result: Node, bias: Node | None) -> Node:
    """Add one number per channel (axis 1)."""
    if bias is None:
        return result
    if bias.shape != result.shape[1:2]:
        text = f"bias {bias.shape} does not fit {result.shape[1]} output channels"
        raise ShapeError(op, text, "give one bias per output channel")
    if bias.dtype.kind != result.dtype.kind:
        text = f"the bias is {bias.dtype.name}, the input {result.dtype.name}"
        raise DTypeError(op, text, "cast one of them")
    column = build.reshape(bias, (*bias.shape, *(1,) * (len(result.shape) - 2)))
    return elementwise.arithmetic("add", result, column)


@repeated
def convolve_transposed(
    op: str, rank: int, x: Node, weight: Node, bias: Node | None, options: dict[str, Any]
) -> Node:
    """Adjoint of `convolve`: (N, C, *S), (C, O / groups, *K) -> (N, O, *S').

    The input is spread by the stride and correlated with the flipped kernel.
    """
    x, weight = same_dtype(op, x, weight)
    if len(x.shape) == rank + 1:
        alone = build.reshape(x, (1, *x.shape))
        result = convolve_transposed(op, rank, alone, weight, bias, options)
        return build.reshape(result, result.shape[1:])
    groups, kernel = options["groups"], weight.shape[2:]
    check_conv(op, x, weight, groups, weight.shape[0], weight.shape[0])
    stride = per_axis(op, "stride", options["stride"], rank)
    dilation = per_axis(op, "dilation", options["dilation"], rank)
    lows = per_axis(op, "padding", options["padding"], rank, 0)
    extra = per_axis(op, "output_padding", options["output_padding"], rank, 0)
    if any(more >= max(step, gap) for more, step, gap in zip(extra, stride, dilation)):
        text = f"output_padding {extra} is not smaller than stride {stride} or dilation {dilation}"
        raise ValueRangeError(op, text, "use a smaller one")
    reach = [span(size, gap) - 1 for size, gap in zip(kernel, dilation)]
    padding = tuple((far - low, far - low + more) for far, low, more in zip(reach, lows, extra))
    channels, per_group = weight.shape[0] // groups, weight.shape[1]
    grouped = build.reshape(x, (x.shape[0], groups, channels, *x.shape[2:]))
    filters = build.reshape(weight, (groups, channels, per_group, *kernel))
    spatial = tuple(range(3, 3 + rank))
    filters = build.flip(build.permute(filters, (0, 2, 1, *spatial)), spatial)
    spec = ConvSpec((1,) * rank, padding, stride, dilation)
    result = build.conv(grouped, filters, spec)
    result = build.reshape(result, (x.shape[0], groups * per_group, *result.shape[3:]))
    return add_bias(op, result, bias)


def windows(
    op: str, rank: int, x: Node, options: dict[str, Any], fill: float
) -> tuple[Node, Window]:
    """Pad the spatial axes and describe the windows over them."""
    if len(x.shape) < rank + 1:
        text = f"input {x.shape} has fewer than {rank + 1} axes"
        raise ShapeError(op, text, "it needs a channel axis and the spatial axes")
    kernel = per_axis(op, "kernel_size", options["kernel_size"], rank)
    stride = window_stride(op, options["stride"], kernel)
    dilation = per_axis(op, "dilation", options.get("dilation", 1), rank)
    margin = per_axis(op, "padding", options["padding"], rank, 0)
    if any(2 * low > size for low, size in zip(margin, kernel)):
        text = f"padding {margin} is more than half of the kernel {kernel}"
        raise ValueRangeError(op, text, "use less padding")
    first = len(x.shape) - rank
    if 0 in x.shape[first - 1 :]:
        text = f"channels or positions of {x.shape} have no elements"
        raise ShapeError(op, text, "pool axes of 1 or more; a batch may be empty")
    pads = [(0, 0)] * first
    for axis in range(rank):
        reach = span(kernel[axis], dilation[axis])
        size = x.shape[first + axis]
        high = margin[axis]
        if options["ceil_mode"]:
            high += ceil_excess(size, margin[axis], reach, stride[axis])
        if size + margin[axis] + high < reach:
            text = f"kernel {kernel} is larger than the padded input {x.shape[first:]}"
            raise ShapeError(op, text, "pad more or use a smaller kernel")
        pads.append((margin[axis], high))
    padded = movement.pad_constant(x, pads, fill)
    each = [(first + n, kernel[n], stride[n], dilation[n]) for n in range(rank)]
    return padded, tuple(each)


def ceil_excess(size: int, margin: int, reach: int, stride: int) -> int:
    """Extra padding that `ceil_mode` needs; a window must start inside the padded input."""
    count = ceil_div(size + 2 * margin - reach, stride) + 1
    if (count - 1) * stride >= size + margin:
        count -= 1
    return max((count - 1) * stride + reach - size - 2 * margin, 0)


def lowest(x: Node) -> float | int:
    """The identity of max for the dtype of `x`."""
    if x.dtype.is_complex:
        raise DTypeError("max_pool", f"is not defined for {x.dtype.name}", "take .abs() or .real")
    return identity("max", x.dtype)  # type: ignore[no-any-return]


@repeated
def max_pool(rank: int, x: Node, options: dict[str, Any]) -> Node:
    """Largest element of every window; padding never wins."""
    op = f"max_pool{rank}d"
    return composite.max_pool(*windows(op, rank, x, options, lowest(x)), op)


def window_sums(op: str, rank: int, x: Node, options: dict[str, Any]) -> Node:
    """Sum of every window."""
    padded, each = windows(op, rank, x, options, 0.0)
    cut = padded.window(each)
    return cut.reduce("sum", tuple(range(len(x.shape), len(cut.shape))))


@repeated
def average_pool(rank: int, x: Node, options: dict[str, Any]) -> Node:
    """Average of every window; padded zeros count unless count_include_pad is False."""
    op = f"avg_pool{rank}d"
    if x.dtype is not int64:  # whose averages are cut to whole numbers, as PyTorch's are
        need_float(op, x)
    total = window_sums(op, rank, x.accumulated(), options)
    divisor = options.get("divisor")
    if divisor is not None:
        if not divisor:
            raise ValueRangeError(op, "divisor_override is 0", "pass another number")
        return averaged(total, divisor).cast(x.dtype)
    margin = per_axis(op, "padding", options["padding"], rank, 0)
    counts_padding = options["count_include_pad"] or not any(margin)
    if counts_padding and not options["ceil_mode"]:
        size = product(per_axis(op, "kernel_size", options["kernel_size"], rank))
        return averaged(total, size).cast(x.dtype)
    for axis in range(rank):
        total = averaged(total, window_lengths(op, rank, axis, x, total, options))
    return total.cast(x.dtype)


def averaged(total: Node, count: Node | int) -> Node:
    """Divide a sum by how many were added; whole numbers are cut."""
    if total.dtype.is_integer:
        return divide_rounded("div", total, count, "trunc")
    is_number = not isinstance(count, Node)
    return elementwise.arithmetic("mul", total, 1 / count) if is_number else total / count


def window_lengths(
    op: str, rank: int, axis: int, x: Node, like: Node, options: dict[str, Any]
) -> Node:
    """Count what each window averages over along one axis; at least 1, where it lies outside.

    Padding counts if `count_include_pad`; what lies beyond it, for `ceil_mode`, does not.
    """
    at = len(x.shape) - rank + axis
    kernel = per_axis(op, "kernel_size", options["kernel_size"], rank)
    stride = window_stride(op, options["stride"], kernel)[axis]
    margin = per_axis(op, "padding", options["padding"], rank, 0)[axis]
    counted = margin if options["count_include_pad"] else 0
    first = like.iota(at) * stride - margin
    last = (first + kernel[axis]).binary("minimum", x.shape[at] + counted)
    length = last - first.binary("maximum", -counted)
    return length.binary("maximum", 1).cast(like.dtype)


def output_sizes(op: str, rank: int, x: Node, sizes: Any) -> Shape:
    """Read the sizes of adaptive pooling; None keeps a size."""
    need_rank(op, x, rank + 1)
    spatial = x.shape[len(x.shape) - rank :]
    listed = sizes if isinstance(sizes, (tuple, list)) else (sizes,)
    is_kept = [size is None for size in listed]
    read = as_sizes([1 if size is None else size for size in listed], op)
    if len(read) == 1:
        read, is_kept = read * rank, is_kept * rank
    if len(read) != rank:
        text = f"output_size={sizes!r} does not fit {rank} spatial axes"
        raise ShapeError(op, text, "pass one size >= 1, or one per axis")
    return tuple(full if kept else size for size, kept, full in zip(read, is_kept, spatial))


@repeated
def adaptive_average_pool(rank: int, x: Node, sizes: Any) -> Node:
    """Average so that the spatial axes get the given sizes; None keeps a size."""
    op = f"adaptive_avg_pool{rank}d"
    need_float(op, x)
    for axis, size in enumerate(output_sizes(op, rank, x, sizes), start=len(x.shape) - rank):
        if size != x.shape[axis]:
            x = average_to(op, x, axis, size)
    return x


def average_to(op: str, x: Node, axis: int, size: int) -> Node:
    """Average one axis down to `size` cells, which overlap when it does not divide."""
    full = x.shape[axis]
    if size == 1:
        return reduce.mean(x, axis, True)
    if size > 0 and full % size == 0:
        shape = (*x.shape[:axis], size, full // size, *x.shape[axis + 1 :])
        return reduce.mean(build.reshape(x, shape), axis + 1, False)
    if size <= 0 or not full:
        raise ShapeError(op, f"cannot average {full} elements to {size}", "use sizes of 1 or more")
    if size > SPELT_OUT:
        return average_cells(op, x, axis, size)
    edges = [(n * full // size, ceil_div((n + 1) * full, size)) for n in range(size)]
    cells = [reduce.mean(movement.cut(x, axis, low, high), axis, True) for low, high in edges]
    return movement.cat(cells, axis)

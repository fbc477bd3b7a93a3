"""The ops of Graph IR as ONNX operators: a row is `row(export, node, *values)`.

`values` are those of the inputs; one that shows an axis repeated is asked for whole by
`export.whole`. A row may give `export.expanded(node)`: the value as the op's own expansion makes
it. Elementwise ops are in `export_elementwise`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from picograd.dtype import bool_, float32, int32, int64
from picograd.graph.node import Node
from picograd.graph.shape import ConvSpec
from picograd.onnx.writer import Size, Writer, Written, fixed, is_same, traced_of
from picograd.traced_number import TracedNumber

Row = Callable[..., Written]
ROWS: dict[str, tuple[int, Row]] = {}  # the first opset of a row, and the row
MONOIDS = {"sum": "ReduceSum", "prod": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin"}
SCATTERED = {None: "none", "sum": "add", "prod": "mul", "max": "max", "min": "min"}
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LAST = -(1 << 63)  # where a slice backwards ends
POOLED = ("float16", "float32", "float64")


def row(*names: str, since: int = 0) -> Callable[[Row], Row]:
    """Add a row for each op; before an opset it is written as its expansion."""

    def add(definition: Row) -> Row:
        ROWS.update(dict.fromkeys(names, (since, definition)))
        return definition

    return add


def one(e: Any, node: Node, kind: str, x: Written, *more: str, **attributes: Any) -> Written:
    """Add a node whose value has the shape and dtype of a node."""
    return Written(e.writer.emit(kind, x.name, *more, **attributes), node.shape, node.dtype)


def is_traced(*sizes: Size) -> bool:
    """Tell whether a size is known only when the model runs."""
    return any(type(traced_of(size)) is TracedNumber for size in sizes)


# leaves and what shows its input


@row("const")
def const(e: Any, node: Node) -> Written:
    """Add a number; whoever needs it in the node's shape repeats it."""
    return e.writer.number(node.arg, node.dtype)


@row("scalar")
def scalar(e: Any, node: Node) -> Written:
    """Add the number that it has now."""
    return e.writer.number(getattr(node.arg, "value", node.arg), node.dtype)


@row("iota")
def iota(e: Any, node: Node) -> Written:
    """Count along an axis."""
    w, size = e.writer, node.shape[node.arg]
    shape: list[Size] = [1] * node.rank
    shape[node.arg] = size
    if not is_traced(size):
        array = np.arange(int(size)).astype(node.dtype.numpy).reshape(shape)
        return Written(w.constant(array), tuple(shape), node.dtype)
    return w.cast(w.reshape(counted(w, size), tuple(shape)), node.dtype)


def counted(w: Writer, size: Size) -> Written:
    """Count up to a size."""
    if not is_traced(size):
        return Written(w.constant(np.arange(int(size))), (size,), int64)
    ends = [w.number(0, int64).name, w.number(size, int64).name, w.number(1, int64).name]
    return Written(w.emit("Range", *ends), (size,), int64)


@row("detach", "contiguous", "copy", "custom", "assign")
def same(e: Any, node: Node, *values: Written) -> Written:
    """Give the last input."""
    return values[-1]


# views


@row("reshape")
def reshape(e: Any, node: Node, x: Written) -> Written:
    """Give other axes."""
    return e.writer.reshape(e.whole(node.inputs[0]), node.shape)


@row("expand")
def expand(e: Any, node: Node, x: Written) -> Written:
    """Show axes repeated: whoever needs them repeats them."""
    return x


@row("permute")
def permute(e: Any, node: Node, x: Written) -> Written:
    """Reorder axes."""
    return e.writer.transpose(x if x.shape else e.whole(node.inputs[0]), node.arg)


@row("slice")
def slice_(e: Any, node: Node, x: Written) -> Written:
    """Cut out ranges of axes."""
    w, x = e.writer, e.whole(node.inputs[0])
    cut = [axis for axis, each in enumerate(node.arg) if not is_whole(each, x.shape[axis])]
    if not cut:
        return x
    starts, stops = (w.sizes([node.arg[axis][side] for axis in cut]) for side in (0, 1))
    steps = w.ints(*[fixed(node.arg[axis][2], node.op) for axis in cut])
    return one(e, node, "Slice", x, starts, stops, w.ints(*cut), steps)


def is_whole(part: Sequence[Size], size: Size) -> bool:
    """Tell whether a range is all of an axis."""
    start, stop, step = part
    return is_same(start, 0) and is_same(stop, size) and is_same(step, 1)


@row("flip")
def flip(e: Any, node: Node, x: Written) -> Written:
    """Turn axes round."""
    w, axes = e.writer, node.arg
    ends = [w.ints(*[number] * len(axes)) for number in (-1, LAST)]
    return one(e, node, "Slice", e.whole(node.inputs[0]), *ends, w.ints(*axes), ends[0])


@row("pad")
def pad(e: Any, node: Node, x: Written) -> Written:
    """Add elements around."""
    w, (pads, fill) = e.writer, node.arg
    widths = w.sizes([low for low, _ in pads] + [high for _, high in pads])
    x = e.whole(node.inputs[0])
    if node.dtype is not bool_:
        return one(e, node, "Pad", x, widths, w.number(fill, node.dtype).name)
    name = w.emit("Pad", w.cast(x, int32).name, widths, w.number(int(fill), int32).name)
    return w.cast(Written(name, node.shape, int32), bool_)


@row("window")
def window(e: Any, node: Node, x: Written) -> Written:
    """Gather windows axis by axis; the axes within them go last."""
    w, x = e.writer, e.whole(node.inputs[0])
    last = len(node.inputs[0].shape)
    for axis, kernel, stride, gap in node.arg:
        count = node.shape[axis]
        first = w.apply("Mul", counted(w, count), w.number(stride, int64))
        within = w.constant(np.arange(fixed(kernel, node.op)) * fixed(gap, node.op))
        column = w.reshape(first, (count, 1))
        places = w.apply("Add", column, Written(within, (kernel,), int64))
        name = w.emit("Gather", x.name, places.name, axis=axis)
        shape = (*x.shape[:axis], count, kernel, *x.shape[axis + 1 :])
        order = [*range(axis + 1), *range(axis + 2, last + 1), axis + 1]
        x, last = w.transpose(Written(name, shape, x.dtype), order), last + 1
    return x


@row("fold")
def fold(e: Any, node: Node, x: Written) -> Written:
    """Add windows up where they were read."""
    w, (windows, sizes) = e.writer, node.arg
    x = e.whole(node.inputs[0])
    axes, rank = [each[0] for each in windows], node.rank
    others = [axis for axis in range(rank) if axis not in axes]
    x = w.transpose(x, [*others, *range(rank, rank + len(axes)), *axes])
    kernel, strides, gaps = columns_of(windows)
    lead, taps = x.shape[: len(others)], math.prod(kernel)
    count = merged((1, *lead))
    columns = w.reshape(x, (1, count * taps, merged(x.shape[-len(axes) :])))
    ends = w.sizes(sizes), w.ints(*kernel)
    name = w.emit("Col2Im", columns.name, *ends, strides=strides, dilations=gaps)
    summed = Written(name, (1, count, *sizes), node.dtype)
    placed = [*others, *axes]
    back = sorted(range(rank), key=lambda at: placed[at])
    return w.transpose(w.reshape(summed, (*lead, *sizes)), back)


# reductions


@row("reduce")
def reduce(e: Any, node: Node, x: Written) -> Written:
    """Reduce axes; a sum or extreme of windows is a pool."""
    w, (monoid, axes), source = e.writer, node.arg, node.inputs[0]
    if source.op == "window" and monoid != "prod":
        found: Written | None = pooled(e, source, monoid, axes)
        if found is not None:
            return found
    x = e.whole(source)
    wide = {"bool": int32, "float16": float32, "bfloat16": float32}.get(x.dtype.name, x.dtype)
    name = w.emit(MONOIDS[monoid], w.cast(x, wide).name, w.ints(*axes), keepdims=0)
    found = w.cast(Written(name, node.shape, wide), node.dtype)
    return found


def pooled(e: Any, window: Node, monoid: str, axes: Any) -> Written | None:
    """Write a reduction of windows as a pool, if it is one; None otherwise."""
    source, order = window.inputs[0], len(window.arg)
    rank = len(source.shape)
    is_whole = tuple(axes) == tuple(range(rank, rank + order)) and rank > order
    at_end = [each[0] for each in window.arg] == list(range(rank - order, rank))
    is_dilated = any(each[3] != 1 for each in window.arg) and monoid == "sum"
    if not is_whole or not at_end or is_dilated or window.dtype.name not in POOLED:
        return None
    if monoid == "min" or order > 3:
        return None
    shape = window.shape[:rank]
    return pool(e, source, window.arg, "AveragePool" if monoid == "sum" else "MaxPool", shape)


def pool(e: Any, source: Node, windows: Any, kind: str, shape: Any) -> Written:
    """Pool the last axes of a node."""
    w, (kernel, strides, gaps) = e.writer, columns_of(windows)
    x, lead = e.whole(source), len(source.shape) - len(windows)
    if lead != 2:
        first, rest = (1, x.shape[:1]) if lead == 1 else (x.shape[0], x.shape[1:lead])
        x = w.reshape(x, (first, merged(rest), *x.shape[lead:]))
    settings = {} if kind == "AveragePool" else {"dilations": gaps}
    name = w.emit(kind, x.name, kernel_shape=kernel, strides=strides, **settings)
    found = Written(name, (*x.shape[:2], *shape[lead:]), x.dtype)
    if kind == "AveragePool":
        found = w.apply("Mul", found, w.number(math.prod(kernel), x.dtype))
    return w.reshape(found, tuple(shape))


def columns_of(windows: Any) -> list[list[int]]:
    """List the kernels, strides and dilations of windows."""
    return [[fixed(each[k], "window") for each in windows] for k in (1, 2, 3)]


def merged(sizes: Sequence[Size]) -> Size:
    """Multiply sizes."""
    return math.prod(sizes[1:], start=sizes[0])


@row("max_pool")
def max_pool(e: Any, node: Node, x: Written) -> Written:
    """Take the largest of each window."""
    source, windows = node.inputs[0], node.arg
    rank, order = len(source.shape), len(windows)
    at_end = [each[0] for each in windows] == list(range(rank - order, rank))
    if not at_end or order > 3 or rank == order or node.dtype.name not in POOLED:
        return e.expanded(node)
    return pool(e, source, windows, "MaxPool", node.shape)


@row("softmax", "log_softmax")
def softmax(e: Any, node: Node, x: Written) -> Written:
    """Exponentials over their sum, or its logarithm."""
    kind = "Softmax" if node.op == "softmax" else "LogSoftmax"
    return one(e, node, kind, e.whole(node.inputs[0]), axis=node.arg)


@row("logsumexp")
def logsumexp(e: Any, node: Node, x: Written) -> Written:
    """Logarithm of the sum of exponentials."""
    axes = e.writer.ints(node.arg)
    return one(e, node, "ReduceLogSumExp", e.whole(node.inputs[0]), axes, keepdims=0)


@row("argmax", "argmin")
def arg_extreme(e: Any, node: Node, x: Written) -> Written:
    """Find where the extreme is."""
    kind = "ArgMax" if node.op == "argmax" else "ArgMin"
    x = e.whole(node.inputs[0])
    x = e.writer.cast(x, int32) if x.dtype is bool_ else x
    return one(e, node, kind, x, axis=node.arg, keepdims=0)


@row("cat")
def joined_parts(e: Any, node: Node, *values: Written) -> Written:
    """Put arrays one behind another."""
    first, *rest = map(e.whole, node.inputs)
    return one(e, node, "Concat", first, *(each.name for each in rest), axis=node.arg)


@row("sort")
def sort(e: Any, node: Node, x: Written) -> Written:
    """Find the order of an axis; equal elements stay in theirs."""
    axis, is_descending = node.arg
    count, x = e.writer.size(node.shape[axis]), e.whole(node.inputs[0])
    x = e.writer.cast(x, int32) if x.dtype is bool_ else x
    settings = {"axis": axis, "largest": int(is_descending)}
    places = e.writer.emit("TopK", x.name, count, outputs=2, **settings)[1]
    return Written(places, node.shape, int64)


# norms, activations, losses


@row("gelu", since=20)
def gelu(e: Any, node: Node, x: Written) -> Written:
    """Gaussian error linear unit."""
    approximate = "tanh" if node.arg == "tanh" else None
    return Written(e.writer.emit("Gelu", x.name, approximate=approximate), x.shape, x.dtype)


@row("layer_norm")
def layer_norm(e: Any, node: Node, *values: Written) -> Written:
    """Standardise the last axes; the statistics that are inputs are computed anew."""
    w, x, axes = e.writer, node.inputs[0], node.arg
    scale = node.inputs[2]
    inner = scale.inputs[0] if scale.op == "rsqrt" else scale
    epsilon = inner.inputs[1] if inner.op == "add" else inner
    is_last = tuple(axes) == tuple(range(len(x.shape) - len(axes), len(x.shape)))
    if not is_last or epsilon.op != "const" or is_traced(epsilon.arg, *x.shape[axes[0] :]):
        return e.expanded(node)
    ones: Any = np.ones([int(size) for size in x.shape[axes[0] :]], np.float32)
    weight = w.cast(Written(w.constant(ones), ones.shape, float32), x.dtype)
    settings = {"axis": axes[0], "epsilon": float(epsilon.arg)}
    return one(e, node, "LayerNormalization", e.whole(x), weight.name, **settings)


@row("cross_entropy")
def cross_entropy(e: Any, node: Node, *values: Written) -> Written:
    """Cross-entropy of each sample; with smoothing, or of other axes, it is expanded."""
    x, target = node.inputs[:2]
    if node.arg != 1 or len(node.inputs) > 3:
        return e.expanded(node)
    target = e.writer.cast(e.whole(target), int64)
    return one(e, node, "SoftmaxCrossEntropyLoss", e.whole(x), target.name, reduction="none")


# products, gathers, scatters


@row("contract")
def contract(e: Any, node: Node, *values: Written) -> Written:
    """Multiply and sum: a matrix product if it is one, else an einsum."""
    w, (left, right, out) = e.writer, node.arg
    a, b = map(e.whole, node.inputs)
    batch = [label for label in out if label in left and label in right]
    rows = [label for label in out if label in left and label not in batch]
    columns = [label for label in out if label in right and label not in batch]
    inner = [label for label in left if label in right and label not in out]
    is_plain = len(inner) == 1 and len(columns) == 1 and len(rows) >= 1
    is_plain = is_plain and len(left) == len(batch) + len(rows) + 1
    is_plain = is_plain and len(right) == len(batch) + 2
    if not is_plain or (batch and len(rows) > 1):
        names = {label: LETTERS[k] for k, label in enumerate(dict.fromkeys((*left, *right)))}
        texts = ["".join(names[label] for label in part) for part in node.arg]
        equation = f"{texts[0]},{texts[1]}->{texts[2]}"
        return one(e, node, "Einsum", a, b.name, equation=equation)
    made = [*batch, *rows, *columns]
    a = w.transpose(a, [left.index(label) for label in (*batch, *rows, *inner)])
    b = w.transpose(b, [right.index(label) for label in (*batch, *inner, *columns)])
    shape = [node.shape[out.index(label)] for label in made]
    found = Written(w.emit("MatMul", a.name, b.name), tuple(shape), node.dtype)
    return w.transpose(found, [made.index(label) for label in out])


@row("conv")
def conv(e: Any, node: Node, *values: Written) -> Written:
    """Correlate (N, G, C, *S) with (G, O, C, *K): ONNX keeps groups and channels in one axis."""
    w, spec = e.writer, node.arg
    source, weight = node.inputs
    groups = fixed(source.shape[1], node.op)
    x = e.whole(source)
    x = w.reshape(x, (x.shape[0], merged(x.shape[1:3]), *x.shape[3:]))
    is_spread = any(gap > 1 for gap in spec.input_dilation)
    name = spread(e, x, weight, spec) if is_spread else plain(e, x, weight, spec, groups)
    shape = (node.shape[0], merged(node.shape[1:3]), *node.shape[3:])
    return w.reshape(Written(name, shape, node.dtype), node.shape)


def numbers(sizes: Sequence[Size]) -> list[int]:
    """Read what a convolution takes as numbers."""
    return [fixed(size, "conv") for size in sizes]


def plain(e: Any, x: Written, weight: Node, spec: ConvSpec, groups: int) -> str:
    """Write a convolution; what is padded with less than nothing is cut first."""
    w, order = e.writer, len(spec.stride)
    kernel = e.whole(weight)
    kernel = w.reshape(kernel, (merged(kernel.shape[:2]), *kernel.shape[2:]))
    sides = [numbers(side) for side in zip(*spec.padding)]
    cuts = [min(each, 0) for side in sides for each in side]
    if any(cuts):
        widths = w.ints(0, 0, *cuts[:order], 0, 0, *cuts[order:])
        x = Written(w.emit("Pad", x.name, widths), x.shape, x.dtype)
    return w.emit(
        "Conv", x.name, kernel.name, group=groups, strides=numbers(spec.stride),
        pads=[max(each, 0) for side in sides for each in side],
        dilations=numbers(spec.kernel_dilation),
        kernel_shape=numbers(weight.shape[3:]),
    )  # fmt: skip


def spread(e: Any, x: Written, weight: Node, spec: ConvSpec) -> str:
    """Write a convolution of a spread input: one that is transposed, of the weight turned round.

    Its result is that of all of the padding there can be, of which the rest is cut, or added.
    """
    w, order = e.writer, len(spec.stride)
    groups, out, channels, *kernel = numbers(weight.shape)
    turned = weight.flip(tuple(range(3, 3 + order)))
    if weight.op == "flip" and set(weight.arg) == set(range(3, 3 + order)):
        turned = weight.inputs[0]  # turned round twice
    turned = turned.permute((0, 2, 1, *range(3, 3 + order)))
    filters = w.reshape(e.written(turned), (groups * channels, out, *kernel))
    found = w.emit(
        "ConvTranspose", x.name, filters.name, group=groups, kernel_shape=kernel,
        strides=numbers(spec.input_dilation),
        dilations=numbers(spec.kernel_dilation),
    )  # fmt: skip
    widths = [[0, 0], [0, 0]]
    for k, pads in enumerate(spec.padding):
        reach = (kernel[k] - 1) * spec.kernel_dilation[k]
        for side, pad in zip(widths, pads):
            side.append(fixed(pad - reach, "conv"))
    if any(widths[0] + widths[1]):
        found = w.emit("Pad", found, w.ints(*widths[0], *widths[1]))
    if any(step > 1 for step in spec.stride):
        ends = [w.ints(*[number] * order) for number in (0, (1 << 63) - 1)]
        axes = w.ints(*range(2, 2 + order))
        found = w.emit("Slice", found, *ends, axes, w.sizes(spec.stride))
    return found


def along(node: Node, indices: Sequence[Node], axes: Sequence[int]) -> int | None:
    """Find the axis that elements are read along, if each is read at its own place elsewhere."""
    rank = len(node.shape)
    if tuple(axes) != tuple(range(rank)) or len(indices[0].shape) != rank:
        return None
    free = [k for k, index in enumerate(indices) if index.op != "iota" or index.arg != k]
    return free[0] if len(free) == 1 else None


def as_places(e: Any, node: Node) -> Written:
    """Give indices as ONNX takes them."""
    return e.writer.cast(e.whole(node), int64)


@row("gather")
def gather(e: Any, node: Node, *values: Written) -> Written:
    """Read slices, or elements."""
    w, axes, (source, *indices) = e.writer, node.arg, node.inputs
    x = e.whole(source)
    if len(axes) == 1:
        x = w.transpose(x, first_axes(axes, len(x.shape)))
        return one(e, node, "Gather", x, as_places(e, indices[0]).name, axis=0)
    axis = along(source, indices, axes)
    if axis is not None:
        return one(e, node, "GatherElements", x, as_places(e, indices[axis]).name, axis=axis)
    x = w.transpose(x, first_axes(axes, len(x.shape)))
    return one(e, node, "GatherND", x, joined(e, indices))


def first_axes(axes: Sequence[int], rank: int) -> list[int]:
    """Give the order of axes that puts some first."""
    return [*axes, *(axis for axis in range(rank) if axis not in axes)]


def joined(e: Any, indices: Sequence[Node]) -> str:
    """Put the indices of several axes side by side in a last axis."""
    w = e.writer
    shape = tuple(indices[0].shape)
    parts = [w.reshape(as_places(e, each), (*shape, 1)).name for each in indices]
    return parts[0] if len(parts) == 1 else w.emit("Concat", *parts, axis=len(shape))


@row("scatter")
def scatter(e: Any, node: Node, *values: Written) -> Written:
    """Write slices, or elements, into a copy; where a bool says so."""
    w, (axes, monoid) = e.writer, node.arg
    base, new, *rest = node.inputs
    indices, inside = rest[: len(axes)], rest[len(axes) :]
    order = first_axes(axes, len(base.shape))
    places, updates = joined(e, indices), e.whole(new).name
    for each in inside:
        kept = w.emit("Transpose", w.emit("NonZero", e.whole(each).name), perm=[1, 0])
        places, updates = w.emit("GatherND", places, kept), w.emit("GatherND", updates, kept)
    x = w.transpose(e.whole(base), order)
    name = w.emit("ScatterND", x.name, places, updates, reduction=SCATTERED[monoid])
    back = sorted(range(len(order)), key=lambda at: order[at])
    return w.transpose(Written(name, x.shape, node.dtype), back)

"""Constructors of checked composite nodes. 16-bit floats are computed in float32, rounded once.

Checks of what an op is applied to; each raises under the name of the op the user called.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from picograd.dtype import float64, int32, int64
from picograd.errors import DeviceError, DTypeError, ShapeError, check_known
from picograd.graph.composites import (
    COMPOSITES,
    CustomGradient,
    batch_axes,
    count_of,
    mean_of,
    widen,
)
from picograd.graph.node import Node, Number
from picograd.graph.ops import OPS
from picograd.graph.row import COMPARE, FLOAT, DTypeRule
from picograd.graph.shape import Window, normalise_axes, normalise_axis, reduce_shape, window_count


def check_device(op: str, inputs: Sequence[Node]) -> None:
    """Raise DeviceError unless all inputs are on one device."""
    first = inputs[0].device
    for node in inputs:
        if node.device != first:
            text = f"operands are on different devices: {first} and {node.device}"
            raise DeviceError(op, text, f'move one with .to("{first}")')


def check_dtype(op: str, rule: DTypeRule, inputs: Sequence[Node]) -> None:
    """Raise DTypeError unless all inputs have one dtype and the rule takes it."""
    dtype = inputs[0].dtype
    if dtype.kind not in rule.kinds:
        is_stored = dtype.kind == "float8"  # for storage: PyTorch computes little with it too
        fix = "call .float() first" if is_stored else "cast the operand first"
        raise DTypeError(op, f"takes {rule.wanted}, not {dtype.name}", fix)
    for node in inputs:
        if node.dtype is not dtype:
            raise DTypeError(
                op, f"operands are {dtype.name} and {node.dtype.name}", "cast one of them first"
            )


def check_same(op: str, inputs: Sequence[Node]) -> None:
    """Raise ShapeError or DeviceError unless shapes and devices are equal."""
    shape = inputs[0].shape
    for node in inputs:
        if node.shape != shape:
            raise ShapeError(op, f"shapes differ: {shape} and {node.shape}", "broadcast them first")
    check_device(op, inputs)


def activation(op: str, node: Node, arg: object = None) -> Node:
    """Apply an elementwise composite."""
    check_dtype(op, COMPOSITES[op].dtype_rule, (node,))
    return node.accumulated().composite(op, arg).cast(node.dtype)


def widened_unary(op: str, node: Node) -> Node:
    """Apply an elementwise op so that the gradient of a 16-bit float is in float32 too."""
    check_dtype(op, OPS[op].dtype_rule, (node,))
    return node.accumulated().unary(op).cast(node.dtype)


def relu(node: Node) -> Node:
    """Zero the negative elements."""
    check_dtype("relu", COMPOSITES["relu"].dtype_rule, (node,))
    return node.composite("relu")


def side(test: Node) -> Node:
    """Compare as a test does that finds the side of a corner: its second derivatives are zeros."""
    if test.row.dtype_rule is not COMPARE or not test.inputs[0].dtype.is_differentiable:
        return test
    return Node("side", test.inputs, test.op, test.shape, test.dtype, test.device)


def sigmoid(node: Node) -> Node:
    """1 / (1 + exp(-x))."""
    return widened_unary("sigmoid", node)


def silu(node: Node) -> Node:
    """x sigmoid(x)."""
    return widened_unary("silu", node)


def gelu(node: Node, approximate: str = "none") -> Node:
    """x P(x) with the normal distribution P; "tanh" for its usual approximation."""
    check_known("gelu", "approximate", approximate, ("none", "tanh"))
    return activation("gelu", node, approximate)


def custom(
    value: Node, inputs: Sequence[Node], vjp: Callable[..., Sequence[Any]], name: str = "Custom"
) -> Node:
    """Give `value` a gradient of its own: `vjp(gradient, output, *inputs)`, one per input."""
    fixed = Node("detach", (value,), None, value.shape, value.dtype, value.device)
    arg = CustomGradient(vjp, name)
    return Node("custom", (*inputs, fixed), arg, value.shape, value.dtype, value.device)


def along_axis(op: str, node: Node, axis: int) -> Node:
    """Apply a composite that works along one axis and keeps the shape."""
    check_dtype(op, FLOAT, (node,))
    axis = normalise_axis(axis, node.rank, op)
    if node.size == 0:
        return node
    if node.rank == 0:
        return along_axis(op, node.reshape((1,)), 0).reshape(())
    return node.accumulated().composite(op, axis).cast(node.dtype)


def softmax(node: Node, axis: int) -> Node:
    """exp(x) / sum(exp(x)) along an axis."""
    return along_axis("softmax", node, axis)


def log_softmax(node: Node, axis: int) -> Node:
    """Logarithm of softmax."""
    return along_axis("log_softmax", node, axis)


def drop_axis(op: str, node: Node, axis: int) -> Node:
    """Apply a composite that reduces one axis."""
    shape, dtype = reduce_shape(node.shape, (axis,)), COMPOSITES[op].dtype_rule.result(node.dtype)
    return Node(op, (node,), axis, shape, dtype, node.device)


def logsumexp(node: Node, axis: int | Sequence[int], keepdim: bool = False) -> Node:
    """log(sum(exp(x))) along axes."""
    check_dtype("logsumexp", FLOAT, (node,))
    axes = normalise_axes(axis, node.rank, "logsumexp")
    wide = node.accumulated()
    for at in reversed(axes):  # logsumexp of logsumexp is logsumexp over both axes
        if wide.shape[at]:
            wide = drop_axis("logsumexp", wide, at)
        else:
            wide = wide.reduce("sum", (at,)).unary("log")  # log(0) = -inf
    return kept(wide.cast(node.dtype), node, axes, keepdim)


def kept(result: Node, node: Node, axes: tuple[int, ...], keepdim: bool) -> Node:
    """Give reduced axes size 1 if `keepdim`."""
    return result.reshape(reduce_shape(node.shape, axes, True)) if keepdim else result


def argument(op: str, node: Node, axis: int, keepdim: bool) -> Node:
    """Build argmax or argmin."""
    check_dtype(op, COMPOSITES[op].dtype_rule, (node,))
    axis = normalise_axis(axis, node.rank, op)
    if node.rank == 0:
        return Node("const", (), 0, (), int64, node.device)
    if node.shape[axis] == 0:
        raise ShapeError(op, f"axis {axis} of {node.shape} is empty", "reduce an axis of size >= 1")
    return kept(drop_axis(op, node, axis), node, (axis,), keepdim)


def argmax(node: Node, axis: int, keepdim: bool = False) -> Node:
    """First position of the maximum along an axis, int64; a NaN counts as the maximum."""
    return argument("argmax", node, axis, keepdim)


def argmin(node: Node, axis: int, keepdim: bool = False) -> Node:
    """First position of the minimum along an axis, int64; a NaN counts as the minimum."""
    return argument("argmin", node, axis, keepdim)


def mean(node: Node, axes: int | Sequence[int] | None = None, keepdim: bool = False) -> Node:
    """Mean over axes (None: all); NaN over none."""
    check_dtype("mean", FLOAT, (node,))
    axes = normalise_axes(axes, node.rank, "mean")
    return kept(mean_of(node.accumulated(), axes).cast(node.dtype), node, axes, keepdim)


def var(
    node: Node,
    axes: int | Sequence[int] | None = None,
    correction: Number = 1,
    keepdim: bool = False,
) -> Node:
    """Variance over axes, divided by n - correction; two passes."""
    check_dtype("var", FLOAT, (node,))
    axes = normalise_axes(axes, node.rank, "var")
    wide, shape = node.accumulated(), reduce_shape(node.shape, axes)
    result = Node("var", (wide,), (axes, correction), shape, wide.dtype, node.device)
    return kept(result.cast(node.dtype), node, axes, keepdim)


def layer_norm(
    x: Node, axes: int, weight: Node | None = None, bias: Node | None = None, eps: float = 1e-5
) -> Node:
    """Standardise over the last `axes` axes, then weight and bias of those axes' shape."""
    check_dtype("layer_norm", FLOAT, (x,))
    if not 0 < axes <= x.rank:
        raise ShapeError("layer_norm", f"{axes} axes of shape {x.shape}", "normalise fewer axes")
    last = tuple(range(x.rank - axes, x.rank))
    wide = x.accumulated()
    average = mean_of(wide, last)
    away = wide - widen(average, x.shape, last)
    missed = mean_of(away, last)  # 0 but for rounding; see graph/composites.py, `expand_var`
    spread = (mean_of(away * away, last) - missed * missed).binary("maximum", 0)
    average = average + missed
    scale = (spread + spread_out(eps, spread)).unary("rsqrt")
    y = wide.composite("layer_norm", last, average, scale)
    for name, node in (("weight", weight), ("bias", bias)):
        if node is None:
            continue
        check_device("layer_norm", (x, node))
        if node.shape != x.shape[x.rank - axes :]:
            raise ShapeError(
                "layer_norm", f"{name} {node.shape} for input {x.shape}", "match the last axes"
            )
        full = node.cast(wide.dtype).broadcast_to(x.shape)
        y = y * full if name == "weight" else y + full
    return y.cast(x.dtype)


def spread_out(number: Node | float, like: Node) -> Node | float:
    """Spread a number over the shape of a node, if a tensor without axes stands for it."""
    if isinstance(number, Node):
        return number.cast(like.dtype).broadcast_to(like.shape)
    return number


def typical_element(x: Node) -> Node:
    """Take the median of three elements of each channel, spread over the other axes.

    (N, C, *S) -> (1, C, 1, ...); it lies among the bulk of the channel unless two of the three
    are outliers.
    """
    found = []
    for number in (1, 3, 5):  # of sixths of every axis
        places = [number * n // 6 for n in x.shape]
        ranges = [(place, place + 1, 1) for place in places]
        ranges[1] = (0, x.shape[1], 1)
        found.append(x.slice(tuple(ranges)))
    a, b, c = found
    low, high = a.binary("minimum", b), a.binary("maximum", b)
    return low.binary("maximum", high.binary("minimum", c))


def batch_stats(x: Node) -> tuple[Node, Node]:
    """Mean and biased variance of each channel of (N, C, *S), in float32 or wider.

    One pass over x: the sums of x and of x x in float64, which has the digits that m2 - m1 m1 loses
    when the mean is large. float64 itself is summed as distances from a typical element.
    """
    check_dtype("batch_norm", FLOAT, (x,))
    if x.rank < 2:
        raise ShapeError("batch_norm", f"shape {x.shape} has no channel axis", "use (N, C, ...)")
    axes = batch_axes(x)
    if count_of(x, axes) == 0:
        raise ShapeError("batch_norm", f"no values per channel in {x.shape}", "use a larger batch")
    wide = x.accumulated()
    shift = typical_element(wide) if wide.dtype is float64 else None
    away = wide.cast(float64) if shift is None else wide - shift.expand(x.shape)
    first, second = mean_of(away, axes), mean_of(away * away, axes)
    variance = (second - first * first).binary("maximum", 0).cast(wide.dtype)
    if shift is None:
        return first.cast(wide.dtype), variance
    return shift.reshape((x.shape[1],)) + first, variance


def batch_norm(
    x: Node, weight: Node, bias: Node, eps: float = 1e-5, stats: tuple[Node, Node] | None = None
) -> Node:
    """Standardise each channel of (N, C, *S) by its own statistics; weight and bias are (C,).

    Pass `stats = batch_stats(x)` to share them with running averages. The gradient takes them as
    functions of x, so other statistics (evaluation) need plain arithmetic instead.
    """
    check_device("batch_norm", (x, weight, bias))
    average, spread = stats or batch_stats(x)
    if weight.shape != average.shape or bias.shape != average.shape:
        raise ShapeError(
            "batch_norm", f"weight {weight.shape} for input {x.shape}", "one weight a channel"
        )
    wide = x.accumulated()
    scale = (spread + spread_out(eps, spread)).unary("rsqrt")
    affine = weight.cast(wide.dtype), bias.cast(wide.dtype)
    return wide.composite("batch_norm", None, *affine, average, scale).cast(x.dtype)


def cross_entropy(
    logits: Node,
    target: Node,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
) -> Node:
    """-log softmax(logits)[target]; logits (N, C, *S) with target (N, *S), or (C,) with ().

    A label that is no class number gives NaN, and no gradient.
    """
    axis = 1 if logits.rank > 1 else 0
    check_labels(logits, target, axis)
    check_known("cross_entropy", "reduction", reduction, ("mean", "sum", "none"))
    wide = logits.accumulated()
    classes = logits.shape[axis]
    if target.dtype.bits < 32:
        target = target.cast(int32)
    known = is_class(target, classes)
    fill: Node | float = math.nan
    if ignore_index is not None:
        ignored = target.binary("equal", ignore_index)
        fill = ignored.where(known.const_like(0).cast(wide.dtype), math.nan)
        if 0 <= ignore_index < classes:
            known = known.binary("logical_and", ignored.unary("logical_not"))
    target = known.where(target, 0)
    inputs: tuple[Node, ...] = wide, target, drop_axis("logsumexp", wide, axis)
    if label_smoothing:
        inputs += (inputs[2].const_like(label_smoothing),)
    loss = Node("cross_entropy", inputs, axis, target.shape, wide.dtype, logits.device)
    loss = known.where(loss, fill)
    counted = None if ignore_index is None else known
    return reduce_loss(loss, counted, reduction).cast(logits.dtype)


def check_labels(logits: Node, target: Node, axis: int) -> None:
    """Raise unless there is one class number for every row of logits along `axis`."""
    check_dtype("cross_entropy", FLOAT, (logits,))
    check_device("cross_entropy", (logits, target))
    wanted = reduce_shape(logits.shape, (axis,)) if logits.rank else ()
    if not logits.rank or target.shape != wanted:
        raise ShapeError(
            "cross_entropy",
            f"target of shape {target.shape} does not fit logits {logits.shape}",
            f"the target needs shape {wanted}",
        )
    if not target.dtype.is_integer:
        raise DTypeError(
            "cross_entropy",
            f"class numbers must be integers, target is {target.dtype.name}",
            "cast the target to picograd.int64",
        )


def is_class(target: Node, classes: int) -> Node:
    """Tell which labels are class numbers: the others must not be read, their loss is NaN."""
    low = target.const_like(-1).binary("less", target) if target.dtype.kind == "int" else None
    high = target.binary("less", classes)
    return high if low is None else low.binary("logical_and", high)


def reduce_loss(loss: Node, counted: Node | None, reduction: str) -> Node:
    """Sum the losses, or average those that count (None: all)."""
    if reduction == "none":
        return loss
    axes = tuple(range(loss.rank))
    total = loss.reduce("sum", axes)
    if reduction == "sum":
        return total
    if counted is None:
        return total / max(loss.size, 1) if loss.size else total * math.nan
    # Read from the loss, so that one kernel makes both sums. A loss that is NaN counts nothing,
    # which changes nothing: the sum of the losses is NaN then.
    ones = counted.where(loss.binary("equal", loss).cast(loss.dtype), 0)
    inputs = total, counted.cast(loss.dtype).reduce("sum", axes), total / ones.reduce("sum", axes)
    return Node("counted_mean", inputs, None, (), loss.dtype, loss.device)


def max_pool(x: Node, windows: Window, name: str = "max_pool") -> Node:
    """Maximum over sliding windows ((axis, kernel, stride, dilation), ...).

    Pad x with its lowest value first (-inf for floats). The gradient goes to the first maximum.
    """
    check_dtype(name, COMPOSITES["max_pool"].dtype_rule, (x,))
    shape = list(x.shape)
    for axis, kernel, stride, dilation in windows:
        shape[axis] = window_count(x.shape[axis], kernel, stride, dilation)
        if shape[axis] < 1:
            raise ShapeError(
                name, f"a kernel of {kernel} does not fit size {x.shape[axis]}", "pad the input"
            )
    return Node("max_pool", (x,), tuple(windows), tuple(shape), x.dtype, x.device)

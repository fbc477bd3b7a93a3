"""Composite rows: ops that expand into primitives but have a VJP derived by hand.

Expansion happens before scheduling, so fusion sees primitives only. Composites of float inputs
work in float32 or float64: graph/build_composite.py casts 16-bit floats around them, so that a
softmax rounds once.

Composite row of `cat`: arrays one behind another along an axis.

One node, whatever the number of parts: recording, keys of plans and gradients look at each once.

Composite rows of variance, layer norm and batch norm.

The statistics of a norm are inputs of its node, so that forward and backward share them; its VJP
returns the whole derivative with respect to x, statistics included, and none for the statistics.
"""

import math
from collections.abc import Callable
from functools import partial, reduce
from types import FunctionType
from typing import Any

from picograd.dtype import bool_, int32, int64
from picograd.graph.batch_rules import (
    Found,
    batch_batch_norm,
    first_axes_next,
    next_axes,
    next_axis,
    next_windows,
    same,
)
from picograd.graph.bounds import Bounds, Look, place_of_extreme, union
from picograd.graph.complex_rules import conjugate
from picograd.graph.formula import is_text
from picograd.graph.node import Gradients, Node, Nodes, Number
from picograd.graph.row import (
    ANY,
    COMPARE,
    FLOAT,
    NUMBER,
    OPS,
    ORDERED,
    PLACES,
    DTypeRule,
    Op,
    Role,
    table,
)
from picograd.graph.shape import Shape, first_shape, reduce_shape, window_shape
from picograd.helpers import product
from picograd.late_methods import dataclass

ROOT_HALF = math.sqrt(0.5)
ROOT_TWO_OVER_PI = math.sqrt(2 / math.pi)
GELU_CUBIC = 0.044715  # Hendrycks and Gimpel, "Gaussian error linear units" (2016), section 2


def composite(
    name: str,
    arity: int,
    expand: Any,
    vjp: Any = None,
    rule: DTypeRule = FLOAT,
    shape: Any = first_shape,
    **columns: Any,
) -> Op:
    """Make the row of a composite; it has the shape of its first input if no rule is given."""
    return Op(name, Role.COMPOSITE, arity, rule, None, vjp, expand, shape=shape, **columns)


def dropped_axis(axis: int, shape: Shape, *others: Shape) -> Shape:
    """Shape without an axis."""
    return reduce_shape(shape, (axis,))


def sum_along(x: Node, axis: int) -> Node:
    """Sum one axis and repeat the result along it."""
    return x.reduce("sum", (axis,), keepdim=True).expand(x.shape)


def widen(x: Node, shape: tuple[int, ...], axes: tuple[int, ...]) -> Node:
    """Repeat a reduced value along the axes that were reduced."""
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return x.reshape(kept).expand(shape)


# activations


def normal_distribution(x: Node) -> Node:
    """Probability that a standard normal number is below x."""
    return (1.0 + (x * ROOT_HALF).unary("erf")) * 0.5


def gelu_tanh(x: Node) -> Node:
    """The tanh inside the approximation of gelu."""
    return ((x + x * x * x * GELU_CUBIC) * ROOT_TWO_OVER_PI).unary("tanh")


def expand_gelu(node: Node) -> Node:
    """x P(x), with the normal distribution P or its approximation 0.5 (1 + tanh(...))."""
    x = node.inputs[0]
    if node.arg == "tanh":
        return x * ((1.0 + gelu_tanh(x)) * 0.5)
    return x * normal_distribution(x)


def gelu_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """P(x) + x P'(x)."""
    if output.arg == "tanh":
        t = gelu_tanh(x)
        inner = (1.0 + x * x * (3 * GELU_CUBIC)) * ROOT_TWO_OVER_PI
        slope = (1.0 + t) * 0.5 + x * (1.0 - t * t) * inner * 0.5
    else:
        bell = (x * x * -0.5).unary("exp")
        density = bell * (1 / math.sqrt(2 * math.pi))
        slope = normal_distribution(x) + x * density
    return (gradient * slope,)


def relu_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Pass where the output is positive or NaN; 0 at 0, as PyTorch."""
    return (output.binary("less_equal", 0).where(0, gradient),)


def expand_side(node: Node) -> Node:
    """Compare, as any comparison."""
    return node.inputs[0].binary(node.arg, node.inputs[1])


# softmax and friends


def shifted(x: Node, axis: int) -> Node:
    """Subtract the maximum, so that exp cannot overflow."""
    return x - x.reduce("max", (axis,), keepdim=True).expand(x.shape)


def expand_softmax(node: Node) -> Node:
    """exp(x - max) / sum(exp(x - max))."""
    e = shifted(node.inputs[0], node.arg).unary("exp")
    return e / sum_along(e, node.arg)


def softmax_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """y (g - sum(g y))."""
    return (output * (gradient - sum_along(gradient * output, output.arg)),)


def expand_log_softmax(node: Node) -> Node:
    """(x - max) - log(sum(exp(x - max)))."""
    axis, away = node.arg, shifted(node.inputs[0], node.arg)
    total = away.unary("exp").reduce("sum", (axis,), keepdim=True)
    return away - total.unary("log").expand(away.shape)


def log_softmax_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """g - exp(y) sum(g)."""
    return (gradient - output.unary("exp") * sum_along(gradient, output.arg),)


def expand_logsumexp(node: Node) -> Node:
    """max + log(sum(exp(x - max))); an infinite maximum is not subtracted: inf - inf is NaN."""
    x, axis = node.inputs[0], node.arg
    top = x.reduce("max", (axis,))
    finite = is_infinite(top).where(0, top)
    away = x - widen(finite, x.shape, (axis,))
    powers = away.unary("exp")
    total = powers.reduce("sum", (axis,))
    return total.unary("log") + finite


def is_infinite(x: Node) -> Node:
    """Tell where a value is plus or minus infinity."""
    return x.unary("abs").binary("equal", math.inf)


def logsumexp_beside_softmax(x: Node, axis: int) -> Node:
    """The same of what `expand_softmax` sums; a row whose maximum is infinite has that."""
    top = x.reduce("max", (axis,))
    powers = shifted(x, axis).unary("exp")
    total = powers.reduce("sum", (axis,))
    found = total.unary("log") + top
    return is_infinite(top).where(top, found)


def logsumexp_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """g softmax(x), read off the output."""
    axes = (output.arg,)
    share = (x - widen(output, x.shape, axes)).unary("exp")
    return (widen(gradient, x.shape, axes) * share,)


# losses


def expand_cross_entropy(node: Node) -> Node:
    """logsumexp(x) - x[target], with smoothing s: logsumexp - (1 - s) x[target] - s mean(x).

    The logsumexp is an input, so that the backward pass reads it again instead of reducing; so is
    s, where there is one.
    """
    (x, target, total), axis = node.inputs[:3], node.arg
    indices = tuple(
        target if at == axis else target.iota(at - (at > axis)) for at in range(len(x.shape))
    )
    chosen = x.gather(indices, tuple(range(len(x.shape))))
    if len(node.inputs) == 3:
        return total - chosen
    smoothing = node.inputs[3]
    rest = x.reduce("sum", (axis,)) * (smoothing / x.shape[axis])
    return total - chosen * (1 - smoothing) - rest


def cross_entropy_vjp(
    gradient: Node, output: Node, x: Node, target: Node, total: Node, *smoothing: Node
) -> Gradients:
    """(softmax - target distribution) g; the one-hot target is a comparison, never a table."""
    axis = output.arg
    p = (x - widen(total, x.shape, (axis,))).unary("exp")
    wanted = widen(target.cast(int32), x.shape, (axis,))
    is_target = x.iota(axis, int32).binary("equal", wanted)
    difference = is_target.where(p - 1, p)
    for share in smoothing:
        most = widen(1 - share, x.shape, (axis,))
        rest = widen(share / x.shape[axis], x.shape, (axis,))
        difference = is_target.where(p - most, p) - rest
    slope = difference * widen(gradient, x.shape, (axis,))
    others = [None] * len(output.inputs[1:])
    return (slope, *others)


def counted_mean_vjp(
    gradient: Node, output: Node, total: Node, count: Node, mean: Node
) -> Gradients:
    """The gradient of a mean waits for the count of its losses, not for these."""
    return gradient / count, None, None


# positions of extremes, pooling


def expand_arg(node: Node, monoid: str) -> Node:
    """First position of the extreme along an axis; a NaN counts as the extreme, as in PyTorch."""
    x, axis = node.inputs[0], node.arg
    extreme = x.reduce(monoid, (axis,), keepdim=True).expand(x.shape)
    is_extreme = x.binary("equal", extreme)
    if x.dtype.is_float:
        is_extreme = is_extreme.binary("logical_or", x.unary("isnan"))
    number = int32 if x.shape[axis] < 1 << 31 else int64
    position = is_extreme.where(x.iota(axis, number), x.shape[axis])
    return position.reduce("min", (axis,)).cast(int64)


def kernel_axes(node: Node) -> tuple[int, ...]:
    """Axes that the windows of a pooling node append."""
    rank = len(node.shape)
    return tuple(range(rank, rank + len(node.arg)))


def expand_max_pool(node: Node) -> Node:
    """Maximum over each window."""
    return node.inputs[0].window(node.arg).reduce("max", kernel_axes(node))


def max_pool_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Send the gradient to the first maximum of each window, then sum overlapping windows."""
    axes, rank = kernel_axes(output), len(output.shape)
    windows = x.window(output.arg)
    flat = (*output.shape, math.prod(windows.shape[rank:]))
    column = (*output.shape, 1)
    rows = windows.reshape(flat)
    is_top = rows.binary("equal", output.again().reshape(column).expand(flat))
    if x.dtype.is_float:  # a NaN counts as the maximum
        is_top = is_top.binary("logical_or", rows.unary("isnan"))
    position = is_top.where(is_top.iota(rank, int32), flat[rank])
    first = position.reduce("min", (rank,), keepdim=True).expand(flat)
    is_first = is_top.iota(rank, int32).binary("equal", first)
    sent = is_first.where(gradient.reshape(column).expand(flat), 0)
    sizes = tuple(x.shape[window[0]] for window in output.arg)
    return (sent.reshape(output.shape + tuple(windows.shape[axis] for axis in axes))
            .fold(output.arg, sizes),)  # fmt: skip


# a gradient given by the caller


class CustomGradient:
    """The VJP of a `custom` node. All are equal: the value of the node does not depend on it.

    One that `is_fixed` reads others than the inputs: a copy over other values has another.
    """

    __slots__ = ("is_fixed", "name", "vjp")

    def __init__(self, vjp: Any, name: str = "Custom") -> None:
        self.vjp: Any = vjp
        self.name: str = name
        self.is_fixed = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CustomGradient)

    def __hash__(self) -> int:
        return hash(CustomGradient)

    def __repr__(self) -> str:
        return "CustomGradient"

    def key(self) -> Any:
        """What tells a rule of picograd's own from others; None where nothing does."""
        return key_of_rule(self.vjp)


def key_of_rule(rule: Any) -> Any:
    """Tell a function of picograd's own from others: None if it knows more than plain values, and
    functions like it.

    A user's function may do anything, and never has a key.
    """
    if type(rule) is not FunctionType or not rule.__module__.startswith("picograd."):
        return None
    cells = [cell.cell_contents for cell in rule.__closure__ or ()]
    known = [repr(each) if is_text(each) else key_of_rule(each) for each in cells]
    return None if rule.__defaults__ or None in known else (rule.__code__, *known)


@dataclass(frozen=True, slots=True)
class Smooth:
    """The argument of a `smooth` node: functions of nodes for the value and the slope, by name.

    value(x, **options)       what the node is, elementwise
    slope(x, y, **options)    its derivative, of x and the value y
    """

    value: Callable[..., Node]
    slope: Callable[..., Node]
    options: tuple[tuple[str, int], ...] = ()

    def __repr__(self) -> str:
        return f"{self.value.__module__}.{self.value.__qualname__} {self.options}"


def expand_smooth(node: Node) -> Node:
    """Write the value."""
    value: Node = node.arg.value(node.inputs[0], **dict(node.arg.options))
    return value


def smooth_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Multiply by the slope."""
    return (gradient * output.arg.slope(x, output, **dict(output.arg.options)),)


NO_GRADIENT = CustomGradient(None)  # stands for any in a key: what a rule saved may end


def custom_vjp(gradient: Node, output: Node, *inputs: Node) -> Gradients:
    """Ask the caller's function for the gradients of all inputs but the last, the value."""
    return (*output.arg.vjp(gradient, output, *inputs[:-1]), None)


def analytic_vjp(gradient: Node, output: Node, *inputs: Node) -> Gradients:
    """Multiply by the conjugates of the derivatives of a complex function."""
    slopes: Any = OPS[output.arg].slopes
    found = slopes(output, *inputs[:-1])
    return (*(gradient * conjugate(each) for each in found), None)


def batch_custom(batch: Any, node: Node, found: Found) -> Node:
    """Ask the caller's gradient function for one sample, and vectorise its answer in turn."""
    inputs, vjp = batch.filled(node, found), node.arg.vjp

    def batched_vjp(*given: Node) -> list[Node | None]:
        with batch.guard():
            answers = vjp(*(batch.sample(each) for each in given))
        return [None if each is None else batch.full(each) for each in answers]

    arg, shape = CustomGradient(batched_vjp, node.arg.name), (batch.size, *node.shape)
    return Node(node.op, tuple(inputs), arg, shape, node.dtype, node.device)


COMPOSITES = table(
    composite("custom", -1, lambda node: node.inputs[-1], custom_vjp, ANY,
        lambda arg, *shapes: shapes[-1], data=(-1, None), batch=batch_custom),
    composite("analytic", -1, lambda node: node.inputs[-1], analytic_vjp, ANY,
        lambda arg, *shapes: shapes[-1], batch_arg=same, is_pointwise=True),
    composite("smooth", 1, expand_smooth, smooth_vjp, batch_arg=same, is_pointwise=True),
    composite("relu", 1, lambda node: node.inputs[0].binary("maximum", 0), relu_vjp, NUMBER,
        batch_arg=same, is_pointwise=True, is_bent=True),
    composite("side", 2, expand_side, None, COMPARE, batch_arg=same, is_pointwise=True,
        is_bent=True),
    composite("gelu", 1, expand_gelu, gelu_vjp, batch_arg=same, is_pointwise=True),
    composite("softmax", 1, expand_softmax, softmax_vjp, batch_arg=next_axis, is_shiftless=True),
    composite("log_softmax", 1, expand_log_softmax, log_softmax_vjp, batch_arg=next_axis),
    composite(
        "logsumexp", 1, expand_logsumexp, logsumexp_vjp, shape=dropped_axis, batch_arg=next_axis
    ),
    composite("cross_entropy", -1, expand_cross_entropy, cross_entropy_vjp, shape=dropped_axis,
        data=(0, 1), batch_arg=next_axis),
    composite("counted_mean", 3, lambda node: node.inputs[-1], counted_mean_vjp, batch_arg=same,
        is_pointwise=True),
    *(
        composite(
            f"arg{extreme}",
            1,
            partial(expand_arg, monoid=extreme),
            rule=PLACES,
            bounds=place_of_extreme,
            shape=dropped_axis,
            batch_arg=next_axis,
        )
        for extreme in ("max", "min")
    ),
    composite("max_pool", 1, expand_max_pool, max_pool_vjp, ORDERED,
        lambda windows, x: window_shape(x, windows)[: len(x)], batch_arg=next_windows,
        is_bent=True),
)  # fmt: skip


TOGETHER = 64  # arrays that one kernel joins: CUDA has room for 400 pointers
FEW = 16  # of more: 64 of 0.4 MB take 104 ms so, and 619 ms at once (measured, one thread)


def joined_shape(axis: int, *shapes: Shape) -> Shape:
    """Shape of parts joined along an axis; a size that is traced stays one."""
    size: Any = shapes[0][axis]
    for shape in shapes[1:]:
        size = size + shape[axis]
    return (*shapes[0][:axis], size, *shapes[0][axis + 1 :])


def join(parts: Nodes, axis: int) -> Node:
    """Join parts of one dtype and rank along an axis."""
    first = parts[0]
    if first.dtype.kind == "complex":
        real, imag = zip(*(part.parts() for part in parts))
        return join(real, axis).paired(join(imag, axis))
    shape = joined_shape(axis, *[part.shape for part in parts])
    return Node("cat", tuple(parts), axis, shape, first.dtype, first.device)


def expand_join(node: Node) -> Node:
    """Choose each element from its part: a `where` on the position, a binary tree over parts.

    A kernel looks for each element in all of its parts. So many are joined in groups, which are
    stored and joined again.
    """
    parts: Nodes = node.inputs
    known: dict[Any, Node] = {}
    while len(parts) > TOGETHER:
        starts = range(0, len(parts), FEW)
        groups = [place_range(parts[start : start + FEW], node.arg, known) for start in starts]
        parts = [each.composite("contiguous") for each in groups]
    return place_range(parts, node.arg, known)


def place_range(parts: Nodes, axis: int, known: dict[Any, Node]) -> Node:
    """Join parts pairwise: pad both halves to the joined size and select by position.

    Which places are in the first half is `known` of some sizes: those that do not vary.
    """
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    left = place_range(parts[:half], axis, known)
    right = place_range(parts[half:], axis, known)
    a, b = left.shape[axis], right.shape[axis]
    if not a or not b:
        return right if not a else left
    low, high = padded(left, axis, (0, b)), padded(right, axis, (a, 0))
    sizes = (*low.shape, a)
    is_fixed = all(type(size) is int for size in sizes)  # others are not compared, which fixes them
    is_first = known.get(sizes) if is_fixed else None
    if is_first is None:
        place = low.iota(axis)
        is_first = place.binary("less", place.const_like(a))
        if is_fixed:
            known[sizes] = is_first
    return is_first.where(low, high)


def padded(part: Node, axis: int, ends: tuple[int, int]) -> Node:
    """Add zeros to both ends of an axis."""
    pads = tuple(ends if at == axis else (0, 0) for at in range(part.rank))
    return part.pad(pads, zero_of(part))


def zero_of(node: Node) -> Number:
    """Zero as a constant of the node's dtype."""
    if node.dtype.is_float:
        return 0.0
    return False if node.dtype is bool_ else 0


def join_vjp(gradient: Node, output: Node, *parts: Node) -> tuple[Node, ...]:
    """Cut the gradient of each part out."""
    found, start, axis = [], 0, output.arg
    whole = [(0, size, 1) for size in output.shape]
    for part in parts:
        end = start + part.shape[axis]
        found.append(gradient.slice((*whole[:axis], (start, end, 1), *whole[axis + 1 :])))
        start = end
    return tuple(found)


def joined_bounds(node: Node, look: Look) -> Bounds | None:
    """An element of one of the parts."""
    return reduce(union, map(look, node.inputs))


JOINS = table(
    composite(
        "cat",
        -1,
        expand_join,
        join_vjp,
        ANY,
        joined_shape,
        batch_arg=next_axis,
        bounds=joined_bounds,
    )
)


def count_of(x: Node, axes: tuple[int, ...]) -> int:
    """Number of elements reduced into one."""
    return product(x.shape[axis] for axis in axes)


def mean_of(x: Node, axes: tuple[int, ...]) -> Node:
    """Mean over axes, which are dropped."""
    return x.reduce("sum", axes) / count_of(x, axes)


def deviation(x: Node, axes: tuple[int, ...]) -> Node:
    """Subtract the mean over axes."""
    return x - widen(mean_of(x, axes), x.shape, axes)


def expand_var(node: Node) -> Node:
    """Two passes: the mean, then the squared distances from it, less what the mean is off by.

    The mean of the distances, 0 but for rounding, is how far the first pass missed the mean.
    Source: Chan, Golub and LeVeque (1983), the corrected two-pass algorithm.
    """
    x, (axes, correction) = node.inputs[0], node.arg
    away, count = deviation(x, axes), count_of(x, axes)
    missed = away.reduce("sum", axes)
    squares = (away * away).reduce("sum", axes)
    total = (squares - missed * missed / max(count, 1)).binary("maximum", 0)
    return total / max(count - correction, 0)


def var_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """2 g (x - mean) / (n - correction); the path through the mean adds up to zero."""
    axes, correction = output.arg
    scale = widen(gradient * 2 / max(count_of(x, axes) - correction, 0), x.shape, axes)
    return (deviation(x, axes) * scale,)


def standardised(x: Node, mean: Node, scale: Node, axes: tuple[int, ...]) -> Node:
    """(x - mean) scale, with `scale` = 1 / standard deviation."""
    return (x - widen(mean, x.shape, axes)) * widen(scale, x.shape, axes)


def expand_layer_norm(node: Node) -> Node:
    """Standardise; the affine part is separate, because weight varies along the reduced axes."""
    x, mean, scale = node.inputs
    return standardised(x, mean, scale, node.arg)


def layer_norm_vjp(gradient: Node, output: Node, x: Node, mean: Node, scale: Node) -> Gradients:
    """scale (g - mean(g) - y mean(g y))."""
    axes = output.arg
    level = widen(mean_of(gradient, axes), x.shape, axes)
    slope = widen(mean_of(gradient * output, axes), x.shape, axes)
    return ((gradient - level - output * slope) * widen(scale, x.shape, axes), None, None)


def batch_axes(x: Node) -> tuple[int, ...]:
    """Every axis but the channels."""
    return tuple(axis for axis in range(len(x.shape)) if axis != 1)


def expand_batch_norm(node: Node) -> Node:
    """Standardise each channel, then weight and bias."""
    x, weight, bias, mean, scale = node.inputs
    axes = batch_axes(x)
    y = standardised(x, mean, scale, axes)
    return y * widen(weight, x.shape, axes) + widen(bias, x.shape, axes)


def batch_norm_vjp(
    gradient: Node, output: Node, x: Node, weight: Node, bias: Node, mean: Node, scale: Node
) -> Gradients:
    """With y standardised: weight scale (g - sum(g)/n - y sum(g y)/n), sum(g y), sum(g)."""
    axes = batch_axes(x)
    count = count_of(x, axes)
    y = standardised(x, mean, scale, axes)
    for_bias = gradient.reduce("sum", axes)
    for_weight = (gradient * y).reduce("sum", axes)
    level = widen(for_bias / count, x.shape, axes)
    slope = widen(for_weight / count, x.shape, axes)
    factor = widen(weight * scale, x.shape, axes)
    return (factor * (gradient - level - y * slope), for_weight, for_bias, None, None)


NORMS = table(
    composite("var", 1, expand_var, var_vjp, shape=lambda arg, x: reduce_shape(x, arg[0]),
        batch_arg=first_axes_next),
    composite("layer_norm", 3, expand_layer_norm, layer_norm_vjp, batch_arg=next_axes),
    composite("batch_norm", 5, expand_batch_norm, batch_norm_vjp, batch=batch_batch_norm),
)  # fmt: skip

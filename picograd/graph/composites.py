"""Composite rows: ops that expand into primitives but have a VJP derived by hand.

Expansion happens before scheduling, so fusion sees primitives only. Composites of float inputs
work in float32 or float64: graph/build_composite.py casts 16-bit floats around them, so that a
softmax rounds once.
"""

import math
from functools import partial
from types import FunctionType
from typing import Any

from picograd.dtype import int32, int64
from picograd.graph.batch_rules import Found, next_axis, next_windows, same
from picograd.graph.bounds import place_of_extreme
from picograd.graph.complex_rules import conjugate
from picograd.graph.formula import is_text
from picograd.graph.node import Node
from picograd.graph.row import ANY, FLOAT, NUMBER, OPS, ORDERED, PLACES, DTypeRule, Op, Role, table
from picograd.graph.shape import Shape, first_shape, reduce_shape, window_shape

Gradients = tuple[Node | None, ...]
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
    finite = top.unary("abs").binary("equal", math.inf).where(0, top)
    away = x - widen(finite, x.shape, (axis,))
    return away.unary("exp").reduce("sum", (axis,)).unary("log") + finite


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
    top = output.again().reshape(column)
    is_top = rows.binary("equal", top.expand(flat))
    position = is_top.where(is_top.iota(rank, int32), flat[rank])
    first = position.reduce("min", (rank,), keepdim=True).expand(flat)
    is_first = is_top.iota(rank, int32).binary("equal", first)
    sent = is_first.where(gradient.reshape(column).expand(flat), 0)
    sizes = tuple(x.shape[window[0]] for window in output.arg)
    return (sent.reshape(output.shape + tuple(windows.shape[axis] for axis in axes))
            .fold(output.arg, sizes),)  # fmt: skip


# a gradient given by the caller


class CustomGradient:
    """The VJP of a `custom` node. All are equal: the value of the node does not depend on it."""

    __slots__ = ("name", "vjp")

    def __init__(self, vjp: Any, name: str = "Custom") -> None:
        self.vjp: Any = vjp
        self.name: str = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CustomGradient)

    def __hash__(self) -> int:
        return hash(CustomGradient)

    def __repr__(self) -> str:
        return "CustomGradient"

    def key(self) -> Any:
        """What tells a rule of picograd's own from others: None if it knows more than plain values.

        A user's rule may do anything, and never has a key.
        """
        vjp = self.vjp
        if type(vjp) is not FunctionType or not vjp.__module__.startswith("picograd."):
            return None
        known = [cell.cell_contents for cell in vjp.__closure__ or ()]
        if vjp.__defaults__ or not all(map(is_text, known)):
            return None
        return vjp.__code__, repr(known)


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
    composite(
        "custom",
        -1,
        lambda node: node.inputs[-1],
        custom_vjp,
        ANY,
        lambda arg, *shapes: shapes[-1],
        data=(-1, None),
        batch=batch_custom,
    ),
    composite(
        "analytic",
        -1,
        lambda node: node.inputs[-1],
        analytic_vjp,
        ANY,
        lambda arg, *shapes: shapes[-1],
        batch_arg=same,
        is_pointwise=True,
    ),
    composite(
        "relu",
        1,
        lambda node: node.inputs[0].binary("maximum", 0),
        relu_vjp,
        NUMBER,
        batch_arg=same,
        is_pointwise=True,
    ),
    composite("gelu", 1, expand_gelu, gelu_vjp, batch_arg=same, is_pointwise=True),
    composite("softmax", 1, expand_softmax, softmax_vjp, batch_arg=next_axis),
    composite("log_softmax", 1, expand_log_softmax, log_softmax_vjp, batch_arg=next_axis),
    composite(
        "logsumexp", 1, expand_logsumexp, logsumexp_vjp, shape=dropped_axis, batch_arg=next_axis
    ),
    composite(
        "cross_entropy",
        -1,
        expand_cross_entropy,
        cross_entropy_vjp,
        shape=dropped_axis,
        data=(0, 1),
        batch_arg=next_axis,
    ),
    composite(
        "counted_mean",
        3,
        lambda node: node.inputs[-1],
        counted_mean_vjp,
        batch_arg=same,
        is_pointwise=True,
    ),
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
    composite(
        "max_pool",
        1,
        expand_max_pool,
        max_pool_vjp,
        ORDERED,
        lambda windows, x: window_shape(x, windows)[: len(x)],
        batch_arg=next_windows,
    ),
)

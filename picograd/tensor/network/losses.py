"""Losses of classification. Reductions: "mean", "sum" or "none"."""

import warnings

from picograd.dtype import bool_
from picograd.engine.followed import event
from picograd.errors import DTypeError, ShapeError, ValueRangeError, check_known, check_probability
from picograd.graph import build_composite as composite
from picograd.graph.build_composite import custom
from picograd.graph.node import Node
from picograd.graph.shape import broadcast_shapes
from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.autocast import listed
from picograd.tensor.core.demands import answer, demand_labels
from picograd.tensor.core.function import composed, method_within, within
from picograd.tensor.core.known_values import check_between
from picograd.tensor.core.operands import promote_all
from picograd.tensor.core.recording import Recorded, apply
from picograd.tensor.core.repeated import repeated
from picograd.tensor.core.together import in_functional, together

entropy_of_classes = repeated(composite.cross_entropy)


def reduce_loss(op: str, loss: Tensor, reduction: str) -> Tensor:
    """Average, sum or keep the losses of all elements."""
    if reduction == "none":
        return loss
    check_known(op, "reduction", reduction, ("mean", "sum", "none"))
    return loss.mean() if reduction == "mean" else loss.sum()


@method_within("functional")
@listed
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int | None = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Compute -log softmax(input)[target]: scores (B, C) or (B, C, ...), classes on axis 1.

    `target` holds class numbers (B, ...) or, as floats, probabilities of the shape of the input.
    Targets equal to `ignore_index` do not count; with None all do, so that the mean divides by a
    known count. A label that is no class raises AxisError when the labels are few and already
    computed on the CPU; else its loss is NaN.

    >>> round(cross_entropy(Tensor([[1.0, 3.0], [9.0, 0.0]]), Tensor([1, -100])).item(), 4)
    0.1269
    """
    op = "cross_entropy"
    check_probability(op, "label_smoothing", label_smoothing)
    _check_weight(op, input, weight)
    ignored = check_labels(op, input, target, ignore_index)
    if weight is None and not target.dtype.is_float:
        options = (reduction, label_smoothing, ignored)
        return apply(entropy_of_classes, input, target, *options)
    axis = 1 if len(input.shape) > 1 else 0
    scores = input.log_softmax(axis)
    if target.dtype.is_float:
        return _soft_cross_entropy(op, scores, target, axis, weight, reduction, label_smoothing)
    loss = nll_loss(scores, target, weight, ignored, reduction)
    if not label_smoothing or weight is None:
        return loss
    even = _even_loss(scores, target, weight, ignored, reduction, axis)
    even = even / scores.shape[axis]
    return loss * (1.0 - label_smoothing) + even * label_smoothing


@within("functional")
def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: object = None,
) -> Tensor:  # fmt: skip
    """Compute the cross entropy of scores that are linear in the input: (N, I) or (I,).

    `linear_weight` (C, ..., I) and `linear_bias` (C, ...) make scores (N, C, ...). `options`, about
    chunks in PyTorch, change nothing.

    >>> from picograd import Tensor, nn
    >>> even = Tensor.zeros(2, 3)
    >>> nn.functional.linear_cross_entropy(Tensor.ones(1, 3), even, Tensor([1])).item()
    0.6931...
    """
    *shape, size = linear_weight.shape
    bias = None if linear_bias is None else linear_bias.flatten()
    scores = input.linear(linear_weight.reshape(-1, size), bias)
    scores = scores.reshape(*input.shape[:-1], *shape)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(scores, target, weight, ignored, reduction, label_smoothing)


def _even_loss(
    scores: Tensor,
    target: Tensor,
    weight: Tensor,
    ignore_index: int | None,
    reduction: str,
    axis: int,
) -> Tensor:
    """Cost of every class counting the same; the mean divides by the weights of the targets."""
    loss = -(scores * weight.reshape(*_beside_axis(scores, axis))).sum(axis)
    used = target >= 0
    if ignore_index is not None:
        used = is_used(target, ignore_index)
        loss = used.where(loss, 0.0)
    if reduction != "mean":
        return reduce_loss("cross_entropy", loss, reduction)
    picked = weight[used.where(target, 0)]
    return loss.sum() / used.where(picked, 0.0).sum()


@event
def check_labels(op: str, scores: Tensor, target: Tensor, ignore_index: int | None) -> int | None:
    """Demand that every label is a class, or ignored: else AxisError.

    Gives the label to ignore, or None if no label can be or is seen to be that: then the count of
    the others need not be computed.
    """
    if ignore_index is not None and ignore_index >= 0 and target.dtype.is_float:
        problem = f"ignore_index={ignore_index} beside targets that are probabilities"
        raise ValueRangeError(op, problem, "leave it out, or pass class numbers")
    if ignore_index is not None and target.dtype.kind == "uint" and ignore_index < 0:
        ignore_index = None
    if not target.dtype.is_integer or not target.numel() or not scores.shape:
        return ignore_index
    classes = scores.shape[1 if len(scores.shape) > 1 else 0]
    demand_labels(op, target.node, classes, ignore_index)
    if ignore_index is None:
        return None
    name = "is met", ignore_index
    is_met = answer(target.node, name, lambda labels: bool((labels == ignore_index).any()))
    return None if is_met is False else ignore_index


def _check_weight(op: str, scores: Tensor, weight: Tensor | None) -> None:
    if weight is None or not scores.shape:
        return
    classes = scores.shape[1 if len(scores.shape) > 1 else 0]
    if tuple(weight.shape) != (classes,):
        problem = f"weight of shape {tuple(weight.shape)} does not fit {classes} classes"
        raise ShapeError(op, problem, "give one weight per class")


def _soft_cross_entropy(
    op: str,
    scores: Tensor,
    target: Tensor,
    axis: int,
    weight: Tensor | None,
    reduction: str,
    smoothing: float,
) -> Tensor:
    _check_probabilities(op, scores, target)
    classes = scores.shape[axis]
    if smoothing:
        target = target * (1.0 - smoothing) + smoothing / classes
    if weight is not None:
        scores = scores * weight.reshape(*_beside_axis(scores, axis))
    loss = -(scores * target).sum(axis)
    if reduction == "mean":  # PyTorch: average over samples, not over classes
        return loss.mean()
    return reduce_loss(op, loss, reduction)


@method_within("functional")
@listed
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int | None = -100,
    reduction: str = "mean",
) -> Tensor:
    """Compute -input[target]: log-probabilities (B, C, ...), class numbers (B, ...).

    Labels are checked and ignored as in `cross_entropy`.

    >>> nn.functional.nll_loss(Tensor([[-1.0, -2.0]]), Tensor([1])).item()
    2.0
    """
    op = "nll_loss"
    _check_target(op, input, target, 1 if len(input.shape) > 1 else 0)
    _check_weight(op, input, weight)
    ignored = check_labels(op, input, target, ignore_index)
    return chosen_costs(input, target, weight, ignored, reduction)


@together
def chosen_costs(
    scores: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int | None, reduction: str
) -> Tensor:
    """Compute `nll_loss` of labels that were checked; None where all count."""
    axis = 1 if len(scores.shape) > 1 else 0
    # Comparing with the class numbers, instead of gathering, lets the choice fuse into the
    # softmax's row kernel and keeps the gradient free of scatter.
    numbers = Recorded.kind.arange(scores.shape[axis], device=scores.device, dtype=target.dtype)
    is_target = numbers.reshape(*_beside_axis(scores, axis)) == target.unsqueeze(axis)
    if ignore_index is not None:
        is_target = is_target & is_used(target, ignore_index).unsqueeze(axis)
    costs = -scores
    if weight is not None:
        costs = costs * weight.reshape(*_beside_axis(scores, axis))
    loss = is_target.where(costs, 0.0).sum(axis)  # (B, ...)
    if reduction != "mean":
        return reduce_loss("nll_loss", loss, reduction)
    if weight is not None:
        table = weight.reshape(*_beside_axis(scores, axis))
        return loss.sum() / is_target.where(table, 0.0).sum()
    return loss.mean() if ignore_index is None else loss.sum() / is_used(target, ignore_index).sum()


def is_used(target: Tensor, ignore_index: int) -> Tensor:
    """Tell which targets count."""
    return target != ignore_index


@composed("binary_crossentropy", function=False)
@within("functional")
@listed
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Compute -t log x - (1 - t) log(1 - x), logarithms cut off at -100 as in PyTorch.

    The gradient divides by x (1 - x), at least 1e-12. What is outside [0, 1] raises a
    ValueRangeError where it is in memory; the loss of what has still to be computed is NaN.

    >>> nn.functional.binary_cross_entropy(Tensor([0.5, 0.5]), Tensor([0.0, 1.0])).item()
    0.6931...
    """
    op = "binary_cross_entropy"
    same_shape(op, input, target)
    if not input.dtype.is_float:
        text = f"is not defined for {input.dtype.name} inputs"
        raise DTypeError(op, text, "call .float() first")
    check_between(op, "the input", input._node, 0.0, 1.0)
    check_between(op, "the target", target._node, 0.0, 1.0)
    loss = apply(saturated_entropy, input, target)
    if weight is not None:
        loss = loss * weight
    return reduce_loss(op, loss, reduction)


def saturated_entropy(input: Node, target: Node) -> Node:
    """Compute -t log x - (1 - t) log(1 - x) with cut-off logarithms; gradients are PyTorch's.

    What is no probability has no entropy: NaN, where the values were not known to raise for them.
    """
    x, t = promote_all("binary_cross_entropy", [input, target])
    yes, no = cut_log(x), cut_log(1.0 - x)
    is_low, is_high = x.const_like(0).binary("less_equal", x), x.binary("less_equal", 1.0)
    is_share = is_low.binary("logical_and", is_high)

    def vjp(gradient: Node, output: Node, x: Node, t: Node) -> tuple[Node, Node]:
        slope = (x - t) / ((1.0 - x) * x).binary("maximum", 1e-12)
        return gradient * slope, gradient * ((1.0 - x).unary("log") - x.unary("log"))

    value = is_share.where((t - 1.0) * no - t * yes, float("nan"))
    return custom(value, (x, t), vjp)


def cut_log(x: Node) -> Node:
    """Compute a logarithm that is at least -100."""
    is_zero = x.binary("less_equal", 0.0)
    return is_zero.where(-100.0, is_zero.where(1.0, x).unary("log").binary("maximum", -100.0))


@composed("binary_crossentropy_logits", function=False)
@in_functional
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Compute -t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)) without overflow.

    >>> nn.functional.binary_cross_entropy_with_logits(Tensor([0.0, 0.0]), Tensor([0.0,
    ...     1.0])).item()
    0.6931...
    """
    op = "binary_cross_entropy_with_logits"
    same_shape(op, input, target)
    softplus = (-input).logaddexp(0.0)  # -log sigmoid(x)
    share = 1.0 if pos_weight is None else target * (pos_weight - 1.0) + 1.0
    loss = (1.0 - target) * input + softplus * share
    if weight is not None:
        loss = loss * weight
    return reduce_loss(op, loss, reduction)


@composed(function=False)
def sparse_categorical_crossentropy(
    input: Tensor,
    target: Tensor,
    ignore_index: int | None = -1,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Compute `cross_entropy` of class numbers; those equal to `ignore_index` do not count.

    >>> Tensor([[0.0, 0.0], [1.0, 2.0]]).sparse_categorical_crossentropy(Tensor([1, -1])).item()
    0.6931...
    """
    options = (None, ignore_index, reduction, label_smoothing)
    return cross_entropy(input, target, *options)


def _beside_axis(scores: Tensor, axis: int) -> tuple[int, ...]:
    """Shape that puts a vector along `axis` of `scores`."""
    return tuple(size if i == axis else 1 for i, size in enumerate(scores.shape))


def _check_target(op: str, scores: Tensor, target: Tensor, axis: int) -> None:
    if not target.dtype.is_integer:
        problem = f"class numbers must be integers, target is {target.dtype.name}"
        raise DTypeError(op, problem, "cast the target to picograd.int64")
    wanted = tuple(size for i, size in enumerate(scores.shape) if i != axis)
    if tuple(target.shape) != wanted:
        problem = f"target of shape {tuple(target.shape)} does not fit {tuple(scores.shape)}"
        raise ShapeError(op, problem, f"the target needs shape {wanted}")


def _check_probabilities(op: str, scores: Tensor, target: Tensor) -> None:
    if tuple(target.shape) != tuple(scores.shape):
        problem = f"a target of {target.dtype.name} is probabilities of {tuple(scores.shape)}"
        problem = f"{problem}, this one has shape {tuple(target.shape)}"
        fix = "if it is class numbers, pass target.long()"
        raise ShapeError(op, problem, fix)


def same_shape(op: str, a: Tensor, b: Tensor) -> None:
    """Raise ShapeError unless both tensors have one shape."""
    need_tensor(op, input=a, target=b)
    if tuple(a.shape) != tuple(b.shape):
        problem = f"shapes differ: {tuple(a.shape)} and {tuple(b.shape)}"
        raise ShapeError(op, problem, "reshape one, or expand it with .expand(...)")


def broadcast(op: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Broadcast an input and a target, with a warning, as PyTorch does where shapes differ.

    Booleans beside numbers count as 0 and 1.
    """
    need_tensor(op, input=input, target=target)
    if target.dtype is bool_ and input.dtype is not bool_:
        target = target.to(input.dtype)
    elif input.dtype is bool_ and target.dtype is not bool_:
        input = input.to(target.dtype)
    shapes = tuple(input.shape), tuple(target.shape)
    if shapes[0] == shapes[1]:
        return input, target
    wanted = broadcast_shapes(*shapes, op=op)
    text = f"{op}: shapes differ: {shapes[0]} and {shapes[1]}; the loss is one of {wanted}."
    warnings.warn(f"{text} Fix: reshape one, or expand it with .expand(...).", stacklevel=4)
    return input.expand(wanted), target.expand(wanted)

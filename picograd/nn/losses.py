"""Loss functions, and the same as modules. Reductions: "mean", "sum" or "none"."""

from typing import Any

from picograd.errors import DTypeError, ShapeError, ValueRangeError
from picograd.graph import build_composite as composite
from picograd.nn.module import Module
from picograd.tensor.tensor import Tensor, apply


def reduce_loss(op: str, loss: Tensor, reduction: str) -> Tensor:
    """Average, sum or keep the losses of all elements."""
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        problem = f"reduction={reduction!r} is unknown"
        raise ValueRangeError(op, problem, 'use "mean", "sum" or "none"')
    return loss.mean() if reduction == "mean" else loss.sum()


def cross_entropy(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Compute -log softmax(logits)[target]: logits (B, C) or (B, C, ...), classes on axis 1.

    `target` holds class numbers (B, ...) or, as floats, probabilities of the shape of the logits.
    Targets equal to `ignore_index` do not count (PyTorch's default is -100; here none is ignored
    unless asked for, so that the mean divides by a known count).
    """
    op = "cross_entropy"
    if weight is None and not target.dtype.is_float:
        options = (reduction, label_smoothing, ignore_index)
        return apply(composite.cross_entropy, logits, target, *options)
    axis = 1 if len(logits.shape) > 1 else 0
    scores = logits.log_softmax(axis)
    if target.dtype.is_float:
        return _soft_cross_entropy(op, scores, target, axis, weight, reduction, label_smoothing)
    if label_smoothing:
        raise ValueRangeError(op, "label_smoothing does not combine with weight", "use one")
    return nll_loss(scores, target, weight, ignore_index, reduction)


def _soft_cross_entropy(
    op: str,
    scores: Tensor,
    target: Tensor,
    axis: int,
    weight: Tensor | None,
    reduction: str,
    smoothing: float,
) -> Tensor:
    _same_shape(op, scores, target)
    classes = scores.shape[axis]
    if smoothing:
        target = target * (1.0 - smoothing) + smoothing / classes
    if weight is not None:
        scores = scores * weight.reshape(*_beside_axis(scores, axis))
    loss = -(scores * target).sum(axis)
    if reduction == "mean":  # PyTorch: average over samples, not over classes
        return loss.mean()
    return reduce_loss(op, loss, reduction)


def nll_loss(
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute -scores[target]: log-probabilities (B, C, ...), class numbers (B, ...)."""
    op, axis = "nll_loss", 1 if len(scores.shape) > 1 else 0
    _check_target(op, scores, target, axis)
    # Comparing with the class numbers, instead of gathering, lets the choice fuse into the
    # softmax's row kernel and keeps the gradient free of scatter.
    numbers = Tensor.arange(scores.shape[axis], device=scores.device, dtype=target.dtype)
    is_target = numbers.reshape(*_beside_axis(scores, axis)) == target.unsqueeze(axis)
    if ignore_index is not None:
        is_target = is_target & is_used(target, ignore_index).unsqueeze(axis)
    costs = -scores
    if weight is not None:
        costs = costs * weight.reshape(*_beside_axis(scores, axis))
    loss = is_target.where(costs, 0.0).sum(axis)  # (B, ...)
    if reduction != "mean":
        return reduce_loss(op, loss, reduction)
    if weight is not None:
        table = weight.reshape(*_beside_axis(scores, axis))
        return loss.sum() / is_target.where(table, 0.0).sum()
    return loss.mean() if ignore_index is None else loss.sum() / is_used(target, ignore_index).sum()


def is_used(target: Tensor, ignore_index: int) -> Tensor:
    """Tell which targets count."""
    return target != ignore_index


def mse_loss(prediction: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Compute (prediction - target) ** 2."""
    _same_shape("mse_loss", prediction, target)
    difference = prediction - target
    return reduce_loss("mse_loss", difference * difference, reduction)


def l1_loss(prediction: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Compute |prediction - target|."""
    _same_shape("l1_loss", prediction, target)
    return reduce_loss("l1_loss", (prediction - target).abs(), reduction)


def binary_cross_entropy_with_logits(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Compute -t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)) without overflow."""
    op = "binary_cross_entropy_with_logits"
    _same_shape(op, logits, target)
    # log(1 + exp(-|x|)) + max(-x, 0) = -log sigmoid(x), and exp never sees a positive argument.
    softplus = ((-logits.abs()).exp() + 1.0).log() + (-logits).relu()
    share = 1.0 if pos_weight is None else target * (pos_weight - 1.0) + 1.0
    loss = (1.0 - target) * logits + softplus * share
    if weight is not None:
        loss = loss * weight
    return reduce_loss(op, loss, reduction)


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


def _same_shape(op: str, a: Tensor, b: Tensor) -> None:
    if tuple(a.shape) != tuple(b.shape):
        problem = f"shapes differ: {tuple(a.shape)} and {tuple(b.shape)}"
        raise ShapeError(op, problem, "reshape one, or expand it with .expand(...)")


class Loss(Module):
    """This class keeps the options of a loss function."""

    def __init__(self, **options: Any) -> None:
        self.options = options

    def extra_repr(self) -> str:
        """Describe the settings."""
        shown = {k: v for k, v in self.options.items() if not isinstance(v, Tensor)}
        return ", ".join(f"{name}={value!r}" for name, value in shown.items())


class CrossEntropyLoss(Loss):
    """This class computes `cross_entropy`, with its options."""

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return cross_entropy(logits, target, **self.options)


class NLLLoss(Loss):
    """This class computes `nll_loss`, with its options."""

    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return nll_loss(scores, target, **self.options)


class MSELoss(Loss):
    """This class computes `mse_loss`, with its options."""

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return mse_loss(prediction, target, **self.options)


class L1Loss(Loss):
    """This class computes `l1_loss`, with its options."""

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return l1_loss(prediction, target, **self.options)


class BCEWithLogitsLoss(Loss):
    """This class computes `binary_cross_entropy_with_logits`, with its options."""

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute the loss."""
        return binary_cross_entropy_with_logits(logits, target, **self.options)

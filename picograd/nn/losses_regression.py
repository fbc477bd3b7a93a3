"""Losses of regression and of densities. Reductions: "mean", "sum" or "none"."""

import math

from picograd.errors import ShapeError, ValueRangeError
from picograd.nn.losses import reduce_loss, same_shape
from picograd.nn.parameter import check_tensor
from picograd.tensor.tensor import Tensor


def mse_loss(prediction: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Compute (prediction - target) ** 2."""
    same_shape("mse_loss", prediction, target)
    difference = prediction - target
    return reduce_loss("mse_loss", difference * difference, reduction)


def l1_loss(prediction: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Compute |prediction - target|."""
    same_shape("l1_loss", prediction, target)
    return reduce_loss("l1_loss", (prediction - target).abs(), reduction)


def smooth_l1_loss(
    prediction: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """Compute d^2 / (2 beta) where d = |x - t| is below beta, else d - beta / 2.

    Girshick (2015).
    """
    op = "smooth_l1_loss"
    same_shape(op, prediction, target)
    if beta < 0.0:
        raise ValueRangeError(op, f"beta={beta} is negative", "use 0 or more")
    distance = (prediction - target).abs()
    if beta == 0.0:
        return reduce_loss(op, distance, reduction)
    square = distance * distance * (0.5 / beta)
    return reduce_loss(op, (distance < beta).where(square, distance - 0.5 * beta), reduction)


def huber_loss(
    prediction: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Compute d^2 / 2 where d = |x - t| <= delta, else delta (d - delta / 2) (Huber, 1964)."""
    op = "huber_loss"
    same_shape(op, prediction, target)
    if delta <= 0.0:
        raise ValueRangeError(op, f"delta={delta} is not positive", "use more than 0")
    distance = (prediction - target).abs()
    line = (distance - 0.5 * delta) * delta
    loss = (distance <= delta).where(distance * distance * 0.5, line)
    return reduce_loss(op, loss if weight is None else loss * weight, reduction)


def kl_div(
    scores: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """Compute t (log t - x) for log-probabilities x: the Kullback-Leibler divergence.

    `log_target`: the target holds log t. reduction="batchmean" divides the sum by the batch.
    """
    op = "kl_div"
    same_shape(op, scores, target)
    if log_target:
        loss = target.exp() * (target - scores)
    else:
        is_zero = target == 0.0
        entropy = is_zero.where(0.0, target * is_zero.where(1.0, target).log())
        loss = entropy - target * scores
    if reduction == "batchmean":
        return loss.sum() / max(1, scores.shape[0])
    return reduce_loss(op, loss, reduction)


def poisson_nll_loss(
    prediction: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """Compute exp(x) - t x, or x - t log(x + eps) without `log_input`.

    `full` adds Stirling's approximation of log t! for t > 1.
    """
    op = "poisson_nll_loss"
    same_shape(op, prediction, target)
    if log_input:
        loss = prediction.exp() - target * prediction
    else:
        loss = prediction - target * (prediction + eps).log()
    if full:
        is_large = target > 1.0
        count = is_large.where(target, 1.0)
        stirling = count * count.log() - count + (count * (2.0 * math.pi)).log() * 0.5
        loss = loss + is_large.where(stirling, 0.0)
    return reduce_loss(op, loss, reduction)


def gaussian_nll_loss(
    prediction: Tensor,
    target: Tensor,
    var: Tensor,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Compute (log v + (x - t)^2 / v) / 2 with v = max(var, eps) (Nix and Weigend, 1994).

    `var` has the input's shape, or its last axis is 1 or missing; the cut at eps does not stop the
    gradient. `full` adds log(2 pi) / 2.
    """
    op = "gaussian_nll_loss"
    check_tensor(op, prediction, target, var)
    if tuple(var.shape) == tuple(prediction.shape[:-1]) != tuple(prediction.shape):
        var = var.unsqueeze(-1)
    wanted = (tuple(prediction.shape), (*prediction.shape[:-1], 1))
    if tuple(var.shape) not in wanted:
        problem = f"var of shape {tuple(var.shape)} for input {tuple(prediction.shape)}"
        raise ShapeError(op, problem, "give one variance per element, or per row")
    spread = var + (var.maximum(eps) - var).detach()
    difference = prediction - target
    loss = (spread.log() + difference * difference / spread) * 0.5
    if full:
        loss = loss + 0.5 * math.log(2.0 * math.pi)
    return reduce_loss(op, loss, reduction)

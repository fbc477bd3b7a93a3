"""Losses of regression and of densities. Reductions: "mean", "sum" or "none"."""

import math

from picograd.errors import DTypeError, ShapeError, check_least, check_positive
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.autocast import listed
from picograd.tensor.core.function import within
from picograd.tensor.core.known_values import check_between
from picograd.tensor.network.losses import reduce_loss, same_shape
from picograd.tensor.tensor import Tensor


@within("functional")
@listed
def mse_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """Compute (input - target) ** 2; a weighted "mean" divides by the sum of the weights.

    >>> from picograd import Tensor, nn
    >>> nn.functional.mse_loss(Tensor([1.0, 5.0]), Tensor([1.0, 2.0])).item()
    4.5
    """
    same_shape("mse_loss", input, target)
    difference = input - target
    if difference.dtype.is_complex:
        text = f"is not defined for {difference.dtype.name}"
        raise DTypeError("mse_loss", text, "square (input - target).abs() yourself")
    return _weighted("mse_loss", difference * difference, weight, reduction)


@within("functional")
@listed
def l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """Compute |input - target|; a weighted "mean" divides by the sum of the weights.

    >>> from picograd import Tensor, nn
    >>> nn.functional.l1_loss(Tensor([1.0, 5.0]), Tensor([1.0, 2.0])).item()
    1.5
    """
    same_shape("l1_loss", input, target)
    return _weighted("l1_loss", (input - target).abs(), weight, reduction)


def _weighted(op: str, loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    if weight is None:
        return reduce_loss(op, loss, reduction)
    same_shape(op, loss, weight)
    if reduction == "mean":
        return (loss * weight).sum() / weight.sum()
    return reduce_loss(op, loss * weight, reduction)


@within("functional")
@listed
def smooth_l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """Compute d^2 / (2 beta) where d = |x - t| is below beta, else d - beta / 2.

    Girshick (2015).

    >>> from picograd import Tensor, nn
    >>> nn.functional.smooth_l1_loss(Tensor([1.0, 5.0]), Tensor([1.0, 2.0])).item()
    1.25
    """
    op = "smooth_l1_loss"
    same_shape(op, input, target)
    check_least(op, "beta", beta)
    difference = input - target
    distance = difference.abs()
    if beta == 0.0:
        return reduce_loss(op, distance, reduction)
    square = difference * difference * (0.5 / beta)
    return reduce_loss(op, (distance < beta).where(square, distance - 0.5 * beta), reduction)


@within("functional")
@listed
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Compute d^2 / 2 where d = |x - t| <= delta, else delta (d - delta / 2) (Huber, 1964).

    >>> from picograd import Tensor, nn
    >>> nn.functional.huber_loss(Tensor([1.0, 5.0]), Tensor([1.0, 2.0])).item()
    1.25
    """
    op = "huber_loss"
    same_shape(op, input, target)
    check_positive(op, "delta", delta)
    difference = input - target
    distance = difference.abs()
    line = (distance - 0.5 * delta) * delta
    loss = (distance <= delta).where(difference * difference * 0.5, line)
    return reduce_loss(op, loss if weight is None else loss * weight, reduction)


@within("functional")
@listed
def kl_div(
    input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """Compute t (log t - x) for log-probabilities x: the Kullback-Leibler divergence.

    `log_target`: the target holds log t. reduction="batchmean" divides the sum by the batch.

    >>> from picograd import Tensor, nn
    >>> nn.functional.kl_div(Tensor([[0.0, 0.0]]), Tensor([[0.5, 0.5]]),
    ...     reduction="batchmean").item()
    -0.6931...
    """
    op = "kl_div"
    same_shape(op, input, target)
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = target.xlogy(target) - target * input
    if reduction == "batchmean":
        batch = input.shape[0] if input.ndim else 1
        return loss.sum() / max(1, batch)
    return reduce_loss(op, loss, reduction)


@within("functional")
@listed
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """Compute exp(x) - t x, or x - t log(x + eps) without `log_input`.

    `full` adds Stirling's approximation of log t! for t > 1.

    >>> from picograd import Tensor, nn
    >>> nn.functional.poisson_nll_loss(Tensor([0.0, 0.0]), Tensor([1.0, 2.0])).item()
    1.0
    """
    op = "poisson_nll_loss"
    same_shape(op, input, target)
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:
        is_large = target > 1.0
        count = is_large.where(target, 1.0)
        stirling = count * count.log() - count + (count * (2.0 * math.pi)).log() * 0.5
        loss = loss + is_large.where(stirling, 0.0)
    return reduce_loss(op, loss, reduction)


@within("functional")
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Compute (log v + (x - t)^2 / v) / 2 with v = max(var, eps) (Nix and Weigend, 1994).

    `var` has the input's shape, or axes of it are 1, or the last one is missing; the cut at eps
    does not stop the gradient. `full` adds log(2 pi) / 2.

    >>> from picograd import Tensor, nn
    >>> nn.functional.gaussian_nll_loss(Tensor([1.0, 2.0]), Tensor([2.0, 2.0]), Tensor([1.0,
    ...     1.0])).item()
    0.25
    """
    op = "gaussian_nll_loss"
    need_tensor(op, input=input, target=target, var=var)
    check_between(op, "var", var.node, 0.0, math.inf)
    if tuple(var.shape) == tuple(input.shape[:-1]) != tuple(input.shape):
        var = var.unsqueeze(-1)
    is_spread = var.ndim == input.ndim and all(a in (1, b) for a, b in zip(var.shape, input.shape))
    if not is_spread:
        problem = f"var of shape {tuple(var.shape)} for input {tuple(input.shape)}"
        raise ShapeError(op, problem, "give one variance per element, or per row")
    spread = var + (var.maximum(eps) - var).detach()
    difference = input - target
    loss = (spread.log() + difference * difference / spread) * 0.5
    if full:
        loss = loss + 0.5 * math.log(2.0 * math.pi)
    return reduce_loss(op, loss, reduction)

"""Normalisation over the batch, groups of channels, instances and features."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from picograd.dtype import accumulate_dtype
from picograd.engine.followed import event
from picograd.errors import ShapeError, ValueRangeError
from picograd.graph import build
from picograd.graph import build_composite as composite
from picograd.graph.node import Node
from picograd.helpers import product
from picograd.number import given
from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.function import composed, within
from picograd.tensor.core.operands import as_axes
from picograd.tensor.core.recording import Recorded, apply, write_each
from picograd.tensor.core.repeated import repeated
from picograd.tensor.core.together import in_functional, together
from picograd.tensor.math.elementwise import arithmetic

over_features = repeated(composite.layer_norm)


@within("functional")
def layer_norm(
    input: Tensor,
    normalized_shape: tuple[int, ...],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise over the last axes to mean 0 and variance 1, then scale and shift.

    >>> nn.functional.layer_norm(Tensor([[-1.0, 1.0]]), (2,), eps=0.0).tolist()
    [[-1.0, 1.0]]
    """
    rank = len(normalized_shape)
    if tuple(input.shape[len(input.shape) - rank :]) != tuple(normalized_shape):
        problem = f"input of shape {tuple(input.shape)} does not end in {tuple(normalized_shape)}"
        raise ShapeError("layer_norm", problem, "pass the sizes of the last axes")
    return apply(over_features, input, rank, weight, bias, eps)


@within("functional")
def batch_normalize(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise each channel (axis 1) by the batch; also return its mean and biased variance.

    The statistics come without gradient; that of the result takes them into account.

    >>> nn.functional.batch_normalize(Tensor([[-1.0], [1.0]]), Tensor([1.0]), Tensor([0.0]),
    ...     eps=0.0)[0].tolist()
    [[-1.0], [1.0]]
    """
    y, stats = normalized(input, (weight, bias), (), by_batch, given(eps))
    mean, var = (Recorded.kind.from_node(build.detach(node)) for node in stats)
    return y, mean, var


def normalized(
    input: Tensor, affine: tuple[Tensor | None, Tensor | None], more: tuple[Tensor, ...],
    function: Callable[..., list[Node]], *options: Any,
) -> tuple[Tensor, list[Node]]:  # fmt: skip
    """Record a function on nodes of an input, its scale and shift, and more: the first result as a
    tensor, the others as they are.
    """
    others: list[Node] = []

    def record(*nodes: Node) -> Node:
        y, *others[:] = function(*nodes, *options)
        return y

    place = dict(device=input.device, dtype=accumulate_dtype(input.dtype))
    weight, bias = affine
    scale = Recorded.kind.ones(input.shape[1], **place) if weight is None else weight
    shift = Recorded.kind.zeros(input.shape[1], **place) if bias is None else bias
    return apply(record, input, scale, shift, *more), others


@repeated
def by_batch(input: Node, weight: Node, bias: Node, eps: float) -> list[Node]:
    """Normalise each channel by the batch: the result, its mean and biased variance."""
    mean, var = composite.batch_stats(input)
    return [composite.batch_norm(input, weight, bias, eps, (mean, var)), mean, var]


@event
def normalize_and_track(
    input: Tensor, affine: tuple[Tensor | None, Tensor | None],
    running: tuple[Tensor, Tensor, Tensor], rate: float, eps: float,
) -> Tensor:  # fmt: skip
    """Normalise each channel by the batch, and bring the running mean and variance nearer to its
    own, in place; the third is the number of batches.
    """
    count = input.numel() // max(1, input.shape[1])
    numbers = given(rate), given(eps), count / max(1, count - 1)
    y, following = normalized(input, affine, running, by_batch_and_next, *numbers)
    write_each(running, following)
    return y


@repeated
def by_batch_and_next(
    input: Node, weight: Node, bias: Node, mean: Node, var: Node, batches: Node, rate: float,
    eps: float, factor: float,
) -> list[Node]:  # fmt: skip
    """Normalise each channel by the batch: the result, and the next running statistics."""
    y, *stats = by_batch(input, weight, bias, eps)
    one, other = map(build.detach, stats)
    after = nearer(mean, one, rate, 1.0), nearer(var, other, rate, factor)
    return [y, *after, arithmetic("add", batches, 1)]


@within("functional")
@together
def normalize_channels(
    input: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """Compute (x - mean) / sqrt(var + eps) * weight + bias for each channel (axis 1).

    >>> nn.functional.normalize_channels(Tensor([[1.0], [3.0]]), Tensor([2.0]), Tensor([1.0]),
    ...     None, None, 0.0).tolist()
    [[-1.0], [1.0]]
    """
    shape = (1, input.shape[1]) + (1,) * (len(input.shape) - 2)
    scale = (var + eps).rsqrt()
    if weight is not None:
        scale = scale * weight
    y = (input - mean.reshape(shape)) * scale.reshape(shape)
    if bias is not None:
        y = y + bias.reshape(shape)
    return y.cast(input.dtype)


@within("functional")
@together
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each sample over groups of channels: (B, C, *S) -> the same (Wu and He, 2018).

    16-bit floats are averaged in float32. Raises ShapeError when groups do not divide C.

    >>> nn.functional.group_norm(Tensor([[[-1.0], [1.0]]]), 1, eps=0.0).tolist()
    [[[-1.0], [1.0]]]
    """
    batch, channels = input.shape[:2]
    if channels % num_groups:
        shape = tuple(input.shape)
        problem = f"{channels} channels of {shape} do not divide into {num_groups} groups"
        raise ShapeError("group_norm", problem, "choose a divisor")
    if batch * channels:
        check_several("group_norm", "a value per group", input, input.numel() // num_groups)
    # Channels stay an axis of their own: what scales them works on the rows that were averaged.
    sizes = num_groups, channels // num_groups, math.prod(input.shape[2:])
    normed = apply(over_features, input.reshape(batch, *sizes), 2, None, None, eps)
    y = normed if weight is None else normed * weight.reshape(*sizes[:2], 1)
    y = y if bias is None else y + bias.reshape(*sizes[:2], 1)
    return y.cast(normed.dtype).reshape(input.shape)  # what autocast chose


def check_several(op: str, what: str, input: Tensor, count: int) -> None:
    """Raise ValueRangeError where statistics would be of one value: they would make it 0."""
    if count == 1:
        text = f"input of shape {tuple(input.shape)} has only {what}, there is nothing to average"
        raise ValueRangeError(op, text, "pass a larger batch, or training=False")


@within("functional")
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel (axis 1) by the batch, or without `training` by the running values.

    Training moves the running mean and unbiased variance in place (Ioffe and Szegedy, 2015).
    Raises ValueRangeError for evaluation without running values.

    >>> nn.functional.batch_norm(Tensor([[1.0], [3.0]]), Tensor([2.0]), Tensor([1.0]),
    ...     eps=0.0).tolist()
    [[-1.0], [1.0]]
    """
    if input.numel() == 0:
        return nothing_to_normalize(input, weight, bias)
    if not training:
        if running_mean is None or running_var is None:
            problem = "evaluation needs running_mean and running_var"
            raise ValueRangeError("batch_norm", problem, "pass them, or training=True")
        return normalize_channels(input, running_mean, running_var, weight, bias, eps)
    check_several("batch_norm", "a value per channel", input, input.numel() // input.shape[1])
    y, mean, var = batch_normalize(input, weight, bias, eps)
    count = input.numel() // max(1, input.shape[1])
    move(running_mean, mean, momentum)
    move(running_var, var, momentum, count / max(1, count - 1))
    return y


def nothing_to_normalize(input: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Give an empty batch, whose weight and bias have gradients of zero."""
    y = input if weight is None else input * weight[:1].sum()
    return y.clone() if bias is None else y + bias[:1].sum()


def move(running: Tensor | None, value: Tensor, rate: Any, factor: float = 1.0) -> None:
    """Bring a running statistic nearer to a value times a factor, by a rate."""
    if running is not None:
        running.assign(apply(nearer, running, value.detach(), rate, factor))


def track(
    running: tuple[Tensor, Tensor], batches: Tensor, mean: Tensor, var: Tensor, rate: Any,
    count: int,
) -> Tensor:  # fmt: skip
    """Bring a running mean and variance nearer to those of `count` values; one more than `batches`.

    A rate of None is one over the number of batches.
    """
    found = tracked(*running, batches, mean, var, rate, count / max(1, count - 1))
    for old, new in zip(running, found):
        old.assign(new)
    return found[-1]


@together
def tracked(
    running_mean: Tensor, running_var: Tensor, batches: Tensor, mean: Tensor, var: Tensor,
    rate: Any, factor: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Find the next running mean and unbiased variance, and the number of batches."""
    batches = batches + 1
    if rate is None:
        rate = 1.0 / batches.cast(running_mean.dtype)
    mean = apply(nearer, running_mean, mean.detach(), rate, 1.0)
    return mean, apply(nearer, running_var, var.detach(), rate, factor), batches


@repeated
def nearer(running: Node, value: Node, rate: float | Node, factor: float) -> Node:
    """Compute running + rate * (factor * value - running) in the dtype of `running`."""
    value = value if factor == 1 else arithmetic("mul", value, factor)
    away = arithmetic("sub", value.cast(running.dtype), running)
    return arithmetic("add", running, arithmetic("mul", rate, away)).cast(running.dtype)


@within("functional")
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each sample over space: (B, C, *S) (Ulyanov et al., 2016).

    Without `use_input_stats` by the running values, which otherwise move in place if given.

    >>> nn.functional.instance_norm(Tensor([[[-1.0, 1.0]]]), eps=0.0).tolist()
    [[[-1.0, 1.0]]]
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    check_several("instance_norm", "an element of space", input, math.prod(input.shape[2:]))
    if running_mean is not None or running_var is not None:
        space = tuple(range(2, len(input.shape)))
        fixed = input.detach()
        move(running_mean, fixed.mean(space).mean(0), momentum)
        move(running_var, fixed.var(space).mean(0), momentum)
    return group_norm(input, input.shape[1], weight, bias, eps)


@within("functional")
@together
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Compute x / (k + alpha * mean(x^2 of `size` neighbouring channels)) ** beta.

    Krizhevsky et al. (2012), for (B, C, *S). Means of integers are rounded down, as in PyTorch.

    >>> nn.functional.local_response_norm(Tensor([[[1.0], [2.0]]]), 2).shape
    (1, 2, 1)
    """
    margins = [(0, 0)] * len(input.shape)
    channels = input.shape[1]
    low, high = min(size // 2, channels), min(size - 1 - size // 2, channels)
    margins[1] = (low, high)  # beyond the channels there are zeros
    seen = low + 1 + high
    windows = (input * input).pad(margins).unfold(1, seen, 1)
    if input.dtype.is_differentiable:
        shares = windows.mean(-1) * (alpha * seen / size)
    else:
        shares = windows.sum(-1) // size * alpha
    return input / (shares + k) ** beta


@in_functional
def rms_norm(
    input: Tensor,
    normalized_shape: tuple[int, ...],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divide by the root mean square over the last axes (Zhang and Sennrich, 2019).

    `eps` None: the machine epsilon of the dtype the mean is computed in. 16-bit floats are squared
    and averaged in float32.

    >>> nn.functional.rms_norm(Tensor([[2.0, -2.0]]), (2,), eps=0.0).tolist()
    [[1.0, -1.0]]
    """
    rank = len(normalized_shape)
    if not rank or tuple(input.shape[len(input.shape) - rank :]) != tuple(normalized_shape):
        problem = f"input of shape {tuple(input.shape)} does not end in {tuple(normalized_shape)}"
        raise ShapeError("rms_norm", problem, "pass the sizes of the last axes")
    wide = input.cast(accumulate_dtype(input.dtype))
    axes = tuple(range(len(input.shape) - rank, len(input.shape)))
    least = float(np.finfo(wide.dtype.numpy).eps) if eps is None else eps
    y = (wide * ((wide * wide).mean(axes, True) + least).rsqrt()).cast(input.dtype)
    return y if weight is None else (y * weight).cast(input.dtype)


@composed(function=False)
def layernorm(input: Tensor, axis: Any = -1, eps: float = 1e-5) -> Tensor:
    """Normalise over one axis or several to mean 0 and variance 1, without weights.

    >>> Tensor([[-1.0, 1.0]]).layernorm(eps=0.0).tolist()
    [[-1.0, 1.0]]
    """
    rank = len(input.shape)
    axes = as_axes(axis, rank, "layernorm")
    order = [at for at in range(rank) if at not in axes] + sorted(axes)
    y = apply(composite.layer_norm, input.permute(order), len(axes), None, None, eps)
    return y.permute([order.index(at) for at in range(rank)])


@composed(function=False)
def batchnorm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    invstd: Tensor,
    axis: Any = 1,
) -> Tensor:
    """Compute (x - mean) * invstd * weight + bias along an axis, or along several.

    `invstd` is 1 / standard deviation. Statistics, weight and bias have the sizes of the axes.

    >>> x, two = Tensor([[1.0, 3.0]]), Tensor([2.0, 2.0])
    >>> x.batchnorm(two, None, Tensor([1.0, 1.0]), Tensor([0.5, 0.5])).tolist()
    [[0.0, 2.0]]
    """
    axes = as_axes(axis, len(input.shape), "batchnorm")
    shape = [size if at in axes else 1 for at, size in enumerate(input.shape)]
    for each in (weight, bias, mean, invstd):
        if each is not None and each.numel() != product(shape):
            text = f"{tuple(each.shape)} does not fit axis {axis} of {tuple(input.shape)}"
            raise ShapeError("batchnorm", text, f"give {product(shape)} elements")
    scale = invstd if weight is None else invstd.reshape(shape) * weight.reshape(shape)
    y = (input - mean.reshape(shape)) * scale.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)

"""Losses of regression and of densities. Reductions: "mean", "sum" or "none".

Losses that compare distances and scores. Reductions: "mean", "sum" or "none".

Connectionist temporal classification (Graves et al., 2006): a loss of unaligned sequences.

The forward algorithm in logarithms: alpha[t, j] sums the paths that have read j + 1 symbols of the
target with blanks between, after t steps. A step is a dozen elementwise operations on (B, 2 S + 1);
the loop over time is a `picograd.scan`, so that the graph is the same for any T.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from picograd.errors import DTypeError, ShapeError, ValueRangeError, check_least, check_positive
from picograd.graph.sorting import along
from picograd.nn.functional_basic import pairwise_distance
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.autocast import listed
from picograd.tensor.core.demands import answer, demand_labels, is_below
from picograd.tensor.core.function import within
from picograd.tensor.core.known_values import check_between, known_values
from picograd.tensor.core.operands import need_integer
from picograd.tensor.core.recording import apply
from picograd.tensor.core.together import in_functional, together
from picograd.tensor.network.losses import broadcast, check_labels, reduce_loss, same_shape
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.scan import scan


@in_functional
def mse_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """Compute (input - target) ** 2; a weighted "mean" divides by the sum of the weights.

    >>> from picograd import Tensor, nn
    >>> nn.functional.mse_loss(Tensor([1.0, 5.0]), Tensor([1.0, 2.0])).item()
    4.5
    """
    input, target = broadcast("mse_loss", input, target)
    difference = input - target
    if difference.dtype.is_complex:
        text = f"is not defined for {difference.dtype.name}"
        raise DTypeError("mse_loss", text, "square (input - target).abs() yourself")
    return _weighted("mse_loss", difference * difference, weight, reduction)


@in_functional
def l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """Compute |input - target|; a weighted "mean" divides by the sum of the weights.

    >>> from picograd import Tensor, nn
    >>> nn.functional.l1_loss(Tensor([1.0, 5.0]), Tensor([1.0, 2.0])).item()
    1.5
    """
    input, target = broadcast("l1_loss", input, target)
    return _weighted("l1_loss", (input - target).abs(), weight, reduction)


def _weighted(op: str, loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    if weight is None:
        return reduce_loss(op, loss, reduction)
    same_shape(op, loss, weight)
    if reduction == "mean":
        return (loss * weight).sum() / weight.sum()
    return reduce_loss(op, loss * weight, reduction)


@in_functional
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
    input, target = broadcast(op, input, target)
    check_least(op, "beta", beta)
    difference = input - target
    distance = difference.abs()
    if beta == 0.0:
        return reduce_loss(op, distance, reduction)
    square = difference * difference * (0.5 / beta)
    return reduce_loss(op, (distance < beta).where(square, distance - 0.5 * beta), reduction)


@in_functional
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
    input, target = broadcast(op, input, target)
    check_positive(op, "delta", delta)
    difference = input - target
    distance = difference.abs()
    line = (distance - 0.5 * delta) * delta
    loss = (distance <= delta).where(difference * difference * 0.5, line)
    return reduce_loss(op, loss if weight is None else loss * weight, reduction)


@in_functional
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
    batch = input.shape[0] if input.ndim else 1
    input, target = broadcast(op, input, target)
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = target.xlogy(target) - target * input
    if reduction == "batchmean":
        return loss.sum() / max(1, batch)
    return reduce_loss(op, loss, reduction)


@in_functional
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
    input, target = broadcast(op, input, target)
    rate, log_rate = (input.exp(), input) if log_input else (input, (input + eps).log())
    loss = rate - target * log_rate
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


Distance = Callable[[Tensor, Tensor], Tensor]
# PyTorch adds this to squared norms in cosine_embedding_loss.
TINY = 1e-12


@in_functional
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Compute max(0, margin - y (a - b)), y = 1 where a should be larger, else -1.

    >>> from picograd import Tensor, nn
    >>> nn.functional.margin_ranking_loss(Tensor([1.0, 5.0]), Tensor([2.0, 2.0]), Tensor([1,
    ...     1])).item()
    0.5
    """
    need_tensor("margin_ranking_loss", input1, input2)
    loss = (-target * (input1 - input2) + margin).clamp(min=0.0)
    return reduce_loss("margin_ranking_loss", loss, reduction)


@in_functional
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Compute x where y = 1, and max(0, margin - x) where y = -1.

    >>> from picograd import Tensor, nn
    >>> nn.functional.hinge_embedding_loss(Tensor([2.0, 0.5]), Tensor([1, -1])).item()
    1.25
    """
    far = (target != 1).where((margin - input).clamp(min=0.0), 0.0)
    loss = (target != -1).where(input, 0.0) + far
    return reduce_loss("hinge_embedding_loss", loss, reduction)


@in_functional
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Compute log(1 + exp(-y input)) for y = 1 or -1.

    >>> from picograd import Tensor, nn
    >>> nn.functional.soft_margin_loss(Tensor([0.0, 0.0]), Tensor([1.0, -1.0])).item()
    0.6931...
    """
    input, target = broadcast("soft_margin_loss", input, target)
    return reduce_loss("soft_margin_loss", -(target * input).logsigmoid(), reduction)


@within("functional")
@together
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Average -t log sigmoid(x) - (1 - t) log sigmoid(-x) over the classes (last axis).

    >>> from picograd import Tensor, nn
    >>> nn.functional.multilabel_soft_margin_loss(Tensor([[0.0, 0.0]]), Tensor([[0.0, 1.0]])).item()
    0.6931...
    """
    op = "multilabel_soft_margin_loss"
    same_shape(op, input, target)
    loss = (target - 1.0) * (-input).logsigmoid() - target * input.logsigmoid()
    loss = loss if weight is None else loss * weight
    return reduce_loss(op, loss.mean(-1), reduction)


@within("functional")
@listed
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Sum w[y] max(0, margin - input[y] + input[j]) ** p over classes j != y, divided by C.

    input (B, C) or (C,), target (B,) or ().

    >>> from picograd import Tensor, nn
    >>> nn.functional.multi_margin_loss(Tensor([[0.0, 1.0]]), Tensor([0])).item()
    1.0
    """
    op = "multi_margin_loss"
    need_tensor(op, input=input, target=target)
    if p not in (1, 2):
        raise ValueRangeError(op, f"p={p} is neither 1 nor 2", "write the loss out")
    if not target.dtype.is_integer:
        raise DTypeError(op, f"target of dtype {target.dtype.name}", "give class numbers, int64")
    input = input if input.ndim else input.reshape(1)
    if input.ndim == 1 and target.numel() == 1:
        target = target.reshape(())
    if tuple(target.shape) != tuple(input.shape[:-1]):
        problem = f"target of shape {tuple(target.shape)} for input {tuple(input.shape)}"
        raise ShapeError(op, problem, "give one class number per row")
    check_labels(op, input, target, None)
    classes = Tensor.arange(input.shape[-1], device=input.device)
    is_target = classes == target.unsqueeze(-1)
    own = is_target.where(input, 0.0).sum(-1, keepdim=True)
    excess = (margin - own + input).relu()
    excess = excess if p == 1 else excess * excess
    if weight is not None:
        excess = excess * weight[target].unsqueeze(-1)
    loss = is_target.where(0.0, excess).sum(-1) / input.shape[-1]
    return reduce_loss(op, loss, reduction)


@in_functional
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Compute 1 - cos(a, b) where y = 1, and max(0, cos(a, b) - margin) where y = -1.

    a and b (B, D) or (D,), target (B,) or ().

    >>> from picograd import Tensor, nn
    >>> nn.functional.cosine_embedding_loss(Tensor([[1.0, 0.0]]), Tensor([[0.0, 1.0]]),
    ...     Tensor([1])).item()
    1.0
    """
    op, a, b = "cosine_embedding_loss", input1, input2
    same_shape(op, a, b)
    if tuple(target.shape) != tuple(a.shape[:-1]):
        problem = f"target of shape {tuple(target.shape)} for inputs {tuple(a.shape)}"
        raise ShapeError(op, problem, "give one target per row")
    sizes = ((a * a).sum(-1) + TINY) * ((b * b).sum(-1) + TINY)
    cosine = (a * b).sum(-1) / sizes.sqrt()
    apart = (target == -1).where((cosine - margin).clamp(min=0.0), 0.0)
    return reduce_loss(op, (target == 1).where(1.0 - cosine, apart), reduction)


def triplet_loss(
    op: str, triplet: tuple[Tensor, Tensor, Tensor], distance: Distance, margin: float, swap: bool
) -> Tensor:
    """Compute max(0, d(a, p) - d(a, n) + margin) of (anchor, positive, negative), one by one."""
    check_positive(op, "margin", margin)
    anchor, positive, negative = triplet
    same_shape(op, anchor, positive)
    same_shape(op, anchor, negative)
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return (near - far + margin).clamp(min=0.0)


@in_functional
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0,
    eps: float = 1e-6, swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Compute max(0, d(a, p) - d(a, n) + margin), d the p-norm along the last axis.

    `swap` uses d(p, n) where it is smaller than d(a, n) (Balntas et al., 2016).

    >>> from picograd import Tensor, nn
    >>> nn.functional.triplet_margin_loss(Tensor([[0.0, 0.0]]), Tensor([[0.0, 3.0]]),
    ...     Tensor([[0.0, 3.5]])).item()
    0.5
    """
    op, triplet = "triplet_margin_loss", (anchor, positive, negative)
    distance = partial(pairwise_distance, p=p, eps=eps)
    return reduce_loss(op, triplet_loss(op, triplet, distance, margin, swap), reduction)


@within("functional")
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Compute max(0, d(a, p) - d(a, n) + margin) with a distance of your own.

    `distance_function` None is the Euclidean distance; `swap` as in `triplet_margin_loss`.

    >>> from picograd import Tensor, nn
    >>> nn.functional.triplet_margin_with_distance_loss(Tensor([[0.0, 0.0]]), Tensor([[0.0,
    ...     3.0]]), Tensor([[0.0, 3.5]])).item()
    0.5
    """
    op, triplet = "triplet_margin_with_distance_loss", (anchor, positive, negative)
    distance = pairwise_distance if distance_function is None else distance_function
    return reduce_loss(op, triplet_loss(op, triplet, distance, margin, swap), reduction)


@within("functional")
@listed
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Sum max(0, 1 - x[y] + x[i]) over labels y and classes i that are none, divided by C.

    x (B, C) or (C,); the target, of the same shape, lists labels up to the first -1.

    >>> from picograd import Tensor, nn
    >>> nn.functional.multilabel_margin_loss(Tensor([[0.0, 1.0]]), Tensor([[0, -1]])).item()
    1.0
    """
    op = "multilabel_margin_loss"
    same_shape(op, input, target)
    need_integer(op, target.node, "target")
    if not input.ndim:
        input, target = input.reshape(1), target.reshape(1)
    demand_labels(op, target.node, input.shape[-1], -1)
    classes = Tensor.arange(input.shape[-1], device=input.device)
    is_listed = (target < 0).cast("int64").cumsum(-1) == 0  # ... C
    matches = (target.unsqueeze(-1) == classes) & is_listed.unsqueeze(-1)  # ... listed C
    own = matches.where(input.unsqueeze(-2), 0.0).sum(-1, keepdim=True)  # ... listed 1
    excess = (1.0 - own + input.unsqueeze(-2)).relu()
    is_label = matches.any(-2).unsqueeze(-2)
    counts = is_listed.unsqueeze(-1) & is_label.logical_not()
    loss = counts.where(excess, 0.0).sum((-2, -1)) / input.shape[-1]
    return reduce_loss(op, loss, reduction)


# The logarithm of an impossible path: finite, so that differences of such are 0 and never NaN.
IMPOSSIBLE = -1e30
Lengths = Tensor | Sequence[int]


@within("functional")
@listed
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Compute -log p(targets): log-probabilities (T, B, C), or (T, C), of symbols at each time.

    `targets`: padded (B, S) by any number, or all in a row (sum of lengths,), whose lengths must
    then be known outside `picograd.jit`. "mean" divides each loss by its target's length first. A
    target too long for its input costs infinity without gradient, or 0 with `zero_infinity`. The
    gradient is that of `log_probs` as free numbers; behind log_softmax it equals PyTorch's. Raises
    ShapeError, ValueRangeError, AxisError.

    >>> from picograd import Tensor
    >>> even = Tensor.full((4, 1, 3), 1 / 3).log()
    >>> round(ctc_loss(even, Tensor([[1, 2]]), [4], [2], reduction="sum").exp().item(), 2)
    5.4
    """
    if len(log_probs.shape) == 2:
        inputs = (log_probs.unsqueeze(1), targets.reshape(1, -1))
        times, sizes = _batched(input_lengths), _batched(target_lengths)
        kept = "sum" if reduction == "none" else reduction
        return ctc_loss(*inputs, times, sizes, blank, kept, zero_infinity)
    steps, batch, _ = _check(log_probs, blank)
    times = _lengths("input_lengths", input_lengths, batch, steps, log_probs)
    targets = _in_rows(targets, target_lengths, batch)
    sizes = _lengths("target_lengths", target_lengths, batch, targets.shape[1], log_probs)
    classes = log_probs.shape[2]
    if not answer(targets.node, ("below", classes), lambda labels: is_below(labels, classes)):
        demand_labels("ctc_loss", _without_rest(targets, sizes, blank).node, classes, None)
    return _aligned(log_probs, targets, times, sizes, blank, reduction, zero_infinity)


@together
def _aligned(
    log_probs: Tensor, targets: Tensor, times: Tensor, sizes: Tensor, blank: int, reduction: str,
    zero_infinity: bool,
) -> Tensor:  # fmt: skip
    """Compute `ctc_loss` of what was checked."""
    symbols = _with_blanks(_without_rest(targets, sizes, blank), blank)  # B L
    loss = -_ending(_forward(log_probs, symbols, times, blank), sizes)
    is_possible = loss < -IMPOSSIBLE / 2
    loss = is_possible.where(loss, 0.0 if zero_infinity else np.inf)
    if reduction == "mean":
        loss = loss / sizes.maximum(1).cast(loss.dtype)
    return reduce_loss("ctc_loss", loss, reduction)


def _check(log_probs: Tensor, blank: int) -> tuple[int, ...]:
    shape = tuple(log_probs.shape)
    if len(shape) != 3 or not shape[0]:
        problem = f"log_probs of shape {shape}"
        raise ShapeError("ctc_loss", problem, "give (T, B, C) or (T, C), T at least 1")
    if not 0 <= blank < shape[2]:
        problem = f"blank={blank} is no class of {shape[2]}"
        raise ValueRangeError("ctc_loss", problem, "use one of the classes")
    return shape


def _in_rows(targets: Tensor, lengths: Lengths, batch: int) -> Tensor:
    """Give each sequence a row (B, S)."""
    rows = _padded(targets, lengths) if len(targets.shape) == 1 else targets
    if rows.shape[0] != batch:
        problem = f"targets of shape {tuple(rows.shape)} for {batch} sequences"
        raise ShapeError("ctc_loss", problem, "give (B, S), or (sum of lengths,)")
    return rows


def _batched(lengths: Any) -> Any:
    if isinstance(lengths, Tensor):
        return lengths.reshape(1)
    return [lengths] if isinstance(lengths, int) else lengths


def _lengths(name: str, given: Lengths, batch: int, most: int, like: Tensor) -> Tensor:
    """Read lengths (B,); check those that are known."""
    lengths = given if isinstance(given, Tensor) else Tensor(list(given), dtype="int64")
    if tuple(lengths.shape) != (batch,):
        problem = f"{name} of shape {tuple(lengths.shape)} for {batch} sequences"
        raise ShapeError("ctc_loss", problem, "give one length per sequence")
    values = known_values(lengths.node)
    if values is not None and values.size and not 0 <= values.min() <= values.max() <= most:
        problem = f"{name} {values.tolist()} do not lie between 0 and {most}"
        raise ValueRangeError("ctc_loss", problem, "give lengths inside the tensors")
    return lengths.to(like.device).cast("int64")


def _padded(targets: Tensor, lengths: Lengths) -> Tensor:
    """Cut targets that follow each other into rows: (sum,) -> (B, S)."""
    listed = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    counts = np.array(listed, np.int64)
    if counts.sum() != targets.shape[0]:
        problem = f"{targets.shape[0]} targets for lengths that add up to {counts.sum()}"
        raise ShapeError("ctc_loss", problem, "give the targets one behind the other")
    places = np.arange(max(1, counts.max(initial=0)))
    starts = np.cumsum(counts) - counts
    index = np.minimum(starts[:, None] + places, max(0, counts.sum() - 1))
    if not counts.sum():
        return Tensor.zeros(len(counts), 1, dtype="int64", device=targets.device)
    return targets[Tensor.of(index, device=targets.device)]


def _without_rest(targets: Tensor, sizes: Tensor, blank: int) -> Tensor:
    """Put blanks behind the ends of targets."""
    places = Tensor.arange(targets.shape[1], device=targets.device)
    return (places < sizes.to(targets.device).unsqueeze(1)).where(targets.cast("int64"), blank)


def _with_blanks(targets: Tensor, blank: int) -> Tensor:
    """Put a blank before, between and behind symbols: (B, S) -> (B, 2 S + 1)."""
    batch, count = targets.shape
    pairs = targets.unsqueeze(-1).pad([(0, 0), (0, 0), (1, 0)], value=blank)  # B S 2
    return pairs.reshape(batch, 2 * count).pad([(0, 0), (0, 1)], value=blank)


def _moved(x: Tensor, places: int, value: Any) -> Tensor:
    """Shift the last axis of (B, L) to the right."""
    return x.pad([(0, 0), (places, 0)], value=value)[:, : x.shape[1]]


def _forward(log_probs: Tensor, symbols: Tensor, times: Tensor, blank: int) -> Tensor:
    """Run over time; a sequence keeps its alpha from its last step on: (B, L)."""
    steps, batch, classes = log_probs.shape
    length = symbols.shape[1]
    index = symbols.clamp(0, classes - 1).unsqueeze(0).expand(steps, batch, length)
    scores = apply(along, log_probs, index, 2).maximum(IMPOSSIBLE)  # T B L
    place = Tensor.arange(length, device=log_probs.device)
    # A blank may be left out between two symbols that differ.
    may_skip = (symbols != blank) & (symbols != _moved(symbols, 2, blank)) & (place > 1)

    def advance(alpha: Tensor, now: tuple[Tensor, Tensor]) -> tuple[Tensor, None]:
        skipped = may_skip.where(_moved(alpha, 2, IMPOSSIBLE), IMPOSSIBLE)
        total = _log_add(alpha, _moved(alpha, 1, IMPOSSIBLE), skipped)
        score, is_running = now
        return is_running.where(total + score, alpha), None

    alpha = (place < 2).where(scores[0], IMPOSSIBLE)
    step = Tensor.arange(1, steps, device=log_probs.device).reshape(-1, 1, 1)
    is_running = times.unsqueeze(-1) > step  # T - 1, B, 1
    alpha, _ = scan(advance, alpha, (scores[1:], is_running))
    return (times > 0).unsqueeze(-1).where(alpha, (place == 0).where(0.0, IMPOSSIBLE))


def _log_add(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    top = a.maximum(b).maximum(c).detach()
    return ((a - top).exp() + (b - top).exp() + (c - top).exp()).log() + top


def _ending(alpha: Tensor, sizes: Tensor) -> Tensor:
    """Sum the paths that end with the last symbol or the blank behind it: (B, L) -> (B,)."""
    place = Tensor.arange(alpha.shape[1], device=alpha.device)
    last = sizes.unsqueeze(-1) * 2
    is_end = (place == last) | (place == last - 1)
    return is_end.where(alpha, IMPOSSIBLE).logsumexp(-1)

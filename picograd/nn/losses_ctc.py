"""Connectionist temporal classification (Graves et al., 2006): a loss of unaligned sequences.

The forward algorithm in logarithms: alpha[t, j] sums the paths that have read j + 1 symbols of the
target with blanks between, after t steps. A step is a dozen elementwise operations on (B, 2 S + 1);
the loop over time is a `picograd.scan`, so that the graph is the same for any T.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.errors import ShapeError, ValueRangeError
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.autocast import listed
from picograd.tensor.core.demands import demand_labels
from picograd.tensor.core.function import within
from picograd.tensor.core.known_values import known_values
from picograd.tensor.network.losses import reduce_loss
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.scan import scan

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
    need_tensor("ctc_loss", log_probs=log_probs, targets=targets)
    if len(log_probs.shape) == 2:
        inputs = (log_probs.unsqueeze(1), targets.reshape(1, -1))
        times, sizes = _batched(input_lengths), _batched(target_lengths)
        kept = "sum" if reduction == "none" else reduction
        return ctc_loss(*inputs, times, sizes, blank, kept, zero_infinity)
    steps, batch, _ = _check(log_probs, blank)
    times = _lengths("input_lengths", input_lengths, batch, steps, log_probs)
    targets = _in_rows(targets, target_lengths, batch)
    sizes = _lengths("target_lengths", target_lengths, batch, targets.shape[1], log_probs)
    places = Tensor.arange(targets.shape[1], device=targets.device)
    targets = (places < sizes.to(targets.device).unsqueeze(1)).where(targets.cast("int64"), blank)
    demand_labels("ctc_loss", targets.node, log_probs.shape[2], None)
    symbols = _with_blanks(targets, blank)  # B L
    alpha = _forward(log_probs, symbols, times, blank)
    loss = -_ending(alpha, sizes)
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
    steps, batch, _ = log_probs.shape
    length = symbols.shape[1]
    index = symbols.unsqueeze(0).expand(steps, batch, length)
    scores = log_probs.gather(2, index).maximum(IMPOSSIBLE)  # T B L
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

"""Functions behind Embedding and EmbeddingBag: rows of a table, looked up and reduced by bags.

Gradients are dense: `sparse` is taken for PyTorch's sake.
"""

from typing import Any

import numpy as np

from picograd.errors import DTypeError, ShapeError, ValueRangeError, check_known
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.core.demands import demand_number
from picograd.tensor.core.function import within
from picograd.tensor.core.known_values import known_values
from picograd.tensor.core.recording import apply
from picograd.tensor.indexing import selecting
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.custom import Function

# PyTorch adds this to a norm before it divides by it.
NORM_EPSILON = 1e-7


@within("functional")
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Look up rows of a table (N, D): (...) -> (..., D); no gradient for the row `padding_idx`.

    `max_norm` first shrinks, in the table itself, the rows looked up whose `norm_type`-norm is
    larger. `scale_grad_by_freq` divides the gradient of a row by how often it was looked up.

    >>> from picograd import Tensor, nn
    >>> nn.functional.embedding(Tensor([1, 0]), Tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """
    bound = None if max_norm is None else (max_norm, norm_type)
    return look_up("embedding", input, weight, padding_idx, bound, scale_grad_by_freq)


@within("functional")
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sum, average or take the maximum of rows of a table (N, D) per bag: -> (B, D).

    Bags are rows of `input` (B, N), or stretches of `input` (N,) that start at `offsets` (B,), with
    `include_last_offset` (B + 1,), the end too. Indices equal to `padding_idx` do not count; an
    empty bag gives zeros. `per_sample_weights`, of the shape of `input`, needs mode "sum". The
    other options are those of `embedding`. Raises ShapeError, DTypeError, ValueRangeError.

    >>> from picograd import Tensor, nn
    >>> table = Tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> nn.functional.embedding_bag(Tensor([0, 1, 1]), table, Tensor([0, 2])).tolist()
    [[2.0, 3.0], [3.0, 4.0]]
    """
    need_tensor("embedding_bag", input=input, weight=weight)
    _check_mode(mode, scale_grad_by_freq, sparse)
    _check_bags(input, offsets, per_sample_weights, mode)
    bound = None if max_norm is None else (max_norm, norm_type)
    rows = look_up("embedding_bag", input, weight, padding_idx, bound, scale_grad_by_freq)
    rows = rows if per_sample_weights is None else rows * per_sample_weights.unsqueeze(-1)
    used = None if padding_idx is None else input != padding_idx % weight.shape[0]
    if offsets is None:
        return _reduce_rows(rows, used, mode)
    count = offsets.shape[0] - bool(include_last_offset)
    if not input.shape[0]:
        return rows.sum(0).repeat(count, 1)  # zeros, whose gradients are zeros
    bags = _bags(offsets, input.shape[0])
    if used is not None:
        bags = used.where(bags, count)
    return _reduce_stretches(rows, bags, count, mode)


def look_up(
    op: str,
    index: Tensor,
    weight: Tensor,
    padding: int | None,
    bound: tuple[float, float] | None,
    by_frequency: bool,
) -> Tensor:
    """Read rows: (...) -> (..., D). `bound` is a largest norm and its order."""
    need_tensor(op, input=index, weight=weight)
    if not index.dtype.is_integer:
        raise DTypeError(op, f"the indices are {index.dtype.name}", "cast them to picograd.int64")
    if len(weight.shape) != 2:
        raise ShapeError(op, f"table of shape {weight.shape}", "give (N, D)")
    size = weight.shape[0]
    if padding is not None and not -size <= padding < size:
        problem = f"padding_idx={padding} is out of range for {size} rows"
        raise ValueRangeError(op, problem, "use a row of the table")
    if bound is not None:
        demand_number(op, index.node, size, "rows")
        shrink_rows(weight, index, *bound)
    rows = apply(selecting.rows, op, weight, index)
    if by_frequency:
        rows = Shared.apply(rows, _frequencies(index, size).unsqueeze(-1))
    if padding is None:
        return rows
    return (index != padding % size).unsqueeze(-1).where(rows, rows.detach())


def shrink_rows(weight: Tensor, index: Tensor, most: float, order: float) -> None:
    """Scale the rows of a table whose norm is above `most` down to it, in place."""
    with no_grad():
        places = index.reshape(-1)
        rows = weight[places]
        norms = rows.norm(order, -1, keepdim=True)
        weight[places] = (norms > most).where(rows * (most / (norms + NORM_EPSILON)), rows)


class Shared(Function):
    """This class passes rows on, and divides their gradient by how often each was looked up."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, frequencies: Tensor) -> Tensor:
        """Give the rows themselves."""
        ctx.frequencies = frequencies
        return rows

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """Divide by the frequencies."""
        return gradient / ctx.frequencies.cast(gradient.dtype), None


def _frequencies(index: Tensor, size: int) -> Tensor:
    """Count how often each index occurs: (...) -> (...)."""
    places = index.reshape(-1).long()
    ones = Tensor.ones(places.shape[0], dtype="int64", device=index.device)
    counts = Tensor.zeros(size, dtype="int64", device=index.device).index_add(0, places, ones)
    return counts[index]


def _check_mode(mode: str, by_frequency: bool, sparse: bool) -> None:
    op = "embedding_bag"
    check_known(op, "mode", mode, ("sum", "mean", "max"))
    if mode == "max" and (by_frequency or sparse):
        name = "scale_grad_by_freq" if by_frequency else "sparse"
        raise ValueRangeError(op, f"{name} with mode='max'", 'use "sum" or "mean"')


def _check_bags(index: Tensor, offsets: Tensor | None, weights: Tensor | None, mode: str) -> None:
    op = "embedding_bag"
    need_tensor(op, *[each for each in (offsets, weights) if each is not None])
    if len(index.shape) not in (1, 2) or (len(index.shape) == 2) == (offsets is not None):
        problem = f"index of shape {tuple(index.shape)}"
        raise ShapeError(op, problem, "give (B, N), or (N,) with offsets")
    if weights is not None and mode != "sum":
        raise ValueRangeError(op, f"per_sample_weights with mode={mode!r}", 'use mode="sum"')
    if weights is not None and weights.shape != index.shape:
        problem = f"per_sample_weights of shape {weights.shape} for indices of {index.shape}"
        raise ShapeError(op, problem, "give one weight an index")
    if offsets is None:
        return
    if len(offsets.shape) != 1 or not offsets.dtype.is_integer:
        problem = f"offsets are {offsets.dtype.name}{offsets.shape}"
        raise ShapeError(op, problem, "give whole numbers (B,)")
    known = known_values(offsets.node)
    if known is None or not known.size:
        return
    if known[0] != 0 or known.max() > index.shape[0]:
        problem = f"offsets {known.tolist()} for {index.shape[0]} indices"
        raise ValueRangeError(op, problem, "start at 0, and stay inside the indices")


def _bags(offsets: Tensor, count: int) -> Tensor:
    """Number the bag of every index, from where bags start: (B,) -> (count,)."""
    ones = Tensor.ones(offsets.shape[0], dtype="int64", device=offsets.device)
    starts = Tensor.zeros(count + 1, dtype="int64", device=offsets.device)
    return starts.index_add(0, offsets.long(), ones)[:count].cumsum(0) - 1


def _reduce_rows(rows: Tensor, used: Tensor | None, mode: str) -> Tensor:
    """Reduce bags of equal length: (B, N, D) -> (B, D)."""
    if not rows.shape[1]:
        return rows.sum(1)
    if mode == "max":
        if used is None:
            return rows.max(1).values
        largest = used.unsqueeze(-1).where(rows, -np.inf).max(1).values
        return used.any(1).unsqueeze(-1).where(largest, 0.0)
    total = rows.sum(1) if used is None else used.unsqueeze(-1).where(rows, 0.0).sum(1)
    if mode == "sum":
        return total
    if used is None:
        return total / rows.shape[1]
    return total / used.sum(1, keepdim=True).maximum(1).cast(rows.dtype)


def _reduce_stretches(rows: Tensor, bags: Tensor, count: int, mode: str) -> Tensor:
    """Reduce rows (N, D) by the number of their bag; rows of the bag `count` are left out."""
    size, width = rows.shape
    place: dict[str, Any] = dict(device=rows.device)
    ones = Tensor.ones(size, dtype="int64", **place)
    members = Tensor.zeros(count + 1, dtype="int64", **place).index_add(0, bags, ones)
    members = members[:count].unsqueeze(-1)
    if mode == "max":
        first = _first_largest(rows.detach(), bags, count)
        return (members > 0).where(rows.gather(0, first), 0.0)
    total = Tensor.zeros(count + 1, width, dtype=rows.dtype, **place).index_add(0, bags, rows)
    if mode == "sum":
        return total[:count]
    return total[:count] / members.maximum(1).cast(rows.dtype)


def _first_largest(rows: Tensor, bags: Tensor, count: int) -> Tensor:
    """Find the first row of each bag that holds its maximum, a column each: (N, D) -> (B, D)."""
    size, width = rows.shape
    place: dict[str, Any] = dict(device=rows.device)
    lowest = Tensor.full((count + 1, width), -np.inf, dtype=rows.dtype, **place)
    largest = lowest.index_reduce(0, bags, rows, "amax")
    is_largest = (rows == largest[bags]) | rows.isnan()
    numbers = is_largest.where(Tensor.arange(size, **place).unsqueeze(-1), size)
    behind = Tensor.full((count + 1, width), size, dtype="int64", **place)
    return behind.index_reduce(0, bags, numbers, "amin")[:count].minimum(size - 1)

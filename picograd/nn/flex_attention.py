"""Attention whose scores and mask are functions of their places, as `torch.nn.attention`'s.

So are sequences one behind another in one tensor: places of the same one see each other.

The functions are called once, with the places as tensors that broadcast over all scores; the
scheduler makes one kernel of them and the attention around, which computes no part of the scores
that the mask empties wherever it can tell (docs/design/0021).
"""

import enum
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

from picograd.dtype import int32
from picograd.errors import ShapeError
from picograd.tensor.core.annotations import DeviceLike
from picograd.tensor.network.attention import masked_softmax
from picograd.tensor.tensor import Tensor

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
BLOCK = 128  # PyTorch's size of a block, which decides nothing here
_DEFAULT_SPARSE_BLOCK_SIZE = BLOCK


class AuxRequest(NamedTuple):
    """This class says what `varlen_attn` returns beside the result."""

    lse: bool = False


class SDPBackend(enum.Enum):
    """This class names PyTorch's kernels of attention; ours is chosen by the scheduler."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Change nothing: it chooses among PyTorch's kernels."""
    yield


class BlockMask:
    """This class is a mask by its function: True where a query may look.

    `shape` is (batch, heads, queries, keys); sizes that were not given are 1.
    """

    def __init__(self, mask_mod: MaskMod, shape: tuple[int, int, int, int]) -> None:
        self.mask_mod = mask_mod
        self.shape = shape

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape})"

    def to(self, device: DeviceLike) -> "BlockMask":
        """Give the mask: it is a function."""
        return self


def places_of(shape: tuple[int, ...], device: DeviceLike | None) -> list[Tensor]:
    """Number the entries of each axis: tensors that broadcast to `shape`."""
    found = []
    for axis, size in enumerate(shape):
        line = [size if axis == other else 1 for other in range(len(shape))]
        found.append(Tensor.arange(size, dtype=int32, device=device).reshape(*line))
    return found


def create_mask(
    mod_fn: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: DeviceLike | None = None,
) -> Tensor:
    """Compute a mask: (batch, heads, queries, keys) of bools.

    >>> create_mask(lambda b, h, q, k: q >= k, None, None, 2, 2).tolist()
    [[[[True, False], [True, True]]]]
    """
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    return mod_fn(*places_of(shape, device)).expand(*shape)


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: DeviceLike | None = None,
    BLOCK_SIZE: Any = BLOCK,
    _compile: bool = False,
) -> BlockMask:
    """Make a mask of a function of (batch, head, query, key); None: the same for all."""
    return BlockMask(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN))


def joined(combine: Callable[[Any, Any], Any], masks: Sequence[MaskMod]) -> MaskMod:
    """Make a mask of several."""
    return lambda b, h, q, kv: reduce(combine, [each(b, h, q, kv) for each in masks])


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """Let a query look where all masks do."""
    return joined(operator.and_, mask_mods)


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """Let a query look where one of the masks does."""
    return joined(operator.or_, mask_mods)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
) -> Any:
    """Compute attention whose scores `score_mod(score, batch, head, query, key)` changes.

    (B, heads, L, E), (B, heads, S, E or V) -> (B, heads, L, V), and with `return_lse` the
    logarithm of each row's sum too. Both functions are given tensors of places that broadcast to
    (B, heads, L, S). A query that may look nowhere gives zeros. `enable_gqa` repeats the heads of
    key and value. Source: Dong et al. (2024).

    >>> q = Tensor.ones(1, 1, 2, 4)
    >>> flex_attention(q, q, q, lambda score, b, h, i, j: score - 0.5 * (i - j)).shape
    (1, 1, 2, 4)
    """
    if enable_gqa:
        copies = query.shape[-3] // key.shape[-3]
        key, value = (x.repeat_interleave(copies, -3) for x in (key, value))
    factor = 1.0 / math.sqrt(query.shape[-1] or 1) if scale is None else scale
    scores = (query * factor) @ key.transpose(-2, -1)
    places = places_of(tuple(scores.shape), query.device)
    if score_mod is not None:
        scores = score_mod(scores, *places).to(query.dtype)
    mask = None if block_mask is None else block_mask.mask_mod(*places)
    output = masked_softmax(scores, mask) @ value
    if not return_lse:
        return output
    seen = scores if mask is None else mask.where(scores, -math.inf)
    return output, seen.float().logsumexp(-1)


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
) -> Any:
    """Compute attention within sequences of any lengths, one behind another in one tensor.

    (T, heads, E), (S, heads, E or V) -> (T, heads, V), and with `return_aux.lse` the logarithm of
    each row's sum, (heads, T). `cu_seq_q` and `cu_seq_k` (N + 1) say where the sequences begin and
    the last one ends; None: as those of the queries, whose longest are `max_q` and `max_k`. A query
    sees so many keys of its sequence to the left and the right, all where `window_size` is -1: (-1,
    0) is causal. The last query is level with the last key.

    >>> q, begins = Tensor.ones(5, 1, 4), Tensor([0, 2, 5])
    >>> varlen_attn(q, q, q, begins, begins, 3, 3, window_size=(-1, 0)).shape
    (5, 1, 4)
    """
    if not query.ndim == key.ndim == value.ndim == 3:
        shapes = ", ".join(str(tuple(x.shape)) for x in (query, key, value))
        fix = "lay the sequences one behind another, (places, heads, size), without a batch"
        raise ShapeError("varlen_attn", f"operands have three dimensions, not {shapes}", fix)
    begins = cu_seq_q if cu_seq_k is None else cu_seq_k
    left, right = window_size

    def look(b: Tensor, h: Tensor, row: Tensor, column: Tensor) -> Tensor:
        own = cu_seq_q.searchsorted(row, right=True)
        seen = own == begins.searchsorted(column, right=True)
        if begins is not cu_seq_q:
            row = row + (begins - cu_seq_q)[own.clamp(max=begins.shape[0] - 1)]
        if left >= 0:
            seen = seen & (column >= row - left)
        return seen & (column <= row + right) if right >= 0 else seen

    mask = BlockMask(look, (1, 1, query.shape[0], key.shape[0]))
    q, k, v = (x.transpose(0, 1).unsqueeze(0) for x in (query, key, value))
    result, sums = flex_attention(q, k, v, None, mask, scale, enable_gqa, return_lse=True)
    result = result.squeeze(0).transpose(0, 1)
    has_sums = return_aux is not None and return_aux.lse
    return (result, sums.squeeze(0)) if has_sums else result

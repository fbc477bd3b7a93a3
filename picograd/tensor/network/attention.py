"""Attention and its masks."""

import math

from picograd.dtype import bool_
from picograd.errors import DTypeError, ShapeError
from picograd.tensor.core.annotations import DeviceLike, Tensor
from picograd.tensor.core.autocast import listed
from picograd.tensor.core.function import method_within
from picograd.tensor.core.recording import Recorded
from picograd.tensor.core.together import together
from picograd.tensor.network.dropout import dropout


@method_within("functional")
@listed
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Compute softmax(q k^T * scale + mask) v: (..., L, E), (..., S, E or V) -> (..., L, V).

    `attn_mask` broadcasts to (..., L, S): True where attention is allowed, or numbers to add. Rows
    that may look nowhere give zeros. `is_causal` lets row i see columns up to i, of those that
    the mask allows. `enable_gqa` repeats the heads (axis -3) of key and value. `scale` is
    1 / sqrt(E) unless given. Source: Vaswani et al. (2017).

    >>> q = Tensor.ones(1, 2, 4)
    >>> scaled_dot_product_attention(q, q, q).shape
    (1, 2, 4)
    """
    op = "scaled_dot_product_attention"
    if attn_mask is not None and attn_mask.dtype.is_integer:
        text = f"attn_mask is {attn_mask.dtype.name}, which would be added to the scores"
        raise DTypeError(op, text, "call .bool() on it: True where attention is allowed")
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        shapes = f"{tuple(query.shape)}, {tuple(key.shape)}, {tuple(value.shape)}"
        problem = f"query, key and value of shapes {shapes} do not fit"
        raise ShapeError(op, problem, "give (..., L, E), (..., S, E), (..., S, V)")
    if enable_gqa:
        copies = query.shape[-3] // key.shape[-3]
        key, value = (x.repeat_interleave(copies, -3) for x in (key, value))
    factor = 1.0 / math.sqrt(query.shape[-1] or 1) if scale is None else scale
    if dropout_p:
        weights = weights_of(query, key, attn_mask, is_causal, factor)
        return dropout(weights, dropout_p) @ value
    return attended(query, key, value, attn_mask, is_causal, factor)


@together
def attended(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, factor: float
) -> Tensor:
    """Weigh the values."""
    return weights_of(query, key, mask, is_causal, factor) @ value


def weights_of(
    query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, factor: float
) -> Tensor:
    """Find how much each row looks at each column."""
    scores = query @ key.transpose(-2, -1) * factor  # ... L S
    rows, columns = scores.shape[-2:]
    if is_causal:  # each row sees a column
        seen = causal_mask(rows, columns, scores.device)
        if mask is None:
            return seen.where(scores, -math.inf).softmax(-1)
        mask = mask & seen if mask.dtype is bool_ else seen.where(mask, -math.inf)
    return masked_softmax(scores, mask)


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Normalise exp(scores) along the last axis where the mask allows."""
    if mask is None:
        return scores.softmax(-1)
    seen = mask
    if mask.dtype is not bool_:
        numbers = mask.cast(scores.dtype)
        scores = scores + numbers
        if mask.requires_grad:  # a learned bias hides nothing
            return scores.softmax(-1)
        seen = numbers != -math.inf
    # A row that may look nowhere is NaN in between, and hidden again: it gives zeros, no gradient.
    weights = seen.where(scores, -math.inf).softmax(-1)
    return seen.where(weights, 0)


def causal_mask(rows: int, columns: int, device: DeviceLike | None = None) -> Tensor:
    """Allow row i to see columns up to i: (L, S) of bool."""
    row, column = (Recorded.kind.arange(count, device=device) for count in (rows, columns))
    return column <= row.unsqueeze(-1)

"""What MultiheadAttention computes, on the weights of a layer or on given ones."""

import math
from collections.abc import Sequence
from functools import reduce
from operator import add, and_
from types import SimpleNamespace
from typing import Any

from picograd.dtype import bool_
from picograd.errors import AssertedError, DTypeError, ShapeError, ValueRangeError
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.function import within
from picograd.tensor.network import attention as functional
from picograd.tensor.network.dropout import dropout
from picograd.tensor.tensor import Tensor


def attend(
    layer: Any, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Attend; returns (output, weights), the weights averaged over heads: (B, L, S).

    `is_causal` without `attn_mask` makes the causal mask; with one it is a hint, not needed.
    """
    need_tensor("MultiheadAttention", query=query, key=key, value=value)
    is_single = len(query.shape) == 2
    if is_single:
        axis = 0 if layer.batch_first else 1
        query, key, value = (x.unsqueeze(axis) for x in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    q, k, v = projected(layer, query, key, value)  # B L E
    mask = joined_mask(layer, q, k, attn_mask, key_padding_mask, is_causal)
    k, v, mask = with_rows(layer, k, v, mask)
    heads = [in_heads(layer, x) for x in (q, k, v)]  # B heads L head_dim
    values, weights = mixed(layer, heads, mask, need_weights)
    joined = values.transpose(1, 2).reshape(q.shape)  # B L E
    output = joined.linear(layer.out_proj.weight, layer.out_proj.bias)
    output = output if layer.batch_first else output.transpose(0, 1)
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)
    if not is_single:
        return output, weights
    weights = None if weights is None else weights.squeeze(0)
    return output.squeeze(0 if layer.batch_first else 1), weights


def mixed(
    layer: Any, heads: list[Tensor], mask: Tensor | None, need_weights: bool
) -> tuple[Tensor, Tensor | None]:
    """Mix the values of each head by its weights, which come along if they are asked for.

    Those of a row that may look nowhere are NaN, as PyTorch's; without weights it gives zeros.
    """
    share = layer.dropout if layer.training else 0.0
    q, k, v = heads
    if not need_weights:
        product = functional.scaled_dot_product_attention
        return product(q, k, v, attn_mask=mask, dropout_p=share), None
    scores = (q * (1.0 / math.sqrt(q.shape[-1]))) @ k.transpose(-2, -1)
    if mask is not None:
        is_choice = mask.dtype is bool_
        scores = mask.where(scores, -math.inf) if is_choice else scores + mask.cast(scores.dtype)
    weights = dropout(scores.softmax(-1), share)
    return weights @ v, weights


def projected(layer: Any, *inputs: Tensor) -> list[Tensor]:
    """Map query, key and value to (B, L, E)."""
    joint = layer.in_proj_weight
    others = (layer.k_proj_weight, layer.v_proj_weight) if joint is None else (joint, joint)
    width = layer.embed_dim
    sizes = (width, *(width if each is None else each.shape[1] for each in others))
    for x, size in zip(inputs, sizes):
        if len(x.shape) != 3 or x.shape[-1] != size:
            problem = f"input of shape {tuple(x.shape)}, {size} features wanted"
            raise AssertedError("MultiheadAttention", problem, "give 3 axes, features last")
    rows = [x if layer.batch_first else x.transpose(0, 1) for x in inputs]
    check_batches("MultiheadAttention", inputs, 0 if layer.batch_first else 1)
    biases: Any = [None] * 3 if layer.in_proj_bias is None else layer.in_proj_bias.chunk(3)
    if joint is not None:
        if inputs[0] is inputs[1] and inputs[1] is inputs[2]:  # one product for all three
            return list(rows[0].linear(joint, layer.in_proj_bias).chunk(3, -1))
        weights: list[Any] = list(joint.chunk(3))
    else:
        weights = [layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight]
    return [x.linear(weight, bias) for x, weight, bias in zip(rows, weights, biases)]


def check_batches(op: str, inputs: Sequence[Tensor], axis: int) -> None:
    """Raise ShapeError for inputs (rows, batch, features) of several batch sizes."""
    first, *others = (x.shape[axis] for x in inputs)
    if any(size != first for size in others):  # a set would ask open sizes for their values
        shapes = ", ".join(str(tuple(x.shape)) for x in inputs)
        problem = f"batch sizes differ: {shapes}"
        raise ShapeError(op, problem, f"the batch is axis {axis}, by batch_first={axis == 0}")


def in_heads(layer: Any, x: Tensor) -> Tensor:
    """(B, L, E) -> (B, heads, L, head_dim)."""
    width = layer.embed_dim // layer.num_heads
    return x.reshape(*x.shape[:2], layer.num_heads, width).transpose(1, 2)


def joined_mask(
    layer: Any,
    q: Tensor,
    k: Tensor,
    attn_mask: Tensor | None,
    padding: Tensor | None,
    is_causal: bool,
) -> Tensor | None:
    """Join the masks: True where attention is allowed, or numbers to add: (B, heads, L, S)."""
    batch, rows, columns = (q.shape[0], q.shape[1], k.shape[1])
    masks = []
    if attn_mask is not None:
        is_stack = len(attn_mask.shape) == 3
        wanted = (batch * layer.num_heads,) * is_stack + (rows, columns)
        check_mask("attn_mask", attn_mask, wanted)
        stack = (batch, layer.num_heads, rows, columns)
        masks.append(attn_mask.reshape(*stack) if is_stack else attn_mask)
    elif is_causal:
        masks.append(functional.causal_mask(rows, columns, q.device).logical_not())
    if padding is not None:
        check_mask("key_padding_mask", padding, (batch, columns))
        masks.append(padding.reshape(batch, 1, 1, columns))
    return join(masks, q)


def with_rows(
    layer: Any, k: Tensor, v: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Append the learnt row and the row of zeros, which everyone may look at."""
    batch, count = k.shape[0], 0
    if layer.bias_k is not None and layer.bias_v is not None:
        learnt = [bias.expand(batch, 1, layer.embed_dim) for bias in (layer.bias_k, layer.bias_v)]
        k, v = (Tensor.cat([x, row], 1) for x, row in zip((k, v), learnt))
        count += 1
    if layer.add_zero_attn:
        k, v = (x.pad([(0, 0), (0, 1), (0, 0)]) for x in (k, v))
        count += 1
    if mask is not None and count:
        margins = [(0, 0)] * (len(mask.shape) - 1) + [(0, count)]
        mask = mask.pad(margins, value=mask.dtype is bool_)
    return k, v, mask


def check_mask(name: str, mask: Tensor, wanted: tuple[int, ...]) -> None:
    """Raise for a mask of another shape, or of integers, which would be added as numbers."""
    if tuple(mask.shape) != wanted:
        problem = f"{name} of shape {tuple(mask.shape)}, {wanted} wanted"
        raise AssertedError("MultiheadAttention", problem, "give one entry per query and key")
    if mask.dtype.is_integer:
        problem = f"{name} is {mask.dtype.name}"
        raise DTypeError("MultiheadAttention", problem, "call .bool(): True where it hides")


def as_numbers(mask: Tensor, like: Tensor) -> Tensor:
    """Turn a mask of what is forbidden into numbers to add."""
    return mask.where(-math.inf, 0.0).cast(like.dtype) if mask.dtype is bool_ else mask


def join(masks: list[Tensor], like: Tensor) -> Tensor | None:
    """Join masks of what is forbidden: bools to one of what is allowed, else numbers to add."""
    if not masks:
        return None
    if all(mask.dtype is bool_ for mask in masks):
        return reduce(and_, [mask.logical_not() for mask in masks])
    return reduce(add, [as_numbers(mask, like) for mask in masks])


@within("functional")
def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
    bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
    out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Attend as `nn.MultiheadAttention` does, with given weights: (L, B, E) -> (L, B, E).

    `in_proj_weight` (3 E, E), or with `use_separate_proj_weight` one matrix each.

    >>> from picograd import Tensor, nn
    >>> x, w = Tensor.ones(3, 2, 4), Tensor.ones(12, 4)
    >>> out, _ = nn.functional.multi_head_attention_forward(x, x, x, 4, 2, w, None, None, None,
    ...     False, 0.0, Tensor.eye(4), None)
    >>> out.shape
    (3, 2, 4)
    """
    if static_k is not None or static_v is not None:
        fix = "pass key and value"
        raise ValueRangeError("multi_head_attention_forward", "no static_k and static_v here", fix)
    layer = SimpleNamespace(**locals(), batch_first=False, dropout=dropout_p)
    if embed_dim_to_check % num_heads:
        text = f"embed_dim_to_check={embed_dim_to_check} does not divide by num_heads={num_heads}"
        raise AssertedError("multi_head_attention_forward", text, "choose a divisor")
    layer.embed_dim = embed_dim_to_check
    layer.in_proj_weight = None if use_separate_proj_weight else in_proj_weight
    layer.out_proj = SimpleNamespace(weight=out_proj_weight, bias=out_proj_bias)
    options = need_weights, attn_mask, average_attn_weights, is_causal
    return attend(layer, query, key, value, key_padding_mask, *options)

"""MultiheadAttention, composed of linear maps and scaled_dot_product_attention."""

import math
from typing import Any

from picograd.dtype import bool_
from picograd.errors import ShapeError, ValueRangeError
from picograd.nn import init
from picograd.nn.flex_attention import SDPBackend as SDPBackend
from picograd.nn.flex_attention import sdpa_kernel as sdpa_kernel
from picograd.nn.linear import Linear
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.network import attention as functional
from picograd.tensor.network.dropout import dropout
from picograd.tensor.tensor import Tensor

__path__: list[str] = []  # so that Python asks for PyTorch's modules below


class MultiheadAttention(Module):
    """This class attends from (L, B, E) to (S, B, E) with several heads (Vaswani et al., 2017).

    `batch_first`: (B, L, E); without a batch: (L, E). Masks are PyTorch's: `attn_mask` (L, S) or
    (B * heads, L, S) and `key_padding_mask` (B, S), True where attention is forbidden, or numbers
    to add. A row that may look nowhere gives zeros (PyTorch: NaN).

    >>> from picograd import Tensor, nn
    >>> x = Tensor.ones(3, 2, 8)
    >>> output, weights = nn.MultiheadAttention(8, 2)(x, x, x)
    >>> output.shape, weights.shape
    ((3, 2, 8), (2, 3, 3))
    """

    dropout: float
    embed_dim: int
    num_heads: int
    batch_first: bool = False
    head_dim: int
    kdim: int
    vdim: int
    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    out_proj: Linear
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        init.check_sizes("MultiheadAttention", 1, embed_dim=embed_dim, num_heads=num_heads)
        if embed_dim % num_heads:
            problem = f"embed_dim={embed_dim} does not divide by num_heads={num_heads}"
            raise ValueRangeError("MultiheadAttention", problem, "choose a divisor")
        self.embed_dim, self.num_heads, self.dropout = (embed_dim, num_heads, dropout)
        self.head_dim, self.batch_first = (embed_dim // num_heads, batch_first)
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.add_zero_attn = add_zero_attn
        self._make_projections(bias, add_bias_kv, (device, dtype))

    def _make_projections(self, bias: bool, add_bias_kv: bool, place: tuple[Any, Any]) -> None:
        width = self.embed_dim
        self.in_proj_weight = self.q_proj_weight = self.k_proj_weight = self.v_proj_weight = None
        self._qkv_same_embed_dim = self.kdim == width and self.vdim == width
        if self._qkv_same_embed_dim:
            self.in_proj_weight = _glorot((3 * width, width), place)
        else:
            self.q_proj_weight = _glorot((width, width), place)
            self.k_proj_weight = _glorot((width, self.kdim), place)
            self.v_proj_weight = _glorot((width, self.vdim), place)
        self.in_proj_bias = Parameter(init.constant((3 * width,), 0.0, *place)) if bias else None
        self.out_proj = Linear(width, width, bias, *place)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)
        self.bias_k = self.bias_v = None
        if add_bias_kv:
            std = math.sqrt(2.0 / (width + width))
            self.bias_k = Parameter(init.normal((1, 1, width), 0.0, std, *place))
            self.bias_v = Parameter(init.normal((1, 1, width), 0.0, std, *place))

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend; returns (output, weights), the weights averaged over heads: (B, L, S).

        `is_causal` without `attn_mask` makes the causal mask; with one it is a hint, not needed.
        """
        need_tensor("MultiheadAttention", query, key, value)
        is_single = len(query.shape) == 2
        if is_single:
            axis = 0 if self.batch_first else 1
            query, key, value = (x.unsqueeze(axis) for x in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        q, k, v = self._project(query, key, value)  # B L E
        mask = self._mask(q, k, attn_mask, key_padding_mask, is_causal)
        k, v, mask = self._add_rows(k, v, mask)
        heads = [self._split(x) for x in (q, k, v)]  # B heads L head_dim
        mixed, weights = self._attend(heads, mask, need_weights)
        joined = mixed.transpose(1, 2).reshape(q.shape)  # B L E
        output = self.out_proj(joined)
        output = output if self.batch_first else output.transpose(0, 1)
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not is_single:
            return output, weights
        weights = None if weights is None else weights.squeeze(0)
        return output.squeeze(0 if self.batch_first else 1), weights

    def _attend(
        self, heads: list[Tensor], mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        share = self.dropout if self.training else 0.0
        q, k, v = heads
        if not need_weights:
            attend = functional.scaled_dot_product_attention
            return attend(q, k, v, attn_mask=mask, dropout_p=share), None
        scores = (q * (1.0 / math.sqrt(self.head_dim))) @ k.transpose(-2, -1)
        weights = dropout(functional.masked_softmax(scores, mask), share)
        return weights @ v, weights

    def _project(self, *inputs: Tensor) -> list[Tensor]:
        """Map query, key and value to (B, L, E)."""
        sizes = (self.embed_dim, self.kdim, self.vdim)
        for x, size in zip(inputs, sizes):
            if len(x.shape) != 3 or x.shape[-1] != size:
                problem = f"input of shape {tuple(x.shape)}, {size} features wanted"
                raise ShapeError("MultiheadAttention", problem, "give 3 axes, features last")
        rows = [x if self.batch_first else x.transpose(0, 1) for x in inputs]
        biases: Any = [None] * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        if self.in_proj_weight is not None:
            if inputs[0] is inputs[1] and inputs[1] is inputs[2]:  # one product for all three
                return list(rows[0].linear(self.in_proj_weight, self.in_proj_bias).chunk(3, -1))
            weights: list[Any] = list(self.in_proj_weight.chunk(3))
        else:
            weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        return [x.linear(weight, bias) for x, weight, bias in zip(rows, weights, biases)]

    def _split(self, x: Tensor) -> Tensor:
        """(B, L, E) -> (B, heads, L, head_dim)."""
        return x.reshape(*x.shape[:2], self.num_heads, self.head_dim).transpose(1, 2)

    def _mask(
        self,
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
            wanted = (batch * self.num_heads,) * is_stack + (rows, columns)
            _check_mask("attn_mask", attn_mask, wanted)
            stack = (batch, self.num_heads, rows, columns)
            masks.append(attn_mask.reshape(*stack) if is_stack else attn_mask)
        elif is_causal:
            masks.append(functional.causal_mask(rows, columns, q.device).logical_not())
        if padding is not None:
            _check_mask("key_padding_mask", padding, (batch, columns))
            masks.append(padding.reshape(batch, 1, 1, columns))
        return _join(masks, q)

    def _add_rows(
        self, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Append the learnt row and the row of zeros, which everyone may look at."""
        batch, count = k.shape[0], 0
        if self.bias_k is not None and self.bias_v is not None:
            learnt = [bias.expand(batch, 1, self.embed_dim) for bias in (self.bias_k, self.bias_v)]
            k, v = (Tensor.cat([x, row], 1) for x, row in zip((k, v), learnt))
            count += 1
        if self.add_zero_attn:
            k, v = (x.pad([(0, 0), (0, 1), (0, 0)]) for x in (k, v))
            count += 1
        if mask is not None and count:
            margins = [(0, 0)] * (len(mask.shape) - 1) + [(0, count)]
            mask = mask.pad(margins, value=mask.dtype is bool_)
        return k, v, mask


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attend as MultiheadAttention does, with weights that are given; (L, B, E), or (L, E).

    Keys and values that were computed before (`static_k`, `static_v`) are not taken.
    """
    _refuse_static(static_k, static_v)
    layer = _layer_like(
        MultiheadAttention,
        embed_dim=embed_dim_to_check, kdim=key.shape[-1], vdim=value.shape[-1],
        num_heads=num_heads, head_dim=embed_dim_to_check // num_heads, training=training,
        in_proj_weight=None if use_separate_proj_weight else in_proj_weight, dropout=dropout_p,
        q_proj_weight=q_proj_weight, k_proj_weight=k_proj_weight, v_proj_weight=v_proj_weight,
        in_proj_bias=in_proj_bias, bias_k=bias_k, bias_v=bias_v, add_zero_attn=add_zero_attn,
        out_proj=_layer_like(Linear, weight=out_proj_weight, bias=out_proj_bias),
    )  # fmt: skip
    masks = (key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal)
    result: tuple[Tensor, Tensor | None] = layer.forward(query, key, value, *masks)
    return result


def _refuse_static(*given: Tensor | None) -> None:
    if any(each is not None for each in given):
        problem = "static_k and static_v are not there"
        raise ValueRangeError("multi_head_attention_forward", problem, "pass key and value")


def _layer_like(kind: type[Module], **members: Any) -> Any:
    """Make a layer of members that are there, without drawing weights."""
    layer = kind.__new__(kind)
    vars(layer).update(members)
    return layer


def _glorot(shape: tuple[int, int], place: tuple[Any, Any]) -> Parameter:
    bound = math.sqrt(6.0 / sum(shape))
    return Parameter(init.uniform(shape, bound, *place))


def _check_mask(name: str, mask: Tensor, wanted: tuple[int, ...]) -> None:
    if tuple(mask.shape) != wanted:
        problem = f"{name} of shape {tuple(mask.shape)}, {wanted} wanted"
        raise ShapeError("MultiheadAttention", problem, "give one entry per query and key")


def _as_numbers(mask: Tensor, like: Tensor) -> Tensor:
    return mask.where(-math.inf, 0.0).cast(like.dtype) if mask.dtype is bool_ else mask


def _fold(masks: list[Tensor], join: Any) -> Tensor | None:
    result = None
    for mask in masks:
        result = mask if result is None else join(result, mask)
    return result


def _join(masks: list[Tensor], like: Tensor) -> Tensor | None:
    """Join masks of what is forbidden: bools to one of what is allowed, else numbers to add."""
    if all(mask.dtype is bool_ for mask in masks):
        allowed = [mask.logical_not() for mask in masks]
        return _fold(allowed, lambda a, b: a & b)
    numbers = [_as_numbers(mask, like) for mask in masks]
    return _fold(numbers, lambda a, b: a + b)

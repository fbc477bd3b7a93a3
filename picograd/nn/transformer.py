"""Transformer layers and stacks (Vaswani et al., 2017), with PyTorch's names.

Inputs are (L, B, E), with `batch_first` (B, L, E). Masks are those of MultiheadAttention.
"""

import copy
from collections.abc import Callable
from typing import Any

from picograd.errors import ShapeError, ValueRangeError
from picograd.graph.room import check_pieces
from picograd.nn import functional, init
from picograd.nn.attention import MultiheadAttention
from picograd.nn.containers import ModuleList
from picograd.nn.dropout import Dropout
from picograd.nn.functional_attention import check_batches
from picograd.nn.linear import Linear
from picograd.nn.module import Module
from picograd.nn.norm import LayerNorm
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.tensor import Tensor

Activation = str | Callable[[Tensor], Tensor]
Mask = Tensor | None


def activation_named(name: Activation) -> Callable[[Tensor], Tensor]:
    """Find "relu" or "gelu"; a function stays itself."""
    known: dict[Any, Callable[[Tensor], Tensor]] = {"relu": functional.relu}
    known["gelu"] = functional.gelu
    if callable(name):
        return name
    if name not in known:
        problem = f"activation={name!r} is unknown"
        raise ValueRangeError("Transformer", problem, 'use "relu", "gelu" or a function')
    return known[name]


class ResidualLayer(Module):
    """This class holds what both layers share: attentions, then a two-layer network.

    Each of these parts has a residual, a dropout and a norm of its own.
    """

    attentions: tuple[str, ...] = ()  # their names
    self_attn: MultiheadAttention
    norm1: LayerNorm
    norm2: LayerNorm
    dropout1: Dropout
    dropout2: Dropout

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = functional.relu, layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, bias: bool = True,
        device: DeviceLike | None = None, dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        place: dict[str, Any] = dict(device=device, dtype=dtype)
        heads: dict[str, Any] = dict(dropout=dropout, bias=bias, batch_first=batch_first)
        for name in self.attentions:
            self.add_module(name, MultiheadAttention(d_model, nhead, **heads, **place))
        self.linear1: Linear = Linear(d_model, dim_feedforward, bias, **place)
        self.dropout: Dropout = Dropout(dropout)
        self.linear2: Linear = Linear(dim_feedforward, d_model, bias, **place)
        self.norm_first = norm_first
        parts = range(1, len(self.attentions) + 2)
        for number in parts:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
            self.add_module(f"norm{number}", norm)
        for number in parts:
            self.add_module(f"dropout{number}", Dropout(dropout))
        self.activation = activation_named(activation)

    def _around(
        self, part: Callable[[Tensor], Tensor], x: Tensor, norm: LayerNorm, dropout: Dropout
    ) -> Tensor:
        """Apply one part beside its residual, after its norm or before it."""
        return x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))

    def _feed(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def attend(
    attention: Module, x: Tensor, memory: Tensor, padding: Mask, mask: Mask, is_causal: bool
) -> Tensor:
    """Call an attention without asking for its weights."""
    y, _ = attention(x, memory, memory, padding, False, mask, is_causal=is_causal)
    return y


class TransformerEncoderLayer(ResidualLayer):
    """This class is self-attention, then a two-layer network, each with a residual and a norm.

    `norm_first` normalises before each part instead of after it.

    >>> from picograd import Tensor, nn
    >>> nn.TransformerEncoderLayer(8, 2, 16)(Tensor.ones(5, 3, 8)).shape
    (5, 3, 8)
    """

    attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Mask = None,
        src_key_padding_mask: Mask = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Encode: (L, B, E) -> the same shape."""

        def look(x: Tensor) -> Tensor:
            return attend(self.self_attn, x, x, src_key_padding_mask, src_mask, is_causal)

        x = self._around(look, src, self.norm1, self.dropout1)
        return self._around(self._feed, x, self.norm2, self.dropout2)


class TransformerDecoderLayer(ResidualLayer):
    """This class is self-attention, attention to the encoder's output, then a network.

    >>> from picograd import Tensor, nn
    >>> layer = nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0)
    >>> layer(Tensor.ones(3, 1, 4), Tensor.ones(3, 1, 4)).shape
    (3, 1, 4)
    """

    attentions = ("self_attn", "multihead_attn")
    multihead_attn: MultiheadAttention
    norm3: LayerNorm
    dropout3: Dropout

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Mask = None, memory_mask: Mask = None,
        tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """Decode: (L, B, E) with memory (S, B, E) -> (L, B, E)."""
        own = (tgt_key_padding_mask, tgt_mask, tgt_is_causal)
        other = (memory_key_padding_mask, memory_mask, memory_is_causal)

        def look(x: Tensor) -> Tensor:
            return attend(self.self_attn, x, x, *own)

        def recall(x: Tensor) -> Tensor:
            return attend(self.multihead_attn, x, memory, *other)

        x = self._around(look, tgt, self.norm1, self.dropout1)
        x = self._around(recall, x, self.norm2, self.dropout2)
        return self._around(self._feed, x, self.norm3, self.dropout3)


class TransformerEncoder(Module):
    """This class stacks copies of an encoder layer; `norm` follows the last one.

    >>> from picograd import Tensor, nn
    >>> layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
    >>> nn.TransformerEncoder(layer, 2)(Tensor.ones(3, 1, 4)).shape
    (3, 1, 4)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        self.layers: ModuleList = copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Mask = None,
        src_key_padding_mask: Mask = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Encode: (L, B, E) -> the same shape."""
        x = src
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, bool(is_causal))
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """This class stacks copies of a decoder layer; `norm` follows the last one.

    >>> from picograd import Tensor, nn
    >>> layer = nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0)
    >>> nn.TransformerDecoder(layer, 2)(Tensor.ones(3, 1, 4), Tensor.ones(3, 1, 4)).shape
    (3, 1, 4)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self.layers: ModuleList = copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Mask = None, memory_mask: Mask = None,
        tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """Decode: (L, B, E) with memory (S, B, E) -> (L, B, E)."""
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        x = tgt
        for layer in self.layers:
            x = layer(x, memory, *masks, bool(tgt_is_causal), memory_is_causal)
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """This class is an encoder and a decoder, each with a final norm; matrices start by Glorot.

    >>> from picograd import Tensor, nn
    >>> model = nn.Transformer(4, 2, 1, 1, 8, dropout=0.0)
    >>> model(Tensor.ones(3, 1, 4), Tensor.ones(2, 1, 4)).shape
    (2, 1, 4)
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6,
        num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = functional.relu, custom_encoder: Module | None = None,
        custom_decoder: Module | None = None, layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, bias: bool = True,
        device: DeviceLike | None = None, dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        place: dict[str, Any] = dict(device=device, dtype=dtype)
        rest: dict[str, Any] = dict(batch_first=batch_first, norm_first=norm_first, bias=bias)
        rest |= place
        shape = (d_model, layer_norm_eps, True, bias)
        self.encoder: Module | TransformerEncoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*sizes, **rest), num_encoder_layers, LayerNorm(*shape, **place)
        )
        self.decoder: Module | TransformerDecoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*sizes, **rest), num_decoder_layers, LayerNorm(*shape, **place)
        )
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        """Draw every matrix by Glorot."""
        for parameter in self.parameters():
            if len(parameter.shape) > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Mask = None, tgt_mask: Mask = None,
        memory_mask: Mask = None, src_key_padding_mask: Mask = None,
        tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """Encode (S, B, E), decode (L, B, E) -> (L, B, E)."""
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            problem = f"inputs {tuple(src.shape)}, {tuple(tgt.shape)}"
            raise ShapeError("Transformer", problem, f"give {self.d_model} features")
        if len(src.shape) == len(tgt.shape) == 3:
            check_batches("Transformer", (src, tgt), 0 if self.batch_first else 1)
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        padding = (tgt_key_padding_mask, memory_key_padding_mask)
        causal = (tgt_is_causal, memory_is_causal)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, *padding, *causal)

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: DeviceLike | None = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Make the causal mask to add: 0 up to the diagonal, -inf above it: (sz, sz)."""
        return Tensor.full((sz, sz), -float("inf"), device=device, dtype=dtype).triu(1)


def copies(module: Module, count: int) -> ModuleList:
    """List independent copies of a module."""
    check_pieces("Transformer", count, "layers")
    return ModuleList([copy.deepcopy(module) for _ in range(count)])

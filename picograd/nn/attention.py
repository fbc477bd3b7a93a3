"""MultiheadAttention, composed of linear maps and scaled_dot_product_attention."""

from typing import Any

from picograd.errors import AssertedError
from picograd.nn import init
from picograd.nn.flex_attention import SDPBackend as SDPBackend
from picograd.nn.flex_attention import sdpa_kernel as sdpa_kernel
from picograd.nn.functional_attention import attend
from picograd.nn.linear import Linear
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
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

    batch_first: bool = False
    head_dim: int
    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
        add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
        vdim: int | None = None, batch_first: bool = False, device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        init.check_sizes("MultiheadAttention", 1, embed_dim=embed_dim, num_heads=num_heads)
        if embed_dim % num_heads:
            problem = f"embed_dim={embed_dim} does not divide by num_heads={num_heads}"
            raise AssertedError("MultiheadAttention", problem, "choose a divisor")
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.head_dim, self.batch_first = (embed_dim // num_heads, batch_first)
        self.kdim: int = embed_dim if kdim is None else kdim
        self.vdim: int = embed_dim if vdim is None else vdim
        self.add_zero_attn = add_zero_attn
        self._make_projections(bias, add_bias_kv, (device, dtype))

    def _make_projections(self, bias: bool, add_bias_kv: bool, place: tuple[Any, Any]) -> None:
        width = self.embed_dim
        self.in_proj_weight = self.q_proj_weight = self.k_proj_weight = self.v_proj_weight = None
        self._qkv_same_embed_dim = self.kdim == width and self.vdim == width
        if self._qkv_same_embed_dim:
            self.in_proj_weight = _zeros(place, 3 * width, width)
        else:
            self.q_proj_weight = _zeros(place, width, width)
            self.k_proj_weight = _zeros(place, width, self.kdim)
            self.v_proj_weight = _zeros(place, width, self.vdim)
        self.in_proj_bias: Parameter | None = _zeros(place, 3 * width) if bias else None
        self.out_proj: Linear = Linear(width, width, bias, *place)
        self.bias_k: Parameter | None = _zeros(place, 1, 1, width) if add_bias_kv else None
        self.bias_v: Parameter | None = _zeros(place, 1, 1, width) if add_bias_kv else None
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draw the projections of the inputs by Glorot; biases start at zeros."""
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None,
        average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Attend; returns (output, weights), the weights averaged over heads: (B, L, S).

        `is_causal` without `attn_mask` makes the causal mask; with one it is a hint, not needed.
        """
        options = need_weights, attn_mask, average_attn_weights, is_causal
        return attend(self, query, key, value, key_padding_mask, *options)


def _zeros(place: tuple[Any, Any], *shape: int) -> Parameter:
    return Parameter(init.constant_values(shape, 0.0, *place))

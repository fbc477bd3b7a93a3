"""A decoder in today's style generates with a cache of keys and values.

RMSNorm (Zhang and Sennrich, 2019), rotary positions (Su et al., 2021), SwiGLU (Shazeer, 2020) and
fewer heads of keys than of queries (Ainslie et al., 2023), with the names of Llama's weights. With
the cache each new token is one row of work; the numbers are those of reading everything again.

    python examples/decoder.py [--device cuda] [--seed 0] [--steps 8]
"""

from dataclasses import dataclass

import numpy as np
from common import read_options

import picograd
from picograd import Tensor, nn


@dataclass
class Sizes:
    vocabulary: int = 64
    width: int = 32
    inside: int = 64
    layers: int = 2
    heads: int = 4
    key_heads: int = 2
    base: float = 10000.0  # of the wavelengths of rotary positions


def rotate(x, first, base):
    """Turn pairs (i, i + D/2) of each head by an angle that grows with the position: B H T D."""
    half = x.shape[-1] // 2
    rates = Tensor((base ** (-np.arange(half) / half)).astype(x.dtype.numpy), device=x.device)
    places = Tensor.arange(first, first + x.shape[2], device=x.device).unsqueeze(-1)
    angles = places * rates  # T D/2
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., :half], x[..., half:]
    return Tensor.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Attention(nn.Module):
    """Attention whose keys and values of earlier positions come from the cache."""

    def __init__(self, sizes):
        self.sizes, self.size = sizes, sizes.width // sizes.heads
        self.q_proj = nn.Linear(sizes.width, sizes.width, bias=False)
        self.k_proj = nn.Linear(sizes.width, sizes.key_heads * self.size, bias=False)
        self.v_proj = nn.Linear(sizes.width, sizes.key_heads * self.size, bias=False)
        self.o_proj = nn.Linear(sizes.width, sizes.width, bias=False)

    def split(self, x):
        return x.reshape(*x.shape[:2], -1, self.size).transpose(1, 2)  # B H T D

    def forward(self, x, past):
        first = 0 if past is None else past[0].shape[2]
        q, k, v = (self.split(f(x)) for f in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rotate(q, first, self.sizes.base), rotate(k, first, self.sizes.base)
        if past is not None:
            k, v = Tensor.cat([past[0], k], 2), Tensor.cat([past[1], v], 2)
        rows = Tensor.arange(first, first + x.shape[1], device=x.device).unsqueeze(-1)
        mask = Tensor.arange(k.shape[2], device=x.device) <= rows  # T S
        attend = nn.functional.scaled_dot_product_attention
        y = attend(q, k, v, attn_mask=mask, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).reshape(x.shape)), (k, v)


class Network(nn.Module):
    """SwiGLU: one linear map gates another."""

    def __init__(self, sizes):
        self.gate_proj = nn.Linear(sizes.width, sizes.inside, bias=False)
        self.up_proj = nn.Linear(sizes.width, sizes.inside, bias=False)
        self.down_proj = nn.Linear(sizes.inside, sizes.width, bias=False)

    def forward(self, x):
        return self.down_proj(self.gate_proj(x).silu() * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, sizes):
        self.self_attn, self.mlp = Attention(sizes), Network(sizes)
        self.input_layernorm = nn.RMSNorm(sizes.width, eps=1e-6)
        self.post_attention_layernorm = nn.RMSNorm(sizes.width, eps=1e-6)

    def forward(self, x, past=None):
        y, present = self.self_attn(self.input_layernorm(x), past)
        x = x + y
        return x + self.mlp(self.post_attention_layernorm(x)), present


class Decoder(nn.Module):
    """Embedding, blocks, norm, scores of the next token."""

    def __init__(self, sizes):
        self.embed_tokens = nn.Embedding(sizes.vocabulary, sizes.width)
        self.layers = nn.ModuleList(Block(sizes) for _ in range(sizes.layers))
        self.norm = nn.RMSNorm(sizes.width, eps=1e-6)
        self.lm_head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)

    def forward(self, tokens, cache=None):
        """Scores (B, T, V) of tokens (B, T) that follow those of the cache; and the new cache."""
        x, kept = self.embed_tokens(tokens), []
        for layer, past in zip(self.layers, cache or [None] * len(self.layers)):
            x, present = layer(x, past)
            kept.append(present)
        return self.lm_head(self.norm(x)), kept


def generate(model, prompt, count):
    """Continue a prompt by the likeliest tokens."""
    tokens, cache, given = list(prompt), None, list(prompt)
    device = model.lm_head.weight.device
    with picograd.no_grad():
        for _ in range(count):
            scores, cache = model(Tensor([given], device=device), cache)
            given = [int(scores[0, -1].argmax().item())]
            tokens += given
    return tokens


def main(arguments=None):
    """Generate from random weights; returns the tokens."""
    options = read_options(__doc__, arguments)
    picograd.manual_seed(options.seed)
    model = Decoder(Sizes()).to(options.device)
    tokens = generate(model, [1, 2, 3], options.steps or 8)
    print("tokens:", *tokens)
    return tokens


if __name__ == "__main__":
    main()

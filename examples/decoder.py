"""A decoder in today's style learns to write, and writes with a cache of keys and values.

RMSNorm (Zhang and Sennrich, 2019), rotary positions (Su et al., 2021), SwiGLU (Shazeer, 2020) and
fewer heads of keys than of queries (Ainslie et al., 2023), with the names of Llama's weights, and
what Qwen adds. It learns the text of examples/gpt.py, character by character. With the cache, which
is written in place, each new token is one row of work and costs the same wherever it stands; the
numbers are those of reading everything again. examples/llm.py loads weights of others into it.

    python examples/decoder.py [--device cuda] [--seed 0] [--steps 1500]
"""

from dataclasses import dataclass, field

import numpy as np
from common import Clock, read_options, shipped_text
from gpt import train
from writing import Letters, attend, empty_cache, places, show

import picograd
from picograd import Tensor, nn

STEPS = 1500


@dataclass
class Sizes:
    vocabulary: int
    context: int = 128
    width: int = 128
    inside: int = 384
    layers: int = 4
    heads: int = 4
    key_heads: int = 2
    head_size: int = 32
    base: float = 10000.0  # of the wavelengths of rotary positions
    epsilon: float = 1e-6  # of norms
    bias: bool = False  # of queries, keys and values: Qwen2
    head_norms: bool = False  # of queries and keys: Qwen3
    stretch: dict = field(default_factory=dict)  # of long wavelengths: Llama 3


def turning_rates(sizes):
    """Say how far pair i of a head turns at each position; long waves may be stretched."""
    half = sizes.head_size // 2
    rates = sizes.base ** (-np.arange(half) / half)
    if not sizes.stretch:
        return rates.astype(np.float32)
    low, high = sizes.stretch["low_freq_factor"], sizes.stretch["high_freq_factor"]
    turns = sizes.stretch["original_max_position_embeddings"] * rates / (2 * np.pi)
    short = np.clip((turns - low) / (high - low), 0, 1)  # 1: as it was
    return (rates * (short + (1 - short) / sizes.stretch["factor"])).astype(np.float32)


def rotate(x, cos, sin):
    """Turn pairs (i, i + D/2) of each head: x is B H T D."""
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return Tensor.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Attention(nn.Module):
    """Attention whose keys and values of earlier positions come from the cache."""

    def __init__(self, sizes):
        self.size = sizes.head_size
        inside, fewer = sizes.heads * self.size, sizes.key_heads * self.size
        self.q_proj = nn.Linear(sizes.width, inside, bias=sizes.bias)
        self.k_proj = nn.Linear(sizes.width, fewer, bias=sizes.bias)
        self.v_proj = nn.Linear(sizes.width, fewer, bias=sizes.bias)
        self.o_proj = nn.Linear(inside, sizes.width, bias=False)
        self.q_norm, self.k_norm = (
            nn.RMSNorm(self.size, eps=sizes.epsilon) if sizes.head_norms else nn.Identity()
            for _ in "qk"
        )

    def split(self, x):
        return x.reshape(*x.shape[:2], -1, self.size)  # B T H D

    def forward(self, x, angles, *past):
        q, k, v = (self.split(f(x)) for f in (self.q_proj, self.k_proj, self.v_proj))
        q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))  # B H T D
        q, k = rotate(q, *angles), rotate(k, *angles)
        y = attend(q, k, v, *past, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))


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
        self.input_layernorm = nn.RMSNorm(sizes.width, eps=sizes.epsilon)
        self.post_attention_layernorm = nn.RMSNorm(sizes.width, eps=sizes.epsilon)

    def forward(self, x, angles, *past):
        x = x + self.self_attn(self.input_layernorm(x), angles, *past)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """Embedding, blocks, norm, scores of the next token."""

    def __init__(self, sizes):
        self.sizes = sizes
        self.embed_tokens = nn.Embedding(sizes.vocabulary, sizes.width)
        self.layers = nn.ModuleList(Block(sizes) for _ in range(sizes.layers))
        self.norm = nn.RMSNorm(sizes.width, eps=sizes.epsilon)
        self.lm_head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)
        nn.init.normal_(self.embed_tokens.weight, std=0.02)

    def forward(self, tokens, cache=None, first=0, starts=None):
        """Scores (B, T, V) of tokens (B, T); with a cache they follow its first `first` places."""
        numbers = places(tokens.shape[1], first, starts, tokens.device)  # T, or B T
        rates = Tensor(turning_rates(self.sizes), device=tokens.device)
        angles = (numbers.unsqueeze(-1) * rates).unsqueeze(-3)  # 1 T D/2, or B 1 T D/2
        x = self.embed_tokens(tokens)
        angles = angles.cos().cast(x.dtype), angles.sin().cast(x.dtype)
        for number, layer in enumerate(self.layers):
            x = layer(x, angles, None if cache is None else cache[number], first, starts)
        return self.lm_head(self.norm(x))

    def empty_cache(self, batch=1):
        """Make room for keys and values."""
        s, weight = self.sizes, self.lm_head.weight
        return empty_cache(s.layers, batch, s.key_heads, s.context, s.head_size, weight)


def forget(model, optimizer, step):
    """Keep nothing of the training."""


def main(arguments=None):
    """Train, write text; returns the losses."""
    options = read_options(__doc__, arguments, batch_size=32)
    options.bfloat16, clock = False, Clock()
    picograd.manual_seed(options.seed)
    text = shipped_text()
    codec = Letters(text)
    model = Decoder(Sizes(len(codec.letters))).to(options.device)
    optimizer = nn.optim.AdamW(model.parameters(), 3e-3, betas=(0.9, 0.99), weight_decay=0.1)
    steps = STEPS if options.steps is None else options.steps
    tokens = np.array(codec.encode(text))
    losses = train(model, optimizer, tokens, options, steps, 0, clock, forget)
    with clock("writing"):
        show(model, codec, ["It is a truth "], 500, seed=options.seed)
    print(f"seconds: {clock}")
    return losses


if __name__ == "__main__":
    main()

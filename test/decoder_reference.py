"""The decoder of examples/decoder.py in NumPy, in float64: position by position, head by head."""

import numpy as np


def reference(state, sizes, tokens):
    """Scores (T, V) of tokens, without a cache."""
    x = state["embed_tokens.weight"][tokens]  # T E
    size = sizes.head_size
    for number in range(sizes.layers):
        w = {k.split(".", 2)[2]: v for k, v in state.items() if k.startswith(f"layers.{number}.")}
        h = norm(x, w["input_layernorm.weight"])
        q, k, v = (
            h @ w[f"self_attn.{name}_proj.weight"].T + w.get(f"self_attn.{name}_proj.bias", 0)
            for name in "qkv"
        )
        y = np.zeros((len(tokens), sizes.heads * size))
        for head in range(sizes.heads):
            other = head * sizes.key_heads // sizes.heads
            mine, theirs = (slice(n * size, (n + 1) * size) for n in (head, other))
            for place in range(len(tokens)):
                query = turn(head_norm(q[place, mine], w, "q"), place, sizes)
                keys = [turn(head_norm(k[p, theirs], w, "k"), p, sizes) for p in range(place + 1)]
                weights = np.exp(np.stack(keys) @ query / np.sqrt(size))
                y[place, mine] = weights / weights.sum() @ v[: place + 1, theirs]
        x = x + y @ w["self_attn.o_proj.weight"].T
        h = norm(x, w["post_attention_layernorm.weight"])
        gate = h @ w["mlp.gate_proj.weight"].T
        inside = gate / (1 + np.exp(-gate)) * (h @ w["mlp.up_proj.weight"].T)
        x = x + inside @ w["mlp.down_proj.weight"].T
    return norm(x, state["norm.weight"]) @ state["lm_head.weight"].T


def norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight


def head_norm(x, weights, name):
    weight = weights.get(f"self_attn.{name}_norm.weight")
    return x if weight is None else norm(x, weight)


def turn(x, place, sizes):
    """Rotate complex numbers made of both halves."""
    half = len(x) // 2
    rates = sizes.base ** (-np.arange(half) / half)
    if sizes.stretch:
        rates = np.array([stretched(rate, **sizes.stretch) for rate in rates])
    z = (x[:half] + 1j * x[half:]) * np.exp(1j * place * rates)
    return np.concatenate([z.real, z.imag])


def stretched(
    rate, factor, low_freq_factor, high_freq_factor, original_max_position_embeddings, **_
):
    """Stretch waves longer than a share of the first context; those in between in part."""
    length = 2 * np.pi / rate
    if length < original_max_position_embeddings / high_freq_factor:
        return rate
    if length > original_max_position_embeddings / low_freq_factor:
        return rate / factor
    part = original_max_position_embeddings / length - low_freq_factor
    share = part / (high_freq_factor - low_freq_factor)
    return (1 - share) * rate / factor + share * rate

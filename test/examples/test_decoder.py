import importlib

import numpy as np

import picograd
from picograd import Tensor


def norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight


def reference(state, sizes, tokens):
    """The decoder in NumPy, in float64, position by position and head by head, without a cache."""
    x = state["embed_tokens.weight"][tokens]  # T E
    size = sizes.width // sizes.heads
    for number in range(sizes.layers):
        w = {k.split(".", 2)[2]: v for k, v in state.items() if k.startswith(f"layers.{number}.")}
        h = norm(x, w["input_layernorm.weight"])
        q, k, v = (h @ w[f"self_attn.{name}_proj.weight"].T for name in "qkv")
        y = np.zeros_like(x)
        for head in range(sizes.heads):
            other = head * sizes.key_heads // sizes.heads
            mine, theirs = (slice(n * size, (n + 1) * size) for n in (head, other))
            for place in range(len(tokens)):
                query = turn(q[place, mine], place, sizes.base)
                keys = np.stack([turn(k[p, theirs], p, sizes.base) for p in range(place + 1)])
                weights = np.exp(keys @ query / np.sqrt(size))
                y[place, mine] = weights / weights.sum() @ v[: place + 1, theirs]
        x = x + y @ w["self_attn.o_proj.weight"].T
        h = norm(x, w["post_attention_layernorm.weight"])
        gate = h @ w["mlp.gate_proj.weight"].T
        inside = gate / (1 + np.exp(-gate)) * (h @ w["mlp.up_proj.weight"].T)
        x = x + inside @ w["mlp.down_proj.weight"].T
    return norm(x, state["norm.weight"]) @ state["lm_head.weight"].T


def turn(x, place, base):
    """Rotate complex numbers made of both halves."""
    half = len(x) // 2
    z = (x[:half] + 1j * x[half:]) * np.exp(1j * place * base ** (-np.arange(half) / half))
    return np.concatenate([z.real, z.imag])


def test_decoder_equals_a_float64_reference_with_and_without_cache(device):
    """RoPE, RMSNorm, SwiGLU, grouped queries and the cache of keys and values (M31)."""
    example = importlib.import_module("decoder")
    picograd.manual_seed(0)
    sizes = example.Sizes(11, 8, 12, 2, 4, 2)
    model = example.Decoder(sizes).to(device)
    tokens = [3, 1, 4, 1]
    state = {name: x.numpy().astype(np.float64) for name, x in model.state_dict().items()}
    wanted = reference(state, sizes, tokens)
    whole, _ = model(Tensor([tokens], device=device))
    np.testing.assert_allclose(whole.numpy()[0], wanted, rtol=1e-4, atol=1e-5)
    start, cache = model(Tensor([tokens[:3]], device=device))
    pieces = [start.numpy()[0]]
    for token in tokens[3:]:
        scores, cache = model(Tensor([[token]], device=device), cache)
        pieces.append(scores.numpy()[0])
    np.testing.assert_allclose(np.concatenate(pieces), wanted, rtol=1e-4, atol=1e-5)


def test_generation_continues_the_prompt(device, capsys):
    tokens = importlib.import_module("decoder").main(["--device", device, "--steps", "1"])
    assert tokens[:3] == [1, 2, 3] and len(tokens) == 4
    assert capsys.readouterr().out.startswith("tokens: 1 2 3")

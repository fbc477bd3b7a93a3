"""A token of Llama on an NVIDIA GPU beside PyTorch: decoding with a cache of fixed size.

The model is written as Hugging Face writes it, and the same text is run by both libraries over the
same bfloat16 weights: rotary positions by halves, grouped queries, norms in float32, a cache that
`index_copy_` writes. A step reads a token and leaves the likeliest next one in its place. PyTorch
is captured in a CUDA graph as it is and compiled; sizes are those of Llama 3.2 1B.

    python bench/gpu_llama.py [--layers 16] [--context 1024] [--rounds 7] [--kernels]
        [--mode default] [--form half]
    python bench/gpu_llama.py --prompt 512    # so many tokens of a prompt at once
    python bench/gpu_llama.py --plan    # kernels of a token for an H200, without a GPU
"""

import argparse
import statistics
import time
from functools import partial
from typing import NamedTuple

from gpu_sequences import timed

import picograd


class Sizes(NamedTuple):
    width: int = 2048
    heads: int = 32
    shared: int = 8
    size: int = 64
    inner: int = 8192
    vocabulary: int = 128256
    layers: int = 16
    context: int = 1024
    batch: int = 1


def by_halves(T, x, cos, sin):
    """Turn columns i and i + D/2 of each head."""
    half = x.shape[-1] // 2
    turned = T.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cos + turned * sin


def by_neighbours(T, x, cos, sin):
    """Turn columns 2 i and 2 i + 1 of each head."""
    half = x.shape[-1] // 2
    a, b, cos, sin = x[..., 0::2], x[..., 1::2], cos[..., :half], sin[..., :half]
    return T.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)


FORMS = {"half": by_halves, "neighbours": by_neighbours}


def llama(T, s, form="half"):
    """Make a network of library `T`."""
    nn, F, rotate = T.nn, T.nn.functional, FORMS[form]

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(T.ones(s.width))

        def forward(self, x):
            wide = x.to(T.float32)
            wide = wide * T.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
            return self.weight * wide.to(x.dtype)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            wide, few = s.heads * s.size, s.shared * s.size
            self.q_proj = nn.Linear(s.width, wide, bias=False)
            self.o_proj = nn.Linear(wide, s.width, bias=False)
            self.k_proj, self.v_proj = (nn.Linear(s.width, few, bias=False) for _ in range(2))

        def forward(self, x, cos, sin, mask, cache, place):
            batch, length, _ = x.shape
            q, k, v = (
                each(x).view(batch, length, -1, s.size).transpose(1, 2)
                for each in (self.q_proj, self.k_proj, self.v_proj)
            )
            q, k = rotate(T, q, cos, sin), rotate(T, k, cos, sin)
            k, v = (old.index_copy_(2, place, new) for old, new in zip(cache, (k, v)))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
            return self.o_proj(y.transpose(1, 2).reshape(batch, length, -1))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate_proj, self.up_proj = (
                nn.Linear(s.width, s.inner, bias=False) for _ in range(2)
            )
            self.down_proj = nn.Linear(s.inner, s.width, bias=False)

        def forward(self, x):
            return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.self_attn, self.mlp = Attention(), Network()
            self.input_layernorm, self.post_attention_layernorm = Norm(), Norm()

        def forward(self, x, *past):
            x = x + self.self_attn(self.input_layernorm(x), *past)
            return x + self.mlp(self.post_attention_layernorm(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed_tokens = nn.Embedding(s.vocabulary, s.width)
            self.layers = nn.ModuleList([Layer() for _ in range(s.layers)])
            self.norm = Norm()
            rates = 500000.0 ** -(T.arange(0, s.size, 2).float() / s.size)
            self.register_buffer("inv_freq", rates, persistent=False)

        def forward(self, tokens, place, cache, is_last=False):
            x = self.embed_tokens(tokens)
            angles = place[:, None].float() * self.inv_freq
            angles = T.cat((angles, angles), -1)
            cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
            mask = T.arange(s.context, device=place.device) <= place[:, None]
            for layer, own in zip(self.layers, cache):
                x = layer(x, cos, sin, mask, own, place)
            x = x[:, -1:] if is_last else x
            return F.linear(self.norm(x), self.embed_tokens.weight)

    return Model()


def cache_of(T, s, device):
    """Make the keys and values of each layer."""
    options = {"dtype": T.bfloat16, "device": device}
    shape = s.batch, s.shared, s.context, s.size
    return [[T.zeros(*shape, **options) for _ in "kv"] for _ in range(s.layers)]


def prompt_of(T, model, s, count, device, is_last):
    """Make a step that reads a prompt, and returns the scores of its last place."""
    cache = cache_of(T, s, device)
    tokens = (T.arange(s.batch * count, device=device) * 7919 % s.vocabulary).view(s.batch, count)
    place = T.arange(count, device=device)

    def step():
        with T.no_grad():
            return model(tokens, place, cache, is_last)[:, -1]

    return step


def step_of(T, model, s, device, count=0, is_last=False):
    """Make a step, which returns the scores of the next token: of one, or of a prompt of so many.

    Where `is_last` the program cuts off the last place of a prompt itself, before the scores.
    """
    if count:
        return prompt_of(T, model, s, count, device, is_last)
    cache = cache_of(T, s, device)
    token = T.zeros(s.batch, 1, dtype=T.int64, device=device)
    place = T.full((1,), s.context - 8, dtype=T.int64, device=device)

    def step():
        with T.no_grad():
            scores = model(token, place, cache)[:, -1]
            token.copy_(scores.argmax(-1, keepdim=True))
            place.copy_((place + 1).clamp(max=s.context - 1))
            return scores

    return step


def show_kernels(step):
    """Print what the kernels of a step take, longest first."""
    with picograd.profile(None) as found:
        step()
        picograd.cuda.synchronize()
    rows = sorted(found.totals.rows.values(), key=lambda row: -row.seconds)
    print(f"{found.totals.launches} kernels, {found.totals.seconds * 1e6:.0f} us one by one")
    for row in rows:
        each = row.seconds / row.launches
        rate = row.bytes_moved / row.seconds / 1e9
        print(f"  {row.launches:4} x {each * 1e6:8.2f} us {rate:6.0f} GB/s {row.name}")


def replayed(graph, _kept):
    """Replay a graph, whose memory is that of the step it was captured of."""
    graph.replay()


def rivals_of(model, s, options):
    """Capture PyTorch's steps: as it is, compiled, and with the last place cut off by hand."""
    import torch
    from torch_capture import capture

    rivals, scores = {}, None
    mode, count = options.mode, options.prompt
    for name in ("captured", *["compiled"] * bool(mode), *["cut"] * bool(count)):
        run = model
        if name == "compiled":
            run = torch.compile(model, dynamic=False, mode=None if mode == "default" else mode)
        step = step_of(torch, run, s, "cuda", count, name == "cut")
        try:
            first = step().float().cpu()
            scores = first if scores is None else scores
            rivals[name] = partial(replayed, capture(step, 3)[0], step)
        except Exception as problem:  # a rival less
            print("no rival:", name, str(problem).split("\n")[0][:150])
    return rivals, scores


def measure(s, options):
    """Compare values and times."""
    import torch

    torch.manual_seed(0)
    began = time.perf_counter()
    with torch.device("cuda"):
        theirs = llama(torch, s, options.form).to(torch.bfloat16)
    with torch.no_grad():
        theirs.embed_tokens.weight.mul_(0.05)
    with picograd.device("cuda"):
        ours = llama(picograd, s, options.form)
    state = theirs.state_dict()
    shared = {name: picograd.from_dlpack(each.detach()) for name, each in state.items()}
    ours.load_state_dict(shared, assign=True)
    step = step_of(picograd, ours, s, "cuda", options.prompt)
    jitted = picograd.jit(step)
    first = torch.from_numpy(jitted().float().numpy())
    jitted()
    print(f"picograd's first steps after {time.perf_counter() - began:.1f} s", flush=True)
    if options.kernels:
        show_kernels(jitted)
    rivals, scores = rivals_of(theirs, s, options)
    print(f"all compiled after {time.perf_counter() - began:.1f} s", flush=True)
    apart = (first - scores).norm() / scores.norm()
    times = timed({"picograd": jitted} | rivals, options.rounds, 10 if options.prompt else 50)
    weights = sum(each.numel() for each in theirs.parameters()) * 2
    nbytes = weights + 2 * s.layers * s.batch * s.shared * s.context * s.size * 2
    print(f"{s}; {nbytes / 1e9:.2f} GB are read; scores differ by {apart:.1e} of their norm")
    for each, found in times.items():
        middle = statistics.median(found)
        spread = (max(found) - min(found)) / middle
        cost = f"{middle * 1e3:8.1f} us  {nbytes / middle / 1e9:5.2f} TB/s"
        ratio = middle / statistics.median(times["picograd"])
        print(f"  {each:10} {cost}  {ratio:5.2f}  spread {spread:.0%}")


def planned(s, form, count):
    """Print the kernels of a token."""
    from plan_text import only_plans

    from picograd.engine import pending

    with only_plans("cuda:0") as plans:
        with picograd.device("cuda"):
            model = llama(picograd, s, form).to(picograd.bfloat16)
        step = step_of(picograd, model, s, "cuda", count)
        step().realize()
        pending.realize_all()
        plans.is_open = True
        step().realize()
        pending.realize_all()
    kernels = [each for plan in plans for each in plan.kernels]
    print(f"{len(kernels)} kernels")
    print("\n".join(f"  {each.hero:12} {each.name}" for each in kernels))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--prompt", type=int, default=0, help="tokens that are read at once")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--form", default="half", choices=list(FORMS))
    parser.add_argument("--mode", default="default", help="of torch.compile; empty: not compiled")
    parser.add_argument("--kernels", action="store_true", help="print what kernels take")
    parser.add_argument("--plan", action="store_true")
    options = parser.parse_args()
    s = Sizes(layers=options.layers, context=options.context, batch=options.batch)
    if options.plan:
        planned(s, options.form, options.prompt)
    else:
        measure(s, options)


if __name__ == "__main__":
    main()

"""Sequence programs as people write them, for `bench/gpu_sequences.py`.

A function here makes a module of a library `T`, PyTorch or picograd, which maps inputs to a loss or
a result. Sizes are those of a GPU, or small ones for a look at values on a CPU.
"""

import math
from typing import NamedTuple

import numpy as np


class Sizes(NamedTuple):
    batch: int
    length: int
    width: int
    heads: int
    layers: int
    vocabulary: int


LARGE = Sizes(8, 1024, 1024, 16, 2, 32000)
SMALL = Sizes(2, 32, 64, 4, 2, 128)


def tokens(generator, s, count=1):
    """Draw `count` arrays of tokens."""
    shape = (s.batch, s.length)
    return [generator.integers(0, s.vocabulary, shape) for _ in range(count)]


def split(x, heads):
    """(B, S, H D) -> (B, H, S, D)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def joined(x):
    """(B, H, S, D) -> (B, S, H D)."""
    return x.transpose(1, 2).flatten(2)


def llama(T, s):
    nn, F = T.nn, T.nn.functional

    def rotate(x, cos, sin):
        a, b = x.chunk(2, -1)
        return (x * cos + T.cat((-b, a), -1) * sin).to(x.dtype)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.shared, d = s.heads // 4, s.width // s.heads
            self.before, self.between = nn.RMSNorm(s.width), nn.RMSNorm(s.width)
            self.q, self.o = (nn.Linear(s.width, s.width, bias=False) for _ in range(2))
            self.k, self.v = (nn.Linear(s.width, self.shared * d, bias=False) for _ in range(2))
            inner = s.width * 11 // 4
            self.gate, self.up = (nn.Linear(s.width, inner, bias=False) for _ in range(2))
            self.down = nn.Linear(inner, s.width, bias=False)

        def forward(self, x, cos, sin):
            h = self.before(x)
            q, k, v = split(self.q(h), s.heads), split(self.k(h), self.shared), self.v(h)
            q, k, v = rotate(q, cos, sin), rotate(k, cos, sin), split(v, self.shared)
            h = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            x = x + self.o(joined(h))
            h = self.between(x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(s.vocabulary, s.width)
            self.blocks = nn.ModuleList([Block() for _ in range(s.layers)])
            self.norm = nn.RMSNorm(s.width)
            self.head = nn.Linear(s.width, s.vocabulary, bias=False)
            d = s.width // s.heads
            angles = np.outer(np.arange(s.length), 10000.0 ** -(np.arange(0, d, 2) / d))
            angles = np.concatenate((angles, angles), 1).astype(np.float32)
            self.register_buffer("cos", T.tensor(np.cos(angles)))
            self.register_buffer("sin", T.tensor(np.sin(angles)))

        def forward(self, x, y=None):
            h = self.embed(x)
            for block in self.blocks:
                h = block(h, self.cos, self.sin)
            if y is None:
                return self.head(self.norm(h)[:, -1])
            return F.cross_entropy(self.head(self.norm(h)).flatten(0, 1), y.flatten())

    return Model()


def padding(generator, s):
    """Which places of a batch are padded: a (B, S) boolean array."""
    lengths = generator.integers(s.length // 4, s.length + 1, s.batch)
    return np.arange(s.length) >= lengths[:, None]


def bert(T, s):
    nn, F = T.nn, T.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            w = s.width
            self.qkv, self.o = nn.Linear(w, 3 * w), nn.Linear(w, w)
            self.up, self.down = nn.Linear(w, 4 * w), nn.Linear(4 * w, w)
            self.after, self.last = nn.LayerNorm(w), nn.LayerNorm(w)

        def forward(self, x, mask):
            q, k, v = (split(each, s.heads) for each in self.qkv(x).chunk(3, -1))
            h = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = self.after(x + self.o(joined(h)))
            return self.last(x + self.down(F.gelu(self.up(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(s.vocabulary, s.width)
            self.places = nn.Parameter(T.zeros(s.length, s.width))
            self.blocks = nn.ModuleList([Block() for _ in range(s.layers)])
            self.head = nn.Linear(s.width, s.width)

        def forward(self, x, padded):
            h = self.embed(x) + self.places
            if padded.dtype == T.bool:
                mask = ~padded[:, None, None, :]
            else:
                mask = padded[:, None, None, :]
                if T.is_autocast_enabled("cuda"):
                    mask = mask.to(T.bfloat16)
            for block in self.blocks:
                h = block(h, mask)
            return (self.head(h).float() ** 2).mean()

    return Model()


def shipped(T, s):
    nn = T.nn
    layer = nn.TransformerEncoderLayer(s.width, s.heads, 4 * s.width, dropout=0.0, batch_first=True)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.TransformerEncoder(layer, s.layers, enable_nested_tensor=False)

        def forward(self, x, padded):
            return (self.encoder(x, src_key_padding_mask=padded).float() ** 2).mean()

    return Model()


def t5(T, s):
    nn, F = T.nn, T.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.o = (
                nn.Linear(s.width, s.width, bias=False) for _ in range(4)
            )

        def forward(self, x, seen, bias=None):
            q, k, v = split(self.q(x), s.heads), split(self.k(seen), s.heads), self.v(seen)
            scores = q @ k.transpose(-1, -2)
            scores = scores if bias is None else scores + bias
            weights = F.softmax(scores.float(), dim=-1).to(q.dtype)
            return self.o(joined(weights @ split(v, s.heads)))

    class Block(nn.Module):
        def __init__(self, is_decoder):
            super().__init__()
            self.own, self.own_norm = Attention(), nn.RMSNorm(s.width)
            if is_decoder:
                self.cross, self.cross_norm = Attention(), nn.RMSNorm(s.width)
            self.up = nn.Linear(s.width, 4 * s.width, bias=False)
            self.down = nn.Linear(4 * s.width, s.width, bias=False)
            self.norm = nn.RMSNorm(s.width)

        def forward(self, x, bias, seen=None):
            h = self.own_norm(x)
            x = x + self.own(h, h, bias)
            if seen is not None:
                x = x + self.cross(self.cross_norm(x), seen)
            return x + self.down(F.relu(self.up(self.norm(x))))

    def buckets(is_causal):
        distance = np.arange(s.length)[None] - np.arange(s.length)[:, None]
        count = 32 if is_causal else 16
        base = 0 if is_causal else (distance > 0) * 16
        near = np.maximum(-distance, 0) if is_causal else np.abs(distance)
        exact = count // 2
        far = np.log(np.maximum(near, 1) / exact) / math.log(128 / exact) * (count - exact)
        return base + np.where(near < exact, near, np.minimum(exact + far.astype(int), count - 1))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(s.vocabulary, s.width)
            self.bias, self.causal_bias = nn.Embedding(32, s.heads), nn.Embedding(32, s.heads)
            self.encoder = nn.ModuleList([Block(False) for _ in range(s.layers // 2)])
            self.decoder = nn.ModuleList([Block(True) for _ in range(s.layers // 2)])
            self.norm, self.last = nn.RMSNorm(s.width), nn.RMSNorm(s.width)
            self.register_buffer("buckets", T.tensor(buckets(False)))
            self.register_buffer("causal_buckets", T.tensor(buckets(True)))
            hidden = np.triu(np.full((s.length, s.length), -np.inf, np.float32), 1)
            self.register_buffer("hidden", T.tensor(hidden))

        def forward(self, x, y):
            h = self.embed(x)
            bias = self.bias(self.buckets).permute(2, 0, 1)[None]
            for block in self.encoder:
                h = block(h, bias)
            seen, h = self.norm(h), self.embed(y)
            bias = self.causal_bias(self.causal_buckets).permute(2, 0, 1)[None] + self.hidden
            for block in self.decoder:
                h = block(h, bias, seen)
            logits = self.last(h) @ self.embed.weight.t() * s.width**-0.5
            return F.cross_entropy(logits.flatten(0, 1), y.roll(-1, 1).flatten())

    return Model()


def windows(T, s, is_masked=False):
    """A block of attention within windows of 7 x 7 places, whose relative places a table biases.

    The bias is the mask of `scaled_dot_product_attention`, or added to the scores.
    """
    nn, F = T.nn, T.nn.functional
    side = 7
    y, x = np.divmod(np.arange(side * side), side)
    apart = np.stack((y[:, None] - y[None], x[:, None] - x[None])) + side - 1
    numbers = apart[0] * (2 * side - 1) + apart[1]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            w = s.width
            self.before, self.between = nn.LayerNorm(w), nn.LayerNorm(w)
            self.qkv, self.o = nn.Linear(w, 3 * w), nn.Linear(w, w)
            self.up, self.down = nn.Linear(w, 4 * w), nn.Linear(4 * w, w)
            self.table = nn.Parameter(0.02 * T.randn((2 * side - 1) ** 2, s.heads))
            self.register_buffer("numbers", T.tensor(numbers))

        def forward(self, x):
            n = side * side
            qkv = self.qkv(self.before(x)).reshape(-1, n, 3, s.heads, s.width // s.heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            bias = self.table[self.numbers.view(-1)].view(n, n, -1).permute(2, 0, 1)[None]
            if is_masked:
                h = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype))
            else:
                scores = q * (s.width // s.heads) ** -0.5 @ k.transpose(-2, -1) + bias
                h = scores.softmax(-1).to(v.dtype) @ v
            x = x + self.o(joined(h))
            x = x + self.down(F.gelu(self.up(self.between(x))))
            return (x.float() ** 2).mean()

    return Model()


def attention_alone(T, s):
    """Attention whose mask of numbers comes as an input."""
    F = T.nn.functional

    class Model(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = T.nn.Linear(s.width, 3 * s.width, bias=False)

        def forward(self, x, mask):
            q, k, v = (split(each, s.heads) for each in self.qkv(x).chunk(3, -1))
            h = F.scaled_dot_product_attention(q, k, v, attn_mask=mask.to(q.dtype))
            return (joined(h).float() ** 2).mean()

    return Model()


def mixture(T, s, is_dense):
    nn, F = T.nn, T.nn.functional
    experts, inner = 8, 2 * s.width

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(s.width, experts, bias=False)
            self.up = nn.Parameter(T.randn(experts, s.width, inner) * s.width**-0.5)
            self.down = nn.Parameter(T.randn(experts, inner, s.width) * inner**-0.5)

        def dense(self, x, weights, chosen):
            shares = (F.one_hot(chosen, experts) * weights[..., None]).sum(1)  # N E
            h = F.silu(T.einsum("nd,edh->neh", x, self.up))
            return T.einsum("neh,ehd,ne->nd", h, self.down, shares.to(h.dtype))

        def sparse(self, x, weights, chosen):
            count = x.shape[0] * 2
            order = chosen.flatten().argsort(stable=True)
            capacity = count // experts * 2
            expert = chosen.flatten()[order]
            starts = F.one_hot(expert, experts).sum(0).cumsum(0)
            place = T.arange(count, device=x.device) - F.pad(starts[:-1], (1, 0))[expert]
            kept = (place < capacity)[:, None]
            slot = expert * capacity + place.clamp(max=capacity - 1)
            rows = x[order // 2] * kept
            boxes = T.zeros(experts * capacity, s.width, device=x.device, dtype=x.dtype)
            boxes = boxes.index_add(0, slot, rows).view(experts, capacity, s.width)
            result = (F.silu(boxes @ self.up) @ self.down).flatten(0, 1)[slot]
            result = result * kept * weights.flatten()[order][:, None].to(result.dtype)
            return T.zeros_like(x).to(result.dtype).index_add(0, order // 2, result)

        def forward(self, x):
            x = x.flatten(0, 1)
            weights, chosen = F.softmax(self.gate(x).float(), dim=-1).topk(2, dim=-1)
            weights = weights / weights.sum(-1, keepdim=True)
            found = (self.dense if is_dense else self.sparse)(x, weights, chosen)
            return (found.float() ** 2).mean()

    return Model()


def recurrent(T, s, kind):
    nn, F = T.nn, T.nn.functional

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(s.vocabulary, s.width)
            self.rnn = getattr(nn, kind)(s.width, s.width, num_layers=2, batch_first=True)
            self.head = nn.Linear(s.width, s.vocabulary)

        def forward(self, x, y):
            h, _ = self.rnn(self.embed(x))
            return F.cross_entropy(self.head(h).flatten(0, 1), y.flatten())

    return Model()


def selective(T, s):
    """A gated scan by running sums of logarithms, as Mamba-like layers are written plainly."""
    nn, F = T.nn, T.nn.functional

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.out = nn.Linear(s.width, 3 * s.width), nn.Linear(s.width, s.width)

        def forward(self, x):
            value, decay, gate = self.into(x).chunk(3, -1)
            passed = F.logsigmoid(decay.float()).div(16).cumsum(1)
            state = T.exp(passed) * (value.float() * T.exp(-passed)).cumsum(1)
            return (self.out(state.to(x.dtype) * F.silu(gate)).float() ** 2).mean()

    return Model()


def linear_attention(T, s):
    """Linear attention in chunks of 64 places, states by a running sum over chunks."""
    nn, F = T.nn, T.nn.functional
    chunk = min(64, s.length // 2)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(s.width, 3 * s.width, bias=False)

        def forward(self, x):
            q, k, v = (split(each, s.heads) for each in self.qkv(x).chunk(3, -1))
            q, k = F.elu(q) + 1, F.elu(k) + 1
            q, k, v = (each.unflatten(2, (-1, chunk)) for each in (q, k, v))  # B H N C D
            states = k.transpose(-1, -2) @ v
            before = F.pad(states.cumsum(2)[:, :, :-1], (0, 0, 0, 0, 1, 0)).to(q.dtype)
            inside = (q @ k.transpose(-1, -2)).tril() @ v
            return ((q @ before + inside).float() / s.length).pow(2).mean()

    return Model()


def recommender(T, s):
    nn, F = T.nn, T.nn.functional
    tables, rows, width = 8, 100 * s.vocabulary // 32, 64

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList(
                [nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables)]
            )
            self.bottom = nn.Sequential(
                nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU()
            )
            pairs = (tables + 1) * tables // 2
            self.top = nn.Sequential(nn.Linear(width + pairs, 512), nn.ReLU(), nn.Linear(512, 1))
            i, j = np.tril_indices(tables + 1, -1)
            self.register_buffer("i", T.tensor(i))
            self.register_buffer("j", T.tensor(j))

        def forward(self, dense, sparse, y):
            x = self.bottom(dense)
            found = [x] + [table(sparse[:, n]).to(x.dtype) for n, table in enumerate(self.tables)]
            z = T.stack(found, 1)
            pairs = (z @ z.transpose(1, 2))[:, self.i, self.j]
            logits = self.top(T.cat((x, pairs), 1)).squeeze(1)
            return F.binary_cross_entropy_with_logits(logits.float(), y)

    return Model()


def vision(T, s):
    nn, F = T.nn, T.nn.functional

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, s.width, 16, stride=16)
            self.start = nn.Parameter(T.zeros(1, 1, s.width))
            self.places = nn.Parameter(T.zeros(1, 197 if s.width > 64 else 5, s.width))
            layer = nn.TransformerEncoderLayer(
                s.width, s.heads, 4 * s.width, 0.0, "gelu", batch_first=True, norm_first=True
            )
            self.encoder = nn.TransformerEncoder(layer, s.layers, enable_nested_tensor=False)
            self.head = nn.Linear(s.width, 1000)

        def forward(self, x, y):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = T.cat((self.start.expand(x.shape[0], -1, -1).to(x.dtype), x), 1) + self.places
            return F.cross_entropy(self.head(self.encoder(x)[:, 0]), y)

    return Model()


def speech(T, s):
    nn, F = T.nn, T.nn.functional

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(80, s.width), nn.Linear(s.width, 128)

        def forward(self, x, y, lengths, target_lengths):
            logits = self.head(F.relu(self.body(x))).float().log_softmax(-1).transpose(0, 1)
            return F.ctc_loss(logits, y, lengths, target_lengths)

    return Model()


def vocabulary(T, s):
    nn, F = T.nn, T.nn.functional

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(s.width, 50257 if s.width > 64 else 257, bias=False)

        def forward(self, x, y):
            logits = self.head(x).flatten(0, 1)
            return F.cross_entropy(logits, y.flatten(), label_smoothing=0.1)

    return Model()


def adapted(T, s):
    """A llama that learns parts of rank 16 of queries and values alone."""
    nn = T.nn

    class Adapted(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base
            self.a = nn.Linear(base.in_features, 16, bias=False)
            self.b = nn.Linear(16, base.out_features, bias=False)

        def forward(self, x):
            return self.base(x) + self.b(self.a(x)) * 2.0

    model = llama(T, s)
    model.requires_grad_(False)
    for block in model.blocks:
        block.q, block.v = Adapted(block.q), Adapted(block.v)
    return model


def eight_bits(T, s):
    class Model(T.nn.Module):
        def __init__(self):
            super().__init__()
            generator = np.random.default_rng(5)
            shape = (4 * s.width, s.width)
            numbers = generator.integers(-127, 128, shape).astype(np.int8)
            self.register_buffer("weight", T.tensor(numbers))
            self.register_buffer("scale", T.full((4 * s.width,), 0.001, dtype=T.bfloat16))

        def forward(self, x):
            return (x @ self.weight.to(x.dtype).t()) * self.scale.to(x.dtype)

    return Model()


def generation(T, s):
    """One token of a llama with keys and values of places before in memory."""
    F = T.nn.functional
    model = llama(T, s)
    shape = (s.layers, 1, s.heads // 4, s.length, s.width // s.heads)

    class Model(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model
            self.register_buffer("keys", T.zeros(*shape, dtype=T.bfloat16))
            self.register_buffer("values", T.zeros(*shape, dtype=T.bfloat16))

        def forward(self, x, place):
            model = self.model
            h = model.embed(x)
            cos, sin = model.cos[place], model.sin[place]
            seen = (T.arange(s.length, device=x.device) <= place)[None, None, None]
            for n, block in enumerate(model.blocks):
                r = block.before(h)
                q, k = split(block.q(r), s.heads), split(block.k(r), block.shared)
                v = split(block.v(r), block.shared)
                a, b = q.chunk(2, -1)
                q = (q * cos + T.cat((-b, a), -1) * sin).to(v.dtype)
                a, b = k.chunk(2, -1)
                k = (k * cos + T.cat((-b, a), -1) * sin).to(v.dtype)
                self.keys[n].index_copy_(2, place, k.to(self.keys.dtype))
                self.values[n].index_copy_(2, place, v.to(self.values.dtype))
                keys, values = self.keys[n].to(q.dtype), self.values[n].to(q.dtype)
                r = F.scaled_dot_product_attention(q, keys, values, attn_mask=seen, enable_gqa=True)
                h = h + block.o(joined(r))
                r = block.between(h)
                h = h + block.down(F.silu(block.gate(r)) * block.up(r))
            return model.head(model.norm(h))

    return Model()

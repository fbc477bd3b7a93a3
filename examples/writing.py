"""How examples write text: attention over a cache of keys and values, and drawing tokens.

A model has `sizes.context`, `lm_head`, `empty_cache(batch)`, and gives with
`model(tokens, cache, first, starts)` the scores of tokens that follow `first` others. The cache has
one size and is written in place, so that a token costs the same wherever it stands, and one trace
serves them all.
"""

import numpy as np

import picograd
from picograd import Tensor, nn


def empty_cache(layers, batch, heads, context, size, weight):
    """Make room for keys and values of every layer, (B, H, context, D), beside a weight."""
    shape, like = (batch, heads, context, size), {"dtype": weight.dtype, "device": weight.device}
    return [[Tensor.zeros(*shape, **like) for _ in "kv"] for _ in range(layers)]


def places(length, first, starts, device):
    """Number the tokens of a piece: (T,), or (B, T) where rows begin at `starts` of theirs."""
    found = Tensor.arange(length, device=device) + first
    return found if starts is None else (found - starts.unsqueeze(-1)).clamp(min=0)


def attend(q, k, v, cache=None, first=0, starts=None, **options):
    """Attend with q (B, H, T, D) to k and v (B, G, T, D), and to those of the cache before them."""
    attention = nn.functional.scaled_dot_product_attention
    if cache is None:
        return attention(q, k, v, is_causal=True, **options)
    keys, values = cache
    length, columns = q.shape[2], Tensor.arange(keys.shape[2], device=keys.device)
    keys[:, :, first : first + length] = k
    values[:, :, first : first + length] = v
    mask = columns <= places(length, first, None, keys.device).unsqueeze(-1)  # T context
    if starts is not None:
        mask = mask & (columns >= starts.reshape(-1, 1, 1, 1))  # B 1 T context
    return attention(q, keys, values, attn_mask=mask, **options)


def write(model, prompts, count, temperature=0.6, seed=0, most=1.0):
    """Yield tokens that continue prompts, one for each: drawn by their scores.

    Low temperatures are surer, 0 takes the likeliest; `most` below 1 draws of the likeliest tokens
    that together have this chance. A full context is halved, and what is left read again.
    """
    size, device = model.sizes.context, model.lm_head.weight.device
    generator, cache = np.random.default_rng(seed), model.empty_cache(len(prompts))

    @picograd.jit
    def score(rows, first, starts):
        with picograd.no_grad():
            return model(rows, cache, first, starts)[:, -1]

    model.eval()
    prompts = [list(prompt)[-size + 1 :] for prompt in prompts]
    longest, first = max(map(len, prompts)), 0
    rows = [[0] * (longest - len(prompt)) + prompt for prompt in prompts]
    begins = np.array([longest - len(prompt) for prompt in prompts])
    for _ in range(count):
        if len(rows[0]) > size:
            begins = np.maximum(0, begins - (len(rows[0]) - size // 2))
            rows, first = [row[-(size // 2) :] for row in rows], 0
        given = Tensor([row[first:] for row in rows], device=device)
        starts = Tensor(begins, device=device) if longest > min(map(len, prompts)) else None
        scores, first = score(given, first, starts).float().numpy(), len(rows[0])
        chosen = [choose(each, temperature, generator, most) for each in scores]
        for row, token in zip(rows, chosen):
            row.append(token)
        yield chosen
    model.train()


def choose(scores, temperature, generator, most=1.0):
    """Draw a token by the softmax of its scores."""
    if temperature == 0:
        return int(scores.argmax())
    chances = np.exp((scores.astype(np.float64) - scores.max()) / temperature)
    chances /= chances.sum()
    if most < 1:
        order = np.argsort(-chances)
        before = chances[order].cumsum() - chances[order]  # the chance of all that are likelier
        chances[order[before >= most]] = 0
    return int(generator.choice(len(chances), p=chances / chances.sum()))


def show(model, codec, prompts, count, **options):
    """Write text as it comes (several prompts: when all is there); returns the texts."""
    given = [codec.encode(prompt) for prompt in prompts]
    written, shown = [[] for _ in prompts], prompts[0]
    print(shown if len(prompts) == 1 else "", end="", flush=True)
    for chosen in write(model, given, count, **options):
        for tokens, token in zip(written, chosen):
            tokens.append(token)
        if len(prompts) == 1:
            text = prompts[0] + codec.decode(written[0])
            if not text.endswith("\ufffd"):  # half of a character of several bytes
                print(text[len(shown) :], end="", flush=True)
                shown = text
    texts = [prompt + codec.decode(tokens) for prompt, tokens in zip(prompts, written)]
    print("\n" if len(prompts) == 1 else "\n---\n".join(texts), flush=True)
    return texts


class Letters:
    """Tokens of a text are its characters."""

    def __init__(self, text):
        self.letters = sorted(set(text))
        self.numbers = {letter: number for number, letter in enumerate(self.letters)}

    def encode(self, text):
        return [self.numbers[letter] for letter in text if letter in self.numbers]

    def decode(self, tokens):
        return "".join(self.letters[token] for token in tokens if token < len(self.letters))


class Words:
    """Tokens are the pieces of words of `tokenizer.json`, as Hugging Face saves it."""

    def __init__(self, path):
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(path))

    def encode(self, text):
        return self.tokenizer.encode(text).ids

    def decode(self, tokens):
        return self.tokenizer.decode(list(tokens), skip_special_tokens=False)


class Numbers:
    """Tokens are written as numbers."""

    def encode(self, text):
        return [int(number) for number in text.split()]

    def decode(self, tokens):
        return "".join(f" {token}" for token in tokens)

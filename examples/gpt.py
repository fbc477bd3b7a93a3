"""A small GPT learns characters (Radford et al., 2019), and writes some.

Names of modules are those of nanoGPT, so that its checkpoints load. The text is CONTRIBUTING.md: it
is so short that a few hundred steps learn it nearly by heart, and what is written can be read.

    python examples/gpt.py [--device cuda] [--epochs 1] [--batch-size 16] [--steps 1500] [--seed 0]

Ancestors' list: M11.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import Clock, plot_losses, read_options

import picograd
from picograd import Tensor, nn

TEXT = Path(__file__).parents[1] / "CONTRIBUTING.md"
STEPS = 1500


@dataclass
class Sizes:
    vocabulary: int
    context: int = 64
    layers: int = 3
    heads: int = 4
    width: int = 64
    bias: bool = True


class Attention(nn.Module):
    """Every position looks at itself and those before it, with several heads."""

    def __init__(self, sizes):
        self.c_attn = nn.Linear(sizes.width, 3 * sizes.width, sizes.bias)
        self.c_proj = nn.Linear(sizes.width, sizes.width, sizes.bias)
        self.heads = sizes.heads

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.c_attn(x).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)  # B heads T E/heads
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(batch, length, width))


class Network(nn.Module):
    """Two linear maps with GELU between, four times as wide inside."""

    def __init__(self, sizes):
        self.c_fc = nn.Linear(sizes.width, 4 * sizes.width, sizes.bias)
        self.c_proj = nn.Linear(4 * sizes.width, sizes.width, sizes.bias)

    def forward(self, x):
        return self.c_proj(self.c_fc(x).gelu())


class Block(nn.Module):
    """Attention, then the network, each on normalised input and added to it."""

    def __init__(self, sizes):
        self.ln_1 = nn.LayerNorm(sizes.width, bias=sizes.bias)
        self.attn = Attention(sizes)
        self.ln_2 = nn.LayerNorm(sizes.width, bias=sizes.bias)
        self.mlp = Network(sizes)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """Embeddings of tokens and places, blocks, and scores of the next token.

    The table of tokens and the last layer share their weight (Press and Wolf, 2017).
    """

    def __init__(self, sizes):
        self.sizes = sizes
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(sizes.vocabulary, sizes.width),
                "wpe": nn.Embedding(sizes.context, sizes.width),
                "h": nn.ModuleList(Block(sizes) for _ in range(sizes.layers)),
                "ln_f": nn.LayerNorm(sizes.width, bias=sizes.bias),
            }
        )
        self.lm_head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, tokens):
        places = Tensor.arange(tokens.shape[1], device=tokens.device)
        x = self.transformer["wte"](tokens) + self.transformer["wpe"](places)  # B T E
        for block in self.transformer["h"]:
            x = block(x)
        return self.lm_head(self.transformer["ln_f"](x))  # B T V


def write(model, prompt, count, temperature=0.3, seed=0):
    """Continue a prompt by characters drawn by their scores; the lower the temperature, the surer.

    Temperature 0 takes the likeliest, which soon goes round in circles. The context has one length,
    so one trace serves every step.
    """
    sizes, tokens = model.sizes, list(prompt)
    generator = np.random.default_rng(seed)
    device = model.lm_head.weight.device
    model.eval()

    @picograd.jit
    def score(row):
        with picograd.no_grad():
            return model(row)

    for _ in range(count):
        recent = tokens[-sizes.context :]
        row = np.zeros((1, sizes.context), np.int64)
        row[0, : len(recent)] = recent
        scores = score(Tensor(row, device=device)).numpy()[0, len(recent) - 1].astype(np.float64)
        if temperature == 0:
            tokens.append(int(scores.argmax()))
            continue
        chances = np.exp((scores - scores.max()) / temperature)
        tokens.append(int(generator.choice(len(chances), p=chances / chances.sum())))
    model.train()
    return tokens


def batches(tokens, context, options):
    """Cut random pieces out of the text: (B, T) and the same shifted by one."""
    generator = np.random.default_rng(options.seed)
    while True:
        starts = generator.integers(0, len(tokens) - context - 1, options.batch_size)
        pieces = np.stack([tokens[start : start + context + 1] for start in starts])
        yield pieces[:, :-1], pieces[:, 1:]


def main(arguments=None):
    """Train, write 200 characters; returns the losses."""
    options = read_options(__doc__, arguments, batch_size=16)
    clock = Clock()
    with clock("set-up"):
        picograd.manual_seed(options.seed)
        text = TEXT.read_text()
        letters = sorted(set(text))
        tokens = np.array([letters.index(letter) for letter in text])
        model = GPT(Sizes(len(letters))).to(options.device)
        optimizer = nn.optim.AdamW(model.parameters(), lr=3e-3)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        return loss

    train_step = step if options.no_jit else picograd.jit(step)
    losses, source = [], batches(tokens, model.sizes.context, options)
    for number in range(options.epochs * (options.steps or STEPS)):
        x, y = (Tensor(part, device=options.device) for part in next(source))
        with clock("training" if losses else "compilation"):
            losses.append(train_step(x, y).item())
        if number % 100 == 0 or number + 1 == options.epochs * (options.steps or STEPS):
            print(f"step {number + 1}: loss {losses[-1]:.3f}")
    with clock("writing"):
        written = write(model, [letters.index(letter) for letter in "picograd "], 200)
    print("".join(letters[token] for token in written))
    if options.plot:
        plot_losses(losses, "gpt")
    print(f"seconds: {clock}")
    return losses


if __name__ == "__main__":
    main()

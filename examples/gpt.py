"""A GPT learns to write like Jane Austen, character by character (Radford et al., 2019).

The text, two novels of 1.35 million characters, ships with the examples (texts/README.md). Minutes
on a CPU give sentences that can be read. Training is saved to output/gpt.safetensors every 250
steps. Names of modules are those of nanoGPT and GPT-2, whose weights load.

    python examples/gpt.py                                   # learn, then write
    python examples/gpt.py --resume --steps 6000             # go on where it stopped
    python examples/gpt.py --text my.txt --prompt "Once"     # learn another text
    python examples/gpt.py --size gpt2 --weights model.safetensors --prompt "The sea"

The last line writes with GPT-2 124M as Hugging Face saves it; `tokenizer.json` beside the weights
is read by the `tokenizers` package. With --steps it learns the text first, as without --weights.

Ancestors' list: M11.
"""

import math
import sys
from dataclasses import dataclass

import numpy as np
from common import OUTPUT, Clock, existing, natural, plot_losses, read_options, shipped_text
from writing import Letters, Words, attend, empty_cache, places, show

import picograd
from picograd import Tensor, nn

STEPS, REPORT = 2000, 250
SAVED = OUTPUT / "gpt.safetensors"


@dataclass
class Sizes:
    vocabulary: int
    context: int = 128
    layers: int = 4
    heads: int = 4
    width: int = 128
    bias: bool = True


GPT2 = Sizes(50257, 1024, 12, 12, 768)


class Attention(nn.Module):
    """Every position looks at itself and those before it, with several heads."""

    def __init__(self, sizes):
        self.c_attn = nn.Linear(sizes.width, 3 * sizes.width, sizes.bias)
        self.c_proj = nn.Linear(sizes.width, sizes.width, sizes.bias)
        self.heads = sizes.heads

    def forward(self, x, *past):
        batch, length, width = x.shape
        parts = self.c_attn(x).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)  # B heads T E/heads
        y = attend(q, k, v, *past)
        return self.c_proj(y.transpose(1, 2).reshape(batch, length, width))


class Network(nn.Module):
    """Two linear maps with GELU between, four times as wide inside."""

    def __init__(self, sizes):
        self.c_fc = nn.Linear(sizes.width, 4 * sizes.width, sizes.bias)
        self.c_proj = nn.Linear(4 * sizes.width, sizes.width, sizes.bias)

    def forward(self, x):
        return self.c_proj(nn.functional.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    """Attention, then the network, each on normalised input and added to it."""

    def __init__(self, sizes):
        self.ln_1 = nn.LayerNorm(sizes.width, bias=sizes.bias)
        self.attn = Attention(sizes)
        self.ln_2 = nn.LayerNorm(sizes.width, bias=sizes.bias)
        self.mlp = Network(sizes)

    def forward(self, x, *past):
        x = x + self.attn(self.ln_1(x), *past)
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
        for name, weight in self.named_parameters():
            if name.endswith("c_proj.weight"):  # two of them a layer add to the same sum
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * sizes.layers))
            elif weight.ndim == 2:
                nn.init.normal_(weight, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, tokens, cache=None, first=0, starts=None):
        """Scores (B, T, V) of tokens (B, T); with a cache they follow its first `first` places."""
        numbers = places(tokens.shape[1], first, starts, tokens.device)
        x = self.transformer["wte"](tokens) + self.transformer["wpe"](numbers)  # B T E
        for number, block in enumerate(self.transformer["h"]):
            x = block(x, None if cache is None else cache[number], first, starts)
        return self.lm_head(self.transformer["ln_f"](x))  # B T V

    def empty_cache(self, batch=1):
        """Make room for keys and values."""
        s = self.sizes
        size, weight = s.width // s.heads, self.lm_head.weight
        return empty_cache(s.layers, batch, s.heads, s.context, size, weight)


def load_gpt2(model, weights):
    """Load GPT-2's weights by the names of Hugging Face.

    Its linear maps are (inputs, outputs), and the last layer is the table of tokens. Places beyond
    the model's context are left out.
    """
    state = {}
    for name, weight in weights.items():
        name = name.removeprefix("transformer.")
        if name == "lm_head.weight" or name.endswith((".attn.bias", ".attn.masked_bias")):
            continue  # the table again, and triangles of ones
        is_map = name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight"))
        state[f"transformer.{name}"] = weight.T if is_map else weight
    state["lm_head.weight"] = state["transformer.wte.weight"]
    state["transformer.wpe.weight"] = state["transformer.wpe.weight"][: model.sizes.context]
    model.load_state_dict(state)


def batch(tokens, context, size, seed, number):
    """Cut the random pieces of step `number` out of a text: (B, T) and the same one later."""
    generator = np.random.default_rng((seed, number))
    starts = generator.integers(0, len(tokens) - context, size)
    pieces = np.stack([tokens[start : start + context + 1] for start in starts])
    return pieces[:, :-1], pieces[:, 1:]


def learning_rate(number, steps, most):
    """Rise for a twentieth of the steps, then fall along a cosine to a tenth."""
    share = min(1.0, number / max(1, steps))
    return most * min(1.0, (number + 1) * 20 / steps) * (0.55 + 0.45 * math.cos(math.pi * share))


def more_options(parser):
    parser.add_argument("--size", choices=("small", "gpt2"), default="small", help="gpt2: 124M")
    parser.add_argument("--text", type=existing, help="a file to learn; default: two novels")
    parser.add_argument("--weights", type=existing, help="GPT-2's safetensors, with --size gpt2")
    parser.add_argument("--resume", action="store_true", help=f"go on from {SAVED.name}")
    parser.add_argument("--bfloat16", action="store_true", help="products in bfloat16")
    parser.add_argument("--prompt", default="It is a truth ")
    parser.add_argument("--length", type=natural, default=500, help="tokens to write")


def build(options, text):
    """Make the codec, the model and its optimizer; returns them and the steps done."""
    beside = options.weights and options.weights.with_name("tokenizer.json")
    codec = Words(beside) if beside and beside.exists() else Letters(text)
    sizes = GPT2 if options.size == "gpt2" else Sizes(len(codec.letters))
    model = GPT(sizes).to(options.device)
    if options.weights:
        load_gpt2(model, nn.load(options.weights))
    rate = 3e-3 if options.size == "small" else 3e-4
    optimizer = nn.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.99), weight_decay=0.1)
    done = 0
    if options.resume:
        if not SAVED.exists():
            sys.exit(f"--resume: there is no {SAVED}, which is written every {REPORT} steps")
        saved = nn.load(SAVED)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        done = saved["step"]
    return codec, model, optimizer, done


def save(model, optimizer, step):
    """Write the state of training."""
    SAVED.parent.mkdir(exist_ok=True)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    nn.save(state, SAVED)


def train(model, optimizer, tokens, options, steps, done, clock, keep=save):
    """Take the steps from `done` on, print losses, keep the state; returns the losses."""
    context, most = model.sizes.context, optimizer.param_groups[0]["lr"]
    kept = tokens[-len(tokens) // 10 :]  # not learned
    learned = tokens[: -len(kept)]
    if done < steps and len(kept) <= context:
        sys.exit(f"--text has {len(tokens)} tokens: more than {10 * context} are needed")
    kind = model.lm_head.weight.device.split(":")[0]

    def loss_of(x, y):
        with picograd.autocast(kind, picograd.bfloat16, enabled=options.bfloat16):
            return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())

    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def cut(text, number):
        parts = batch(text, context, options.batch_size, options.seed, number)
        return [Tensor(part, device=options.device) for part in parts]

    train_step = step if options.no_jit else picograd.jit(step)
    score = picograd.no_grad()(loss_of)
    losses = []
    for number in range(done, steps):
        optimizer.param_groups[0]["lr"] = learning_rate(number, steps, most)
        with clock("training" if losses else "compilation"):
            losses.append(train_step(*cut(learned, number)).item())
        if (number + 1) % REPORT == 0 or number + 1 == steps:
            unseen = np.mean([score(*cut(kept, each)).item() for each in range(8)])
            shown = f"loss {np.mean(losses[-REPORT:]):.3f}, of pages not learned {unseen:.3f}"
            print(f"step {number + 1}: {shown}, {clock}", flush=True)
            optimizer.param_groups[0]["lr"] = most
            keep(model, optimizer, number + 1)
    return losses


def main(arguments=None):
    """Train, write text; returns the losses."""
    options = read_options(__doc__, arguments, batch_size=32, more=more_options)
    clock = Clock()
    with clock("set-up"):
        picograd.manual_seed(options.seed)
        text = options.text.read_text() if options.text else shipped_text()
        codec, model, optimizer, done = build(options, text)
        steps = options.steps if options.steps is not None else STEPS * (not options.weights)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{count:,} parameters, {max(0, steps - done)} steps of {options.batch_size} pieces")
    tokens = np.array(codec.encode(text)) if steps > done else []
    losses = train(model, optimizer, tokens, options, steps, done, clock)
    with clock("writing"):
        show(model, codec, [options.prompt], options.length, seed=options.seed)
    if options.plot and losses:
        plot_losses(losses, "gpt")
    print(f"seconds: {clock}")
    return losses


if __name__ == "__main__":
    main()

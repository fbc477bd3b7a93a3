"""The training step of examples/gpt.py beside PyTorch's: one process each, in turns, one thread.

    python bench/gpt_step.py [--rounds 15] [--size small gpt2] [--batch-size 32] [--compile]

Both run the same network from the same numbers: GPT with weights tied, AdamW, cross-entropy.
PyTorch attends by `scaled_dot_product_attention` and steps by its fused AdamW. The time is the
processor's (`time.process_time`), so that neighbours on the machine count little. The bar: 1.2 x.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
RIVALS = "picograd", "torch"


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--size", nargs="*", choices=("small", "gpt2"), default=["small"])
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--length", type=int, default=128, help="tokens of a piece")
    parser.add_argument("--compile", action="store_true", help="torch.compile the other side")
    parser.add_argument("--worker", choices=RIVALS, help=argparse.SUPPRESS)
    return parser.parse_args()


def picograd_step(sizes, data, options):
    """Make the step of the example."""
    from gpt import GPT

    import picograd
    from picograd import Tensor, nn

    model = GPT(sizes)
    model.load_state_dict(weights(sizes))
    optimizer = nn.optim.AdamW(model.parameters(), 1e-4, betas=(0.9, 0.99), weight_decay=0.1)

    @picograd.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    x, y = (Tensor(part) for part in data)
    return lambda: step(x, y).item()


def torch_loss(sizes, state):
    """Make the loss of tokens and their followers from weights by the names of the example."""
    from torch.nn import functional

    def linear(x, name):
        return functional.linear(x, state[f"{name}.weight"], state[f"{name}.bias"])

    def norm(x, name):
        weight, bias = state[f"{name}.weight"], state[f"{name}.bias"]
        return functional.layer_norm(x, (sizes.width,), weight, bias)

    def attend(x, name):
        parts = linear(x, f"{name}.c_attn").split(sizes.width, 2)
        q, k, v = (part.unflatten(2, (sizes.heads, -1)).transpose(1, 2) for part in parts)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return linear(y.transpose(1, 2).flatten(2), f"{name}.c_proj")

    def loss_of(x, y):
        table = state["transformer.wte.weight"]
        x = table[x] + state["transformer.wpe.weight"][: x.shape[1]]
        for number in range(sizes.layers):
            name = f"transformer.h.{number}"
            x = x + attend(norm(x, f"{name}.ln_1"), f"{name}.attn")
            inside = linear(norm(x, f"{name}.ln_2"), f"{name}.mlp.c_fc")
            x = x + linear(functional.gelu(inside, approximate="tanh"), f"{name}.mlp.c_proj")
        scores = functional.linear(norm(x, "transformer.ln_f"), table)
        return functional.cross_entropy(scores.flatten(0, 1), y.flatten())

    return loss_of


def torch_step(sizes, data, options):
    """Make the same step for PyTorch, from weights of the same names."""
    import torch

    torch.set_num_threads(1)
    state = {name: torch.tensor(each) for name, each in weights(sizes).items()}
    del state["lm_head.weight"]
    for each in state.values():
        each.requires_grad_()
    optimizer = torch.optim.AdamW(
        list(state.values()), 1e-4, betas=(0.9, 0.99), weight_decay=0.1, fused=True
    )

    loss_of = torch_loss(sizes, state)
    loss_of = torch.compile(loss_of) if options.compile else loss_of
    x, y = (torch.tensor(part) for part in data)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def weights(sizes):
    """Draw weights by the names of the example, the same for both."""
    from gpt import GPT

    generator = np.random.default_rng(0)
    state = {}
    for name, each in GPT(sizes).state_dict().items():
        if name.endswith("weight") and each.ndim == 1:
            state[name] = np.ones(each.shape, np.float32)
        else:
            state[name] = generator.normal(0, 0.02, each.shape).astype(np.float32)
    state["lm_head.weight"] = state["transformer.wte.weight"]
    return state


def work(options):
    """Serve one rival: a line comes in for each step, its loss and seconds go out."""
    sys.path.insert(0, str(ROOT / "examples"))
    from gpt import GPT2, Sizes

    sizes = GPT2 if options.size == ["gpt2"] else Sizes(79)
    generator = np.random.default_rng(1)
    shape = options.batch_size, options.length + 1
    tokens = generator.integers(0, sizes.vocabulary, shape)
    make = picograd_step if options.worker == "picograd" else torch_step
    step = make(sizes, (tokens[:, :-1].copy(), tokens[:, 1:].copy()), options)
    for _ in sys.stdin:
        start = time.process_time()
        loss = step()
        print(loss, time.process_time() - start, flush=True)


def start(rival, size, options):
    """Start the process of one rival."""
    settings = os.environ | {"PICOGRAD_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--worker", rival, "--size", size]
    command += ["--batch-size", str(options.batch_size), "--length", str(options.length)]
    command += ["--compile"] * options.compile
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env=settings, **pipes)


def ask(process):
    """Let a rival take a step; returns the loss and the seconds."""
    process.stdin.write("\n")
    process.stdin.flush()
    loss, seconds = process.stdout.readline().split()
    return float(loss), float(seconds)


def compare(size, options):
    """Time both in turns; prints a row each, and the ratio."""
    rivals = {name: start(name, size, options) for name in RIVALS}
    for _ in range(4):
        losses = {name: ask(process)[0] for name, process in rivals.items()}
    times = {name: [] for name in rivals}
    for number in range(options.rounds):
        for name in RIVALS if number % 2 else RIVALS[::-1]:
            times[name].append(ask(rivals[name])[1])
    for process in rivals.values():
        process.stdin.close()
        process.wait()
    print(f"\n{size}: {options.batch_size} pieces of {options.length} tokens, n = {options.rounds}")
    for name, seconds in times.items():
        middle, best = statistics.median(seconds) * 1e3, min(seconds) * 1e3
        print(f"  {name:9} median {middle:8.1f} ms, best {best:8.1f}; loss 4: {losses[name]:.6f}")
    ratio = statistics.median(b / a for a, b in zip(times["picograd"], times["torch"]))
    print(f"  picograd is {ratio:.2f}x")


def main():
    options = read_options()
    if options.worker:
        work(options)
        return
    for size in options.size:
        compare(size, options)


if __name__ == "__main__":
    main()

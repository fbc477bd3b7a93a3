"""One steady training step of GPT-2 124M in mixed precision on an NVIDIA GPU, beside PyTorch.

Weights are float32, products bfloat16 by autocast, AdamW. PyTorch at its best: its
`scaled_dot_product_attention`, compiled, its fused AdamW, and captured in a CUDA graph. The
vocabulary is 50,304 for both, which PyTorch's products like better than 50,257.

    python bench/gpu_gpt.py [--batch-size 16] [--length 1024] [--rounds 7] [--profile]

`--profile` prints picograd's time by kernel; `--steps 200 --show 20` compares losses for longer.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from gpt_step import torch_loss, weights

import picograd
from picograd import Tensor, nn

STEPS = 3
RATES = {"lr": 1e-4, "betas": (0.9, 0.99), "weight_decay": 0.1}


def batches(sizes, options):
    """Draw pieces of tokens, and those that follow them."""
    generator = np.random.default_rng(1)
    tokens = generator.integers(0, sizes.vocabulary, (options.batch_size, options.length + 1))
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def picograd_step(sizes, options):
    """Make a jitted step of the example's network."""
    from gpt import GPT

    model = GPT(sizes)
    model.load_state_dict({name: Tensor(each) for name, each in weights(sizes).items()})
    model = model.to("cuda")
    optimizer = nn.optim.AdamW(model.parameters(), **RATES)

    @picograd.jit
    def step(x, y):
        optimizer.zero_grad()
        with picograd.autocast("cuda", dtype=picograd.bfloat16):
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        return loss

    x, y = (Tensor(each, device="cuda") for each in batches(sizes, options))
    return lambda: step(x, y)


def torch_step(sizes, options, is_captured):
    """Make the same step, compiled."""
    import torch

    state = {name: torch.tensor(each, device="cuda") for name, each in weights(sizes).items()}
    del state["lm_head.weight"]
    parameters = [each.requires_grad_() for each in state.values()]
    optimizer = torch.optim.AdamW(parameters, **RATES, fused=True, capturable=is_captured)
    compiled = torch.compile(torch_loss(sizes, state))
    x, y = (torch.tensor(each, device="cuda") for each in batches(sizes, options))

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = compiled(x, y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def repeated(step):
    """Make a function that takes STEPS steps and reads the last loss."""
    return lambda: [step() for _ in range(STEPS)][-1].item()


def compare(sizes, options, ours):
    """Compare losses, then time picograd beside PyTorch."""
    import torch
    from timing import interleave, machine, report
    from torch_capture import captured

    torch.set_float32_matmul_precision("high")
    theirs = torch_step(sizes, options, False)
    print("torch's", [round(theirs().item(), 4) for _ in range(options.steps)][:: options.show])
    peak = torch.cuda.max_memory_allocated()  # before there is a second set of weights
    rivals = {"picograd": repeated(ours), "torch compile": repeated(theirs)}
    if "captured" in options.rivals:
        rivals["torch captured"] = captured(torch_step(sizes, options, True), STEPS, warm_up=4)
    print(machine(), torch.cuda.get_device_name())
    title = f"GPT-2 124M, {STEPS} steps of {options.batch_size} x {options.length}, bfloat16"
    report(title, interleave(rivals, options.rounds), "picograd")
    ours_peak = picograd.memory_stats("cuda")["peak"]
    print(f"peak memory: torch's {peak / 2**30:.2f} GiB, picograd's {ours_peak / 2**30:.2f} GiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=50304)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rivals", nargs="+", default=["compile", "captured"])
    parser.add_argument("--steps", type=int, default=4, help="steps before the clock runs")
    parser.add_argument("--show", type=int, default=1, help="print the loss of each nth of them")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    from gpt import Sizes

    sizes = Sizes(options.vocabulary, 1024, options.layers, 12, 768)
    ours = picograd_step(sizes, options)
    losses = [round(ours().item(), 4) for _ in range(options.steps)]
    print("losses ", losses[:: options.show], flush=True)
    print({k: f"{v / 2**30:.1f} GiB" for k, v in picograd.memory_stats("cuda").items()}, flush=True)
    if options.profile:
        with picograd.profile() as found:
            ours().item()
        print(found)
    if options.rivals != ["none"]:
        compare(sizes, options, ours)


if __name__ == "__main__":
    main()

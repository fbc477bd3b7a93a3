"""Memory of training: growth over many steps, and the peak of one step beside PyTorch's eager.

picograd's peak is what its allocator handed out at most (arenas, parameters, optimizer state,
outputs); PyTorch's is what its CPU profiler saw allocated at most in the same step, state included,
or `torch.cuda.max_memory_allocated` on a GPU.

    python bench/memory.py [--steps 10000] [--network cnn stack resnet18] [--device cuda]
"""

import argparse
import gc
import resource
import subprocess
import sys

import numpy as np
import vision_networks
from first_networks import cnn
from plain_networks import Data

import picograd
from picograd import Tensor, nn
from picograd.engine.backends import get_device

MIB = 1 << 20


def resident() -> float:
    """Peak resident memory of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def picograd_growth(steps: int, device: str) -> None:
    """Train a small perceptron for many steps without jit and with it; print bytes in use."""
    for jitted in (False, True):
        model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).to(device)
        optimizer = nn.optim.Adam(model.parameters())
        generator = np.random.default_rng(0)
        x = Tensor(generator.normal(size=(32, 64)).astype(np.float32), device=device)
        y = Tensor(generator.integers(0, 10, 32), device=device)

        def step(x, y, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        run = picograd.jit(step) if jitted else step
        marks = []
        for number in range(steps):
            run(x, y).item()
            if number in (steps // 10, steps // 2, steps - 1):
                gc.collect()
                in_use = get_device(device).memory_stats()["in_use"]
                marks.append((number + 1, in_use, resident()))
        print("jit" if jitted else "no jit", [f"step {n}: {b} B, {r:.1f} MiB" for n, b, r in marks])
        if marks[0][1] != marks[-1][1]:
            sys.exit("memory in use grew")


def stack(library):
    """Six layers of a transformer, 256 wide, on 8 pieces of 128 tokens."""
    nn, width = library.nn, 256

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            parts = self.attend(self.norm1(x)).reshape(*x.shape[:2], 3, 8, width // 8)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(y.transpose(1, 2).reshape(x.shape))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    model = nn.Sequential(*[Block() for _ in range(6)], nn.LayerNorm(width))
    x = Data(library).normal(8, 128, width)
    return list(model.parameters()), lambda: (model(x) ** 2).mean()


def resnet18(library):
    """ResNet-18 on 8 pictures of 112 x 112."""
    (model,), loss = vision_networks.resnet18(library, Data(library), 8, 112)
    return list(model.parameters()), loss


NETWORKS = {"cnn": cnn, "stack": stack, "resnet18": resnet18}


def picograd_peak(name: str, device: str) -> int:
    """Most bytes picograd's allocator handed out during training steps, batch included."""
    picograd.set_default_device(device)
    parameters, loss = NETWORKS[name](picograd)
    optimizer = nn.optim.Adam(parameters, lr=1e-3)

    @picograd.jit
    def step():
        value = loss()
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        return value

    for _ in range(3):
        step().item()
    return get_device(device).memory_stats()["peak"]


def torch_peak(name: str, device: str) -> int:
    """Most bytes live at once in the same steps of PyTorch eager, from its memory profiler."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.set_default_device(device)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        parameters, loss = NETWORKS[name](torch)
        optimizer = torch.optim.Adam(parameters, lr=1e-3)
        for _ in range(2):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
    if device != "cpu":
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()
    live = peak = 0
    for event in seen.profiler.kineto_results.events():
        if event.name() == "[memory]":
            live += event.nbytes()
            peak = max(peak, live)
    return peak


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--network", nargs="*", default=list(NETWORKS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        ours, theirs = (each(options.child, options.device) for each in (picograd_peak, torch_peak))
        print(f"peak of a step of {options.child}: picograd {ours / MIB:.1f} MiB,", end=" ")
        print(f"torch eager {theirs / MIB:.1f} MiB, ratio {ours / theirs:.2f}")
        return
    for name in options.network:
        child = [sys.executable, __file__, "--child", name, "--device", options.device]
        subprocess.run(child, check=True, stderr=subprocess.DEVNULL)
    if options.steps:
        picograd_growth(options.steps, options.device)


if __name__ == "__main__":
    main()

"""Memory of training: growth over many steps, and the peak of one step beside PyTorch's eager.

picograd's peak is what its allocator handed out at most (arenas, parameters, optimizer state,
outputs); PyTorch's is what its CPU profiler saw allocated at most in the same step, state included,
or `torch.cuda.max_memory_allocated` on a GPU.

    python bench/memory.py [--steps 10000] [--batch-size 128] [--device cuda]
"""

import argparse
import gc
import resource
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

from mnist_cnn import Network
from mnist_cnn_step import torch_network

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


def picograd_peak(images: np.ndarray, labels: np.ndarray, device: str) -> int:
    """Most bytes picograd's allocator handed out during CNN training steps, batch included."""
    model = Network().to(device)
    optimizer = nn.optim.Adam(model.parameters(), lr=1e-3)
    x, y = Tensor(images, device=device), Tensor(labels, device=device)

    @picograd.jit
    def step(x, y):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    for _ in range(3):
        step(x, y).item()
    return get_device(device).memory_stats()["peak"]


def torch_peak(images: np.ndarray, labels: np.ndarray, device: str) -> int:
    """Most bytes live at once in the same step of PyTorch eager, from its memory profiler."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    network = torch_network().to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    x, y = torch.from_numpy(images).to(device), torch.from_numpy(labels).to(device)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(x), y).backward()
        optimizer.step()

    step()
    if device != "cpu":
        step()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()
    parameters = sum(p.numel() * p.element_size() for p in network.parameters())
    before = 3 * parameters + images.nbytes + labels.nbytes  # weights and Adam's two moments
    optimizer.zero_grad()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        step()
    live = peak = 0
    for event in seen.profiler.kineto_results.events():
        if event.name() == "[memory]":
            live += event.nbytes()
            peak = max(peak, live)
    return before + peak


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    device = options.device
    generator = np.random.default_rng(0)
    images = generator.normal(size=(options.batch_size, 1, 28, 28)).astype(np.float32)
    labels = generator.integers(0, 10, options.batch_size)
    ours, theirs = picograd_peak(images, labels, device), torch_peak(images, labels, device)
    print(f"peak of a CNN step, batch {options.batch_size}: picograd {ours / MIB:.1f} MiB,")
    print(f"  torch eager {theirs / MIB:.1f} MiB, ratio {ours / theirs:.2f}")
    picograd_growth(options.steps, device)


if __name__ == "__main__":
    main()

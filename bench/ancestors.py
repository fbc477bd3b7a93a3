"""Rows of the ancestors' lists that are figures, on an NVIDIA GPU beside PyTorch eager.

Each side runs REPEATS times between two synchronisations; rounds are interleaved. Values are
checked against PyTorch's before anything is timed. Ratio: PyTorch's time / ours.

    python bench/ancestors.py [--elements 67108864] [--rounds 9]
"""

import argparse
import statistics
from functools import partial

import numpy as np
import torch
from timing import interleave, machine

import picograd
from picograd import Tensor, nn
from picograd.nn import functional as F

REPEATS = 20
UNARY = ("relu", "tanh", "sigmoid", "exp", "sqrt", "abs", "neg", "log")


def repeated(function, wait):
    """A run of REPEATS calls that ends when the device is idle."""

    def run():
        for _ in range(REPEATS):
            function()
        wait()

    return run


def measure(row, what, ours, theirs, bytes_moved, rounds, tolerance=1e-3):
    """Check values, time both sides and print one line; returns nothing."""
    found, wanted = ours(), theirs()
    np.testing.assert_allclose(
        found.flatten()[:1000].float().numpy(), wanted.flatten()[:1000].float().cpu().numpy(),
        rtol=tolerance, atol=tolerance,
    )  # fmt: skip
    rivals = {
        "picograd": repeated(lambda: ours().realize(), partial(picograd.synchronize, "cuda")),
        "torch": repeated(theirs, torch.cuda.synchronize),
    }
    times = interleave(rivals, rounds, warmup=2)
    mine, other = (statistics.median(times[name]) / REPEATS for name in ("picograd", "torch"))
    spread = (max(times["picograd"]) - min(times["picograd"])) / REPEATS / mine
    print(
        f"{row:4} {what:32} {mine * 1e6:9.1f} us {bytes_moved / mine / 1e9:7.0f} GB/s"
        f"  torch {other * 1e6:9.1f} us {bytes_moved / other / 1e9:7.0f} GB/s"
        f"  ratio {other / mine:5.2f}  spread {spread:4.0%}",
        flush=True,
    )


def both(*shape, dtype="float32", low=-3.0, high=3.0):
    """The same numbers as a picograd and a torch tensor."""
    there = torch.empty(*shape, device="cuda").uniform_(low, high).to(getattr(torch, dtype))
    return picograd.from_dlpack(there), there


def elementwise(count, rounds):
    """M17: activations and unary operations at the rate of a copy."""
    x, x_torch = both(count, low=0.1)
    for name in UNARY:
        ours = picograd.jit(lambda x, name=name: getattr(x, name)())
        measure("M17", f"{name} of {count >> 20} Mi", partial(ours, x),
                partial(getattr(torch, name), x_torch), 8 * count, rounds)  # fmt: skip
    gelu = picograd.jit(F.gelu)
    measure("M17", "gelu", partial(gelu, x), partial(torch.nn.functional.gelu, x_torch),
            8 * count, rounds)  # fmt: skip
    total = picograd.jit(lambda x: x.sum())
    measure("M56", "sum", partial(total, x), x_torch.sum, 4 * count, rounds)
    zeros = picograd.jit(lambda: picograd.zeros(count, device="cuda").contiguous())
    measure("M56", "zeros", zeros, lambda: torch.zeros(count, device="cuda"), 4 * count, rounds)


def rows(rounds):
    """M16, M18, M19: rows and windows."""
    x, x_torch = both(8192, 8192)
    w, w_torch = both(8192)
    size = 2 * x_torch.numel() * 4
    norm = picograd.jit(lambda x, w: F.layer_norm(x, (8192,), w, w))
    theirs = partial(torch.nn.functional.layer_norm, x_torch, (8192,), w_torch, w_torch)
    measure("M19", "layer_norm 8192 x 8192", partial(norm, x, w), theirs, size, rounds)
    softmax = picograd.jit(lambda x: x.softmax(-1))
    theirs = partial(torch.softmax, x_torch, -1)
    measure("M19", "softmax 8192 x 8192", partial(softmax, x), theirs, size, rounds)
    x, x_torch = both(256, 64, 112, 112)
    pool = picograd.jit(lambda x: F.max_pool2d(x, 3, stride=2, padding=1))
    theirs = partial(torch.nn.functional.max_pool2d, x_torch, 3, 2, 1)
    moved = 4 * (x_torch.numel() + theirs().numel())
    measure("M18", "max_pool2d 256x64x112x112 k3 s2", partial(pool, x), theirs, moved, rounds)
    x, x_torch = both(8192, 50304, dtype="bfloat16")
    labels_torch = torch.randint(0, 50304, (8192,), device="cuda")
    labels = picograd.from_dlpack(labels_torch)
    loss = picograd.jit(lambda x, y: F.cross_entropy(x, y))
    theirs = partial(torch.nn.functional.cross_entropy, x_torch, labels_torch)
    measure("M16", "cross_entropy 8192x50304 bf16", partial(loss, x, labels), theirs,
            2 * x_torch.numel(), rounds, 1e-2)  # fmt: skip


def convolutions(rounds):
    """M50: our direct convolution beside one through cuFFT."""
    for size, kernel in ((28, 3), (56, 5), (112, 7), (224, 11)):
        x, x_torch = both(16, 16, size, size)
        w, w_torch = both(16, 16, kernel, kernel)
        pad, full = kernel // 2, size + kernel - 1

        def through_fft(x=x_torch, w=w_torch, pad=pad, full=full, size=size):
            a, b = (torch.fft.rfft2(t, s=(full, full)) for t in (x, w.flip(2, 3)))
            y = torch.fft.irfft2(torch.einsum("nchw,ochw->nohw", a, b), s=(full, full))
            return y[..., pad : pad + size, pad : pad + size]

        ours = picograd.jit(lambda x, w, pad=pad: F.conv2d(x, w, padding=pad))
        moved = 8 * x_torch.numel()
        measure("M50", f"conv {size} k{kernel}, rival cuFFT", partial(ours, x, w), through_fft,
                moved, rounds, 2e-2)  # fmt: skip


def launches(rounds):
    """M45: the host's share of a cached operation."""
    x, x_torch = both(16)
    ours = picograd.jit(lambda x: x + 1.0)
    measure("M45", "replayed addition of 16", partial(ours, x), lambda: x_torch + 1.0, 128, rounds)


def devices(rounds):
    """M44: a step of an MLP on the GPU and on the CPU, batch 16."""
    runs = {}
    for device in ("cuda", "cpu"):
        model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
        optimizer = nn.optim.Adam(model.parameters())
        x = Tensor.zeros(16, 784, device=device).realize()
        y = picograd.zeros(16, dtype="int64", device=device).realize()

        @picograd.jit
        def step(x, y, model=model, optimizer=optimizer):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        wait = partial(picograd.synchronize, device)
        runs[device] = repeated(partial(lambda f, a, b: f(a, b).realize(), step, x, y), wait)
    times = interleave(runs, rounds)
    mine, other = (statistics.median(times[name]) / REPEATS * 1e6 for name in ("cuda", "cpu"))
    print(f"M44  MLP step, batch 16: cuda {mine:.1f} us, cpu {other:.1f} us, {other / mine:.2f}x")


def main():
    """Run all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=int, default=1 << 26)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "|", machine(), flush=True)
    for part in (partial(elementwise, options.elements), rows, convolutions, launches, devices):
        part(options.rounds)


if __name__ == "__main__":
    main()

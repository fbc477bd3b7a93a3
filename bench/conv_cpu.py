"""Convolutions on the CPU against PyTorch, layer by layer, at the threads asked for.

On one thread what is timed is the processor's time. `--gradients`: both gradients with the results.

python bench/conv_cpu.py [--threads 1] [--rounds 15] [--only 3x3] [--dtype bfloat16] [--gradients]
"""

import argparse
import os
import time

from timing import interleave, machine, refuse_pinned_blas, report

LAYERS = {  # images, channels, height, width, channels made, window, stride, padding, groups
    "9x9 96-24, 80 x 160": (1, 96, 80, 160, 24, 9, 1, 4, 1),
    "3x3 24-24, 80 x 160": (1, 24, 80, 160, 24, 3, 1, 1, 1),
    "3x3 1-32, 28 x 28": (32, 1, 28, 28, 32, 3, 1, 1, 1),
    "3x3 32-64, 14 x 14": (32, 32, 14, 14, 64, 3, 1, 1, 1),
    "3x3 64-64, 56 x 56": (8, 64, 56, 56, 64, 3, 1, 1, 1),
    "3x3 128-128, 28 x 28": (8, 128, 28, 28, 128, 3, 1, 1, 1),
    "3x3 256-256, 14 x 14": (8, 256, 14, 14, 256, 3, 1, 1, 1),
    "3x3 512-512, 7 x 7": (8, 512, 7, 7, 512, 3, 1, 1, 1),
    "3x3 128-128, 56 x 56, stride 2": (8, 128, 56, 56, 128, 3, 2, 1, 1),
    "3x3 256-256, 28 x 28, stride 2": (8, 256, 28, 28, 256, 3, 2, 1, 1),
    "3x3 3-16, 224 x 224, stride 2": (8, 3, 224, 224, 16, 3, 2, 1, 1),
    "3x3 3-32, one of 224 x 224, stride 2": (1, 3, 224, 224, 32, 3, 2, 1, 1),
    "7x7 3-64, 224 x 224, stride 2": (8, 3, 224, 224, 64, 7, 2, 3, 1),
    "7x7 3-64, one of 224 x 224, stride 2": (1, 3, 224, 224, 64, 7, 2, 3, 1),
    "1x1 240-240, 12 x 154": (4, 240, 12, 154, 240, 1, 1, 0, 1),
    "1x1 64-256, 56 x 56": (8, 64, 56, 56, 256, 1, 1, 0, 1),
    "1x1 256-64, 56 x 56": (8, 256, 56, 56, 64, 1, 1, 0, 1),
    "3x3 256-256, 14 x 14, 32 groups": (8, 256, 14, 14, 256, 3, 1, 1, 32),
    "1x1 256-1024, 14 x 14": (8, 256, 14, 14, 1024, 1, 1, 0, 1),
    "1x1 128-512, 28 x 28": (8, 128, 28, 28, 512, 1, 1, 0, 1),
    "5x5 192-192, 20 x 40, each": (1, 192, 20, 40, 192, 5, 1, 2, 192),
    "3x3 144-144, 56 x 56, each": (8, 144, 56, 56, 144, 3, 1, 1, 144),
    "3x3 144-144, 56 x 56, stride 2, each": (8, 144, 56, 56, 144, 3, 2, 1, 144),
    "3x3 576-576, 14 x 14, each": (8, 576, 14, 14, 576, 3, 1, 1, 576),
    "5x5 240-240, 28 x 28, each": (8, 240, 28, 28, 240, 5, 1, 2, 240),
    "5x5 672-672, 14 x 14, each": (8, 672, 14, 14, 672, 5, 1, 2, 672),
    "7x7 96-96, 56 x 56, each": (4, 96, 56, 56, 96, 7, 1, 3, 96),
    "7x7 192-192, 28 x 28, each": (4, 192, 28, 28, 192, 7, 1, 3, 192),
    "7x7 768-768, 7 x 7, each": (4, 768, 7, 7, 768, 7, 1, 3, 768),
}


def computed(library, has_gradients, how):
    """Make the function that is timed: results, or both gradients."""

    def results(x, w, g):
        return (library.nn.functional.conv2d(x, w, **how),)

    def gradients(x, w, g):
        y = library.nn.functional.conv2d(x, w, **how)
        return library.autograd.grad(y, (x, w), g)

    return gradients if has_gradients else results


def off(own, exact):
    """Find the largest error, of the largest number."""
    difference = own.detach().double().numpy() - exact.detach().numpy()
    return abs(difference).max() / exact.abs().max().item()


def main():
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--gradients", action="store_true")
    options = parser.parse_args()
    refuse_pinned_blas()
    os.environ["PICOGRAD_DEVICE"] = "cpu"
    os.environ["PICOGRAD_THREADS"] = str(options.threads)
    os.environ["PICOGRAD_DYNAMIC"] = "0"  # each layer has a plan of its own, as in a network
    import numpy as np
    import torch

    import picograd
    from picograd import Tensor

    torch.set_num_threads(options.threads)
    generator = np.random.default_rng(0)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    print(machine(), f"threads {options.threads}")
    for name, layer in LAYERS.items():
        if options.only not in name:
            continue
        images, channels, height, width, made, window, stride, padding, groups = layer
        x = generator.normal(size=(images, channels, height, width)).astype(np.float32)
        w = generator.normal(size=(made, channels // groups, window, window)).astype(np.float32)
        how = {"stride": stride, "padding": padding, "groups": groups}
        doubles = [torch.from_numpy(each).to(getattr(torch, options.dtype)) for each in (x, w)]
        size = torch.nn.functional.conv2d(*doubles, **how).shape
        given = x, w, generator.normal(size=size).astype(np.float32)
        own = [Tensor(each).to(getattr(picograd, options.dtype)).realize() for each in given]
        theirs = [torch.from_numpy(each).to(getattr(torch, options.dtype)) for each in given]
        doubles = [each.double() for each in theirs]
        f = picograd.jit(computed(picograd, options.gradients, how))
        rival = computed(torch, options.gradients, how)
        for each in (*own, *theirs, *doubles):
            each.requires_grad_(options.gradients)
        expected = rival(*doubles)
        error = max(off(each, exact) for each, exact in zip(f(*own), expected, strict=True))
        rivals = {
            "picograd": lambda f=f, own=own: [each.realize() for each in f(*own)],
            "torch": lambda rival=rival, theirs=theirs: rival(*theirs),
        }
        times = interleave(rivals, options.rounds, clock=clock)
        passes = 3 if options.gradients else 1
        work = 2 * passes * given[2].size * (channels // groups) * window**2
        report(f"{name}, error {error:.1e}", times, "picograd", work)


if __name__ == "__main__":
    main()

"""Attention on one CPU thread beside PyTorch: forward, and with gradients by query, key and value.

Both run `scaled_dot_product_attention` in float32 on one thread, in turns; times are those of the
thread, so that others on the machine disturb less. A ratio is PyTorch's least time over ours. Masks
are causal, none, booleans of every place, and none with heads of which four share keys.

    PICOGRAD_THREADS=1 python bench/attention_cpu.py [--lengths 256 512 ...] [--heads 64 ...]
        [--kinds causal full boolean grouped] [--rounds 9]
"""

import argparse
import time
from itertools import product

import numpy as np
import torch
from timing import refuse_pinned_blas
from torch.nn.functional import scaled_dot_product_attention as torch_attention

import picograd
import picograd.nn.functional as F
from picograd import Tensor, config


def options_of(kind, mask):
    """Options of `scaled_dot_product_attention`."""
    mask = mask if kind == "boolean" else None
    return {"attn_mask": mask, "is_causal": kind == "causal", "enable_gqa": kind == "grouped"}


def ours(arrays, kind, has_gradients):
    """Make a jitted call of picograd."""
    leaves = [Tensor(array, requires_grad=has_gradients).realize() for array in arrays[:3]]
    seed = Tensor(arrays[3]).realize()
    options = options_of(kind, Tensor(arrays[4]).realize())

    def attend(q, k, v, g):
        out = F.scaled_dot_product_attention(q, k, v, **options)
        return [out, *picograd.autograd.grad(out, [q, k, v], g)] if has_gradients else [out]

    step = picograd.jit(attend, dynamic=False)
    return lambda: [each.numpy() for each in step(*leaves, seed)]


def theirs(arrays, kind, has_gradients):
    """Make a call of PyTorch."""
    options = options_of(kind, torch.tensor(arrays[4]))
    leaves = [torch.tensor(array, requires_grad=has_gradients) for array in arrays[:3]]
    seed = torch.tensor(arrays[3])

    def run():
        out = torch_attention(*leaves, **options)
        found = [out, *torch.autograd.grad(out, leaves, seed)] if has_gradients else [out]
        return [each.detach().numpy() for each in found]

    return run


def least_times(rivals, rounds):
    """Time rivals in turns: the least time of the thread of each, in seconds."""
    times = {name: [] for name in rivals}
    for number in range(rounds + 1):
        for name in rivals if number % 2 else reversed(rivals):
            start = time.thread_time()
            rivals[name]()
            times[name].append(time.thread_time() - start)
    return {name: min(each[1:]) for name, each in times.items()}


def main():
    refuse_pinned_blas()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", nargs="+", type=int, default=[256, 512, 1024, 2048])
    parser.add_argument("--heads", nargs="+", type=int, default=[64], help="columns of a head")
    parser.add_argument("--kinds", nargs="+", default=["causal", "full"])
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(torch.__version__, "threads of picograd:", config.threads)
    generator = np.random.default_rng(0)
    cases = product((False, True), options.kinds, options.heads, options.lengths)
    for has_gradients, kind, size, length in cases:
        shape = 1, 8, length, size
        keys = (1, 2 if kind == "grouped" else 8, length, size)
        arrays = [
            generator.standard_normal(each).astype(np.float32)
            for each in (shape, keys, keys, shape)
        ]
        arrays.append(generator.random((length, length)) < 0.5)
        rivals = {
            "torch": theirs(arrays, kind, has_gradients),
            "ours": ours(arrays, kind, has_gradients),
        }
        found, wanted = (rivals[name]() for name in ("ours", "torch"))
        error = max(float(abs(a - b).max()) for a, b in zip(found, wanted, strict=True))
        times = least_times(rivals, options.rounds)
        text = "with gradients" if has_gradients else "forward       "
        print(
            f"{length:5} x {size:3} {kind:8} {text} torch {times['torch'] * 1e3:8.2f} ms, ours "
            f"{times['ours'] * 1e3:8.2f} ms, {times['torch'] / times['ours']:.2f}, "
            f"error {error:.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main()

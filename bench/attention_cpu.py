"""Attention on one CPU thread beside PyTorch: forward, and with gradients by query, key and value.

Both run `scaled_dot_product_attention` on as many threads, in turns; times are those of the thread
if there is one, so that others on the machine disturb less. Results stay where they were computed.
A ratio is PyTorch's time over ours, of the least and of a tenth from below. Masks are causal, none,
booleans of every place, and none with heads of which four share keys.

    PICOGRAD_THREADS=1 python bench/attention_cpu.py [--lengths 256 512 ...] [--heads 64 ...]
        [--kinds causal full boolean grouped] [--dtype float32 bfloat16] [--rounds 9]
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


def ours(arrays, kind, has_gradients, dtype="float32"):
    """Make a jitted call of picograd."""
    *leaves, seed = (Tensor(x, dtype=getattr(picograd, dtype)).realize() for x in arrays[:4])
    for leaf in leaves:
        leaf.requires_grad = has_gradients
    options = options_of(kind, Tensor(arrays[4]).realize())

    def attend(q, k, v, g):
        out = F.scaled_dot_product_attention(q, k, v, **options)
        return [out, *picograd.autograd.grad(out, [q, k, v], g)] if has_gradients else [out]

    step = picograd.jit(attend, dynamic=False)
    return lambda: step(*leaves, seed)


def theirs(arrays, kind, has_gradients, dtype="float32"):
    """Make a call of PyTorch."""
    options = options_of(kind, torch.tensor(arrays[4]))
    *leaves, seed = (torch.tensor(x, dtype=getattr(torch, dtype)) for x in arrays[:4])
    for leaf in leaves:
        leaf.requires_grad_(has_gradients)

    def run():
        out = torch_attention(*leaves, **options)
        return [out, *torch.autograd.grad(out, leaves, seed)] if has_gradients else [out]

    return run


def times_of(rivals, rounds):
    """Time rivals in turns: the least of each and the tenth from below, in seconds."""
    clock = time.thread_time if config.threads == 1 else time.perf_counter
    times = {name: [] for name in rivals}
    for number in range(rounds + 1):
        for name in rivals if number % 2 else reversed(rivals):
            start = clock()
            rivals[name]()
            times[name].append(clock() - start)
    return {name: np.quantile(each[1:], (0, 0.1)) for name, each in times.items()}


def main():
    refuse_pinned_blas()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", nargs="+", type=int, default=[256, 512, 1024, 2048])
    parser.add_argument("--heads", nargs="+", type=int, default=[64], help="columns of a head")
    parser.add_argument("--kinds", nargs="+", default=["causal", "full"])
    parser.add_argument("--dtype", nargs="+", default=["float32"])
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(config.threads)
    print(torch.__version__, "threads of picograd:", config.threads)
    generator = np.random.default_rng(0)
    cases = product(options.dtype, (False, True), options.kinds, options.heads, options.lengths)
    for dtype, has_gradients, kind, size, length in cases:
        shape = 1, 8, length, size
        keys = (1, 2 if kind == "grouped" else 8, length, size)
        arrays = [
            generator.standard_normal(each).astype(np.float32)
            for each in (shape, keys, keys, shape)
        ]
        arrays.append(generator.random((length, length)) < 0.5)
        rivals = {
            "torch": theirs(arrays, kind, has_gradients, dtype),
            "ours": ours(arrays, kind, has_gradients, dtype),
        }
        found = [each.detach().float().numpy() for each in rivals["ours"]()]
        wanted = [each.detach().float().numpy() for each in rivals["torch"]()]
        error = max(float(abs(a - b).max()) for a, b in zip(found, wanted, strict=True))
        times = times_of(rivals, options.rounds)
        mode = "with gradients" if has_gradients else "forward       "
        least, tenth = times["torch"] / times["ours"]
        print(
            f"{length:5} x {size:3} {dtype} {kind:8} {mode} "
            f"torch {times['torch'][0] * 1e3:8.2f} ms,"
            f" ours {times['ours'][0] * 1e3:8.2f} ms, {least:.2f} {tenth:.2f}, error {error:.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main()

"""Gated linear units on an NVIDIA GPU, as one kernel and as two, beside PyTorch in a CUDA graph.

python docs/records/0009-front-half/twins.py [--rounds 9]
"""

import argparse
import statistics
import time

import numpy as np
import torch

import picograd
from picograd import Tensor
from picograd.schedule import pairing

SHAPES = [  # rows, columns of each product, K, dtype
    (2048, 14336, 4096, "bfloat16"), (4096, 2048, 4096, "bfloat16"), (4096, 4096, 4096, "bfloat16"),
    (8192, 1536, 768, "bfloat16"), (8192, 384, 3072, "bfloat16"), (256, 14336, 4096, "bfloat16"),
    (4096, 2048, 768, "float32"), (2048, 5632, 2048, "float32"), (4096, 4096, 4096, "float32"),
]  # fmt: skip


def timed(run, count):
    """Time calls one behind the other, in us."""
    picograd.synchronize("cuda")
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        run()
    picograd.synchronize("cuda")
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / count * 1e6


def captured(run):
    """Capture what a function computes."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def compare(m, n, k, name, rounds):
    """Time one shape. Factors are the other way round in what stays apart: plans are kept."""
    generator = np.random.default_rng(0)
    sizes = (m, k), (n, k), (n, k)
    arrays = [generator.standard_normal(size).astype(np.float32) / k**0.5 for size in sizes]
    ours = [Tensor(each, device="cuda").cast(name).realize() for each in arrays]
    theirs = [torch.from_numpy(each).cuda().to(getattr(torch, name)) for each in arrays]
    silu, rival = picograd.nn.functional.silu, torch.nn.functional.silu
    one = picograd.jit(lambda x, gate, up: silu(x @ gate.mT) * (x @ up.mT))
    two = picograd.jit(lambda x, gate, up: (x @ up.mT) * silu(x @ gate.mT))
    one(*ours)
    rule, pairing.may_be_twin = pairing.may_be_twin, lambda *_: False
    two(*ours)
    pairing.may_be_twin = rule
    x, gate, up = theirs
    replay = captured(lambda: rival(x @ gate.mT) * (x @ up.mT))
    runs = {"one": lambda: one(*ours), "two": lambda: two(*ours), "torch": replay}
    count = max(3, min(40, int(8e3 / timed(replay, 5))))
    times = {key: [] for key in runs}
    for _ in range(rounds):
        for key, run in runs.items():
            times[key].append(timed(run, count))
    found = {key: f"{statistics.median(t):.1f} ({min(t):.1f})" for key, t in times.items()}
    print(m, n, k, name, found, flush=True)


def main():
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    for shape in SHAPES:
        compare(*shape, options.rounds)


if __name__ == "__main__":
    main()

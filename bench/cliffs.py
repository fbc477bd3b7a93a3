"""Cliffs: reductions, norms and scans over every axis of many shapes, beside their neighbours.

    python bench/cliffs.py [--functions softmax,sum] [--largest 4e6] [--rounds 5] [--worst 30]

Every row is a function over one axis of a shape: microseconds of CPU time of one thread, ours, ours
for the neighbour (one element more along the axis), PyTorch's, each less what the same call takes
for one element (recording and launching), and

    cliff    our time over that of the neighbour, or the other way round, if above 1
    ratio    PyTorch's time over ours: above 1 we are faster

The worst come first: those with the largest of cliff / 2 and 0.5 / ratio, the bars. Both run on
one thread, whose own clock is read: the machine may be busy.
"""

import argparse
import os
import statistics
import time

os.environ["PICOGRAD_THREADS"] = "1"
os.environ["PICOGRAD_DYNAMIC"] = "0"  # a plan of its own for the neighbour too

import numpy as np
import torch
from timing import machine, refuse_pinned_blas

import picograd
from picograd import Tensor

# Ragged, long rows, few rows, one row, many columns, few columns; `!` is stored transposed.
SHAPES = [
    (1024, 2048), (1000, 1001), (2048, 64), (64, 2048), (3, 100_000), (100_000, 3), (7, 7),
    (1, 300_000), (300_000, 1), (16, 512, 64), (64, 33, 17), (30, 1000, 7), (128, 10), (10, 128),
    (5000, 100), (100, 5000), (2, 40_000), (40_000, 2), (8, 3, 32, 32), (32, 64, 14, 14),
    (512, 50_304), (8, 1_000_000), (1_000_000, 8), (4096, 4096), (100, 100, 100), (1, 1), (1, 17),
    (17,), (1000,), (100_000,), (3_000_000,), (2, 3, 5, 7, 11), (257, 255), (255, 257), (31, 33),
]  # fmt: skip
STRIDED = [(1024, 2048), (1000, 1001), (16, 512, 64), (5000, 100), (64, 2048)]


def ours(name, axis):
    """Our function over an axis."""
    return {
        "softmax": lambda x: x.softmax(axis),
        "sum": lambda x: x.sum(axis),
        "var": lambda x: x.var(axis, correction=0),
        "layer_norm": lambda x: normalised(x, axis, picograd),
        "argmax": lambda x: x.argmax(axis),
        "cumsum": lambda x: x.cumsum(axis),
    }[name]


def theirs(name, axis):
    """PyTorch's function over an axis."""
    if name == "layer_norm":
        return lambda x: normalised(x, axis, torch)
    return ours(name, axis)


def normalised(x, axis, library):
    """Normalise along an axis: the layer norm of the last one, else by its formula."""
    if axis == x.ndim - 1:
        return library.nn.functional.layer_norm(x, (x.shape[-1],))
    centred = x - x.mean(axis, keepdim=True)
    return centred * (x.var(axis, correction=0, keepdim=True) + 1e-5).rsqrt()


LEAST = 10.0  # microseconds: less cannot be told from a call
FUNCTIONS = ("softmax", "sum", "var", "layer_norm", "argmax", "cumsum")


def measure(run, rounds):
    """Median microseconds of this thread."""
    run()
    start = time.thread_time()
    run()
    times = max(1, min(50, int(2e-3 / max(time.thread_time() - start, 1e-6))))
    found = []
    for _ in range(rounds):
        start = time.thread_time()
        for _ in range(times):
            run()
        found.append((time.thread_time() - start) / times)
    return statistics.median(found) * 1e6


def arrays(shape, is_strided):
    """The same numbers for both; stored the other way round if strided."""
    stored = shape[::-1] if is_strided else shape
    values = np.random.default_rng(0).standard_normal(stored).astype(np.float32)
    x, y = Tensor(values).realize(), torch.from_numpy(values.copy())
    if is_strided:
        order = tuple(range(len(shape)))[::-1]
        x, y = x.permute(*order), y.permute(*order)
    return x, y


def row(name, shape, axis, is_strided, rounds):
    """Time one function over one axis, and its neighbour."""
    more = tuple(n + (d == axis) for d, n in enumerate(shape))
    x, y = arrays(shape, is_strided)
    z, _ = arrays(more, is_strided)
    function, other = ours(name, axis), theirs(name, axis)
    one, its_one = arrays((1,) * len(shape), is_strided)
    call = measure(lambda: function(one).realize(), rounds)
    mine = max(measure(lambda: function(x).realize(), rounds) - call, LEAST)
    beside = max(measure(lambda: function(z).realize(), rounds) - call, LEAST)
    torchs = max(measure(lambda: other(y), rounds) - measure(lambda: other(its_one), rounds), LEAST)
    cliff = max(mine / beside, beside / mine)
    return max(cliff / 2, 0.5 * mine / torchs), cliff, torchs / mine, mine, beside, torchs


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--functions", default=",".join(FUNCTIONS))
    parser.add_argument("--shapes", type=int, default=len(SHAPES))
    parser.add_argument("--largest", type=float, default=4e6, help="elements")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worst", type=int, default=40)
    options = parser.parse_args()
    refuse_pinned_blas()
    torch.set_num_threads(1)
    print(machine())
    cases = [(shape, False) for shape in SHAPES[: options.shapes]]
    cases += [(shape, True) for shape in STRIDED]
    found = []
    for shape, is_strided in cases:
        if np.prod(shape) > options.largest:
            continue
        for axis in range(len(shape)):
            for name in options.functions.split(","):
                times = row(name, shape, axis, is_strided, options.rounds)
                sizes = "x".join(map(str, shape)) + "!" * is_strided
                found.append((times, f"{name}({axis}) {sizes}"))
    found.sort(reverse=True)
    print(f"{'':32}{'ours us':>10}{'beside us':>10}{'torch us':>10}{'cliff':>8}{'ratio':>8}")
    for (_, cliff, ratio, mine, beside, torchs), text in found[: options.worst]:
        print(f"{text:32}{mine:10.1f}{beside:10.1f}{torchs:10.1f}{cliff:8.2f}{ratio:8.2f}")
    beyond = sum(times[0] > 1 for times, _ in found)
    print(f"{beyond} of {len(found)} rows are beyond a bar (cliff 2, ratio 0.5)")


if __name__ == "__main__":
    main()

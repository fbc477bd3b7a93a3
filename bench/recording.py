"""What it costs the host to record an operation, beside PyTorch's call that computes it.

python bench/recording.py [--only cat] [--rounds 8]

Small arrays, one thread. Nothing is computed here: a plan is found, or made, when a value is asked
for. Printed: the least of `rounds` stretches of 60 calls in microseconds, the dearest by PyTorch's
time first, and the geometric mean.
"""

import argparse
import math
import time

import numpy as np
import torch
from timing import machine, refuse_pinned_blas

import picograd

CALLS = 60


def operations(library):
    """Name operations of a library on the arrays of a small network."""
    functional, nn = library.nn.functional, library.nn

    def normal(*shape):
        values = np.random.default_rng(0).standard_normal(shape)
        return library.tensor(values.astype(np.float32))

    x, a, weight, bias = normal(16, 20, 8), normal(16, 32), normal(32, 40), normal(32)
    wide, scores = normal(16, 40), normal(16, 10)
    heads, image = normal(2, 2, 8, 4), normal(2, 3, 8, 8)
    classes = library.tensor(np.arange(16) % 10)
    linear, conv = nn.Linear(40, 32), nn.Conv2d(3, 4, 3, padding=1)
    embedding, layer_norm = nn.Embedding(10, 8), nn.LayerNorm(40)
    return {
        "x[:, 3]": lambda: x[:, 3],
        "x[:, 1:5]": lambda: x[:, 1:5],
        "x[None]": lambda: x[None],
        "x[classes]": lambda: a[classes],
        "gather": lambda: scores.gather(1, classes[:, None]),
        "cat": lambda: library.cat([a, a], 1),
        "stack": lambda: library.stack([a, a]),
        "split": lambda: a.split(8, 1),
        "reshape": lambda: x.reshape(16, -1),
        "permute": lambda: x.permute(1, 0, 2),
        "transpose": lambda: x.transpose(0, 1),
        "unsqueeze": lambda: a.unsqueeze(1),
        "pad": lambda: functional.pad(image, (1, 1, 1, 1)),
        "a + a": lambda: a + a,
        "a + bias": lambda: a + bias,
        "a * 2": lambda: a * 2.0,
        "a > 0": lambda: a > 0,
        "exp": lambda: a.exp(),
        "relu": lambda: functional.relu(a),
        "clamp": lambda: a.clamp(-1, 1),
        "where": lambda: library.where(a > 0, a, a),
        "masked_fill": lambda: a.masked_fill(a > 0, 0.0),
        "dropout": lambda: functional.dropout(a, 0.5),
        "sum": lambda: a.sum(1),
        "mean": lambda: a.mean(1, keepdim=True),
        "var": lambda: a.var(1),
        "norm": lambda: a.norm(dim=1),
        "softmax": lambda: a.softmax(-1),
        "log_softmax": lambda: functional.log_softmax(scores, 1),
        "cross_entropy": lambda: functional.cross_entropy(scores, classes),
        "mse_loss": lambda: functional.mse_loss(a, a),
        "linear": lambda: functional.linear(wide, weight, bias),
        "nn.Linear": lambda: linear(wide),
        "matmul": lambda: heads @ heads.transpose(-1, -2),
        "einsum": lambda: library.einsum("bi,oi->bo", wide, weight),
        "attention": lambda: functional.scaled_dot_product_attention(heads, heads, heads),
        "embedding": lambda: embedding(classes),
        "layer_norm": lambda: layer_norm(wide),
        "conv2d": lambda: conv(image),
        "max_pool2d": lambda: functional.max_pool2d(image, 2),
        "avg_pool2d": lambda: functional.avg_pool2d(image, 2),
        "zeros": lambda: library.zeros(16, 32),
    }


def microseconds(function, rounds):
    """Time the calls of a function: the least of some stretches."""
    stretches = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        for _ in range(CALLS):
            function()
        stretches.append((time.perf_counter() - start) / CALLS * 1e6)
    return min(stretches[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    refuse_pinned_blas()
    torch.set_num_threads(1)
    picograd.config.threads = 1
    print(machine())
    ours, theirs = operations(picograd), operations(torch)
    rows = []
    for name in ours:
        if options.only in name:
            mine, other = (microseconds(each[name], options.rounds) for each in (ours, theirs))
            rows.append((mine / other, name, mine, other))
    for ratio, name, mine, other in sorted(rows, reverse=True):
        print(f"{name:14} picograd {mine:6.1f} us  PyTorch {other:6.1f} us  {ratio:5.2f}")
    mean = math.exp(sum(math.log(ratio) for ratio, *_ in rows) / len(rows))
    print(f"geometric mean {mean:.2f} of {len(rows)}")


if __name__ == "__main__":
    main()

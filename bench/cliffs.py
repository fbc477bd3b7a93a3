"""Cliffs: reductions, norms and scans over every axis of many shapes, beside their neighbours.

    python bench/cliffs.py [--functions softmax,sum] [--largest 4e6] [--rounds 5] [--worst 30]
                           [--drawn 260] [--picture cliffs.svg]

Every row is a function over one axis of a shape: microseconds of CPU time of one thread, ours, ours
for the neighbour (one element more along the axis), PyTorch's, each less what the same call takes
for two elements along each axis (recording and launching; along an axis of one, there is nothing to
compute), and

    cliff    our time for an element over that of the neighbour, or the other way round, if above 1
    ratio    PyTorch's time over ours: above 1 we are faster

Times are the least of some rounds, in turns, and a row that is beyond a bar is measured again.

The worst come first: those with the largest of cliff / 2 and 0.5 / ratio, the bars. Both run on
one thread, whose own clock is read: the machine may be busy.
"""

import argparse
import math
import os
import random
import time
from pathlib import Path

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


WAYS = 330  # runs before a call is as short as it gets
TRIES = 3  # a row counts as beyond a bar if it is so each time
LEAST = 10.0  # microseconds: less cannot be told from a call
FUNCTIONS = ("softmax", "sum", "var", "layer_norm", "argmax", "cumsum")


def clocked(run, times):
    """Microseconds of this thread for a run."""
    start = time.thread_time()
    for _ in range(times):
        run()
    return (time.thread_time() - start) / times * 1e6


def measure(runs, rounds):
    """Least microseconds of each, in turns; short calls find their way in the first hundreds."""
    counts = []
    for run in runs:
        start = time.thread_time()
        for _ in range(WAYS):
            run()
            if time.thread_time() - start > 0.06:
                break
        counts.append(max(1, min(50, int(2e3 / max(clocked(run, 1), 1)))))
    found = [[clocked(*each) for each in zip(runs, counts)] for _ in range(rounds)]
    return [min(times) for times in zip(*found)]


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
    small, its_small = arrays((2,) * len(shape), is_strided)
    runs = [lambda each=each: function(each).realize() for each in (small, x, z)]
    runs += [lambda each=each: other(each) for each in (its_small, y)]
    call, mine, beside, its_call, torchs = measure(runs, rounds)
    mine, torchs = max(mine - call, LEAST), max(torchs - its_call, LEAST)
    beside = max((beside - call) * math.prod(shape) / math.prod(more), LEAST)
    cliff = max(mine / beside, beside / mine)
    return max(cliff / 2, 0.5 * mine / torchs), cliff, torchs / mine, mine, beside, torchs


def draw_shapes(count):
    """Draw shapes of 1 to 4 axes and 1 to 3 million elements, each scale as often as another."""
    draw = random.Random(0)
    found = []
    for _ in range(count):
        weights = [draw.random() for _ in range(draw.randint(1, 4))]
        scale = draw.uniform(0, math.log(3e6)) / sum(weights)
        found.append(tuple(max(1, round(math.exp(scale * each))) for each in weights))
    return found


COLOURS = {
    "softmax": "#1f77b4", "sum": "#ff7f0e", "var": "#2ca02c", "layer_norm": "#d62728",
    "argmax": "#9467bd", "cumsum": "#8c564b",
}  # fmt: skip
WIDE, HIGH, EDGE, DECADES = 460, 300, 50, 8  # of a panel; powers of ten of elements


def panel(left, title, points, low, high, bars):
    """Draw a panel: (elements, value, function) on logarithmic axes, and the bars of the value."""

    def at(elements, value):
        share = (math.log10(value) - low) / (high - low)
        x = left + EDGE + WIDE * math.log10(elements) / DECADES
        return round(x, 1), round(EDGE + HIGH * (1 - min(max(share, 0), 1)), 1)

    text = [f'<text x="{left + EDGE}" y="{EDGE - 20}">{title}</text>']
    for power in range(DECADES + 1):
        x, y = at(10**power, 10**low)
        text.append(f'<text x="{x}" y="{y + 18}" text-anchor="middle">1e{power}</text>')
    for bar in bars:
        (x, y), (end, _) = at(1, bar), at(10**DECADES, bar)
        text.append(f'<line x1="{x}" y1="{y}" x2="{end}" y2="{y}" stroke="#888"/>')
        text.append(f'<text x="{x - 6}" y="{y + 4}" text-anchor="end">{bar:g}</text>')
    for elements, value, function in points:
        x, y = at(elements, value)
        text.append(f'<circle cx="{x}" cy="{y}" r="2.2" fill="{COLOURS[function]}"/>')
    return text


def draw(found, path):
    """Draw all rows: how much faster than PyTorch, and how far from the neighbour."""
    rows = []
    for times, text in found:
        function, _, sizes = text.partition("(")
        shape = sizes.partition(") ")[2].rstrip("!").split("x")
        rows.append((math.prod(map(int, shape)), times[2], times[1], function))
    ratios, cliffs = ([(row[0], row[n], row[3]) for row in rows] for n in (1, 2))
    width = 2 * (WIDE + 2 * EDGE)
    text = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HIGH + 3 * EDGE}"']
    text.append('font-family="sans-serif" font-size="12"><rect width="100%" height="100%"')
    text.append('fill="white"/>')
    text += panel(0, "PyTorch's time over ours", ratios, -1, 3, (0.5, 1, 10, 100, 1000))
    text += panel(width // 2, "ours over the neighbour's", cliffs, 0, 1, (1, 2, 5, 10))
    for place, (function, colour) in enumerate(COLOURS.items()):
        x, y = EDGE + 110 * place, HIGH + 2 * EDGE + 20
        text.append(f'<circle cx="{x}" cy="{y - 4}" r="4" fill="{colour}"/>')
        text.append(f'<text x="{x + 8}" y="{y}">{function}</text>')
    Path(path).write_text("\n".join([*text, "</svg>", ""]))


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--functions", default=",".join(FUNCTIONS))
    parser.add_argument("--shapes", type=int, default=len(SHAPES))
    parser.add_argument("--largest", type=float, default=4e6, help="elements")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worst", type=int, default=40)
    parser.add_argument("--drawn", type=int, default=0, help="shapes drawn at random beside those")
    parser.add_argument("--picture", help="where to draw the rows")
    options = parser.parse_args()
    refuse_pinned_blas()
    torch.set_num_threads(1)
    print(machine())
    cases = [(shape, False) for shape in SHAPES[: options.shapes]]
    cases += [(shape, True) for shape in STRIDED]
    cases += [(shape, False) for shape in draw_shapes(options.drawn)]
    found = []
    for shape, is_strided in cases:
        if np.prod(shape) > options.largest:
            continue
        for axis in range(len(shape)):
            for name in options.functions.split(","):
                times = row(name, shape, axis, is_strided, options.rounds)
                for _ in range(TRIES - 1):
                    if times[0] > 1:
                        times = min(times, row(name, shape, axis, is_strided, options.rounds))
                sizes = "x".join(map(str, shape)) + "!" * is_strided
                found.append((times, f"{name}({axis}) {sizes}"))
    found.sort(reverse=True)
    if options.picture:
        draw(found, options.picture)
    print(f"{'':32}{'ours us':>10}{'beside us':>10}{'torch us':>10}{'cliff':>8}{'ratio':>8}")
    for (_, cliff, ratio, mine, beside, torchs), text in found[: options.worst]:
        print(f"{text:32}{mine:10.1f}{beside:10.1f}{torchs:10.1f}{cliff:8.2f}{ratio:8.2f}")
    beyond = sum(times[0] > 1 for times, _ in found)
    print(f"{beyond} of {len(found)} rows are beyond a bar (cliff 2, ratio 0.5)")


if __name__ == "__main__":
    main()

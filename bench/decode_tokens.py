"""Tokens written with a cache of keys and values: milliseconds where little and where much is kept.

    python bench/decode_tokens.py [--models gpt decoder gpt2] [--count 100]

The networks are those of examples/gpt.py and examples/decoder.py, with random weights; `gpt2` is
GPT-2 124M. A token is its forward pass, the copy of its scores to the host, and the draw.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

from timing import machine

import picograd
from picograd import Tensor

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))


def build(name):
    import decoder
    import gpt

    sizes = {"gpt": gpt.Sizes(79), "gpt2": gpt.GPT2, "decoder": decoder.Sizes(79)}[name]
    return (decoder.Decoder if name == "decoder" else gpt.GPT)(sizes)


def kernels(model):
    """Count the kernels of a token."""
    cache = [[part.realize() for part in pair] for pair in model.empty_cache()]
    with picograd.no_grad():
        scores = model(Tensor([[1]]).realize(), cache, 5)
    wanted = [scores, *(part for pair in cache for part in pair)]
    return len(picograd.plan(*wanted).kernels)


def measure(name, count):
    """Write tokens; prints a row."""
    from writing import write

    picograd.manual_seed(0)
    model = build(name)
    seconds, last = [], time.perf_counter()
    for _ in write(model, [[1, 2, 3]], count, 0):
        now = time.perf_counter()
        seconds.append(now - last)
        last = now
    early, late = (statistics.median(part) * 1e3 for part in (seconds[5:25], seconds[-20:]))
    nbytes = 4 * sum(parameter.numel() for parameter in model.parameters())
    nbytes += 4 * sum(part.numel() for pair in model.empty_cache() for part in pair)
    rate = nbytes / min(seconds) / 1e9
    print(
        f"{name:8} {kernels(model):4} kernels; tokens 6 to 25: {early:.2f} ms, "
        f"the last 20 of {count}: {late:.2f} ms, best {min(seconds) * 1e3:.2f} ({rate:.0f} GB/s)"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--models", nargs="*", default=["gpt", "decoder", "gpt2"])
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    print(machine())
    for name in options.models:
        measure(name, options.count)


if __name__ == "__main__":
    main()

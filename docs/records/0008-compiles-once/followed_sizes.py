"""A jitted function at many sizes, none of them marked: traces, plans, and the time of a call.

Beside it the same function with `dynamic=False`, a trace for each size. Both are called at every
size, then at some of them in turns until each has plans of its own; processor time, one thread.
With `--first` one of them is called at every size, each for the first time in the process.

    python docs/records/0008-compiles-once/followed_sizes.py [--rounds 120]
    python docs/records/0008-compiles-once/followed_sizes.py --first followed
    python docs/records/0008-compiles-once/followed_sizes.py --first traced
"""

import argparse
import os
import time
from statistics import median
from typing import Any

os.environ.setdefault("PICOGRAD_THREADS", "1")

import numpy as np

import picograd
from picograd import Tensor, nn
from picograd.nn import functional as F


def encoder() -> Any:
    """A layer of a transformer over prompts of 1 to 512 tokens."""
    layer = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True).eval()
    return lambda size: picograd.ones(1, size, 64), lambda x: layer(x).sum(1)


def training() -> Any:
    """A step of a perceptron whose batches differ in size."""
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = nn.optim.Adam(model.parameters(), lr=1e-3)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), picograd.arange(x.shape[0]) % 10)
        loss.backward()
        optimizer.step()
        return loss

    return lambda size: picograd.ones(size, 64), step


def pictures() -> Any:
    """Convolutions over pictures of many widths."""
    layers = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1))
    return lambda size: picograd.ones(1, 3, 48, size), lambda x: layers(x).mean((2, 3))


CASES = {
    "encoder, 1 to 512 tokens": (encoder, range(1, 513, 3), (100, 333, 511)),
    "training step, batches of 1 to 128": (training, range(1, 129), (77, 100, 128)),
    "pictures 48 x 32 to 160": (pictures, range(32, 161), (81, 128, 150)),
}


def timed(function: Any, x: Tensor) -> float:
    """Time one call, in seconds of the processor."""
    start = time.process_time()
    function(x).numpy()
    return time.process_time() - start


def first_calls(dynamic: bool | None) -> None:
    """Print what sizes cost that are seen for the first time; case by case, nothing is shared."""
    for name, (make, sizes, _) in CASES.items():
        picograd.manual_seed(0)
        given, function = make()
        jitted = picograd.jit(function, dynamic=dynamic)
        order = np.random.default_rng(0).permutation(sizes).tolist()
        times = [timed(jitted, given(size)) * 1e3 for size in order]
        print(f"{name}: {jitted.count} traces, {sum(times):.0f} ms in all, a new size "
              f"{median(times[20:]):.2f} ms", flush=True)  # fmt: skip


def main() -> None:
    """Print traces and times of all cases."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=120)
    parser.add_argument("--first", choices=["followed", "traced"])
    given_options = parser.parse_args()
    rounds = given_options.rounds
    if given_options.first:
        first_calls(None if given_options.first == "followed" else False)
        return
    for name, (make, sizes, shown) in CASES.items():
        followed, fixed = [], []
        for dynamic, times in ((None, followed), (False, fixed)):
            picograd.manual_seed(0)
            given, function = make()
            jitted = picograd.jit(function, dynamic=dynamic)
            order = np.random.default_rng(0).permutation(sizes).tolist()
            for size in order:
                jitted(given(size)).numpy()
            times += [jitted, given]
        print(f"{name}: traces {followed[0].count} for {fixed[0].count}", flush=True)
        for size in shown:
            found: tuple[list[float], list[float]] = ([], [])
            for _ in range(rounds):
                for (jitted, given), times in zip((followed, fixed), found):
                    times.append(timed(jitted, given(size)))
            early, late = (
                [median(times[part]) * 1e3 for times in found]
                for part in (slice(1, 6), slice(-10, None))
            )
            print(f"  size {size}: ms a call, followed and own trace: at first {early[0]:.2f} "
                  f"{early[1]:.2f}, later {late[0]:.2f} {late[1]:.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()

"""Time running sums and sorts of many shapes in one process, and an LSTM step: processor time.

    PYTHONPATH=<tree> PICOGRAD_THREADS=1 python docs/records/0008-compiles-once/repeated_shapes.py

Each shape is computed 14 times, of which the last 10 count: with plans for many sizes, most shapes
share one until they have stayed for a few calls. Works on older trees too.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import picograd
from picograd import Tensor, nn


def seconds(run: Callable[[], Any], calls: int = 14) -> float:
    """Give the median of all calls but the first four."""
    found = []
    for _ in range(calls):
        start = time.thread_time()
        run()
        found.append(time.thread_time() - start)
    return statistics.median(found[4:])


def compute(op: str, x: Tensor, dim: int) -> None:
    """Compute a running sum, a running maximum or a sort."""
    made = getattr(x, op)(dim=dim)
    if isinstance(made, tuple):
        made[0].realize(made[1])
    else:
        made.realize()


def shapes() -> None:
    """Print nanoseconds an element of all shapes in turn."""
    random = np.random.default_rng(0)
    for op in ("cumsum", "cummax", "sort"):
        for size in (1000, 10000, 100000):
            for shape in ((size,), (size // 100, 100), (100, size // 100)):
                x = Tensor(random.random(shape).astype(np.float32))
                dim = 0 if shape[0] == 100 else len(shape) - 1
                took = seconds(partial(compute, op, x, dim))
                print(f"{op:7} {shape!s:12} {took / size * 1e9:8.2f} ns an element")


def lstm() -> None:
    """Print milliseconds of a jitted training step of 64 steps, batch 16, 64 hidden."""
    layer = nn.LSTM(64, 64)
    x = Tensor(np.random.default_rng(0).normal(size=(64, 16, 64)).astype(np.float32))
    parameters = list(layer.parameters())

    @picograd.jit
    def step(given: Tensor) -> Any:
        loss = layer(given)[0].square().mean()
        return loss, picograd.grad(loss, parameters)

    print(f"LSTM {seconds(partial(step, x), 34) * 1e3:.2f} ms")


if __name__ == "__main__":
    lstm()
    shapes()

"""Time sequences of varying length: a plan for many lengths against one for a length alone.

    python docs/records/0008-compiles-once/loops.py

Both in turns in one process, processor time of the calling thread, medians; one thread.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import picograd
from picograd import Dim, Tensor, nn
from picograd.config import config
from picograd.engine import realize
from picograd.engine.sizes import BoundedPlan

config.threads = 1
ROUNDS, BATCH, FEATURES, HIDDEN = 40, 16, 32, 64


def forward(model: Any) -> Callable[[Tensor], Tensor]:
    """Make the function of a forward pass."""

    def run(x: Tensor) -> Tensor:
        with picograd.no_grad():
            out: Tensor = model(x)[0]
        return out

    return run


def training(model: Any) -> Callable[[Tensor], Tensor]:
    """Make the function of a training step."""
    optimizer = nn.optim.SGD(model.parameters(), 1e-3)

    def run(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = model(x)[0].square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return run


def seconds(function: Callable[[Tensor], Tensor], x: Tensor) -> float:
    """Time one call."""
    start = time.thread_time()
    function(x).realize()
    return time.thread_time() - start


def plans() -> int:
    """Count the plans that were compiled."""
    return sum(not isinstance(plan, BoundedPlan) for plan in realize.PLANS.plans.values())


def compare(name: str, make: Callable[[Any], Any], length: int, is_batch_first: bool) -> None:
    """Print how long a length takes by either plan."""
    model = nn.LSTM(FEATURES, HIDDEN, batch_first=is_batch_first)
    shape = (BATCH, length) if is_batch_first else (length, BATCH)
    x = Tensor(np.ones((*shape, FEATURES), np.float32))
    fixed = picograd.jit(make(model))
    fixed(x).realize()
    many = picograd.jit(make(model), dynamic={"x": {int(is_batch_first): Dim("steps", 1, 64)}})
    many(x).realize()
    times: tuple[list[float], list[float]] = [], []
    for _ in range(ROUNDS):
        for function, found in zip((fixed, many), times):
            found.append(seconds(function, x))
    a, b = (statistics.median(each) * 1e3 for each in times)
    layout = "batch first" if is_batch_first else "time first"
    print(f"{name}, {layout}, {length} steps: {a:.2f} ms alone, {b:.2f} shared: {b / a:.2f}")


def main() -> None:
    """Print all comparisons, then how much is made for 64 lengths."""
    for name, make in (("forward", forward), ("training", training)):
        for length in (64, 33, 10):
            for is_batch_first in (False, True):
                compare(name, make, length, is_batch_first)
    before, run = (
        plans(),
        picograd.jit(training(nn.LSTM(8, 8)), dynamic={"x": {0: Dim("t", 1, 64)}}),
    )
    for length in np.random.default_rng(0).permutation(64) + 1:
        run(Tensor(np.ones((length, 4, 8), np.float32))).realize()
    print(f"lengths 1 to 64, training: {run.count} traces, {plans() - before} plans")


if __name__ == "__main__":
    main()

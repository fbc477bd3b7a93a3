"""An LSTM cell by hand in no_grad, its states read now and then: time, plans, nodes and memory.

python docs/records/0008-compiles-once/recurrent_state.py [--steps 1000]
"""

import argparse
import gc
import os
import random
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("PICOGRAD_THREADS", "1")

import numpy as np

import picograd
from picograd import Tensor
from picograd.engine.plan_cache import PlanCache
from picograd.graph.node import Node

Reads = Callable[[int], bool]
MADE = [0]
PUT = PlanCache.put
RANDOM = random.Random(0)
LUCKY = [RANDOM.random() < 0.2 for _ in range(100_000)]


def counted(self: PlanCache, key: Any, plan: Any) -> None:
    """Count the plans that are made."""
    MADE[0] += 1
    PUT(self, key, plan)


def every(count: int) -> Reads:
    """Read at every so many steps."""
    return lambda step: step % count == count - 1


def never(step: int) -> bool:
    """Read nothing."""
    return False


def irregular(step: int) -> bool:
    """Read at a fifth of the steps."""
    return LUCKY[step]


CASES = {
    "state every 3rd step": (never, every(3)),
    "state every 50th step": (never, every(50)),
    "hidden every 2nd, state every 3rd": (every(2), every(3)),
    "hidden every step, state every 7th": (every(1), every(7)),
    "nothing": (never, never),
    "state at a fifth of the steps, irregularly": (never, irregular),
    "hidden every 4th, state irregularly": (every(4), irregular),
}


def cell(x: Tensor, h: Tensor, c: Tensor, w: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """Run one step of an LSTM."""
    i, f, g, o = (x @ w + h @ u).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def look() -> tuple[int, int, int]:
    """Count plans made, nodes and resident MiB."""
    gc.collect()
    count = sum(type(each) is Node for each in gc.get_objects())
    with open("/proc/self/statm") as file:
        return MADE[0], count, int(file.read().split()[1]) * 4 // 1024


def measure(name: str, hidden: Reads, state: Reads, steps: int) -> None:
    """Run a loop, and print a row."""
    picograd.manual_seed(0)
    w, u = picograd.randn(8, 32) * 0.1, picograd.randn(8, 32) * 0.1
    inputs = np.random.default_rng(0).standard_normal((steps, 4, 8)).astype(np.float32)
    times, looks, MADE[0] = [], [], 0
    with picograd.no_grad():
        h = c = picograd.zeros(4, 8)
        for step in range(steps):
            start = time.thread_time()
            h, c = cell(picograd.tensor(inputs[step]), h, c, w, u)
            if hidden(step):
                h.numpy()
            if state(step):
                c.numpy()
            times.append(time.thread_time() - start)
            if step + 1 in (steps // 10, steps // 2, steps):
                looks.append(look())
    tenth = steps // 10
    early, late = (sum(part) / tenth * 1e6 for part in (times[tenth : 2 * tenth], times[-tenth:]))
    columns = [", ".join(map(str, column)) for column in zip(*looks)]
    print(f"| {name} | {early:,.0f} | {late:,.0f} | {' | '.join(columns)} |", flush=True)


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    PlanCache.put = counted  # type: ignore[method-assign]
    print("| read | early, us | late, us | plans | nodes | MiB |\n|---|---|---|---|---|---|")
    for name, (hidden, state) in CASES.items():
        measure(name, hidden, state, options.steps)


if __name__ == "__main__":
    main()

"""Python cost of scheduling: microseconds a graph node, and how it grows with depth.

The graph is one training step (forward, backward, Adam) of a deep perceptron. No kernel is
generated. The bars: at most 60 us a node, and time(64 layers) < 2.3 x time(32 layers).

    python bench/schedule_cost.py [--layers 8 16 32 64 128] [--rounds 7]
"""

import argparse
import statistics
import time

import numpy as np
from timing import machine

from picograd import Tensor, nn
from picograd.engine import pending
from picograd.engine.backends import get_device
from picograd.engine.plan_key import leaf_buffer, walk_pending
from picograd.engine.tracing import tracing
from picograd.schedule.schedule import schedule


def training_step_roots(layers: int) -> list:
    """Record one training step without running it; returns the nodes it would compute."""
    blocks = [m for _ in range(layers) for m in (nn.Linear(64, 64), nn.ReLU())]
    model = nn.Sequential(*blocks, nn.Linear(64, 10))
    optimizer = nn.optim.Adam(model.parameters())
    x = Tensor(np.zeros((32, 64), np.float32))
    y = Tensor(np.zeros(32, np.int64))
    pending.realize_all()
    with tracing():
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        nodes = [t.node for t in pending.live_tensors() if leaf_buffer(t.node) is None]
    return nodes, (model, optimizer, loss)


def measure(layers: int, rounds: int) -> tuple[int, int, float]:
    """Nodes, kernels and the median seconds of one schedule."""
    roots, keep = training_step_roots(layers)
    nodes = len(walk_pending(roots))
    target = get_device("cpu").target
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        plan = schedule(roots, target, verify=False)
        seconds.append(time.perf_counter() - start)
    del keep
    return nodes, len(plan.kernels), statistics.median(seconds)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, nargs="+", default=[8, 16, 32, 64, 128])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(machine())
    before = 0.0
    for layers in options.layers:
        nodes, kernels, seconds = measure(layers, options.rounds)
        growth = f"  {seconds / before:.2f} x the row above" if before else ""
        print(
            f"{layers:4} layers  {nodes:6} nodes  {kernels:4} kernels"
            f"  {seconds * 1e3:8.1f} ms  {seconds / nodes * 1e6:6.1f} us/node{growth}"
        )
        before = seconds


if __name__ == "__main__":
    main()

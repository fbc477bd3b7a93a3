"""Cost of scheduling in Python: microseconds a graph node, by stage, and how it grows with nodes.

No kernel is generated. Nodes are counted as the engine keeps them (the update of a parameter by an
optimizer is one), and the time is that of the thread. The bars: at most 30 us a node, and an
exponent of at most 1.1 from 1,000 to 100,000 nodes.

    python bench/schedule_cost.py [--only chain,mlp] [--nodes 1000 10000 100000] [--rounds 3]
"""

import argparse
import gc
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from timing import machine

from picograd import Tensor, cat, nn
from picograd.engine import pending
from picograd.engine.backends import get_device
from picograd.engine.plan_key import leaf_buffer, walk_pending
from picograd.engine.tracing import tracing
from picograd.graph.formula import unfolded
from picograd.graph.node import Node
from picograd.schedule.fuse import Fuser
from picograd.schedule.schedule import STAGES, Draft

F = nn.functional
Record = Callable[[], Any]  # records a graph, and returns what keeps it alive
LOOP = 10_000  # rounds of the loop that tells how fast Python runs here


def chain(count: int) -> Record:
    """Elementwise operations in a row."""
    x = Tensor(np.zeros(256, np.float32)).realize()

    def record() -> Tensor:
        y = x
        for _ in range(count // 2):
            y = (y * x).sin()
        return y

    return record


def diamond(count: int) -> Record:
    """Values that are read twice, one after the other."""
    x = Tensor(np.zeros(256, np.float32)).realize()

    def record() -> Tensor:
        y = x
        for _ in range(count // 3):
            y = y.exp() + y.sin()
        return y

    return record


def temporaries(count: int) -> Record:
    """Sums that are all in memory until the last kernel reads them."""
    x = Tensor(np.ones((32, 64), np.float32)).realize()

    def record() -> Tensor:
        y, sums = x, []
        for _ in range(count // 6):
            sums.append(y.sum(1))
            y = (y * sums[-1].reshape(32, 1)).contiguous()
        return cat(sums)

    return record


def training(model: nn.Module, x: Tensor, y: Tensor) -> Record:
    """One step with Adam."""
    optimizer = nn.optim.Adam(model.parameters())

    def record() -> Any:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return model, optimizer, loss

    return record


def labels(count: int) -> Tensor:
    """Make class numbers."""
    return Tensor(np.zeros(count, np.int64))


def mlp(count: int) -> Record:
    """A training step of a perceptron, with Adam."""
    layers = count // 53
    blocks = [m for _ in range(layers) for m in (nn.Linear(64, 64), nn.ReLU())]
    x = Tensor(np.zeros((32, 64), np.float32))
    return training(nn.Sequential(*blocks, nn.Linear(64, 10)), x, labels(32))


class Last(nn.Module):
    """Scores of the last token."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layers."""
        return self.head(self.layers(x)[:, -1])


def transformer(count: int) -> Record:
    """A training step of an encoder, with Adam."""
    sizes = 64, 4, 128, 0.1
    layers = [nn.TransformerEncoderLayer(*sizes, batch_first=True) for _ in sized(count, 360)]
    x = Tensor(np.zeros((8, 16, 64), np.float32))
    return training(Last(*layers), x, labels(8))


class Residual(nn.Module):
    """Two convolutions, and a way around them."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)])

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block."""
        y = self.norms[0](self.first(x)).relu()
        return (self.norms[1](self.second(y)) + x).relu()


def resnet(count: int) -> Record:
    """A training step of residual blocks of convolutions, with Adam."""
    blocks = [Residual(16) for _ in sized(count, 230)]
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), *blocks, nn.AdaptiveAvgPool2d(1))
    x = Tensor(np.zeros((4, 3, 16, 16), np.float32))
    return training(nn.Sequential(model, nn.Flatten(), nn.Linear(16, 10)), x, labels(4))


def sized(count: int, each: int) -> range:
    """Say how often a layer of so many nodes is repeated for a graph of `count`."""
    return range(max(count // each, 1))


CASES = {case.__name__: case for case in (chain, diamond, temporaries, mlp, transformer, resnet)}


def roots_of(record: Record) -> tuple[list[Node], Any]:
    """Record a graph; returns the nodes that it would compute, and what keeps them alive."""
    pending.realize_all()
    with tracing():
        kept = record()
        nodes = [t.node for t in pending.live_tensors() if leaf_buffer(t.node) is None]
    return unfolded(nodes, walk_pending(nodes)), kept


def stage_seconds(roots: Sequence[Node]) -> tuple[list[float], Draft]:
    """Schedule once; seconds of each stage."""
    target = get_device("cpu").target
    draft, found = Draft(list(roots), target, False, Fuser(target)), []
    gc.collect()
    gc.disable()  # as `schedule` does
    for stage in STAGES:
        start = time.thread_time()
        stage(draft)
        found.append(time.thread_time() - start)
    gc.enable()
    return found, draft


def loop_seconds() -> float:
    """Time a loop of Python alone, to compare machines and moments with."""
    gc.disable()
    start, table = time.thread_time(), {}
    for number in range(LOOP):
        table[number] = (number, number)
    seconds = time.thread_time() - start
    gc.enable()
    return seconds


def measure(name: str, counts: Sequence[int], rounds: int) -> None:
    """Print a row a size, and the exponent that fits them."""
    points = []
    for count in counts:
        roots, keep = roots_of(CASES[name](count))
        nodes = len(walk_pending(roots))
        every = []
        for _ in range(rounds):
            found, draft = stage_seconds(roots)
            every.append(found)
        stages = [statistics.median(times) * 1e6 / nodes for times in zip(*every)]
        total = statistics.median(map(sum, every))
        points.append((math.log(nodes), math.log(total)))
        split = "  ".join(f"{s.__name__} {us:.1f}" for s, us in zip(STAGES, stages))
        print(
            f"{name:12}{nodes:7} nodes {len(draft.steps):6} steps"
            f" {total * 1e6 / nodes:7.1f} us/node"
            f"  ({split})  loop {loop_seconds() * 1e9 / LOOP:.0f} ns",
            flush=True,
        )
        del keep, roots, draft
    if len(points) > 1:
        x, y = zip(*points)
        print(f"{name:12}exponent {statistics.linear_regression(x, y).slope:.2f}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(CASES), help="names, separated by commas")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(machine(), "times of one thread")
    for name in options.only.split(","):
        measure(name, options.nodes, options.rounds)


if __name__ == "__main__":
    main()

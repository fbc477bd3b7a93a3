"""Sizes that vary: compilations, and the time of a step beside plans of each size's own.

Every case runs all its sizes with shared plans, which counts the plans that are made; then steps
at some of the sizes with shared plans and with plans of their own alternate in one process, and
the medians are compared. A size that is seen for the first time is timed apart ("bind"). One
thread; processor time, as others may run too. On a GPU it is time by the clock, until it is done.

    python bench/sizes.py [--rounds 7] [--device cuda]
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

os.environ.setdefault("PICOGRAD_THREADS", "1")

import numpy as np

import picograd
from picograd import Tensor, nn
from picograd.config import config
from picograd.engine import realize, sizes
from picograd.engine.backends import get_device
from picograd.engine.plan_cache import PlanCache
from picograd.engine.sizes import BoundedPlan

Step = Callable[[Any], None]
SHARED, OWN = PlanCache(), PlanCache()


@dataclass
class Case:
    """A step by its size, all sizes in order, and those that are timed."""

    step: Step
    sizes: list[Any]
    timed: list[Any]


class Attention(nn.Module):
    """A causal self-attention with a feed-forward part."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 3 * width)
        self.first, self.second = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.inner(self.norm(x)).reshape(*x.shape[:2], 3, 4, -1).permute(2, 0, 3, 1, 4)
        found = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + found.transpose(1, 2).reshape(x.shape)
        return x + self.second(nn.functional.gelu(self.first(self.norm(x))))


class Detector(nn.Module):
    """A backbone of two strides, features scaled up and put beside, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = block(3, 16, 2), block(16, 32, 2)
        self.merged, self.head = block(48, 16, 1), nn.Conv2d(16, 6, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.first(x)
        second = self.second(nn.functional.max_pool2d(first, 2))
        wide = nn.functional.interpolate(second, scale_factor=4)
        return self.head(self.merged(picograd.cat([first, wide], 1))).flatten(2).sigmoid()


def block(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU())


def growing_cache() -> Case:
    state: dict[int, Tensor] = {}

    def step(n: int) -> None:
        row = picograd.ones(1, 4, 1, 32)
        cache = state.get(n - 1)
        if cache is None:
            cache = Tensor(np.zeros((1, 4, n, 32), np.float32))
        state[n] = cache = picograd.cat([cache, row], 2)
        scores = (row @ cache.transpose(-1, -2)).softmax(-1)
        Tensor.realize(cache, scores @ cache)

    return Case(step, list(range(1, 501)), [100, 250, 400])


def last_batch() -> Case:
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = nn.optim.SGD(model.parameters(), 0.1)
    random = np.random.default_rng(0)

    def step(n: int) -> None:
        x = Tensor(random.standard_normal((n, 64)).astype(np.float32))
        y = Tensor(random.integers(0, 10, n))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        loss.item()

    return Case(step, [256, 256, 256, 100, 256, 256, 100, 256, 100], [100])


def prompts() -> Case:
    model, table = Attention(128), nn.Embedding(100, 128)

    def step(n: int) -> None:
        model(table(Tensor(np.arange(n)[None] % 100)))[:, -1].realize()

    order = np.random.default_rng(0).permutation(512) + 1
    return Case(step, [int(n) for n in order[:120]] + [1, 512], [100, 300, 500])


def pictures() -> Case:
    model = Detector()
    random = np.random.default_rng(1)

    def step(size: tuple[int, int]) -> None:
        model(Tensor(random.standard_normal((1, 3, *size)).astype(np.float32))).realize()

    drawn = [(int(a) * 8, int(b) * 8) for a, b in random.integers(10, 25, (20, 2))]
    return Case(step, drawn, drawn[2:5])


CASES = {"cache by cat": growing_cache, "last batch": last_batch, "prompts": prompts,
         "pictures": pictures}  # fmt: skip


@contextmanager
def plans_of(cache: PlanCache) -> Iterator[None]:
    """Keep plans in this cache; the one of own plans gives every size a plan of its own."""
    known, bounded = realize.PLANS, realize.bounded_plan
    realize.PLANS = cache
    if cache is OWN:
        realize.bounded_plan = lambda *_: None
    try:
        yield
    finally:
        realize.PLANS, realize.bounded_plan = known, bounded


def timed(step: Step, size: Any) -> float:
    device = get_device()
    clock = time.thread_time if device.name == "cpu" else time.perf_counter
    device.synchronize()
    start = clock()
    step(size)
    device.synchronize()
    return (clock() - start) * 1e3


def compiled() -> int:
    return sum(not isinstance(plan, BoundedPlan) for plan in SHARED.plans.values())


def measure(name: str, rounds: int) -> None:
    """Run a case and print its row."""
    case = CASES[name]()
    before, counts, firsts = compiled(), [], []
    with plans_of(SHARED):
        for size in case.sizes:
            known = compiled()
            took = timed(case.step, size)
            counts.append(compiled())
            if counts[-1] == known:
                firsts.append(took)
    last = max((n for n, count in enumerate(counts) if n and count > counts[n - 1]), default=0)
    ratios = []
    for size in case.timed:
        shared, own = [], []
        for number in range(rounds + 2):
            for cache, found in ((SHARED, shared), (OWN, own)):
                with plans_of(cache):
                    took = timed(case.step, size)
                if number >= 2:
                    found.append(took)
        ratios.append((size, median(shared), median(own)))
    shown = "  ".join(f"{size}: {a:.2f} / {b:.2f} ms = {a / b:.2f}" for size, a, b in ratios)
    made, bind = counts[-1] - before, median(firsts or [0.0])
    print(f"{name:14} {made:3} plans for {len(case.sizes)} sizes, the last for number {last + 1}; "
          f"bind {bind:.1f} ms;  {shown}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    options = parser.parse_args()
    config.device = options.device
    sizes.PATIENCE = sizes.KERNEL_PATIENCE = sizes.ROW_PATIENCE = 1 << 30
    with config.override(dynamic=1):
        for name in [options.case] if options.case else CASES:
            measure(name, options.rounds)
        for family in sizes.FAMILIES.values():
            if family.refused:
                print(f"plans of their own: {family.refused}")


if __name__ == "__main__":
    main()

"""Steps whose sizes vary beside steps with a plan for every size, in turns, in one process.

    PICOGRAD_DYNAMIC=1 PICOGRAD_THREADS=1 python docs/records/0008-compiles-once/stop_at_the_size.py

Both run the same model; the plan for many sizes is made by six sizes near the bound, which are not
timed. Processor time of the thread, medians of 15.
"""

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import picograd
from picograd import Tensor, nn
from picograd.engine import realize, sizes
from picograd.engine.plan_cache import PlanCache

ROUNDS = 15
SIZES = {"mlp": (33, 40, 48, 56, 63), "cnn": (33, 40, 48, 56, 63),
         "transformer": (65, 80, 96, 112, 127), "pictures": (33, 40, 48, 56, 63)}  # fmt: skip
SHAPES = {"mlp": ("n", 784), "cnn": ("n", 1, 28, 28), "transformer": (4, "n", 128),
          "pictures": (4, 3, "n", "n")}  # fmt: skip
BOUNDED = realize.bounded_plan
CACHES = {"fixed": PlanCache(), "varying": PlanCache()}


def model_of(kind: str) -> nn.Module:
    """Make a model."""
    if kind == "mlp":
        layers = nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()
        return nn.Sequential(*layers, nn.Linear(256, 10))
    if kind == "transformer":
        return nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True).eval()
    if kind == "cnn":
        first = nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        second = nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(32 * 49, 10))
    first = nn.Conv2d(3, 16, 3, padding=1), nn.ReLU()
    second = nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()
    third = nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
    return nn.Sequential(*first, *second, *third, nn.Flatten(), nn.Linear(32, 10))


def step_of(kind: str) -> Callable[[Tensor, Tensor], Any]:
    """Make a training step, or a forward pass."""
    model = model_of(kind)
    optimizer = nn.optim.SGD(model.parameters(), lr=0.001)

    def train(x: Tensor, y: Tensor) -> float:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    def infer(x: Tensor, y: Tensor) -> Any:
        with picograd.no_grad():
            return model(x).numpy()

    return train if kind in ("mlp", "cnn") else infer


def data_of(kind: str, size: int) -> tuple[Tensor, Tensor]:
    """Draw an input of a size, and labels."""
    random = np.random.default_rng(size)
    shape = [size if each == "n" else each for each in SHAPES[kind]]
    x = random.standard_normal(shape).astype(np.float32)
    return Tensor(x), Tensor(random.integers(0, 10, shape[0]))


def timed(which: str, step: Callable[[Tensor, Tensor], Any], data: tuple[Tensor, Tensor]) -> float:
    """Run a step with shared plans or with its own."""
    realize.PLANS = CACHES[which]
    realize.bounded_plan = BOUNDED if which == "varying" else lambda *_: None
    start = time.thread_time()
    step(*data)
    return (time.thread_time() - start) * 1e3


def measure(kind: str) -> None:
    """Print the rows of one model."""
    steps = {which: step_of(kind) for which in CACHES}
    for less in (0, 2, 3, 4, 5, 6):
        timed("varying", steps["varying"], data_of(kind, SIZES[kind][-1] + 1 - less))
    rows: dict[tuple[str, int], list[float]] = {}
    data = {size: data_of(kind, size) for size in SIZES[kind]}
    for number in range(ROUNDS + 3):
        for size in data:
            for which, step in steps.items():
                took = timed(which, step, data[size])
                if number >= 3:
                    rows.setdefault((which, size), []).append(took)
    for size in data:
        fixed, varying = (statistics.median(rows[which, size]) for which in CACHES)
        print(f"| {kind} | {size} | {fixed:.2f} | {varying:.2f} | {varying / fixed:.2f} |")


if __name__ == "__main__":
    sizes.PATIENCE = sizes.KERNEL_PATIENCE = sizes.ROW_PATIENCE = 1 << 30
    gc.disable()
    for each in SIZES:
        measure(each)

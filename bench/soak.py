"""Long runs in flat memory: training steps and additions, with and without jit.

    python bench/soak.py [--steps 100000] [--additions 1000000] [--only adam]

Every case is a process of its own on one thread. At 1, 10, 50 and 100 % of its steps it prints
resident memory, how many nodes, tensors and buffers are alive, the entries and bytes of the caches
of plans and loaded code, the traces of the jitted function, and the CPU time of a step: the lower
quartile of 20 stretches that end there. Exits with 1 when, from 10 % to 100 %, a case

    memory   takes more than 8 MiB more resident memory
    objects  keeps more than 100 more nodes, tensors or buffers alive
    caches   has more plans, kernels or traces than it had
    time     takes more than 1.2 times as long a step

The learning rate changes at every step of `schedule`, the batch at every step of all.
"""

import argparse
import functools
import gc
import subprocess
import sys
import time

import numpy as np

import picograd
from picograd import Tensor, nn
from picograd.buffer import Buffer
from picograd.engine.plan_cache import PLANS
from picograd.graph.node import Node

POINTS = (0.01, 0.1, 0.5, 1.0)
STRETCHES = 20
MOST_MIB, MOST_OBJECTS, MOST_SLOWDOWN = 8.0, 100, 1.2
BATCH, WIDTH, CLASSES, ROWS = 16, 16, 4, 4096
WATCHED = (Node, Tensor, Buffer)


class Data:
    """This class draws other rows of a small classification task at every step."""

    def __init__(self):
        self.generator = np.random.default_rng(0)
        self.x = self.generator.standard_normal((ROWS, WIDTH)).astype(np.float32)
        self.y = self.x[:, :CLASSES].argmax(1)

    def batch(self):
        rows = self.generator.integers(0, ROWS, BATCH)
        return Tensor(self.x[rows]), Tensor(self.y[rows])


def network():
    return nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, CLASSES))


def jit_if(is_jitted, function):
    return picograd.jit(function) if is_jitted else function


def trained(is_jitted, make, after=None):
    """Make training steps: `make(model)` gives how to clear gradients and how to use them.

    `after` runs when a step is done, outside the jitted function.
    """
    data, model = Data(), network()
    clear, change = make(model)

    def update(x, y):
        clear()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        change()
        return loss

    run = jit_if(is_jitted, update)

    def step(number):
        loss = run(*data.batch())
        if after is not None:
            after()
        if number % 10 == 0:
            assert np.isfinite(loss.item())

    return step, run


def adam(is_jitted):
    """Training steps with Adam."""

    def make(model):
        optimizer = nn.optim.Adam(model.parameters(), lr=1e-3)
        return optimizer.zero_grad, optimizer.step

    return trained(is_jitted, make)


def schedule(is_jitted):
    """Training steps with Adam and another learning rate at every step."""
    schedulers = []

    def make(model):
        optimizer = nn.optim.Adam(model.parameters(), lr=1e-3)
        wave = nn.optim.lr_scheduler.LambdaLR(optimizer, lambda t: 1 / (1 + t * 1e-4))
        schedulers.append(wave)
        return optimizer.zero_grad, optimizer.step

    return trained(is_jitted, make, lambda: schedulers[0].step())


def by_hand(is_jitted):
    """Training steps of p -= lr * p.grad."""

    def make(model):
        parameters = list(model.parameters())

        def clear():
            for p in parameters:
                p.grad = None

        def change():
            with picograd.no_grad():
                for p in parameters:
                    p -= 0.01 * p.grad

        return clear, change

    return trained(is_jitted, make)


def average(is_jitted):
    """Training steps with an exponential average of the weights."""

    def make(model):
        slow = network()
        optimizer = nn.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

        def change():
            optimizer.step()
            with picograd.no_grad():
                for p, q in zip(slow.parameters(), model.parameters(), strict=True):
                    p.mul_(0.99).add_(q, alpha=0.01)

        return optimizer.zero_grad, change

    return trained(is_jitted, make)


def inference(is_jitted):
    """The network without gradients."""
    data, model = Data(), network()

    def forward(x):
        with picograd.no_grad():
            return model(x).softmax(1)

    run = jit_if(is_jitted, forward)

    def step(number):
        found = run(data.batch()[0])
        if number % 10 == 0:
            assert abs(found.sum().item() - BATCH) < 1e-3

    return step, run


def additions(is_jitted):
    """One number more at a time; its value is looked at now and then."""
    total = [Tensor(np.zeros(4, np.float64))]
    run = jit_if(is_jitted, lambda x: x + 1)

    def step(number):
        total[0] = run(total[0])
        if number % 50_000 == 0:
            assert total[0].tolist() == [number + 1.0] * 4

    return step, run


def additions_in_place():
    """The same with `+=`."""
    total = Tensor(np.zeros(4, np.float64))

    def step(number):
        nonlocal total
        total += 1
        if number % 50_000 == 0:
            assert total.tolist() == [number + 1.0] * 4

    return step, None


CASES = {
    "adam": adam,
    "schedule": schedule,
    "by hand": by_hand,
    "average": average,
    "inference": inference,
    "additions": additions,
}
MAKERS = {
    name + ending: functools.partial(make, is_jitted)
    for name, make in CASES.items()
    for ending, is_jitted in (("", False), (" jit", True))
} | {"additions in place": additions_in_place}


def resident():
    """Resident memory of this process, MiB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / (1 << 20)


def look(run):
    """Count what may grow."""
    gc.collect()
    kinds = [type(each) for each in gc.get_objects()]
    stats = PLANS.stats()
    return {
        "MiB": resident(),
        **{kind.__name__: kinds.count(kind) for kind in WATCHED},
        "plans": stats.plans,
        "kernels": stats.kernels,
        "cache MiB": stats.bytes / (1 << 20),
        "traces": getattr(run, "traces", 0),
    }


def soak(name, count):
    """Run one case, printing a row a point; tells what grew."""
    picograd.config.threads = 1
    picograd.manual_seed(0)
    step, run = MAKERS[name]()
    ends = {max(int(count * part), STRETCHES): part for part in POINTS}
    stretch = max(min(ends) // STRETCHES // 2, 1)
    starts = {end - stretch * (STRETCHES - k): end for end in ends for k in range(STRETCHES)}
    rows, times, begun = {}, [], None
    for number in range(count + 1):
        if number in starts or number in ends:
            now = time.process_time()
            if begun is not None:
                times.append((now - begun) / stretch)
            begun = now
        if number in ends:
            row = look(run)
            row["us"] = sorted(times)[len(times) // 4] * 1e6
            rows[ends[number]], times, begun = row, [], None
            print_row(name, ends[number], row)
        if number < count:
            step(number)
    return grown(rows[0.1], rows[1.0])


def print_row(name, part, row):
    cells = [f"{key} {value:.1f}" if isinstance(value, float) else f"{key} {value}"
             for key, value in row.items()]  # fmt: skip
    print(f"{name:18} {part:5.0%}  {'  '.join(cells)}", flush=True)


def grown(early, late):
    """Name what grew from the one point to the other."""
    found = []
    if late["MiB"] - early["MiB"] > MOST_MIB:
        found.append(f"memory {early['MiB']:.1f} -> {late['MiB']:.1f} MiB")
    for kind in WATCHED:
        name = kind.__name__
        if late[name] - early[name] > MOST_OBJECTS:
            found.append(f"{name} {early[name]} -> {late[name]}")
    for name in ("plans", "kernels", "traces"):
        if late[name] > early[name]:
            found.append(f"{name} {early[name]} -> {late[name]}")
    if late["us"] > MOST_SLOWDOWN * early["us"]:
        found.append(f"time {early['us']:.1f} -> {late['us']:.1f} us")
    return found


def main():
    """Run every case in a process of its own; a case alone in this one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--additions", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="part of the names of the cases")
    parser.add_argument("--case", default="", help="run exactly this one here")
    options = parser.parse_args()
    if options.case:
        is_addition = options.case.startswith("additions")
        found = soak(options.case, options.additions if is_addition else options.steps)
        print(f"{options.case:18} {'; '.join(found) if found else 'flat'}", flush=True)
        sys.exit(1 if found else 0)
    counts = ["--steps", str(options.steps), "--additions", str(options.additions)]
    names = [name for name in MAKERS if options.only in name]
    failed = [
        name
        for name in names
        if subprocess.run([sys.executable, __file__, "--case", name, *counts]).returncode
    ]
    print(f"grew: {', '.join(failed)}" if failed else f"all {len(names)} cases are flat")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""A number that changes at every step beside one that does not: plans, kernels, time, memory.

python bench/number_arguments.py [--values 1000]

A row is a program of one number. `plans` and `kernels` count what values after the first made; the
ratio is the median step with a new value each time over the median step with one value, in turns.
"""

import argparse
import resource
import statistics
import time

import numpy as np

import picograd
from picograd import nn
from picograd.engine.compile import LOADED
from picograd.engine.realize import PLANS

RANDOM = np.random.default_rng(0)
X = picograd.tensor(RANDOM.standard_normal((64, 64)).astype(np.float32))
ROWS = picograd.tensor(RANDOM.standard_normal((2000, 64)).astype(np.float32))
MODEL = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64))
OPTIMIZER = nn.optim.Adam(MODEL.parameters(), lr=0.01)


def learning_rate(value):
    OPTIMIZER.param_groups[0]["lr"] = value
    return warm_up(1.0)


def warm_up(value):
    OPTIMIZER.zero_grad()
    found = MODEL(X)
    loss = (found - X).square().mean() + value * found.abs().mean()
    loss.backward()
    OPTIMIZER.step()
    return loss


def seed(value):
    picograd.manual_seed(int(value * 1e6))
    return picograd.randn(64, 64)


def position(value):
    return ROWS[int(value * 1900)] * 2


def written(value):
    ROWS[int(value * 1900)] = X[0]
    return ROWS[0]


@picograd.jit
def jitted_step(beta, rate):
    OPTIMIZER.zero_grad()
    found = MODEL(X)
    loss = (found - X).square().mean() + beta * found.abs().mean()
    (loss * rate).backward()
    OPTIMIZER.step()
    return loss


@picograd.jit
def jitted_rows(rows, number, factor):
    return rows[number] * factor + rows[number + 1 : number + 3].sum(0)


PROGRAMS = {
    "jit: step, two weights of losses": lambda v: jitted_step(v, 1 - v / 2),
    "jit: position and factor": lambda v: jitted_rows(ROWS, int(v * 1900), int(v * 100)),
    "x * v": lambda v: X * v,
    "clamp(-v, v)": lambda v: X.clamp(-v, v),
    "dropout(p)": lambda v: nn.functional.dropout(X, v),
    "leaky_relu(v)": lambda v: nn.functional.leaky_relu(X, v),
    "layer_norm(eps)": lambda v: nn.functional.layer_norm(X, (64,), eps=v),
    "training step, loss + v * other": warm_up,
    "training step, lr": learning_rate,
    "manual_seed(v), randn": seed,
    "rows[i] * 2": position,
    "rows[i] = row": written,
}


def run(program, value):
    start = time.perf_counter()
    program(value).numpy()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--values", type=int, default=1000)
    count = parser.parse_args().values
    values = np.random.default_rng(1).uniform(0.01, 0.9, count).tolist()
    print(f"{'program':34} plans kernels  ratio  step us  MB more")
    for name, program in PROGRAMS.items():
        for value in (*values[:2], values[0]):  # an optimizer's state is there from the second on
            run(program, value)
        plans, kernels = set(PLANS), set(LOADED)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        pairs = [(run(program, value), run(program, values[0])) for value in values]
        changing, fixed = (statistics.median(each) for each in zip(*pairs))
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        counts = len(set(PLANS) - plans), len(set(LOADED) - kernels)
        print(f"{name:34} {counts[0]:5} {counts[1]:7}  {changing / fixed:5.2f}"
              f"  {changing * 1e6:7.0f}  {more:7.1f}")  # fmt: skip
    print(f"traces: {jitted_step.count} of the step, {jitted_rows.count} of the rows")


if __name__ == "__main__":
    main()

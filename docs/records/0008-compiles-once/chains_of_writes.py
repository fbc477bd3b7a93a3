"""How long writes that read one another take: N of them, eager and jitted, the values PyTorch's.

    python docs/records/0008-compiles-once/chains_of_writes.py 25 100 400

Seconds of the first call, kernels compiled, and of the second.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import picograd

RANDOM = np.random.default_rng(0)
DATA = RANDOM.random((1200, 40)).astype(np.float32)
WORDS = RANDOM.integers(0, 3, 200)


def prefix_sums(lib: Any, count: int) -> Any:
    """Add each element to the sum before it."""
    x, y = lib.tensor(DATA.reshape(-1)[:count]), lib.zeros(count)
    y[0] = x[0]
    for n in range(1, count):
        y[n] = y[n - 1] + x[n]
    return y


def prefix_gradients(lib: Any, count: int) -> Any:
    """Decay sums, and differentiate them."""
    x, y = lib.tensor(DATA.reshape(-1)[:count], requires_grad=True), lib.zeros(count)
    y[0] = x[0]
    for n in range(1, count):
        y[n] = y[n - 1] * 0.9 + x[n]
    (y * y).sum().backward()
    return x.grad


def edit_distance(lib: Any, count: int) -> Any:
    """Fill the table of Levenshtein's distance."""
    size = int(count**0.5)
    a, b = lib.tensor(WORDS[:size]), lib.tensor(WORDS[size : 2 * size])
    d = lib.zeros(size + 1, size + 1, dtype=lib.int64)
    d[0], d[:, 0] = lib.arange(size + 1), lib.arange(size + 1)
    for n in range(1, size + 1):
        for k in range(1, size + 1):
            least = lib.minimum(d[n - 1, k] + 1, d[n, k - 1] + 1)
            d[n, k] = lib.minimum(least, d[n - 1, k - 1] + (a[n - 1] != b[k - 1]))
    return d


def viterbi(lib: Any, count: int) -> Any:
    """Find the best score of each state, step by step."""
    steps, emitted = lib.tensor(DATA[:4, :4]), lib.tensor(DATA[:count, 4:8])
    score = lib.zeros(count, 4)
    score[0] = emitted[0]
    for n in range(1, count):
        score[n] = (score[n - 1].unsqueeze(1) + steps).max(0).values + emitted[n]
    return score


def automaton(lib: Any, count: int) -> Any:
    """Run rule 30."""
    grid = lib.zeros(count + 1, 32, dtype=lib.int64)
    grid[0, 16] = 1
    for n in range(1, count + 1):
        row = grid[n - 1]
        grid[n] = lib.roll(row, 1, 0) ^ (row | lib.roll(row, -1, 0))
    return grid


def elimination(lib: Any, count: int) -> Any:
    """Eliminate by operations on rows."""
    size = int(count**0.5)
    a = lib.tensor(DATA[:size, :size] + 4 * np.eye(size, dtype=np.float32))
    for k in range(size):
        a[k] = a[k] / a[k, k]
        for n in range(size):
            if n != k:
                a[n] -= a[n, k] * a[k].clone()
    return a


def heat(lib: Any, count: int) -> Any:
    """Average the inner cells of a grid."""
    x = lib.tensor(DATA[:16, :16]).clone()
    for _ in range(count):
        around = x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]
        x[1:-1, 1:-1] = x[1:-1, 1:-1] * 0.6 + 0.1 * around
    return x


def returns(lib: Any, count: int) -> Any:
    """Discount rewards, the last first."""
    rewards, found, run = lib.tensor(DATA.reshape(-1)[:count]), lib.zeros(count), 0.0
    for n in reversed(range(count)):
        run = rewards[n] + 0.99 * run
        found[n] = run
    return found


PROGRAMS = (
    prefix_sums, prefix_gradients, edit_distance, viterbi, automaton, elimination, heat, returns,
)  # fmt: skip


def seconds(call: Callable[[], Any], wanted: Any) -> float:
    """Time a call, and compare its value."""
    start = time.perf_counter()
    found = call().detach().numpy()
    taken = time.perf_counter() - start
    np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)
    return taken


def main() -> None:
    """Print a row for each program and number of writes."""
    print("| writes | N | eager, first | again | jit, first | again |\n|---|---|---|---|---|---|")
    for program in PROGRAMS:
        for count in map(int, sys.argv[1:] or ["25", "100"]):
            wanted = program(torch, count).detach().numpy()

            def eager(program: Any = program, count: int = count) -> Any:
                return program(picograd, count)

            calls = (eager, picograd.jit(eager))
            taken = [seconds(call, wanted) for call in calls for _ in range(2)]
            times = " | ".join(f"{each:.2f}" for each in taken)
            print(f"| {program.__name__} | {count} | {times} |", flush=True)


if __name__ == "__main__":
    main()

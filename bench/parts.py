"""Writes of a part: time a write, and elements stored, by the rows of the base, beside PyTorch.

Eager: the write and `realize()`; jitted: a call of a function that writes its argument. Rounds of
all sizes alternate, and the best round counts. One thread; processor time, as others may run too.

    python bench/parts.py [--columns 64] [--rounds 9] [--calls 60]
"""

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("PICOGRAD_THREADS", "1")

import torch

import picograd
from picograd.engine import realize
from picograd.schedule.plan import CopyStep, Plan

ROWS = (256, 2048, 65536)
Write = Callable[[Any, dict[str, Any]], Any]


def several(x: Any, v: dict[str, Any]) -> None:
    for n in range(8):
        x[n] = v["row"]


def row(x: Any, v: dict[str, Any]) -> None:
    x[3] = v["row"]


def at_tensor(x: Any, v: dict[str, Any]) -> None:
    x[v["at"]] = v["row"]


def rows_at(x: Any, v: dict[str, Any]) -> None:
    x[v["two"]] = v["rows"]


WRITES: dict[str, Write] = {
    "x[3] = row": row,
    "x[pos_tensor] = row": at_tensor,
    "x[:2].copy_(rows)": lambda x, v: x[:2].copy_(v["rows"]),
    "x[1:3].add_(1)": lambda x, v: x[1:3].add_(1),
    "x[two] = rows": rows_at,
    "index_copy_": lambda x, v: x.index_copy_(0, v["two"], v["rows"]),
    "index_add_": lambda x, v: x.index_add_(0, v["two"], v["rows"]),
    "scatter_": lambda x, v: x.scatter_(0, v["wide"], v["rows"]),
    "fill_diagonal_": lambda x, v: x.fill_diagonal_(1.0),
    "x.view(-1)[5:9] = 2": lambda x, v: x.view(-1)[5:9].fill_(2),
    "8 rows": several,
}


def values(library: Any, columns: int) -> dict[str, Any]:
    two = library.tensor([7, 3])
    return {
        "row": library.ones(columns), "rows": library.ones(2, columns), "two": two,
        "at": library.tensor(5), "wide": two.reshape(2, 1).expand(2, columns) + 0,
    }  # fmt: skip


def stored(plan: Plan) -> int:
    """Elements that a plan stores, copies included."""
    total = sum(plan.slots[s.target].size for s in plan.steps if isinstance(s, CopyStep))
    for part in (part for kernel in plan.kernels for part in kernel.parts):
        spaces = [c.axes for c in part.computes if c.store]
        if part.scatter:
            spaces.append((*part.scatter.serial, *part.scatter.inner))
        for space in spaces:
            count = 1
            for axis in space:
                count *= axis.size
            total += count
    return total


def candidates(write: Write, rows: int, columns: int) -> dict[str, Callable[[], Any]]:
    """What is timed for one size: calls that have run twice."""
    ours, theirs = values(picograd, columns), values(torch, columns)
    x, y = picograd.zeros(rows, columns), picograd.zeros(rows, columns)
    z = torch.zeros(rows, columns)
    picograd.Tensor.realize(x, y, *ours.values())
    realize.PLANS.clear()

    def eager() -> None:
        write(x, ours)
        x.realize()

    jitted = picograd.jit(lambda base, given: (write(base, given), None)[1])
    found = {"eager": eager, "jit": lambda: jitted(y, ours), "torch": lambda: write(z, theirs)}
    for call in (*found.values(), *found.values()):
        call()
    return found


def timed(call: Callable[[], Any], calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        call()
    return (time.process_time() - start) / calls * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=60)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"| write | us at {', '.join(map(str, ROWS))} rows: eager | jit | PyTorch | stored |")
    print("|---|---|---|---|---|")
    for name, write in WRITES.items():
        sizes, counts = [], []
        for rows in ROWS:
            sizes.append(candidates(write, rows, options.columns))
            counts.append(max(stored(realize.PLANS[key].plan) for key in realize.PLANS))
        best: dict[tuple[str, int], float] = {}
        for _ in range(options.rounds):
            for number, found in enumerate(sizes):
                for kind, call in found.items():
                    took = timed(call, options.calls)
                    best[kind, number] = min(best.get((kind, number), took), took)
        cells = [
            " / ".join(f"{best[kind, n]:.0f}" for n in range(len(ROWS)))
            for kind in ("eager", "jit", "torch")
        ]
        print(f"| `{name}` | {' | '.join(cells)} | {' / '.join(map(str, counts))} |", flush=True)


if __name__ == "__main__":
    main()

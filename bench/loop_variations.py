"""Plain training loops in the ways people write them, beside PyTorch's: speed, plans, memory.

python bench/loop_variations.py [--only evaluation] [--room by_hand] [--steps 40] [--long 0]

Both libraries step in turn in one process, on one thread; times are the processor time of the
thread, the lower quartile of the steps. Each row says the ratio of speeds, the mean of our steps
but the first, how many plans were made after the warm steps, and by how much memory grew in the
meantime: bytes of values, and objects.
`--long` takes as many steps more and looks for growth there. Numbers that differ end the program.
"""

import argparse
import gc
import math
import statistics
import sys
import time
import warnings

import torch
import training_loops
import training_loops_by_hand
import training_loops_deeper
import training_loops_of_sizes
import training_loops_wider
from timing import machine, refuse_pinned_blas

import picograd
from picograd.engine.backends import get_device
from picograd.engine.realize import PLANS

LOOPS = (
    *training_loops.LOOPS,
    *training_loops_wider.LOOPS,
    *training_loops_deeper.LOOPS,
    *training_loops_by_hand.LOOPS,
    *training_loops_of_sizes.LOOPS,
)
WARM = 12
COMPARED, TOLERANCE = 3, 2e-3


def timed(step):
    start = time.thread_time()
    value = step()
    return value, (time.thread_time() - start) * 1e6


def in_use():
    """Count bytes of values, and objects."""
    gc.collect()
    return get_device("cpu").memory_stats()["in_use"], len(gc.get_objects())


def measure(loop, steps, long):
    """Step both libraries in turn, print one row, and return the ratio of their speeds."""
    mine, others = loop(training_loops.Work(picograd)), loop(training_loops.Work(torch))
    ours, theirs, apart = [], [], 0.0
    known, before = set(), (0, 0)
    for number in range(WARM + steps):
        if number == WARM:
            known, before = set(PLANS), in_use()
        found, taken = timed(mine)
        ours.append(taken)
        wanted, taken = timed(others)
        theirs.append(taken)
        if number < COMPARED:
            apart = max(apart, abs(found - wanted) / max(abs(wanted), 1e-2))
    for _ in range(long):
        mine()
    bytes_more, objects_more = (b - a for a, b in zip(before, in_use(), strict=True))
    quick, other = (statistics.quantiles(each[WARM:], n=4)[0] for each in (ours, theirs))
    print(
        f"{loop.__name__:28} {quick:8.0f} us  PyTorch {other:8.0f} us  ratio {other / quick:5.2f}"
        f"  mean {statistics.fmean(ours[1:]):.0f}  apart {apart:7.1e}"
        f"  new plans {len(set(PLANS) - known)}  grown {bytes_more} B, {objects_more} objects",
        flush=True,
    )
    if apart > TOLERANCE:
        sys.exit("the numbers differ")
    return other / quick


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--room", default="", help="training_loops_ROOM.py alone")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--long", type=int, default=0)
    options = parser.parse_args()
    refuse_pinned_blas()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    picograd.config.threads = 1
    print(machine())
    only = options.only.split(",") if options.only else []
    room = f"training_loops_{options.room}"
    chosen = [each for each in LOOPS if not only or each.__name__ in only]
    chosen = [each for each in chosen if not options.room or each.__module__ == room]
    ratios = [measure(loop, options.steps, options.long) for loop in chosen]
    middle = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
    least = min(zip(ratios, chosen, strict=True), key=lambda pair: pair[0])
    few = sum(ratio < 0.6 for ratio in ratios)
    name = least[1].__name__
    print(f"geometric mean {middle:.2f}, slowest {least[0]:.2f} ({name}), {few} under 0.6")


if __name__ == "__main__":
    main()

"""Programs of a page, as people type them, by this library and by PyTorch eager on the CPU.

Each is one function of the library and a generator of NumPy's, which both have from one seed; it
gives a function that takes a step and returns a number. Steps are taken in turns in one process;
the time of the process is measured over steps after `--warm`, and that of the first ten.

    python bench/everyday.py --steps 30 --warm 25 [--only kmeans char_rnn] [--growing]

With `--growing`: those of which a size grows each step.
"""

import argparse
import gc
import statistics
import time

import numpy as np
from everyday_growing import GROWING
from everyday_learning import LEARNING
from everyday_numbers import NUMBERS
from everyday_wider import WIDER

PROGRAMS = {**NUMBERS, **LEARNING, **WIDER}
FIRST = 10


def libraries():
    import torch

    import picograd

    torch.set_num_threads(1)
    return picograd, torch


def timed(step):
    begin = time.process_time()
    value = step()
    return value, time.process_time() - begin


def close(ours, theirs):
    """This function tells whether two numbers are one, up to the rounding of some steps."""
    return abs(ours - theirs) <= 2e-3 * max(1.0, abs(ours), abs(theirs))


def measured(program, warm, steps):
    """This function gives the seconds of steps, and of the first ten, for both libraries."""
    taken, firsts = ([], []), []
    made = []
    for library in libraries():
        begin = time.process_time()
        made.append(program(library, np.random.default_rng(0)))
        firsts.append(time.process_time() - begin)
    differs = None
    for number in range(FIRST + warm + steps):
        values = []
        for which, step in enumerate(made):
            value, seconds = timed(step)
            values.append(value)
            if number < FIRST:
                firsts[which] += seconds
            elif number >= FIRST + warm:
                taken[which].append(seconds)
        if differs is None and not close(*values):
            differs = (number, *values)
    return taken, firsts, differs


def show(name, taken, firsts, differs):
    ours, theirs = (1e6 * min(times) for times in taken)
    middle, their_middle = (1e6 * statistics.median(times) for times in taken)
    note = f"  differs at {differs[0]}: {differs[1]:.6g} {differs[2]:.6g}" if differs else ""
    least = f"{ours:9.0f} {theirs:9.0f} {theirs / ours:6.2f}"
    median = f"{middle:9.0f} {their_middle:9.0f} {their_middle / middle:6.2f}"
    first = f"first ten {firsts[0] * 1e3:7.0f} {firsts[1] * 1e3:7.1f} ms"
    print(f"{name:22} {least}   {median}   {first}{note}", flush=True)
    return theirs / ours


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--warm", type=int, default=25)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--growing", action="store_true")
    given = parser.parse_args()
    programs = GROWING if given.growing else PROGRAMS
    ratios = []
    for name in given.only or programs:
        gc.collect()
        ratios.append(show(name, *measured(programs[name], given.warm, given.steps)))
    print(f"geometric mean {statistics.geometric_mean(ratios):.3f} of {len(ratios)}")


if __name__ == "__main__":
    main()

"""A survey of the CPU: some 130 calls of two sizes, forward and with gradients, worst first.

    python bench/cpu_survey.py [--only "fft|sort"] [--seconds 0.06] [--warm 330] [--worst 60]

A row is a call at a size: microseconds of ours and of PyTorch's, medians of turns of one thread's
own clock in one process, and PyTorch's time over ours: above 1 we are faster. Results are realised
inside. Calls of less than a millisecond run `--warm` times first, as short ones find their way by
then, and wait for what is compiled again. With "grad": the call and the gradients of a random
cotangent.
"""

import argparse
import os
import re
import statistics
import time

os.environ.setdefault("PICOGRAD_THREADS", "1")

import numpy as np
import torch
from cpu_survey_calls import calls
from cpu_survey_wider import calls as wider_calls
from timing import machine, refuse_pinned_blas

import picograd

TURNS = 7
PATIENCE = 0.4  # seconds of the wall: kernels that ran often are compiled again meanwhile


def realised(result):
    """Compute all that a call gave, at once: PyTorch's has done so."""
    first, *others = result if isinstance(result, (tuple, list)) else (result,)
    if isinstance(first, picograd.Tensor):
        first.realize(*others)


def made(library, arrays):
    """Make tensors of arrays, or of what makes them."""
    return [each(library) if callable(each) else library.tensor(each) for each in arrays]


def runs_of(library, function, arrays, has_gradient):
    """Give the call of a library, over arrays of its own."""
    given = made(library, arrays)
    if not has_gradient:
        return lambda: realised(function(library, *given))
    leaves = [x for x in given if x.is_floating_point()]
    for leaf in leaves:
        leaf.requires_grad_()
    if hasattr(function, "parameters"):
        leaves += function.parameters(library)
    first = function(library, *given)
    draw = np.random.default_rng(1).standard_normal(tuple(first.shape))
    cotangent = library.tensor(draw.astype("f"))

    def run():
        result = function(library, *given)
        realised(list(library.autograd.grad(result, leaves, cotangent)))

    return run


def clocked(run, times):
    """Microseconds of this thread for a run."""
    start = time.thread_time()
    for _ in range(times):
        run()
    return (time.thread_time() - start) / times * 1e6


def measured(runs, seconds, warm):
    """Medians of turns of each run, in microseconds."""
    counts = []
    for run in runs:
        run()
        once = min(clocked(run, 1) for _ in range(3))
        for _ in range(min(warm, max(12, int(4e5 / once)))):
            run()
        time.sleep(PATIENCE)
        once = min(clocked(run, 1) for _ in range(12))
        counts.append(max(1, int(seconds * 1e6 / TURNS / once)))
    found = [[clocked(*each) for each in zip(runs, counts)] for _ in range(TURNS)]
    return [statistics.median(times) for times in zip(*found)]


def differs(function, arrays):
    """Tell whether our results are farther from float64's than PyTorch's may be."""
    with torch.no_grad():
        theirs = function(torch, *(widened(x) for x in made(torch, arrays)))
    ours = function(picograd, *made(picograd, arrays))
    pairs = zip(ours, theirs) if isinstance(theirs, (tuple, list)) else [(ours, theirs)]
    for mine, other in pairs:
        near = 3e-2 if mine.dtype in (picograd.float16, picograd.bfloat16) else 2e-3
        a, b = np.asarray(mine.detach().numpy()), other.detach().numpy()
        if a.shape != b.shape or not np.allclose(a, b, near, near, equal_nan=True):
            return True
    return False


def widened(x):
    """Give floats as float64."""
    return x.double() if x.is_floating_point() and len(x.shape) else x


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", default=".", help="a pattern of names")
    parser.add_argument("--seconds", type=float, default=0.06)
    parser.add_argument("--warm", type=int, default=330)
    parser.add_argument("--worst", type=int, default=1000)
    parser.add_argument("--wider", action="store_true", help="the calls of cpu_survey_wider.py")
    options = parser.parse_args()
    refuse_pinned_blas()
    torch.set_num_threads(1)
    print(machine())
    found = []
    for name, function, arrays, has_gradient in wider_calls() if options.wider else calls():
        if not re.search(options.only, name):
            continue
        for graded in (False, True)[: 1 + has_gradient]:
            label = name + " grad" * graded
            try:
                label += " (differs)" * (not graded and differs(function, arrays))
                runs = [runs_of(each, function, arrays, graded) for each in (picograd, torch)]
                mine, other = measured(runs, options.seconds, options.warm)
            except Exception as error:
                print(f"{label}: {type(error).__name__} {str(error)[:100]}")
                continue
            found.append((other / mine, mine, other, label))
            print(f"{label:44}{mine:11.1f}{other:11.1f}{other / mine:8.2f}", flush=True)
    found.sort()
    print(f"\n{'worst first':44}{'ours us':>11}{'torch us':>11}{'ratio':>8}")
    for ratio, mine, other, label in found[: options.worst]:
        print(f"{label:44}{mine:11.1f}{other:11.1f}{ratio:8.2f}")
    for bar in (0.5, 0.6):
        print(f"{sum(ratio < bar for ratio, *_ in found)} of {len(found)} rows are below {bar}")


if __name__ == "__main__":
    main()

"""The host's time of plain steps and small calls, to compare two trees.

PYTHONPATH=<tree> python bench/host_time.py [--only adam] [--rounds 60]

Processor time of this thread, one thread: the tenth percentile, in microseconds, since another
program on the same core makes a step up to twice as long. Run the trees in turns, several times.
"""

import argparse
import statistics
import time

import numpy as np
import plain_steps
from plain_models import NETWORKS, Training

import picograd

CALLS = 20  # of a small function, timed together


def small_calls():
    """Name functions of a few microseconds."""
    a = picograd.tensor(np.ones((2, 2), np.float32))
    line = picograd.tensor(np.ones(1000, np.float32))
    jitted = picograd.jit(lambda a, b: a + b)
    weight = picograd.tensor(np.ones((2, 2), np.float32), requires_grad=True)

    def backward():
        weight.grad = None
        (a @ weight).sum().backward()
        weight.grad.realize()

    return {
        "a + b": lambda: (a + a).realize(),
        "a @ b": lambda: (a @ a).realize(),
        "product, sum, backward": backward,
        "jit a + b": lambda: jitted(a, a),
        "cumsum of 1,000": lambda: line.cumsum(0).realize(),
    }


def stepping(case):
    """Make a step of `plain_steps` that reads its loss."""
    step = case(picograd, "cpu")
    return lambda: step().item()


def cases():
    """List what is measured: name, how to make the function, how often it is called at a time."""
    found = [(case.__name__, lambda case=case: stepping(case), 1) for case in plain_steps.CASES]
    for name in ("GPT", "LSTM"):
        made = lambda name=name: Training(picograd, NETWORKS[name], "cpu").step  # noqa: E731
        found.append((name, made, 1))
    for name, call in small_calls().items():
        found.append((name, lambda call=call: call, CALLS))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    picograd.config.threads = 1
    for name, make, count in cases():
        if options.only not in name:
            continue
        function, times = make(), []
        for _ in range(options.rounds + 12):
            start = time.thread_time()
            for _ in range(count):
                function()
            times.append((time.thread_time() - start) / count * 1e6)
        print(f"{name:16} {statistics.quantiles(times[12:], n=10)[0]:9.1f} us", flush=True)


if __name__ == "__main__":
    main()

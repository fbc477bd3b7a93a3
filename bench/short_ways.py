"""What each short way past recording and walking is worth: loops and small calls without it.

python bench/short_ways.py [--rounds 3] [--loops 14]

A way is taken out by replacing the function that finds it, in a process of its own; processes take
turns. Printed: the processor time over that with all ways, for each loop of `training_loops.py`
(the lower quartile of 36 steps) and each small call (that of 15 times 200 calls), the least of all
rounds; of loops the geometric mean.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

WAYS = ("none", "native", "small", "repeated", "following")
WARM, STEPS = 24, 36


def take_out(way):
    """Replace the function that finds a short way by one that finds nothing."""
    import picograd
    from picograd.engine import native_calls, small
    from picograd.tensor.core import following, repeated

    def nothing(*given, **options):
        return None

    if way == "native":
        picograd.config.native = 0
    elif way == "small":
        small.small_graph, native_calls.CODED.compute = nothing, None
    elif way == "repeated":
        repeated.recording_of = nothing
    elif way == "following":
        following.begin = nothing


def quartile(times):
    return statistics.quantiles(times, n=4)[0] * 1e6


def timed(call, count=1):
    start = time.thread_time()
    for _ in range(count):
        call()
    return (time.thread_time() - start) / count


def small_calls():
    """Name small calls: operations over memory, a jitted one, a gradient."""
    import picograd

    a, b = (picograd.ones(2, 2).realize() for _ in range(2))
    jitted = picograd.jit(lambda x, y: (x * y + 1).sum())

    def gradient():
        x = picograd.tensor([1.0, 2.0], requires_grad=True)
        (x * x).sum().backward()
        x.grad.realize()

    return {
        "a + b": lambda: (a + b).realize(),
        "relu(a @ b)": lambda: (a @ b).relu().realize(),
        "sum((a + b) * a)": lambda: ((a + b) * a).sum().item(),
        "jitted": lambda: jitted(a, b).item(),
        "gradient": gradient,
    }


def measure(way, loops):
    """Time everything without a way, in this process: microseconds by name."""
    take_out(way)
    import training_loops

    import picograd

    found = {}
    for loop in training_loops.LOOPS[:loops]:
        step = loop(training_loops.Work(picograd))
        times = [timed(step) for _ in range(WARM + STEPS)]
        found[loop.__name__] = quartile(times[WARM:])
    for name, call in small_calls().items():
        timed(call, 200)
        found[name] = quartile([timed(call, 200) for _ in range(15)])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loops", type=int, default=14)
    parser.add_argument("--without", choices=WAYS)
    options = parser.parse_args()
    if options.without:
        print(json.dumps(measure(options.without, options.loops)))
        return
    least = {way: {} for way in WAYS}
    for _ in range(options.rounds):
        for way in WAYS:
            command = [sys.executable, __file__, "--without", way, "--loops", str(options.loops)]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            for name, taken in json.loads(text.splitlines()[-1]).items():
                least[way][name] = min(taken, least[way].get(name, math.inf))
    print(f"load {os.getloadavg()[0]:.1f}; with all ways, us:")
    print("  ".join(f"{name} {taken:.1f}" for name, taken in least["none"].items()))
    for way in WAYS[1:]:
        ratios = {name: least[way][name] / base for name, base in least["none"].items()}
        parts = [ratios[name] for name in list(ratios)[: -len(small_calls())]]
        print(f"without {way}: loops {statistics.geometric_mean(parts):.2f}")
        print("  " + "  ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()))


if __name__ == "__main__":
    main()

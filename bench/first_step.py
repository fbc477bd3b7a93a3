"""Seconds from the start of a process to the end of its first training step.

"cold": nothing cached on disk. "second": another process with the cache the first one left.
Each run is a whole process: interpreter, imports, recording, scheduling, compilation, one un-jitted
step with Adam. PyTorch eager is timed the same way where it is installed. `cpu` is the processor
time of the process and its children, which a machine under load changes least. Python's bytecode is
on disk, as after an installation: a process that is not counted writes it.

    python bench/first_step.py [--network cnn gpt mobilenet adam1000] [--rounds 3] [--parts]
    python bench/first_step.py --network cnn gpt2 resnet50 --device cuda
    python bench/first_step.py --network ssdlite ghostnet swin EfficientNet --rounds 1

`--parts` tells where one process spends its time; passes and emission of LLVM run on threads.
"""

import argparse
import functools
import importlib
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What is timed with --parts: label, module, function. Time inside another part is that one's.
PARTS = (
    ("gradient", "picograd.graph.gradient", "backward"),
    ("pending", "picograd.engine.pending", "realize_pending"),
    ("key", "picograd.engine.plan_key", "graph_key"),
    ("schedule", "picograd.schedule.schedule", "schedule"),
    ("canonical", "picograd.schedule.canonical", "canonical_key"),
    ("sizes", "picograd.engine.sizes", "bounded_plan"),
    ("template", "picograd.codegen.pipeline", "tile"),
    ("linearize", "picograd.codegen.pipeline", "linearize"),
    ("render", "picograd.codegen.pipeline", "render"),
    ("costs", "picograd.codegen.costs", "costs"),
    ("generator hash", "picograd.engine.cache", "version_of"),
    ("disk read", "picograd.engine.cache", "DiskCache.get"),
    ("disk write", "picograd.engine.cache", "DiskCache.put"),
    ("LLVM parse", "llvmlite.binding", "parse_assembly"),
    ("LLVM wait", "concurrent.futures", "Future.result"),
    ("LLVM prepare", "picograd.runtime.llvm", "Job.__init__"),
    ("load", "picograd.runtime.compiler", "Compiler.load"),
    ("run", "picograd.runtime.cpu", "CpuDevice.enter"),
)
BESIDE = (("LLVM", "run"),)  # methods of a `Job`


class Stopwatch:
    """Seconds by part; a part inside another interrupts it."""

    def __init__(self):
        self.times, self.calls, self.stack = Counter(), Counter(), ["rest"]
        self.last, self.others = time.thread_time(), []

    def beside(self, label, function):
        """Time what other threads run, each by its own clock."""

        @functools.wraps(function)
        def timed(*args):
            start = time.thread_time()
            function(*args)
            self.others.append((label, time.thread_time() - start))

        return timed

    def turn(self):
        now = time.thread_time()
        self.times[self.stack[-1]] += now - self.last
        self.last = now

    def wrap(self, label, function):
        @functools.wraps(function)
        def timed(*args, **kwargs):
            self.turn()
            self.calls[label] += 1
            self.stack.append(label)
            try:
                return function(*args, **kwargs)
            finally:
                self.turn()
                self.stack.pop()

        return timed


def watch(stopwatch):
    """Put the stopwatch around every part, wherever it was imported."""
    jobs = importlib.import_module("picograd.runtime.llvm").Job
    for label, name in BESIDE:
        setattr(jobs, name, stopwatch.beside(label, getattr(jobs, name)))
    for label, module, name in PARTS:
        home = sys.modules.get(module) or importlib.import_module(module)
        if "." in name:
            name, attribute = name.split(".")
            home = getattr(home, name)
            setattr(home, attribute, stopwatch.wrap(label, getattr(home, attribute)))
            continue
        function = getattr(home, name, None)
        if function is None:
            continue
        timed = stopwatch.wrap(label, function)
        for each in list(sys.modules.values()):
            if getattr(each, "__name__", "").startswith(("picograd", "llvmlite")):
                for key, value in list(vars(each).items()):
                    if value is function:
                        setattr(each, key, timed)
                    elif isinstance(value, tuple) and any(
                        isinstance(row, tuple) and function in row for row in value
                    ):
                        rows = [tuple(timed if x is function else x for x in row) for row in value]
                        setattr(each, key, tuple(rows))


def step(name, library_name, device, is_watched):
    """Take the first step, in a process made for it."""
    sys.path[:0] = [str(ROOT / "bench"), str(ROOT)]
    stopwatch = Stopwatch()
    stopwatch.stack = ["import"]
    library = importlib.import_module(library_name)
    rooms = library.optim if library_name == "torch" else library.nn.optim
    import first_networks
    import first_vision

    networks = {**first_networks.NETWORKS, **first_vision.NETWORKS}
    if device != "cpu":
        library.set_default_device(device)
    stopwatch.turn()
    stopwatch.stack = ["rest"]
    if is_watched:
        watch(stopwatch)
    parameters, loss = networks[name](library)
    optimizer = rooms.Adam(parameters, lr=1e-3)
    value = loss()
    value.backward()
    optimizer.step()
    value = value.item()
    if library_name == "picograd":
        library.synchronize()
        parameters[0].numpy()
    stopwatch.turn()
    if is_watched:
        total = sum(stopwatch.times.values())
        for label, seconds in stopwatch.times.most_common():
            print(f"{label:22} {seconds:8.3f} s {stopwatch.calls[label]:6}  {seconds / total:5.1%}")
        print(f"{'sum':22} {total:8.3f} s")
        for label, _ in BESIDE:
            found = [seconds for each, seconds in stopwatch.others if each == label]
            print(f"{label:22} {sum(found):8.3f} s {len(found):6}  beside it")
    print(value)


def seconds(arguments, cache):
    """Run one process and time it from outside: by the clock, and processor time."""
    environment = {**os.environ, "PICOGRAD_CACHE": cache}
    if cache != "0":  # NVRTC and the driver keep what they compile in a folder of their own
        environment["CUDA_CACHE_PATH"] = os.path.join(cache, "cuda")
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    command = [sys.executable, __file__, "--child", *arguments]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used


def measure(name, rounds, device):
    """Print the row of a network."""
    found = {"cold": [], "second": [], "torch": []}
    for library in ("picograd", "torch"):
        seconds([name, library, device], "0")
    for _ in range(rounds):
        cache = tempfile.mkdtemp()
        found["cold"].append(seconds([name, "picograd", device], cache))
        found["second"].append(seconds([name, "picograd", device], cache))
        found["torch"].append(seconds([name, "torch", device], cache))
        shutil.rmtree(cache)
    for kind, pairs in found.items():
        wall, used = ([pair[n] for pair in pairs] for n in (0, 1))
        spread = f"{min(wall):.2f}..{max(wall):.2f}, n={len(wall)}"
        middle = statistics.median
        processor = f"{middle(used):6.2f} s (from {min(used):.2f})"
        row = f"{middle(wall):7.2f} s ({spread})  cpu {processor}"
        print(f"{name:12} {kind:8} {row}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", nargs="*", default=["cnn", "gpt", "mobilenet", "adam1000"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        step(*options.child, options.parts)
        return
    for name in options.network:
        if options.parts:
            step(name, "picograd", options.device, True)
        else:
            measure(name, options.rounds, options.device)


if __name__ == "__main__":
    main()

"""Interleaved timing of rivals in one process: A B A B ..., medians, spread, and the ratio.

Every benchmark of picograd uses this, so that a drift of the machine's speed hits both sides.
"""

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable


def refuse_pinned_blas() -> None:
    """Stop when the environment slows a rival down: these variables halve NumPy's speed."""
    pinned = [name for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE") if name in os.environ]
    if pinned:
        sys.exit(f"unset {' '.join(pinned)} first: they slow NumPy down and flatter us")


def interleave(
    rivals: dict[str, Callable[[], object]],
    rounds: int = 25,
    warmup: int = 3,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Time every rival once a round, in turn; returns the seconds of each round."""
    for run in rivals.values():
        for _ in range(warmup):
            run()
    times: dict[str, list[float]] = {name: [] for name in rivals}
    for number in range(rounds):
        names = list(rivals) if number % 2 == 0 else list(reversed(rivals))
        for name in names:
            start = clock()
            rivals[name]()
            times[name].append(clock() - start)
    return times


def report(title: str, times: dict[str, list[float]], ours: str, work: float = 0.0) -> None:
    """Print one row a rival: median, minimum, quartiles, and our speed as a ratio to it.

    The ratio is the median over rounds of (rival's seconds / our seconds): above 1 we are faster.
    `work` in FLOP adds a GFLOP/s column.
    """
    print(f"\n{title}  (n={len(times[ours])} interleaved rounds, milliseconds)")
    for name, seconds in times.items():
        ordered = sorted(seconds)
        quarter = len(ordered) // 4
        ratio = statistics.median(b / a for a, b in zip(times[ours], seconds, strict=True))
        rate = f"  {work / statistics.median(seconds) / 1e9:8.1f} GFLOP/s" if work else ""
        print(
            f"  {name:28} median {statistics.median(seconds) * 1e3:9.3f}"
            f"  min {ordered[0] * 1e3:9.3f}"
            f"  quartiles {ordered[quarter] * 1e3:.3f}..{ordered[-quarter - 1] * 1e3:.3f}"
            f"{rate}  picograd is {ratio:.2f}x"
        )


def machine() -> str:
    """Describe the machine and the versions in one line."""
    versions = []
    for name in ("numpy", "torch", "llvmlite"):
        module = sys.modules.get(name)
        if module:
            versions.append(f"{name} {module.__version__}")
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in open("/proc/cpuinfo")  # noqa: SIM115
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    cores = len(os.sched_getaffinity(0))
    return f"{cpu}, {cores} cores, Python {platform.python_version()}, {', '.join(versions)}"

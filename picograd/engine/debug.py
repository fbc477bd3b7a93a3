"""What `DEBUG=1..4` prints, to the error stream. A level never changes generated code.

1  every kernel: number, name, blocks x threads, time, GFLOP/s, GB/s, sum so far; a summary
2  also device operations: schedule, generate, compile, cache hits, copies, launches by line
3  also the IRs of each new kernel, the reasons of fusion, the generated source
4  also assembly: SASS with registers, shared memory and spills, or host assembly
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from picograd.config import config
from picograd.graph.node import Node
from picograd.graph.verify import format_graph
from picograd.runtime.device import Device, Tape
from picograd.schedule.plan import KernelLaunch, Plan

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@dataclass(slots=True)
class Totals:
    """Kernels launched so far and their time, for the running sum of DEBUG=1."""

    launches: int = 0
    seconds: float = 0.0
    by_name: dict[str, list[float]] = field(default_factory=dict)


TOTALS = Totals()


def log(level: int, text: str) -> None:
    """Print one line when DEBUG is at least `level`."""
    if config.debug >= level:
        print(text, file=sys.stderr)


def user_line() -> str:
    """Name the innermost line of the program that is outside picograd."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def print_kernel(stage: str, ir: Any) -> None:
    """Print one stage of one kernel's code generation (DEBUG=3)."""
    print(f"--- {stage}\n{ir}", file=sys.stderr)


def print_plan(roots: Sequence[Node], plan: Plan) -> None:
    """Print a graph, and the plan made of it with the reasons of fusion (DEBUG=3)."""
    if config.debug >= 3:
        print(f"--- graph\n{format_graph(roots)}\n--- {plan}", file=sys.stderr)


def print_launches(
    launches: Sequence[KernelLaunch], tape: Tape, seconds: Sequence[float], device: Device
) -> None:
    """Print one line a launch and a summary of the stretch (DEBUG=1)."""
    line = user_line()
    for launch, record, elapsed in zip(launches, tape.launches, seconds, strict=True):
        code = record.executable.code
        TOTALS.launches += 1
        TOTALS.seconds += elapsed
        TOTALS.by_name.setdefault(code.name, []).append(elapsed)
        rate = max(elapsed, 1e-9) * 1e9
        print(
            f"{TOTALS.launches:6} {device.name:7} {launch.kernel.name:40.40}"
            f" {code.tasks:6} x {code.threads:<4} {elapsed * 1e6:10.1f} us"
            f" {code.flops / rate:9.1f} GFLOP/s {code.bytes_moved / rate:8.1f} GB/s"
            f" {TOTALS.seconds * 1e3:10.2f} ms",
            file=sys.stderr,
        )
        log(2, f"       launched from {line}")
    total = sum(seconds)
    print(f"       {len(seconds)} kernels, {total * 1e6:.1f} us on {device.name}", file=sys.stderr)


def summary() -> str:
    """Write the time of every kernel so far, longest first, as shares of the whole."""
    rows = sorted(TOTALS.by_name.items(), key=lambda item: -sum(item[1]))
    lines = [f"{TOTALS.launches} kernels, {TOTALS.seconds * 1e3:.2f} ms"]
    for name, times in rows:
        share = 100 * sum(times) / max(TOTALS.seconds, 1e-12)
        lines.append(f"{share:6.1f} % {len(times):6} x {sum(times) * 1e3:10.3f} ms  {name}")
    return "\n".join(lines)

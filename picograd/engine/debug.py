"""What `DEBUG=1..4` prints, to the error stream. A level never changes generated code.

-1 at exit a table of all kernels, and nothing else
1  the table, and every kernel when its plan runs for the first time: number, name, blocks x
   threads, time, GFLOP/s, GB/s, sum so far; one line whenever a plan runs
2  every kernel at every run; also device operations: allocations, frees, copies, schedule,
   generate, compile (hit or miss), and the user's line behind every launch
3  also the graph, the plan with the reasons of fusion, every IR and the source of new kernels
4  also assembly: SASS with registers, shared memory and spills, or host assembly

Kernels are timed by the clock of their device; GFLOP/s and GB/s count what the mathematics needs
(`codegen/costs.py`).
"""

import atexit
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from picograd.config import config
from picograd.engine.watch import PROFILES, tell_span
from picograd.graph.node import Node
from picograd.graph.verify import format_graph
from picograd.late_methods import dataclass
from picograd.runtime.device import Device, Executable, Tape
from picograd.runtime.log import log, log_action, say
from picograd.runtime.memory import format_bytes
from picograd.schedule.plan import Plan

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
COLUMNS = "number device  kernel                                    blocks x threads"
HEADING = f"{COLUMNS}         time      GFLOP/s       GB/s        sum"

TABLE_HEADING = "  share  launches      time ms   GFLOP/s      GB/s  % of peak GB/s  kernel"


@dataclass(slots=True)
class Row:
    """What all launches of one kernel took together; `peak` is 0 where it is not known."""

    executable: Executable  # held, so that no other kernel gets its identity
    name: str
    launches: int = 0
    seconds: float = 0.0
    flops: int = 0
    bytes_moved: int = 0
    peak: float = 0.0  # bytes a second the memory of the device can deliver


@dataclass(slots=True)
class Totals:
    """Launches so far, for the running sum and the table at the end.

    A row is a loaded kernel, whatever its name: kernels that differ in what they read, or in their
    code, may share one, and are numbered.
    """

    launches: int = 0
    seconds: float = 0.0
    rows: dict[int, Row] = field(default_factory=dict)
    named: Counter[str] = field(default_factory=Counter)

    def add(self, device: Device, executable: Executable, seconds: float, times: int = 1) -> None:
        """Count one launch, or the launches of all steps of a loop."""
        self.launches += times
        self.seconds += seconds
        code = executable.code
        row = self.rows.get(id(executable)) or self.new_row(executable, device.name)
        row.launches += times
        row.seconds += seconds
        row.flops += times * code.flops
        row.bytes_moved += times * code.bytes_moved
        row.peak = device.peak_bandwidth()

    def new_row(self, executable: Executable, device: str) -> Row:
        """Add a row; the second kernel of a name is "name #2"."""
        name = executable.code.name
        place = f"{name} on {device}"
        self.named[place] += 1
        count = self.named[place]
        title = place if count == 1 else f"{name} #{count} on {device}"
        row = self.rows[id(executable)] = Row(executable, title)
        return row

    def table(self) -> str:
        """Write the time of every kernel, longest first, with its share of the whole."""
        lines = [f"{self.launches} kernels, {self.seconds * 1e3:.2f} ms", TABLE_HEADING]
        for row in sorted(self.rows.values(), key=lambda row: -row.seconds):
            speed = rate(row.bytes_moved, row.seconds)
            peak = f"{100e9 * speed / row.peak:.1f}" if row.peak else "-"
            lines.append(
                f"{self.share(row):5.1f} % {row.launches:9} {row.seconds * 1e3:12.4f}"
                f" {rate(row.flops, row.seconds):9.1f} {speed:9.1f} {peak:>15}  {row.name}"
            )
        return "\n".join(lines)

    def share(self, row: Row) -> float:
        """Find a kernel's share of the whole time, in percent."""
        return 100 * row.seconds / self.seconds if self.seconds else 0.0


TOTALS = Totals()
OURS: dict[str, bool] = {}  # files that were met: whether they are picograd's


def rate(amount: int, seconds: float) -> float:
    """Turn an amount into giga-units a second; 0 when no time was measured."""
    return amount / seconds / 1e9 if seconds else 0.0


def user_line(depth: int = 1) -> str:
    """Name the innermost line of the program that is outside picograd, so many calls up or more."""
    frame = user_frame(depth + 1)
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def user_place(depth: int = 1) -> Any:
    """Give the code that `user_line` names, and the place in it: `line_at` is slower, and later."""
    frame = user_frame(depth + 1)
    return "" if frame is None else (frame.f_code, frame.f_lasti)


def user_spot(depth: int = 1) -> int:
    """Number what `user_place` names: no two places of code that lives have one number."""
    frame = user_frame(depth + 1)
    return 0 if frame is None else id(frame.f_code) + frame.f_lasti


def user_frame(depth: int) -> Any:
    """Find the innermost frame outside picograd, so many calls up or more; None for none."""
    frame: Any = sys._getframe(depth)
    while frame is not None:
        path = frame.f_code.co_filename
        ours = OURS.get(path)
        if ours is None:
            ours = OURS[path] = path.startswith(PACKAGE)
        if not ours:
            return frame
        frame = frame.f_back
    return None


def log_stage(stage: str, ir: Any) -> None:
    """Print what one stage of the compiler made (DEBUG=3)."""
    log(3, f"--- {stage}\n{ir}")


def log_plan(roots: Sequence[Node], plan: Plan) -> None:
    """Print a graph, and the plan made of it with the reasons of fusion (DEBUG=3)."""
    if config.debug >= 3:
        log_stage("graph", format_graph(roots))
        log(3, f"--- {plan}")


def start_copy(device: Device) -> float:
    """Wait for a device and read the clock, so that only the copy is timed (DEBUG=2, profile)."""
    if config.debug < 2 and not PROFILES:
        return 0.0
    device.synchronize()
    return time.perf_counter()


def log_copy(start: float, source: str, target: str, nbytes: int, device: Device) -> None:
    """Print a copy that began at `start` (DEBUG=2); tell the profiles of it."""
    if not start:
        return
    device.synchronize()
    tell_span("copy", f"{source} -> {target}", start, {"bytes": nbytes})
    if config.debug >= 2:
        seconds = time.perf_counter() - start
        speed = rate(nbytes, seconds)
        text = f"{format_bytes(nbytes)}, {seconds * 1e6:.1f} us, {speed:.2f} GB/s"
        log_action("copy", f"{source} -> {target}  {text}")


def log_launches(tape: Tape, seconds: Sequence[float], device: Device, times: int = 1) -> None:
    """Print one line a launch, once a tape (DEBUG=1); with its user's line, always (DEBUG=2).

    The body of a loop has run `times` times in these seconds; its lines end with that number.
    """
    if not TOTALS.launches:
        log(1, HEADING)
        atexit.register(log_summary)
    is_new, tape.is_shown = not tape.is_shown, True
    line = f"  {user_line()}" if config.debug >= 2 else ""
    line = f"  {times} steps{line}" if times > 1 else line
    for record, elapsed in zip(tape.launches, seconds, strict=True):
        code = record.executable.code
        TOTALS.add(device, record.executable, elapsed, times)
        log(
            1 if is_new else 2,
            f"{TOTALS.launches:6} {device.name:7} {code.name:40.40}"
            f" {code.tasks:7} x {code.threads:<7} {elapsed * 1e6:10.1f} us"
            f" {rate(times * code.flops, elapsed):12.1f}"
            f" {rate(times * code.bytes_moved, elapsed):10.1f}"
            f" {TOTALS.seconds * 1e3:10.2f} ms{line}",
        )


def log_host_call(call: Any, shapes: Sequence[Any], seconds: float) -> None:
    """Print what a host call took, with waiting for the device and copies (DEBUG=1)."""
    line = f"  {user_line()}" if config.debug >= 2 else ""
    given = " ".join(map(str, shapes))
    log(1, f"       host      {f'{call} {given}':62} {seconds * 1e6:8.1f} us{line}")


def log_plan_run(launches: int, seconds: float, wall: float) -> None:
    """Print what one run of a plan took (DEBUG=1)."""
    device, host = f"{seconds * 1e6:.1f} us on the device", f"{wall * 1e6:.1f} us in all"
    log(1, f"       plan      {launches} kernels, {device}, {host}")


def summary() -> str:
    """Write the time of every kernel launched under DEBUG so far."""
    return TOTALS.table()


def log_summary() -> None:
    """Print the table of all kernels, at the end of the process."""
    if config.debug:
        say(summary())

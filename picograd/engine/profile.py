"""profile: what ran, as a table and as a trace for https://ui.perfetto.dev or chrome://tracing.

One track a device, with every kernel by the device's clock, and those of the host: plans that it
ran, schedules, compilations, copies; and the memory in use as a counter. Kernels of a plan follow
each other from the moment it was handed to the device.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from picograd.engine.debug import Totals, user_line
from picograd.engine.held_back import by_line, held_back, spent
from picograd.engine.watch import PROFILES
from picograd.errors import writing
from picograd.helpers import on_demand
from picograd.runtime.device import Device, Tape
from picograd.runtime.log import say
from picograd.runtime.memory import WATCHERS

memory_picture = on_demand("picograd.engine.profile_html", "memory_picture")
profile_html = on_demand("picograd.engine.profile_html", "profile_html")


class Profile:
    """The events of a stretch of the program; printing it shows the table.

    `totals` are the kernels, `spans` and `counts` the host's time and how often, by track, `lines`
    the device's time by the line of the program that asked.
    """

    def __init__(self) -> None:
        self.totals: Totals = Totals()
        self.events: list[dict[str, Any]] = []
        self.tracks: list[str] = []
        self.spans: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.lines: Counter[str] = Counter()
        self.memory: dict[str, list[tuple[float, int]]] = {}
        self.start: float = perf_counter()
        self.end: float = 0.0  # while it watches

    def add_span(self, track: str, name: str, start: float, seconds: float, facts: Any) -> None:
        """Add one span of time to a track."""
        if track not in self.tracks:
            self.tracks.append(track)
        place = {"pid": 0, "tid": self.tracks.index(track)}
        times = {"ts": (start - self.start) * 1e6, "dur": seconds * 1e6}
        self.events.append({"name": name, "ph": "X", **place, **times, "args": facts})
        self.spans[track] += seconds  # type: ignore[assignment]
        self.counts[track] += 1

    def add_memory(self, device: str, in_use: int) -> None:
        """Note how many bytes a device uses from now on."""
        self.memory.setdefault(device, []).append((perf_counter() - self.start, in_use))

    def add_launches(
        self, device: Device, tape: Tape, start: float, seconds: Sequence[float], times: int = 1
    ) -> None:
        """Add the launches of a tape that was handed over at `start`, and run so many times."""
        line = user_line()
        for record, elapsed in zip(tape.launches, seconds, strict=True):
            code = record.executable.code
            self.lines[line] += elapsed  # type: ignore[assignment]
            self.totals.add(device, record.executable, elapsed, times)
            facts: dict[str, Any] = {
                "blocks": code.tasks,
                "threads": code.threads,
                "flops": times * code.flops,
            }
            facts |= {"bytes": times * code.bytes_moved, "launches": times, "line": line}
            self.add_span(device.name, code.name, start, elapsed, facts)
            start += elapsed

    def trace(self) -> dict[str, Any]:
        """Return the events in the trace format of Chrome and Perfetto."""
        names = [
            {"name": "thread_name", "ph": "M", "pid": 0, "tid": n, "args": {"name": track}}
            for n, track in enumerate(self.tracks)
        ]
        counter = {"ph": "C", "pid": 0}
        memory = [
            {"name": f"memory {device}", **counter, "ts": time * 1e6, "args": {"bytes": n}}
            for device, samples in self.memory.items()
            for time, n in samples
        ]
        return {"traceEvents": [*names, *self.events, *memory], "displayTimeUnit": "ms"}

    def watch(self) -> None:
        """Begin."""
        PROFILES.append(self)
        WATCHERS.append(self.add_memory)

    def stop(self) -> None:
        """End."""
        self.end = perf_counter()
        PROFILES.remove(self)
        WATCHERS.remove(self.add_memory)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace; DataError if it cannot be written."""
        write(path, json.dumps(self.trace()))

    @property
    def seconds(self) -> float:
        """Time that it watched, so far."""
        return (self.end or perf_counter()) - self.start

    def draw_memory(self, path: str | os.PathLike[str]) -> Any:
        """Write a picture (SVG) of the memory in use over time; DataError if it cannot."""
        from pathlib import Path  # 3 ms of an import

        place = Path(path)
        write(place, memory_picture(self.memory, self.seconds))
        return place

    def __str__(self) -> str:
        rows, seconds = list(self.totals.rows.values()), self.seconds
        parts = [self.totals.table()]
        if self.lines:
            parts += ["  share      time ms  line", *by_line(self.lines)]
        parts += [spent(self.spans, self.counts, seconds), held_back(rows, self.spans, seconds)]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        return str(profile_html(self))


@contextmanager
def profile(path: str | os.PathLike[str] | None = "profile.json") -> Iterator[Profile]:
    """Watch a `with` block; then print tables and write a trace to `path`.

    The tables: kernels, the lines of the program that asked for them, the host's time for
    schedules, compilations, copies and plans, and what holds the program back. `draw_memory(path)`
    of what it gives draws the memory in use.

    >>> import picograd
    >>> with picograd.profile(None) as run:
    ...     values = (picograd.ones(4) + 1.0).tolist()
    >>> run.totals.launches
    1
    """
    run = Profile()
    run.watch()
    try:
        yield run
    finally:
        run.stop()
        say(str(run))
        if path is not None:
            run.save(path)


def write(path: str | os.PathLike[str], text: str) -> None:
    """Write a file; DataError if it cannot be written."""
    with writing("profile", path), open(path, "w") as file:
        file.write(text)

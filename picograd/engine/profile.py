"""profile: what ran, as a table and as a trace for https://ui.perfetto.dev or chrome://tracing.

One track a device, with every kernel by the device's clock, and one for the plans that the host
ran. Kernels of a plan follow each other from the moment it was handed to the device.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from picograd.engine.debug import Totals
from picograd.errors import DataError
from picograd.runtime.device import Device, Tape
from picograd.runtime.log import say


class Profile:
    """The events of a stretch of the program; printing it shows the table."""

    totals: Totals
    start: float

    def __init__(self) -> None:
        self.totals = Totals()
        self.events: list[dict[str, Any]] = []
        self.tracks: list[str] = []
        self.start = perf_counter()

    def add_span(self, track: str, name: str, start: float, seconds: float, facts: Any) -> None:
        """Add one span of time to a track."""
        if track not in self.tracks:
            self.tracks.append(track)
        place = {"pid": 0, "tid": self.tracks.index(track)}
        times = {"ts": (start - self.start) * 1e6, "dur": seconds * 1e6}
        self.events.append({"name": name, "ph": "X", **place, **times, "args": facts})

    def add_launches(
        self, device: Device, tape: Tape, start: float, seconds: Sequence[float], times: int = 1
    ) -> None:
        """Add the launches of a tape that was handed over at `start`, and run so many times."""
        for record, elapsed in zip(tape.launches, seconds, strict=True):
            code = record.executable.code
            self.totals.add(device, record.executable, elapsed, times)
            facts = {"blocks": code.tasks, "threads": code.threads, "flops": times * code.flops}
            facts |= {"bytes": times * code.bytes_moved, "launches": times}
            self.add_span(device.name, code.name, start, elapsed, facts)
            start += elapsed

    def trace(self) -> dict[str, Any]:
        """Return the events in the trace format of Chrome and Perfetto."""
        names = [
            {"name": "thread_name", "ph": "M", "pid": 0, "tid": n, "args": {"name": track}}
            for n, track in enumerate(self.tracks)
        ]
        return {"traceEvents": [*names, *self.events], "displayTimeUnit": "ms"}

    def __str__(self) -> str:
        return self.totals.table()


PROFILES: list[Profile] = []  # those that watch now


@contextmanager
def profile(path: str | Path | None = "profile.json") -> Iterator[Profile]:
    """Watch the kernels of a `with` block; then print a table and write a trace to `path`.

    >>> import picograd
    >>> with picograd.profile(None) as run:
    ...     values = (picograd.ones(4) + 1.0).tolist()
    >>> run.totals.launches
    1
    """
    run = Profile()
    PROFILES.append(run)
    try:
        yield run
    finally:
        PROFILES.remove(run)
        say(str(run))
        if path is not None:
            write(run, Path(path))


def write(run: Profile, path: Path) -> None:
    """Write the trace; DataError if the file cannot be written."""
    try:
        path.write_text(json.dumps(run.trace()))
    except OSError as error:
        problem = f"cannot write {path}: {error.strerror}"
        raise DataError("profile", problem, "check the folder") from error

"""PyTorch's `torch.profiler`, over `picograd.profile`: kernels, lines of the program, memory."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ContextDecorator
from enum import Enum
from pathlib import Path
from typing import Any

from picograd.engine.profile import Profile
from picograd.engine.watch import tell_span
from picograd.errors import StateError

__all__ = [
    "ProfilerActivity", "profile", "record_function", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]  # fmt: skip

STRETCHES = "program"  # the track of what `record_function` names


class EventList(list[Any]):
    """This class is the list of events that PyTorch's profiler gives; here none is made."""


class ProfilerActivity(Enum):
    """This class names what is watched: here always all of it."""

    CPU, CUDA, XPU = range(3)


class ProfilerAction(Enum):
    """This class names what a schedule asks for at a step: here all steps are watched."""

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


def kineto_available() -> bool:
    """Tell that PyTorch's own recorder is not there: `picograd.profile` watches."""
    return False


class profile:
    """This class watches a `with` block, or what runs between start() and stop().

    `on_trace_ready` is called with it at the end. What to watch and when (`activities`, `schedule`,
    `record_shapes`, ...) changes nothing.

    >>> import picograd
    >>> with picograd.profiler.profile(record_shapes=True) as run:
    ...     values = (picograd.ones(4) + 1.0).tolist()
    >>> "launches" in run.key_averages().table(sort_by="cpu_time_total")
    True
    """

    def __init__(self, *given: Any, on_trace_ready: Callable[..., Any] | None = None, **more: Any):
        self.on_trace_ready, self.step_num = on_trace_ready, 0
        self._run: Profile | None = None

    @property
    def run(self) -> Profile:
        """What was watched. Raises StateError before start()."""
        if self._run is None:
            raise StateError("profiler", "nothing was watched", "use it as `with profile() as p:`")
        return self._run

    def start(self) -> None:
        """Begin to watch."""
        self._run = Profile()
        self._run.watch()

    def stop(self) -> None:
        """End, and hand over."""
        self.run.stop()
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def __enter__(self) -> "profile":
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    def step(self) -> None:
        """Count a step of the program."""
        self.step_num += 1

    def key_averages(self, *grouping: Any, **more: Any) -> "profile":
        """Give what `table` is a method of."""
        return self

    def table(self, *sorting: Any, **more: Any) -> str:
        """Write the tables of `picograd.profile`, and the stretches that the program named."""
        return "\n".join([str(self.run), *self.stretches()])

    def stretches(self) -> list[str]:
        """Write the host's time in what `record_function` named, and how often it was entered."""
        times, counts = Counter[str](), Counter[str]()
        for event in self.run.events:
            if self.run.tracks[event["tid"]] == STRETCHES:
                times[event["name"]] += event["dur"]
                counts[event["name"]] += 1
        rows = [f"{times[name] / 1e3:12.4f}  {counts[name]:7d}  {name}" for name in times]
        return ["     time ms    calls  stretch", *rows] if rows else []

    def __str__(self) -> str:
        return repr(self) if self._run is None else self.table()

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write a trace for Perfetto."""
        self.run.save(path)


class record_function(ContextDecorator):
    """This class names a stretch of a program: a row of tables, a span of traces.

    Its time is that of the host: what waits is computed where a value is needed.

    >>> import picograd
    >>> with picograd.profiler.profile() as run:
    ...     with picograd.profiler.record_function("step"):
    ...         values = (picograd.ones(4) + 1.0).tolist()
    >>> run.key_averages().table().endswith("1  step")
    True
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name

    def __enter__(self) -> "record_function":
        self.start = time.perf_counter()
        return self

    def __exit__(self, *error: Any) -> None:
        """End the stretch."""
        tell_span(STRETCHES, self.name, self.start)


class emit_nvtx(record_function):
    """This class names stretches for NVIDIA's tools: launches have names there anyway."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        super().__init__("emit_nvtx")


emit_itt = emit_nvtx


def schedule(*given: int, **more: int) -> Callable[[int], None]:
    """Choose which steps are watched: here all are."""
    return lambda step: None


def supported_activities() -> set[ProfilerActivity]:
    """List what can be watched."""
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA}


def tensorboard_trace_handler(dir_name: str | Path, *naming: Any) -> Callable[[profile], None]:
    """Make what `on_trace_ready` calls to write a trace into a folder, numbered."""
    folder = Path(dir_name)

    def handle(watched: profile) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        number = len(list(folder.glob("*.pt.trace.json")))
        watched.export_chrome_trace(folder / f"{number}.pt.trace.json")

    return handle

"""recorder: which plans a stretch of the program ran, and how long each of their launches took.

It is told of launches as profiles are, and at the end of each run of the plan that they belong to.
Plans are made anew meanwhile, so that what they are made of is there to be looked at.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from picograd.buffer import Buffer, line_at
from picograd.config import config
from picograd.engine.watch import PROFILES, RECORDERS
from picograd.late_methods import dataclass
from picograd.runtime.device import Device, Tape
from picograd.schedule.plan import KernelLaunch, LoopStep, Plan


@dataclass(slots=True)
class PlanRuns:
    """All runs of one plan: where the program asked for the first, and the least times.

    `seconds` has the time of every launch, those of a loop's body once; it is empty where they
    could not be told apart.
    """

    plan: Plan
    origin: str  # "file:line"
    inputs: tuple[int, ...]  # identities of the buffers that the first run read
    count: int = 0
    seconds: list[float] = field(default_factory=list)

    def add(self, seconds: list[float]) -> None:
        """Count a run."""
        self.count += 1
        if self.seconds and len(self.seconds) == len(seconds):
            seconds = list(map(min, self.seconds, seconds))
        self.seconds = seconds


class Recorder:
    """This class notes the plans that run, in the order of their first runs."""

    def __init__(self) -> None:
        self.runs: dict[int, PlanRuns] = {}  # by identity of the plan, which they hold
        self.launched: list[float] = []  # since the last plan ended

    def add_span(self, track: str, name: str, start: float, seconds: float, facts: Any) -> None:
        """Hear of a span of the host's time, which says nothing of plans."""

    def add_launches(
        self, device: Device, tape: Tape, start: float, seconds: Sequence[float], times: int = 1
    ) -> None:
        """Note how long the launches of a tape took."""
        self.launched += seconds

    def add_run(self, plan: Plan, inputs: Sequence[Buffer], origin: Any) -> None:
        """Note that a plan ran; its launches are those since the last."""
        seconds, self.launched = self.launched, []
        found = self.runs.get(id(plan))
        if found is None:
            found = self.runs[id(plan)] = PlanRuns(plan, line_at(origin), tuple(map(id, inputs)))
        found.add(seconds if len(seconds) == count_launches(plan) else [])


def count_launches(plan: Plan) -> int:
    """Count the launches of a plan, those of a loop's body once."""
    bodies = [count_launches(step.body) for step in plan.steps if isinstance(step, LoopStep)]
    return sum(isinstance(step, KernelLaunch) for step in plan.steps) + sum(bodies)


@contextmanager
def recorded() -> Iterator[Recorder]:
    """Record the plans that run in a `with` block."""
    recorder = Recorder()
    config.outdate()
    PROFILES.append(recorder)
    RECORDERS.append(recorder)
    try:
        yield recorder
    finally:
        PROFILES.remove(recorder)
        RECORDERS.remove(recorder)

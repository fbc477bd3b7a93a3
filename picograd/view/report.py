"""report: plans as plain data, which a page in a browser draws and a file can hold.

Run    = title, plans
plan   = title, origin, runs, target, peak, arenas, slots, steps, kernels, edges, reasons
slot   = kind, dtype, shape, bytes, offset, first, last, name, reasons
step   = title, kind, device, kernels, slots read and written, seconds (of its best run)
kernel = name, hero, flops, bytes; its stages are made when somebody looks
edge   = from, to, slot: "s3" is a step, "p0" an input, "o7" an output
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from functools import cached_property
from typing import Any

from picograd.codegen.costs import costs
from picograd.draw import step_slots
from picograd.engine.inspect import kernel_stages
from picograd.late_methods import dataclass
from picograd.schedule.loop import Kernel
from picograd.schedule.plan import CopyStep, HostStep, LoopStep, Plan, Step, kernels_of
from picograd.target import Target


@dataclass
class SeenPlan:
    """A plan and what is known of it beside; `seconds` has the best time of each launch."""

    plan: Plan
    targets: Mapping[str, Target]  # by device
    title: str
    origin: str = ""
    runs: int = 0  # 0: it did not run
    seconds: Sequence[float] = ()
    names: Mapping[int, str] = field(default_factory=dict)  # of slots

    @cached_property
    def kernels(self) -> list[tuple[Kernel, Target]]:
        """Its kernels, each once, and what each is made for."""
        found: dict[int, tuple[Kernel, Target]] = {}
        for step in self.plan.steps:
            for kernel in kernels_of(step):
                found.setdefault(id(kernel), (kernel, self.targets[device_of(step, self.plan)]))
        return list(found.values())

    def describe(self) -> dict[str, Any]:
        """Write the plan as plain data; see the module docstring."""
        plan = self.plan
        numbers = {id(kernel): number for number, (kernel, _) in enumerate(self.kernels)}
        times = iter(self.seconds)
        steps = [
            self.describe_step(number, step, numbers, times)
            for number, step in enumerate(plan.steps)
        ]
        machines = sorted({target.arch for target in self.targets.values()})
        return {
            "title": self.title,
            "origin": self.origin,
            "runs": self.runs,
            "target": ", ".join(machines),
            "peak": plan.peak_bytes,
            "arenas": dict(plan.arenas),
            "slots": self.describe_slots(),
            "steps": steps,
            "kernels": [describe_kernel(kernel) for kernel, _ in self.kernels],
            "edges": edges_of(plan),
            "reasons": list(plan.reasons),
        }

    def describe_step(
        self, number: int, step: Step, kernels: Mapping[int, int], times: Any
    ) -> dict[str, Any]:
        """Write one step as plain data, with the next times."""
        reads, writes = step_slots(step)
        found = kernels_of(step)
        measured = [next(times) for _ in found] if self.seconds else []
        return {
            "title": title_of(step),
            "kind": kind_of(step),
            "device": device_of(step, self.plan),
            "kernels": [kernels[id(kernel)] for kernel in found],
            "reads": reads,
            "writes": writes,
            "seconds": sum(measured) if measured else None,
        }

    def describe_slots(self) -> list[dict[str, Any]]:
        """Write the slots as plain data, with the first and the last step that touches each."""
        touched: dict[int, list[int]] = {}
        for number, step in enumerate(self.plan.steps):
            reads, writes = step_slots(step)
            for place in (*reads, *writes):
                touched.setdefault(place, []).append(number)
        rows = []
        for number, slot in enumerate(self.plan.slots):
            steps = touched.get(number, [-1])
            rows.append(
                {
                    "kind": slot.kind,
                    "dtype": slot.dtype.name,
                    "shape": list(slot.shape),
                    "bytes": slot.nbytes,
                    "offset": slot.offset,
                    "first": steps[0],
                    "last": steps[-1],
                    "name": self.names.get(number, ""),
                    "reasons": self.reasons(number),
                }
            )
        return rows

    def reasons(self, slot: int) -> list[str]:
        """Say why an array is in memory; an input was there before anything was decided."""
        is_made = self.plan.slots[slot].kind != "input"
        return list(self.plan.causes.get(slot, ())) if is_made else []


def describe_kernel(kernel: Kernel) -> dict[str, Any]:
    """Write what a list of kernels says of one."""
    flops, moved = costs(kernel)
    return {"name": kernel.name, "hero": kernel.hero, "flops": flops, "bytes": moved}


def title_of(step: Step) -> str:
    """Name a step for people."""
    if isinstance(step, CopyStep):
        return "copy"
    if isinstance(step, HostStep):
        return f"host {step.call}"
    if isinstance(step, LoopStep):
        return f"loop of {step.length} steps"
    return step.kernel.name


def kind_of(step: Step) -> str:
    """Name the kind of a step: the hero of a kernel, or what else it is."""
    if isinstance(step, CopyStep):
        return "copy"
    if isinstance(step, HostStep):
        return "host"
    return "loop" if isinstance(step, LoopStep) else step.kernel.hero


def device_of(step: Step, plan: Plan) -> str:
    """Name the device a step runs on; of a copy, where it writes."""
    return plan.slots[step.target].device if isinstance(step, CopyStep) else step.device


def edges_of(plan: Plan) -> list[tuple[str, str, int]]:
    """List who writes what who reads, in the order of the steps, and outputs last."""
    holders: dict[int, str] = {}  # slot -> where its newest version is from
    found: dict[tuple[str, str, int], None] = {}
    for number, step in enumerate(plan.steps):
        reads, writes = step_slots(step)
        for slot in reads:
            found[holders.get(slot, f"p{slot}"), f"s{number}", slot] = None
        holders.update((slot, f"s{number}") for slot in writes)
    for slot in plan.outputs:
        found[holders.get(slot, f"p{slot}"), f"o{slot}", slot] = None
    return list(found)


class Run:
    """What one page shows: described plans, and the stages of their kernels.

    A run that comes from a file has its stages already, of others they are made when wanted.
    """

    def __init__(self, title: str, plans: Sequence[SeenPlan]) -> None:
        self.plans = list(plans)
        described = [plan.describe() for plan in plans]
        self.data: dict[str, Any] = {"title": title, "plans": described}
        self.known: dict[str, list[dict[str, str]]] = {}  # stages by "plan/kernel"

    @property
    def title(self) -> str:
        """The name that the page shows."""
        return str(self.data["title"])

    def stages(self, plan: int, kernel: int) -> list[dict[str, str]]:
        """Write the stages of a kernel; IndexError if there is none such."""
        key = f"{plan}/{kernel}"
        if key not in self.known:
            if min(plan, kernel) < 0:
                raise IndexError(key)
            found, target = self.plans[plan].kernels[kernel]
            stages = kernel_stages(found, target, assembly=True, full=False)
            self.known[key] = [{**asdict(stage), "path": stage.path} for stage in stages]
        return self.known[key]

    def everything(self) -> dict[str, Any]:
        """Write the run with all stages of all kernels, for a file."""
        for number, plan in enumerate(self.plans):
            for kernel in range(len(plan.kernels)):
                self.stages(number, kernel)
        return {"picograd run": 1, **self.data, "stages": self.known}


def loaded_run(title: str, described: Mapping[str, Any]) -> Run:
    """Make a run of what `Run.everything` wrote; LookupError if it is something else."""
    run = Run(title, ())
    run.data["plans"] = described["plans"]
    run.known = described["stages"]
    if described["picograd run"] != 1:
        raise LookupError("another version")
    return run

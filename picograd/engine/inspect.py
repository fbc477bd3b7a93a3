"""Looking at a plan without running it: kernels, what they read and write, their source.

Works for any target on any machine: the CUDA source of a kernel needs no GPU.
"""

from collections.abc import Sequence

from picograd.codegen.pipeline import generate
from picograd.engine.backends import get_device, target_of
from picograd.errors import ValueRangeError
from picograd.graph.node import Node
from picograd.html import details, heading, table
from picograd.late_methods import dataclass
from picograd.runtime.memory import format_bytes
from picograd.schedule.loop import Kernel
from picograd.schedule.plan import KernelLaunch, LoopStep, Plan, PlanSlot, format_plan
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target


@dataclass(frozen=True, slots=True)
class KernelView:
    """One kernel of a plan. `reads` and `writes` are the plan slots it touches."""

    kernel: Kernel
    reads: tuple[PlanSlot, ...]
    writes: tuple[PlanSlot, ...]

    @property
    def name(self) -> str:
        """Readable name of the kernel."""
        return self.kernel.name

    @property
    def hero(self) -> str:
        """The template that writes it: map, reduce.row, contract, ..."""
        return self.kernel.hero

    def source(self, language: str = "cuda", arch: str = "sm_90a") -> str:
        """Generate the kernel's text as "cuda" (for `arch`) or "llvm" (for this machine)."""
        return generate(self.kernel, target_named(language, arch)).source

    def __repr__(self) -> str:
        return repr(self.kernel)


@dataclass(frozen=True, slots=True)
class PlanView:
    """What `picograd.plan` returns; printing it shows slots, launches and fusion reasons."""

    plan: Plan
    kernels: tuple[KernelView, ...]

    @property
    def peak_bytes(self) -> int:
        """Bytes that running the plan allocates."""
        return self.plan.peak_bytes

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the kernels were cut where they are."""
        return self.plan.reasons

    def __repr__(self) -> str:
        return format_plan(self.plan)

    def _repr_html_(self) -> str:
        rows = [
            [kernel.name, kernel.hero, arrays(kernel.reads), arrays(kernel.writes)]
            for kernel in self.kernels
        ]
        kernels = table(["kernel", "kind", "reads", "writes"], rows)
        title = heading(f"{len(rows)} kernels, {format_bytes(self.peak_bytes)}")
        return title + kernels + details("reasons of fusion", table([], zip(self.reasons)))


def arrays(slots: Sequence[PlanSlot]) -> str:
    """Write the dtypes and shapes of arrays."""
    return ", ".join(f"{slot.dtype.name}{list(slot.shape)}" for slot in slots)


def target_named(language: str, arch: str) -> Target:
    """Find the target for a source language."""
    known = {"cuda": lambda: cuda_target(arch), "llvm": lambda: get_device("cpu").target}
    if language not in known:
        raise ValueRangeError("source", f"unknown language {language!r}", 'use "cuda" or "llvm"')
    return known[language]()


def inspect(nodes: Sequence[Node]) -> PlanView:
    """Schedule nodes without running anything."""
    plan = schedule(list(nodes), target_of(get_device(nodes[0].device)))
    return PlanView(plan, tuple(views_of(plan)))


def views_of(plan: Plan) -> list[KernelView]:
    """Describe the kernels of a plan; those of a loop by the slots of its body."""
    views: list[KernelView] = []
    for step in plan.steps:
        if isinstance(step, LoopStep):
            views += views_of(step.body)
        elif isinstance(step, KernelLaunch):
            pairs = list(zip(step.kernel.slots, step.slots, strict=True))
            reads = tuple(plan.slots[n] for slot, n in pairs if slot.role != "out")
            writes = tuple(plan.slots[n] for slot, n in pairs if slot.role != "in")
            views.append(KernelView(step.kernel, reads, writes))
    return views

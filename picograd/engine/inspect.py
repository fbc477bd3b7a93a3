"""Looking without running: kernels of a plan, what they read and write, how each stage made them.

Works for any target on any machine: each stage is a pure function, and the target is plain data, so
that the CUDA source of a kernel needs no GPU. In `explain` the file that makes a stage stands above
it; the grammar of an IR is in the file that defines it.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from picograd.codegen.pipeline import LANGUAGES, TEMPLATES, generate
from picograd.engine.assembly import assembly_of
from picograd.engine.backends import get_device, target_for
from picograd.engine.plan_key import walk_pending
from picograd.errors import ValueRangeError
from picograd.graph import verify as graph_printer
from picograd.graph.expand import expand_composites
from picograd.graph.node import Node
from picograd.html import details, heading, table
from picograd.late_methods import dataclass
from picograd.runtime.memory import format_bytes
from picograd.schedule import assemble
from picograd.schedule.loop import Kernel
from picograd.schedule.plan import KernelLaunch, LoopStep, Plan, PlanSlot, format_plan
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target, opencl_target


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
        """Generate the kernel's text as "cuda" (for `arch`), "opencl" or "llvm" (this machine)."""
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
    known = {
        "cuda": lambda: cuda_target(arch),
        "llvm": lambda: get_device("cpu").target,
        "opencl": opencl_target,
    }
    if language not in known:
        fix = f"use {', '.join(known)}"
        raise ValueRangeError("source", f"unknown language {language!r}", fix)
    return known[language]()


def inspect(nodes: Sequence[Node]) -> PlanView:
    """Schedule nodes without running anything."""
    plan = schedule(list(nodes), target_for(walk_pending(nodes)))
    return PlanView(plan, tuple(views_of(plan)))


def views_of(plan: Plan) -> list[KernelView]:
    """Describe the kernels of a plan; those of a loop by the slots of its body."""
    views: list[KernelView] = []
    for step in plan.steps:
        if isinstance(step, LoopStep):
            views += views_of(step.body)
        elif isinstance(step, KernelLaunch):
            pairs = list(zip(step.kernel.slots, step.slots, strict=True))
            reads = tuple(plan.slots[n] for slot, n in pairs if slot.role in ("in", "inout"))
            writes = tuple(plan.slots[n] for slot, n in pairs if slot.role in ("out", "inout"))
            views.append(KernelView(step.kernel, reads, writes))
    return views


WIDTH = 100
MADE_FOR = {"cpu": "llvm", "cuda": "cuda", "opencl": "opencl"}
# The helpers in front of every CUDA kernel are the same text, between these two.
PROLOGUE_START, PROLOGUE_END = "#ifndef HELPER_", "\n#endif\n"


class Explanation(str):
    """Text that shows itself as it is, also at the interactive prompt."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage made, as text, and the module that makes it."""

    title: str
    module: str
    text: str

    @property
    def path(self) -> str:
        """The file that makes it."""
        return f"{self.module.replace('.', '/')}.py"

    def __str__(self) -> str:
        heading = f"== {self.title} ".ljust(WIDTH - len(self.path) - 1, "=")
        return f"{heading} {self.path}\n{self.text.strip()}"


def explain_nodes(
    roots: Sequence[Node], target: str | Target = "", assembly: bool = False, full: bool = False
) -> Explanation:
    """Write every stage of computing `roots`; see `picograd.explain`."""
    if not target:
        target = target_for(walk_pending(roots))
    chosen = target if isinstance(target, Target) else named_target(target)
    found = map(str, stages(roots, chosen, assembly, full))
    return Explanation("\n\n".join(found) + "\n")


def named_target(name: str) -> Target:
    """Find a target: "cpu" (this machine), "cuda" (an H200), "opencl", or one such as "sm_80"."""
    if name.startswith("sm_") and name[3:5].isdecimal():
        return target_named("cuda", name)
    if name not in MADE_FOR:
        fix = f"use {', '.join(MADE_FOR)} or an architecture such as sm_80"
        raise ValueRangeError("explain", f"unknown target {name!r}", fix)
    return target_named(MADE_FOR[name], "sm_90a")


def stages(roots: Sequence[Node], target: Target, assembly: bool, full: bool) -> Iterator[Stage]:
    """Yield what each stage makes."""
    yield Stage("Graph IR", "picograd.graph.build", graph_printer.format_graph(roots))
    expanded = expand_composites(roots, target=target)
    if list(map(id, expanded)) != list(map(id, roots)):
        text = graph_printer.format_graph(expanded)
        yield Stage("Graph IR, composites expanded", "picograd.graph.expand", text)
    plan = schedule(list(roots), target)
    yield Stage("Plan", "picograd.schedule.schedule", format_plan(plan))
    seen: set[str] = set()
    for kernel in plan.kernels:
        if repr(kernel) not in seen:
            seen.add(repr(kernel))
            yield from kernel_stages(kernel, target, assembly, full)


def kernel_stages(kernel: Kernel, target: Target, assembly: bool, full: bool) -> Iterator[Stage]:
    """Yield the stages of one kernel's code generation."""
    yield Stage("Loop IR", assemble.__name__, repr(kernel))
    made: dict[str, Any] = {}
    code = generate(kernel, target, made.__setitem__)
    linearize, render = LANGUAGES[target.language]
    yield Stage("Tile IR", TEMPLATES[kernel.hero].__module__, repr(made["tile"]))
    yield Stage("Program", linearize.__module__, repr(made["program"]))
    source = code.source if full else without_prologue(code.source)
    title = f"Source: {sys.modules[render.__module__].TITLE} for {target.arch}"
    yield Stage(title, render.__module__, source)
    if assembly:
        yield Stage("Machine code", assembly_of.__module__, assembly_of(code, target))


def without_prologue(source: str) -> str:
    """Leave out the helpers that every CUDA kernel starts with."""
    if not source.startswith(PROLOGUE_START):
        return source
    head, _, kernel = source.partition(PROLOGUE_END + 'extern "C"')
    return (
        f'// ({head.count(chr(10)) + 2} lines of helpers)\nextern "C"{kernel}' if kernel else source
    )

"""explain: every stage of an expression, from its graph to the text of its kernels.

Nothing runs and no GPU is needed: each stage is a pure function, and the target is plain data.
Above each stage stands the file that makes it; the grammar of an IR is in the file that defines it.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from picograd.codegen.pipeline import LANGUAGES, TEMPLATES, generate
from picograd.engine.assembly import assembly_of
from picograd.engine.backends import get_device, target_of
from picograd.engine.inspect import target_named
from picograd.errors import ValueRangeError
from picograd.graph import verify as graph_printer
from picograd.graph.expand import expand_composites
from picograd.graph.node import Node
from picograd.late_methods import dataclass
from picograd.schedule import assemble
from picograd.schedule.loop import Kernel
from picograd.schedule.plan import format_plan
from picograd.schedule.schedule import schedule
from picograd.target import Target

WIDTH = 100
MADE_FOR = {"cpu": "llvm", "cuda": "cuda"}
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
        target = target_of(get_device(roots[0].device))
    chosen = target if isinstance(target, Target) else named_target(target)
    found = map(str, stages(roots, chosen, assembly, full))
    return Explanation("\n\n".join(found) + "\n")


def named_target(name: str) -> Target:
    """Find a target: "cpu" (this machine), "cuda" (an H200) or an architecture such as "sm_80"."""
    if name.startswith("sm_") and name[3:5].isdecimal():
        return target_named("cuda", name)
    if name not in MADE_FOR:
        fix = "use cpu, cuda or an architecture such as sm_80"
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
    template = TEMPLATES[kernel.hero].__module__
    yield Stage("Tile IR", template, repr(made["tile"]))
    yield Stage("Program", linearize.__name__, repr(made["program"]))
    source = code.source if full else without_prologue(code.source)
    title = f"Source: {render.TITLE} for {target.arch}"
    yield Stage(title, render.__name__, source)
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

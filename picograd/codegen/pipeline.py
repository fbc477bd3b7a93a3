"""Pipeline: from a Loop-IR kernel to the source text of its launch, stage by stage."""

from collections.abc import Callable
from typing import Any

from picograd.code import Code, Workspace
from picograd.codegen import linearize_cpu, linearize_cuda
from picograd.codegen.program import Program
from picograd.codegen.program import verify as verify_program
from picograd.codegen.render import cuda, llvm
from picograd.codegen.templates import contract, reduce, scan, scatter, sort
from picograd.codegen.templates import map as map_template
from picograd.codegen.tile import TileKernel
from picograd.codegen.tile import verify as verify_tiles
from picograd.helpers import product
from picograd.schedule.loop import Kernel, Part, Scan, walk
from picograd.target import Target

TEMPLATES: dict[str, Callable[[Kernel, Target], TileKernel]] = {
    "map": map_template.build,
    "gather": map_template.build,
    "copy": map_template.build,
    "reduce.row": reduce.build,
    "reduce.col": reduce.build,
    "reduce.all": reduce.build,
    "scatter": scatter.build,
    "scan": scan.build,
    "sort": sort.build,
    "radix": sort.build_radix,
    "runs": scatter.build_runs,
    "contract": contract.build,
    "conv": contract.build,
}
Trace = Callable[[str, Any], None]


def tile(kernel: Kernel, target: Target) -> TileKernel:
    """Choose the template of the kernel's hero and write the kernel in Tile IR."""
    hero = kernel.hero
    if hero in ("contract", "conv") and not any(p.computes[0].reduce for p in kernel.parts):
        hero = "map"  # an outer product, or one of depth 1 or 0, sums nothing
    return TEMPLATES[hero](kernel, target)


def linearize(tiles: TileKernel, target: Target) -> Program:
    """Write the program of one task or block."""
    language = linearize_cpu if target.language == "llvm" else linearize_cuda
    return language.linearize(tiles, target)


def render(program: Program, target: Target) -> str:
    """Write a program in the target's language."""
    return (llvm if target.language == "llvm" else cuda).render(program)


# Each stage takes what the one before it made, and the target.
STAGES: tuple[tuple[str, Callable[[Any, Target], Any]], ...] = (
    ("tile", tile),
    ("program", linearize),
    ("source", render),
)


VERIFIERS: dict[str, Callable[[Any], object]] = {"tile": verify_tiles, "program": verify_program}


def generate(
    kernel: Kernel, target: Target, trace: Trace | None = None, is_verified: bool = False
) -> Code:
    """Generate the code of one kernel; `trace(stage, ir)` is shown what each stage made.

    `is_verified` checks the invariants of every IR on the way.
    """
    made: dict[str, Any] = {}
    value: Any = kernel
    for name, stage in STAGES:
        value = made[name] = stage(value, target)
        if is_verified and name in VERIFIERS:
            VERIFIERS[name](value)
        if trace:
            trace(name, value)
    program: Program = made["program"]
    flops, moved = costs(kernel)
    return Code(
        kernel.name,
        target.language,
        kernel.name,
        made["source"],
        program.tasks,
        program.threads,
        program.shared_bytes,
        tuple(Workspace(*workspace) for workspace in program.workspaces),
        program.scalars,
        program.scratch_bytes,
        flops,
        moved,
    )


def costs(kernel: Kernel) -> tuple[int, int]:
    """Count arithmetic operations and the bytes that must move, for reports."""
    flops = 0
    for part in kernel.parts:
        flops += costs_along(part)
        for compute in part.computes:
            points = 1
            for axis in (*compute.axes, *compute.reduce):
                points *= axis.size
            operations = sum(1 for e in walk(compute.body) if e.args) + bool(compute.reduce)
            flops += points * operations
    return flops, bytes_moved(kernel)


def bytes_moved(kernel: Kernel) -> int:
    """Count the bytes that must move: what is written, and no more of an input than is read."""
    reads: dict[int, int] = {}
    for part in kernel.parts:
        for compute in part.computes:
            points = product(axis.size for axis in (*compute.axes, *compute.reduce))
            for expr in walk(compute.body):
                if expr.op == "load":
                    reads[expr.arg[0]] = reads.get(expr.arg[0], 0) + points
    moved = 0
    for number, slot in enumerate(kernel.slots):
        read = min(slot.size, reads.get(number, slot.size)) if slot.role != "out" else 0
        written = slot.size if slot.role != "in" else 0
        moved += (read + written) * slot.dtype.itemsize
    return moved


def costs_along(part: Part) -> int:
    """Count the operations of a scan: one an element, and those of its body."""
    step = part.along
    if not isinstance(step, Scan):
        return 0
    points = product(axis.size for axis in (*step.outer, step.axis, *step.inner))
    return points * (1 + sum(1 for e in walk(step.body) if e.args))

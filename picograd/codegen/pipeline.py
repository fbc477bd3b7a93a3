"""Pipeline: from a Loop-IR kernel to the source text of its launch, stage by stage."""

from collections.abc import Callable
from typing import Any

from picograd.code import Code, Workspace
from picograd.codegen.costs import costs, count_ended
from picograd.codegen.program import Program
from picograd.codegen.program import verify as verify_program
from picograd.codegen.templates import chain, contract, reduce
from picograd.codegen.templates import map as map_template
from picograd.codegen.tile import TileKernel
from picograd.codegen.tile import verify as verify_tiles
from picograd.helpers import on_demand
from picograd.schedule.loop import Kernel
from picograd.target import Target

TEMPLATES: dict[str, Callable[[Kernel, Target], TileKernel]] = {
    "map": map_template.build,
    "chain": chain.build,
    "gather": map_template.build,
    "copy": map_template.build,
    "reduce.row": reduce.build,
    "reduce.col": reduce.build,
    "reduce.all": reduce.build,
    "scatter": on_demand("picograd.codegen.templates.scatter", "build"),
    "scan": on_demand("picograd.codegen.templates.scan", "build"),
    "sort": on_demand("picograd.codegen.templates.sort", "build"),
    "radix": on_demand("picograd.codegen.templates.sort", "build_radix"),
    "runs": on_demand("picograd.codegen.templates.scatter", "build_runs"),
    "eliminate": on_demand("picograd.codegen.templates.panels", "build"),
    "bins": on_demand("picograd.codegen.templates.bins", "build"),
    "rotate": on_demand("picograd.codegen.templates.rotations", "build"),
    "attention": on_demand("picograd.codegen.templates.attention", "build"),
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
    return LANGUAGES[target.language][0](tiles, target)


def render(program: Program, target: Target) -> str:
    """Write a program in the target's language."""
    return LANGUAGES[target.language][1](program)


# What writes the program, and its text, for each source language.
LANGUAGES: dict[str, tuple[Callable[..., Program], Callable[[Program], str]]] = {
    "llvm": (
        on_demand("picograd.codegen.linearize_cpu", "linearize"),
        on_demand("picograd.codegen.render.llvm", "render"),
    ),
    "cuda": (
        on_demand("picograd.codegen.linearize_cuda", "linearize"),
        on_demand("picograd.codegen.render.cuda", "render"),
    ),
    "opencl": (
        on_demand("picograd.codegen.linearize_cuda", "linearize"),
        on_demand("picograd.codegen.render.opencl", "render"),
    ),
}


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
        program.tensors,
        sum(role != "out" for _, role in program.parameters),
        ended=count_ended(kernel),
    )

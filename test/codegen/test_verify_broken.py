"""Good IR, broken in one place: the verifiers say what is wrong and print the IR.

Real kernels are taken through the pipeline, one rule of the IR is broken, and the whole first line
of the message is compared.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from harness import TARGET
from structured import layer_norm, softmax

from picograd.codegen import program as linear
from picograd.codegen import tile as tiles
from picograd.codegen.pipeline import linearize, tile
from picograd.codegen.program import Instr, Program
from picograd.codegen.tile import Accumulate, Assign, For, Store, Tile, TileKernel, When
from picograd.dtype import float32, int64
from picograd.errors import InternalError
from picograd.schedule.index import Axis, axis_index, constant
from picograd.schedule.loop import Expr

BUG = ". This is a bug in picograd: please report it."
STRAY = Axis("stray", 4)
ZERO = Instr("const", int64, arg=0)
READ = Expr("index", (), constant(0), int64)
LOST = Expr("index", (), axis_index(STRAY), int64)


def good_tiles() -> TileKernel:
    return tiles.verify(tile(softmax().kernel, TARGET))


def good_program() -> Program:
    return linear.verify(linearize(good_tiles(), TARGET))


def first(step: Any) -> Tile:
    """First tile of the first part."""
    return step.parts[0].tiles[0]


def with_steps(kernel: TileKernel, *steps: Any) -> TileKernel:
    """Put steps before those of the first part."""
    part = kernel.parts[0]
    return replace(kernel, parts=(replace(part, steps=(*steps, *part.steps)),))


def with_tiles(kernel: TileKernel, *more: Tile) -> TileKernel:
    """Add tiles to the first part."""
    part = kernel.parts[0]
    return replace(kernel, parts=(replace(part, tiles=(*part.tiles, *more)),))


def reading(name: str, *where: Any) -> Store:
    return Store(1, constant(0), (), Expr("tile", (), (name, where), float32))


def broken_tiles(kernel: TileKernel) -> dict[str, tuple[TileKernel, str]]:
    """Give every broken kernel with the start of the message it must cause."""
    own = first(kernel)
    rank = len(own.shape)
    outside = Store(1, axis_index(STRAY), (), LOST)
    loop = For(STRAY, (outside,))
    unbound = "[stray:4] is not bound in "
    return {
        "a name twice": (with_tiles(kernel, own), "two tiles of one name" + BUG),
        "no workspace": (
            with_tiles(kernel, Tile("partial", (4,), float32, "workspace", None, 3)),
            "tile partial has no workspace" + BUG,
        ),
        "assign nowhere": (
            with_steps(kernel, Assign("nowhere", (), READ)), "nowhere is no tile" + BUG,
        ),
        "accumulate nowhere": (
            with_steps(kernel, Accumulate("nowhere", (), (), "sum", READ)),
            "nowhere is no tile" + BUG,
        ),
        "unbound axis": (with_steps(kernel, Assign(own.name, (), LOST)), unbound),
        "axis after its loop": (with_steps(kernel, loop, outside), unbound),
        "inside a condition": (
            with_steps(kernel, When((), (Assign(own.name, (), LOST),))), unbound,
        ),
        "read of no tile": (
            with_steps(kernel, reading("nowhere")), "bad read of tile nowhere" + BUG,
        ),
        "read of another rank": (
            with_steps(kernel, reading(own.name, *[constant(0)] * (rank + 1))),
            f"bad read of tile {own.name}" + BUG,
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", broken_tiles(good_tiles()))
def test_broken_tiles(name: str) -> None:
    broken, message = broken_tiles(good_tiles())[name]
    with pytest.raises(InternalError) as caught:
        tiles.verify(broken)
    head, _, printed = str(caught.value).partition("\n")
    assert head.startswith(message) and head.endswith(BUG)
    assert printed == repr(broken) and printed.startswith("tiles softmax (threads ")


def position(program: Program, op: str) -> int:
    """Find the first instruction with this op."""
    return [instr.op for instr in program.instructions].index(op)


def changed(program: Program, number: int, **changes: Any) -> Program:
    """Change one instruction."""
    listed = list(program.instructions)
    listed[number] = replace(listed[number], **changes)
    return replace(program, instructions=tuple(listed))


def appended(program: Program, *more: Instr) -> Program:
    """Add instructions at the end."""
    return replace(program, instructions=(*program.instructions, *more))


def use_early(program: Program) -> tuple[Program, str]:
    at = next(n for n, instr in enumerate(program.instructions) if instr.args)
    args = (at, *program.instructions[at].args[1:])
    return changed(program, at, args=args), f"%{at} uses %{at} before its definition"


def use_negative(program: Program) -> tuple[Program, str]:
    at = position(program, "loop")
    return changed(program, at, args=(-1, 0)), f"%{at} uses %-1 before its definition"


def use_outside(program: Program) -> tuple[Program, str]:
    loop, size = position(program, "loop"), len(program.instructions)
    broken = appended(program, Instr("neg", int64, (loop,)))
    return broken, f"%{size} uses %{loop} outside its scope"


def end_twice(program: Program) -> tuple[Program, str]:
    size = len(program.instructions)
    return appended(program, Instr("end", None)), f"%{size} ends nothing"


def never_end(program: Program) -> tuple[Program, str]:
    size = len(program.instructions)
    more = (ZERO, Instr("loop", int64, (size, size), (1, False)))
    return appended(program, *more), "a loop or branch is not closed"


def open_branch(program: Program) -> tuple[Program, str]:
    size = len(program.instructions)
    more = (Instr("const", int64, arg=1), Instr("if", None, (size,)))
    return appended(program, *more), "a loop or branch is not closed"


def write_input(program: Program) -> tuple[Program, str]:
    number = [role for _, role in program.parameters].index("in")
    size = len(program.instructions)
    more = (
        Instr("param", float32, arg=number), ZERO, Instr("const", float32, arg=0.0),
        Instr("store", float32, (size, size + 1, size + 2)),
    )  # fmt: skip
    return appended(program, *more), f"%{size + 3} stores to an input"


def mix_lanes(program: Program) -> tuple[Program, str]:
    size = len(program.instructions)
    more = (ZERO, Instr("splat", int64, (size,), lanes=4), Instr("add", int64, (size, size + 1)))
    return appended(program, *more), f"the arguments of %{size + 2} differ in lanes"


def foreign_parameter(program: Program) -> tuple[Program, str]:
    at, count = position(program, "param"), len(program.parameters)
    return changed(program, at, arg=count), f"%{at} names param {count} of {count}"


def foreign_scalar(program: Program) -> tuple[Program, str]:
    size = len(program.instructions)
    more = Instr("scalar", float32, arg=0)
    return appended(program, more), f"%{size} names scalar 0 of 0"


def foreign_workspace(program: Program) -> tuple[Program, str]:
    size, count = len(program.instructions), len(program.workspaces)
    more = Instr("workspace", float32, arg=count)
    return appended(program, more), f"%{size} names workspace {count} of {count}"


BREAKS = [
    use_early, use_negative, use_outside, end_twice, never_end, open_branch, write_input,
    mix_lanes, foreign_parameter, foreign_scalar, foreign_workspace,
]  # fmt: skip


@pytest.mark.parametrize("break_rule", BREAKS, ids=lambda function: function.__name__)
def test_broken_program(break_rule: Callable[[Program], tuple[Program, str]]) -> None:
    broken, message = break_rule(good_program())
    with pytest.raises(InternalError) as caught:
        linear.verify(broken)
    head, _, printed = str(caught.value).partition("\n")
    assert head == message + BUG
    assert printed == repr(broken) and printed.startswith("program softmax (tasks ")


def test_good_ir_passes() -> None:
    for case in (softmax(), layer_norm(), softmax(is_column=True)):
        kernel = tile(case.kernel, TARGET)
        assert tiles.verify(kernel) is kernel
        assert linear.verify(linearize(kernel, TARGET)).instructions

"""Wishes about loops reach LLVM, and loops that contain one are not copied unasked."""

import pytest

from picograd.codegen.program import Instr, Program
from picograd.codegen.render.llvm import render
from picograd.dtype import int64


def nest(*loops: tuple[int, bool | None]) -> str:
    """Render loops inside one another, each of so many rounds, with its wish."""
    instructions = [Instr("const", int64, arg=0)]
    for rounds, wish in loops:
        stop = len(instructions)
        instructions.append(Instr("const", int64, arg=rounds))
        instructions.append(Instr("loop", int64, (0, stop), (1, wish)))
    instructions += [Instr("end", None)] * len(loops)
    return render(Program("nest", tuple(instructions), ()))


@pytest.mark.parametrize(
    "inner, count",
    [((100, False), 1), ((8, False), 0), ((100, True), 0), ((8, None), 2)],
    ids=["long", "short", "unrolled", "never"],
)
def test_llvm_does_not_copy_loops_that_contain_one(
    inner: tuple[int, bool | None], count: int
) -> None:
    text = nest((100, False), inner)
    assert text.count("unroll.disable") == min(count, 1)  # loops of one wish share its text
    assert text.count("distinct") == count + (inner[1] is True)
    assert ("unroll.full" in text) == (inner[1] is True)

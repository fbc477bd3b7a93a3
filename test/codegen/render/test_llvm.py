"""Compiled LLVM kernels equal the Loop-IR interpreter."""

from typing import Any

import pytest
from cases import BINARY, INTEGER, UNARY, Case, binary, unary
from compare import check_arrays
from harness import run

from picograd import dtype as dtypes
from picograd.codegen.program import Instr, Program
from picograd.codegen.render.llvm import render
from picograd.dtype import int64
from picograd.schedule.verify import verify

FLOATS = [dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16]
INTEGERS = [dtypes.int32, dtypes.uint8, dtypes.int64, dtypes.int8]


def compare(case: Case) -> None:
    verify(case.kernel)
    check_arrays(case, run(case.kernel, case.arrays, case.scalars))


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_unary(name: str, dtype: Any) -> None:
    compare(unary(name, dtype))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", FLOATS[:2], ids=lambda d: d.name)
def test_binary(name: str, dtype: Any) -> None:
    compare(binary(name, dtype))


@pytest.mark.parametrize("name", INTEGER)
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.name)
def test_integer(name: str, dtype: Any) -> None:
    compare(binary(name, dtype))


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
def test_llvm_does_not_copy_loops_that_contain_one(inner: Any, count: int) -> None:
    text = nest((100, False), inner)
    assert text.count("unroll.disable") == min(count, 1)  # loops of one wish share its text
    assert text.count("distinct") == count + (inner[1] is True)
    assert ("unroll.full" in text) == (inner[1] is True)

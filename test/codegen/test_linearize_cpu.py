"""Kernels of every template on the CPU, whole and cut into many tasks, equal Loop IR."""

import pytest
from cases import Case
from compare import check_arrays
from harness import run
from structured import STRUCTURED

from picograd.codegen.linearize_cpu import zeroed_last
from picograd.codegen.program import Instr
from picograd.dtype import int64
from picograd.schedule.verify import verify


def compare(case: Case) -> None:
    verify(case.kernel)
    check_arrays(case, run(case.kernel, case.arrays, case.scalars))


@pytest.mark.parametrize("name", STRUCTURED)
def test_structured_kernel(name: str) -> None:
    compare(STRUCTURED[name]())


@pytest.mark.parametrize("name", STRUCTURED)
@pytest.mark.usefixtures("small_tasks")
def test_many_tasks(name: str) -> None:
    compare(STRUCTURED[name]())


def test_workspaces_that_must_be_zero_come_last() -> None:
    space = [Instr("workspace", None, arg=number) for number in range(3)]
    other = Instr("task", int64)
    found, spaces = zeroed_last([*space, other], [(4, True), (8, False), (16, False)])
    assert [each.arg for each in found] == [2, 0, 1, None]
    assert spaces == [(8, False), (16, False), (4, True)]

"""Kernels of every template on the CPU, whole and cut into many tasks, equal Loop IR."""

import pytest
from cases import Case
from compare import check_arrays
from harness import run
from structured import STRUCTURED

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

"""Reductions of runs of equal keys in blocks of threads."""

import pytest
from rowwise_cases import RUN_CASES, check_barriers, check_cuda, check_no_spills


@pytest.mark.parametrize("name", RUN_CASES)
def test_values(name: str) -> None:
    check_cuda(name)


@pytest.mark.parametrize("name", ["runs_flat"])
def test_shared_memory_is_read_behind_barriers(name: str) -> None:
    check_barriers(name)


@pytest.mark.parametrize("name", ["runs_flat", "runs_rows"])
def test_nothing_spills(name: str) -> None:
    check_no_spills(name)

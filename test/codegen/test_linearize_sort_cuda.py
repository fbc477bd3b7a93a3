"""Sorts in blocks of threads, of rows and of runs of them."""

import pytest
from rowwise_cases import RUNS, SORTS, check_barriers, check_cuda, check_no_spills


@pytest.mark.parametrize("name", [*RUNS, *SORTS])
def test_values(name: str) -> None:
    check_cuda(name)


@pytest.mark.parametrize("name", ["sort_columns", "sort_digits"])
def test_shared_memory_is_read_behind_barriers(name: str) -> None:
    check_barriers(name)


@pytest.mark.parametrize("name", ["sort_runs", "sort_digits"])
def test_nothing_spills(name: str) -> None:
    check_no_spills(name)

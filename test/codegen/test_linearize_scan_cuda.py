"""Running sums in blocks of threads."""

import pytest
from rowwise_cases import SCANS, check_barriers, check_cuda, check_no_spills


@pytest.mark.parametrize("name", SCANS)
def test_values(name: str) -> None:
    check_cuda(name)


@pytest.mark.parametrize("name", ["rows_tiles", "rows_aligned"])
def test_shared_memory_is_read_behind_barriers(name: str) -> None:
    check_barriers(name)


@pytest.mark.parametrize("name", ["rows", "rows_log", "column_chunks"])
def test_nothing_spills(name: str) -> None:
    check_no_spills(name)

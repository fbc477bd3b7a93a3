"""Counting and moving by digits in blocks of threads."""

import pytest
from rowwise_cases import RADIX, check_barriers, check_cuda, check_no_spills


@pytest.mark.parametrize("name", RADIX)
def test_values(name: str) -> None:
    check_cuda(name)


@pytest.mark.parametrize("name", ["move_row", "count_row"])
def test_shared_memory_is_read_behind_barriers(name: str) -> None:
    check_barriers(name)


@pytest.mark.parametrize("name", ["move_rows"])
def test_nothing_spills(name: str) -> None:
    check_no_spills(name)

"""Warps that add values to bins of their own."""

import pytest
from rowwise_cases import BINS, check_barriers, check_cuda, check_no_spills


@pytest.mark.parametrize("name", BINS)
def test_values(name: str) -> None:
    check_cuda(name)


@pytest.mark.parametrize(
    "name", ["bins_rows", "bins_shared", "bins_turns", "bins_short", "bins_counted"]
)
def test_shared_memory_is_read_behind_barriers(name: str) -> None:
    check_barriers(name)


@pytest.mark.parametrize("name", ["bins_rows", "bins_shared", "bins_counted"])
def test_nothing_spills(name: str) -> None:
    check_no_spills(name)

"""Running sums on the CPU: Tile IR and compiled code."""

import pytest
from rowwise_cases import SCANS, check_cpu, check_stops, scan


@pytest.mark.parametrize("name", SCANS)
def test_values(name: str) -> None:
    check_cpu(name)


@pytest.mark.parametrize("name", ["rows", "chunks_rest", "column_chunks"])
def test_it_stops_where_nobody_looks(name: str) -> None:
    check_stops(scan("cpu", *SCANS[name]), SCANS[name][1], is_sort=False)

"""Sorts on the CPU: Tile IR and compiled code."""

import pytest
from rowwise_cases import SORTS, check_cpu, check_stops, sort

from picograd.dtype import float32, int32

STOPPED = {"long": ((300, 5), 1, int32, False), "short": ((50, 5), 1, float32, False)}


@pytest.mark.parametrize("name", SORTS)
def test_values(name: str) -> None:
    check_cpu(name)


@pytest.mark.parametrize("name", STOPPED)
def test_it_stops_where_nobody_looks(name: str) -> None:
    node = sort("cpu", *STOPPED[name])
    check_stops(node, node.arg[0], is_sort=True)

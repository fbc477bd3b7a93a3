"""The template of reductions: of columns and of whole arrays, in blocks of threads."""

import pytest
from cuda_tools import source_of
from template_cases import check, check_no_spills, library, names

from picograd.codegen.tile import format_tiles


@pytest.mark.parametrize("name", names("column", "total", "streamed"))
def test_values_on_cuda(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", ["column_split", "column_narrow", "total_split"])
def test_nothing_spills(name: str) -> None:
    check_no_spills(name)


def test_what_a_column_reads_once_is_read_before_its_rows() -> None:
    """And both sums run in one loop, all of whose threads have elements."""
    _, tiles, _ = library()
    source = source_of(tiles["column_narrow"])[0]
    before, loop = source[source.index("__global__") :].split("for (", 1)
    assert before.count("(s1 +") == 1 and loop.count("(s1 +") == 0
    assert before.count("(s0 +") == 0 and loop.count("(s0 +") == 1
    text = format_tiles(tiles["column_narrow"])
    assert "threads (2,) x vector (4,), first fastest" in text

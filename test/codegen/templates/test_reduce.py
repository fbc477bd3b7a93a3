"""The template of reductions: of columns and of whole arrays, in blocks of threads."""

import pytest
from cuda_tools import load, row_major, source_of
from template_cases import check, check_no_spills, library, names

from picograd.codegen.templates import reduce
from picograd.codegen.tile import format_tiles
from picograd.dtype import float32
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Compute, Kernel, Part, Slot
from picograd.target import cuda_target


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


@pytest.mark.parametrize("rows, length, blocks", [(4096, 64, 256), (4096, 400, 512), (80, 64, 10)])
def test_short_rows_share_a_block(rows: int, length: int, blocks: int) -> None:
    """As many as have threads, if there are many; others have a warp each."""
    row, place = Axis("r", rows), Axis("c", length)
    body = load(0, row_major(row, place), float32)
    total = Compute((row,), (place,), "sum", body, float32, (1, axis_index(row)))
    slots = Slot(float32, rows * length, "in"), Slot(float32, rows, "out")
    kernel = Kernel("sums", "reduce.row", slots, (), (Part((row,), (total,)),))
    tiles = reduce.build(kernel, cuda_target("sm_90a", multiprocessors=8))
    assert tiles.parts[0].blocks == blocks

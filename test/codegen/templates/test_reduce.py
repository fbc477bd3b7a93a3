"""The template of reductions: of columns and of whole arrays, in blocks of threads."""

from dataclasses import replace

import pytest
from cases import guard, kernel, load
from cuda_tools import source_of
from template_cases import check, check_no_spills, library, names

from picograd.codegen.templates.reduce import build
from picograd.codegen.tile import format_tiles, verify
from picograd.dtype import float32
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Compute, Expr, Part
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


def test_short_columns_are_reduced_by_a_thread_each() -> None:
    """Four parts of many numbers, as of the gradient of a weight: no thread waits for rows."""
    part, place = Axis("part", 4), Axis("place", 100_000)
    index = axis_index(part) * 100_000 + axis_index(place)
    body = Expr("load", (), (0, index), float32)
    store = 1, axis_index(place)
    rows = (place,)
    total = Compute(rows, (part,), "sum", body, float32, store)
    slots = [(float32, 400_000, "in"), (float32, 100_000, "out")]
    parts = kernel("parts", "reduce.col", slots, Part(rows, (total,)))
    tiles = verify(build(parts, cuda_target("sm_90a", 132)))
    assert tiles.parts[0].tiles[0].layout.threads == (256, 1)
    longer = replace(total, reduce=(Axis("part", 64),))
    many = kernel("many", "reduce.col", slots, Part(rows, (longer,)))
    assert build(many, cuda_target("sm_90a", 132)).parts[0].tiles[0].layout.threads == (32,)


def test_sums_over_images_and_rows_are_cut_along_both() -> None:
    """Guards keep the axes of images apart: 16 images are too few blocks."""
    image, row, column = Axis("image", 16), Axis("row", 56), Axis("column", 56)
    channel = Axis("channel", 128)
    place = axis_index(image) * 56 + axis_index(row)
    index = (place * 56 + axis_index(column)) * 128 + axis_index(channel)
    near = guard(load(0, float32, index - 128 * 56), 0.0, (axis_index(row) - 1, 0, 54))
    store = 1, axis_index(channel)
    total = Compute((channel,), (image, row, column), "sum", near, float32, store)
    slots = [(float32, 16 * 56 * 56 * 128, "in"), (float32, 128, "out")]
    sums = kernel("sums", "reduce.col", slots, Part((channel,), (total,)))
    (part,) = verify(build(sums, cuda_target("sm_90a", 132))).parts
    assert part.grid[-1].size == 16 * 28

"""The template of running sums."""

import pytest
from rowwise_cases import step_count
from run_cpu import TARGET

from picograd.codegen.templates.scan import build, is_for_threads
from picograd.dtype import float32
from picograd.schedule.index import Axis, position_over
from picograd.schedule.loop import Expr, Kernel, Part, Scan, Slot


def test_the_step_count_does_not_depend_on_the_size() -> None:
    assert step_count("rows") <= 6


def scan_kernel(is_crossed: bool) -> Kernel:
    """Sums down 100 rows of 2000 columns, of which rows or columns are contiguous in the input."""
    k, column = Axis("k", 100), Axis("c", 2000)
    read = (column, k) if is_crossed else (k, column)
    body = Expr("load", (), (0, position_over(read)), float32)
    scan = Scan((), k, (column,), "sum", body, None, 1, position_over((k, column)))
    slots = (Slot(float32, 200_000, "in"), Slot(float32, 200_000, "out"))
    return Kernel("sums", "scan", slots, (), (Part((), (), along=scan),))


@pytest.mark.parametrize(
    ("rows", "size", "is_wanted"),
    [(300, 4, True), (300, 25, False), (10_000, 25, True), (10_000, 50, False)],
)
def test_short_rows_of_which_there_are_many_have_a_thread_each(
    rows: int, size: int, is_wanted: bool
) -> None:
    axes = Axis("r", rows), Axis("k", size)
    body = Expr("load", (), (0, position_over(axes)), float32)
    scan = Scan(axes[:1], axes[1], (), "sum", body, None, 1, position_over(axes))
    assert is_for_threads(scan) is is_wanted


@pytest.mark.parametrize("is_crossed", [True, False])
def test_columns_that_memory_runs_along_are_few(is_crossed: bool) -> None:
    kernel = scan_kernel(is_crossed)
    (part,) = build(kernel, TARGET).parts
    assert part.steps[0].inner[0].size <= (32 if is_crossed else 1024)

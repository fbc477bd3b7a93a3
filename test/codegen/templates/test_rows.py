"""The template of rows: softmax, norms, losses, in blocks of threads."""

import pytest
from cases import at, kernel, load, op, ref
from template_cases import check, check_no_spills, names

from picograd.codegen.pipeline import tile
from picograd.codegen.tile import verify
from picograd.dtype import float32
from picograd.schedule.index import Axis
from picograd.schedule.loop import Compute, Part
from picograd.target import Target


@pytest.mark.parametrize(
    "name", names("softmax", "layer_norm", "moments", "argmax", "cross_entropy")
)
def test_values_on_cuda(name: str) -> None:
    check(name)


def test_windows_over_columns_lie_as_they_are_read_on_a_cpu() -> None:
    """One worker keeps what the windows of all rows give: it wrote beyond its scratch memory."""
    column, row, window = Axis("j", 8), Axis("i", 6), Axis("w", 2)
    read = load(0, float32, at((row, window, column), (6, 2, 8)))
    place = at((row, column), (6, 8))
    computes = (
        Compute((column, row), (window,), "max", read, float32),
        Compute((column,), (row,), "sum", ref(0), float32),
        Compute((column, row), (), None, op("sub", ref(0), ref(1)), float32, (1, place)),
    )
    sizes = [(float32, 96, "in"), (float32, 48, "out")]
    made = kernel("windows", "reduce.col", sizes, Part((column,), computes))
    verify(tile(made, Target("llvm", "test", 64, threads=1)))


@pytest.mark.parametrize("name", ["softmax_aligned"])
def test_nothing_spills(name: str) -> None:
    check_no_spills(name)

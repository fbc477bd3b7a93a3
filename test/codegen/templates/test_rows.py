"""The template of rows: softmax, norms, losses, in blocks of threads."""

import numpy as np
import pytest
from cases import at, guard, kernel, load, op, ref
from template_cases import check, check_no_spills, names

from picograd.codegen.interpret_tile import interpret
from picograd.codegen.pipeline import tile
from picograd.codegen.tile import verify
from picograd.dtype import float32
from picograd.schedule.index import Axis, axis_index
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


def test_sums_in_pieces_wait_for_the_maximum_that_they_read() -> None:
    """Guarded powers, as of rows whose length varies, are no computes of their own."""
    row, place = Axis("i", 1), Axis("j", 131_072)
    read, inside = load(0, float32, at((place,), (131_072,))), (axis_index(place), 0, 99_999)
    power = op("exp", op("sub", read, ref(0)))
    computes = (
        Compute((row,), (place,), "max", guard(read, -np.inf, inside), float32),
        Compute((row,), (place,), "sum", guard(power, 0.0, inside), float32, (1, axis_index(row))),
    )
    sizes = [(float32, 131_072, "in"), (float32, 1, "out")]
    made = kernel("powers", "reduce.row", sizes, Part((row,), computes))
    tiles = verify(tile(made, Target("llvm", "test", 64, threads=1)))
    values = np.random.default_rng(0).standard_normal(131_072).astype(np.float32)
    given = [values, np.zeros(1, np.float32)]
    interpret(tiles, given)
    kept = values[:100_000].astype(np.float64)
    np.testing.assert_allclose(given[1], np.exp(kept - kept.max()).sum(), 1e-5)


@pytest.mark.parametrize("name", ["softmax_aligned"])
def test_nothing_spills(name: str) -> None:
    check_no_spills(name)

"""A maximum and sums of exponentials below it, of rows that blocks share, are one reading."""

from functools import partial

import numpy as np
import pytest
from plan_support import leaf

from picograd.codegen.interpret_program import interpret
from picograd.codegen.interpret_tile import interpret as interpret_tile
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.templates.reduce import build
from picograd.codegen.templates.rescaled_sums import rescaled_axes, sums_of
from picograd.codegen.tile import TileKernel, verify
from picograd.dtype import float32
from picograd.graph import build as graph
from picograd.graph.node import Node
from picograd.schedule.index import Axis, axis_index, constant
from picograd.schedule.loop import Compute, Expr, Part, const
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

GPU = cuda_target("sm_90a", 2)
ROWS, LENGTH = 2, 20_000
LIST = [(1, "plain"), (0, "plain"), (1, "pieces"), (1, "nothing"), (1, "infinite"), (1, "none")]


def values(case: str, axis: int) -> np.ndarray:
    """Rows whose pieces have maxima far apart, or hold nothing but -inf."""
    found = np.random.default_rng(0).normal(0, 3, (ROWS, LENGTH)).astype(np.float32)
    found[:, LENGTH // 3 :] -= 40
    found[:, LENGTH // 2 :] -= 200
    if case == "pieces":
        found[0, :12_000] = found[1, 9000:] = -np.inf
    elif case == "nothing":
        found[1] = -np.inf
    elif case == "infinite":
        found[0, 5] = np.inf
    elif case == "none":
        found[0, 7] = np.nan
    return found if axis else np.ascontiguousarray(found.T)


def roots_of(kind: str, axis: int) -> list[Node]:
    x = leaf(*((ROWS, LENGTH) if axis else (LENGTH, ROWS)))
    if kind == "logsumexp":
        return [graph.logsumexp(x, axis)]
    peak = x.reduce("max", (axis,), keepdim=True)
    powers = (x - peak.expand(x.shape)).unary("exp")
    return [peak, powers.reduce("sum", (axis,))]


def kernel_of(roots: list[Node]) -> TileKernel:
    (found,) = schedule(roots, GPU).kernels
    return verify(build(found, GPU))


@pytest.mark.parametrize("axis, case", LIST)
@pytest.mark.parametrize("kind", ["sums", "logsumexp"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values(axis: int, case: str, kind: str) -> None:
    tiles = kernel_of(roots_of(kind, axis))
    assert any(each.name == "split" and each.size > 1 for each in tiles.parts[0].grid)
    x = values(case, axis)
    wide = x.astype(np.float64)
    peak = wide.max(axis, keepdims=True)
    if kind == "sums":
        wanted = [peak.ravel(), np.exp(wide - peak).sum(axis)]
    else:
        finite = np.where(np.isinf(peak), 0, peak)
        wanted = [np.log(np.exp(wide - finite).sum(axis)) + finite.ravel()]
    program = linearize(tiles, GPU)
    for run in (partial(interpret_tile, tiles), partial(interpret, program)):
        given = [x.ravel(), *(np.zeros(ROWS, np.float32) for _ in wanted)]
        run(given)
        for found, right in zip(given[1:], wanted):
            is_empty = kind == "sums" and case == "nothing"  # 0 where it would be NaN: x / 0 is NaN
            rows = slice(0, 1) if is_empty else slice(None)
            np.testing.assert_allclose(found[rows], right[rows], rtol=2e-5)


def test_what_is_found_in_a_part() -> None:
    row, place = Axis("r", 8), Axis("c", 100)
    x = Expr("load", (), (0, axis_index(row) * 100 + axis_index(place)), float32)
    top = Compute((row,), (place,), "max", x, float32, None)
    below = Expr("sub", (x, Expr("ref", (), 0, float32)), None, float32)
    power = Expr("exp", (below,), None, float32)
    total = Compute((row,), (place,), "sum", power, float32, (1, axis_index(row)))
    part = Part((row,), (top, total))
    assert {n: each.peak for n, each in sums_of(part).items()} == {1: 0}
    assert rescaled_axes(part) == (place,)
    doubled = Expr("mul", (power, const(2.0, float32)), None, float32)
    weighed = Compute((row,), (place,), "sum", doubled, float32, (1, axis_index(row)))
    assert not sums_of(Part((row,), (top, weighed)))
    assert rescaled_axes(Part((row,), (top, weighed))) is None
    loaded = Expr("load", (), (2, constant(0)), float32)
    both = Expr("add", (loaded, Expr("ref", (), 0, float32)), None, float32)
    away = Expr("exp", (Expr("sub", (x, both), None, float32),), None, float32)
    other = Compute((row,), (place,), "sum", away, float32, None)
    assert not sums_of(Part((row,), (top, other)))
    moved = Expr("exp", (Expr("sub", (x, loaded), None, float32),), None, float32)
    other = Compute((row,), (place,), "sum", moved, float32, None)
    assert not sums_of(Part((row,), (top, other)))

"""Values computed along one axis and stored along another pass through tiles."""

from typing import Any

import numpy as np
import plain_nodes
import pytest
from harness import TARGET, run

from picograd.buffer import Buffer, Storage
from picograd.codegen.pipeline import tile
from picograd.codegen.templates.transposed import LEAST, RUN, write_out
from picograd.codegen.tile import For, Store, Tile, format_tiles
from picograd.dtype import float32
from picograd.graph import build
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr, Kernel, const
from picograd.schedule.schedule import schedule


def softmax(stored: tuple[int, ...], order: tuple[int, ...], axis: int) -> Kernel:
    """A softmax of an array that lies in another order."""
    x = plain_nodes.buffer(Storage(Buffer("cpu", float32, int(np.prod(stored)), 0)), stored)
    (kernel,) = schedule([build.softmax(x.permute(order), axis)], TARGET).kernels
    return kernel


def expected(values: Any, axis: int) -> Any:
    shifted = np.exp(values - values.max(axis, keepdims=True))
    return shifted / shifted.sum(axis, keepdims=True)


SIZES = [(70, 33), (33, 200), (9, 8), (64, 64), (8, 1000), (1000, 9), (700, 130), (5, 40), (40, 5)]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("stored", SIZES, ids=str)
def test_rows_and_columns_stored_across(stored: tuple[int, int], axis: int) -> None:
    values = np.random.default_rng(0).standard_normal(stored).astype(np.float32)
    kernel = softmax(stored, (1, 0), axis)
    found = run(kernel, [values, np.zeros(values.size, np.float32)])[1]
    np.testing.assert_allclose(found.reshape(stored[::-1]), expected(values.T, axis), rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("order", [(2, 1, 0), (0, 2, 1), (1, 0, 2), (2, 0, 1)])
def test_several_axes_of_rows(order: tuple[int, ...], axis: int) -> None:
    stored = (12, 35, 19)
    values = np.random.default_rng(0).standard_normal(stored).astype(np.float32)
    wanted = expected(values.transpose(order), axis)
    found = run(softmax(stored, order, axis), [values, np.zeros(values.size, np.float32)])[1]
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
def test_what_is_stored_is_computed_in_tiles_first(axis: int) -> None:
    text = format_tiles(tile(softmax((130, 200), (1, 0), axis), TARGET))
    assert "shared x" in text


def store(*sizes: int, along: int) -> Store:
    """A store that runs along one of its dims."""
    axes = tuple(Axis(name, size) for name, size in zip("abc", sizes))
    place = axis_index(axes[along])
    step = axes[along].size
    for axis in axes:
        if axis is not axes[along]:
            place, step = place + axis_index(axis) * step, step * axis.size
    return Store(0, place, axes, const(1.0, float32))


def test_stores_in_order_or_of_few_elements_stay_as_they_are() -> None:
    tiles: list[Tile] = []
    plain = [store(4, 20, along=1), store(LEAST - 1, 20, along=0), store(20, LEAST - 1, along=0)]
    assert write_out(plain, tiles) == plain and not tiles


def test_what_runs_leave_over_is_stored_too() -> None:
    tiles: list[Tile] = []
    full, first, last = write_out([store(2 * RUN + 3, 20, along=0)], tiles)
    assert isinstance(full, For) and full.axis.size == 2
    assert [tile.shape for tile in tiles] == [(RUN, 20), (3, 20)]
    assert isinstance(last, Store) and [axis.size for axis in last.dims] == [20, 3]
    assert isinstance(last.expr, Expr) and last.expr.op == "tile" and first is not last

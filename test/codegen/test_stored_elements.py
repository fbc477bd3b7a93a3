"""Elements that a reduction stores side by side are vectors, if memory has them at a multiple."""

import re

import numpy as np
import pytest
from cuda_tools import H200, compile_host, run_host, source_of

from picograd.codegen.pipeline import tile
from picograd.codegen.stored_elements import beside
from picograd.codegen.tile import Store, TileKernel
from picograd.dtype import float32
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.interpret import interpret
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot, const
from picograd.schedule.verify import verify

ROWS, POINTS = 2, 3000  # rows that blocks share


def kernel_of(pieces: int, first: int = 0) -> Kernel:
    """Sum rows, and store several elements a point, the first so far from a multiple of four."""
    row, point = Axis("r", ROWS), Axis("p", POINTS)
    axes, here = (row, point), axis_index(row) * POINTS + axis_index(point)
    source = Expr("load", (), (0, here), float32)
    computes = []
    for n in range(pieces):
        body = Expr("mul", (source, const(n + 1.0, float32)), None, float32)
        computes.append(Compute(axes, (), None, body, float32, (1, here * 4 + n + first)))
    total = Compute((row,), (point,), "sum", source, float32, (2, axis_index(row)))
    slots = (
        Slot(float32, ROWS * POINTS, "in"),
        Slot(float32, ROWS * POINTS * 4 + 4, "out"),
        Slot(float32, ROWS, "out"),
    )
    return verify(Kernel("rows", "reduce.row", slots, (), (Part((row,), (*computes, total)),)))


def stores_of(tiles: TileKernel) -> list[Store]:
    steps = [step for part in tiles.parts for step in part.steps]
    return [step for step in steps if isinstance(step, Store)]


@pytest.mark.parametrize(
    ("pieces", "first", "lanes"), [(4, 0, [4]), (2, 0, [2]), (3, 0, []), (4, 1, []), (4, 4, [4])]
)
def test_vectors(pieces: int, first: int, lanes: list[int]) -> None:
    kernel = kernel_of(pieces, first)
    tiles = tile(kernel, H200)
    source, _ = source_of(tiles)
    found = re.findall(r"\*\(Vector<float, (\d)>\*\)\(s1 ", source)
    assert [int(each) for each in found] == lanes
    given = np.random.default_rng(0).integers(-4, 5, ROWS * POINTS).astype(np.float32)
    wanted = [np.full(slot.size, np.nan, np.float32) for slot in kernel.slots]
    wanted[0][:] = given
    interpret(kernel, wanted, [])
    for number, values in run_host(compile_host([tiles]), tiles, {0: given}).items():
        np.testing.assert_array_equal(values, wanted[number])


class Alone:
    """A walk without vectors, as far as stores ask for it."""

    vector = None


def test_stores_apart_are_left() -> None:
    stores = stores_of(tile(kernel_of(4), H200))
    assert [len(each) for each in beside(stores, Alone())] == [4]
    assert [len(each) for each in beside(stores[::-1], Alone())] == [1, 1, 1, 1]
    assert [len(each) for each in beside([*stores, *stores], Alone())] == [4, 4]

"""Rows whose points store several elements: how many threads, when stores go, and the results."""

from dataclasses import replace

import numpy as np
import pytest
from cuda_tools import H200, compile_host, run_host

from picograd.codegen.pipeline import tile
from picograd.codegen.templates.row_pieces import pieces_of, stores_ahead, threads_of_pieces
from picograd.codegen.tile import Store, TileKernel
from picograd.dtype import float32, float64
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.interpret import interpret
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot, const
from picograd.schedule.verify import verify

PIECES = 4


def kernel_of(rows: int, points: int, is_chain: bool, last: int) -> Kernel:
    """Store four elements a point, sum rows of them, and what is left without the mean of a row.

    Of the last point of a row only `last` elements are there.
    """
    row, point = Axis("r", rows), Axis("p", points)
    axes, here = (row, point), axis_index(row) * points + axis_index(point)
    size = points * PIECES - PIECES + last
    source = Expr("load", (), (0, here), float32)
    computes = []
    for n in range(PIECES):
        body = Expr("mul", (source, const(n + 1.0, float32)), None, float32)
        computes.append(Compute(axes, (), None, body, float32, (1, here * PIECES + n)))
    wide = []
    for n in range(PIECES):
        value = Expr("cast", (Expr("ref", (), n, float32),), None, float64)
        inside = ((axis_index(point) * PIECES + n, 0, size - 1),)
        wide.append(Expr("guard", (value, const(0.0, float64)), inside, float64))
    pair = [Expr("add", (a, b), None, float64) for a, b in (wide[:2], wide[2:])]
    total = Expr("add", tuple(pair), None, float64)
    own = axis_index(row)
    computes.append(Compute((row,), (point,), "sum", total, float64, (2, own)))
    for n in range(PIECES if is_chain else 0):
        mean = Expr("cast", (Expr("ref", (), PIECES, float64),), None, float32)
        body = Expr("sub", (Expr("ref", (), n, float32), mean), None, float32)
        place = axis_index(point) * PIECES + n
        seen = ((place, 0, size - 1),) if n >= last else ()
        store = 3, own * size + place
        computes.append(Compute(axes, (), None, body, float32, store, seen))
    slots = [
        Slot(float32, rows * points, "in"),
        Slot(float32, rows * points * PIECES, "out"),
        Slot(float64, rows, "out"),
        Slot(float32, rows * size + PIECES, "out"),  # behind the last row nothing is stored
    ]
    kept = tuple(slots[: 4 if is_chain else 3])
    return verify(Kernel("rows", "reduce.row", kept, (), (Part((row,), tuple(computes)),)))


def stores_of(tiles: TileKernel) -> list[Store]:
    return [step for part in tiles.parts for step in part.steps if isinstance(step, Store)]


@pytest.mark.parametrize("last", [4, 3])
@pytest.mark.parametrize(
    ("rows", "points", "is_chain"),
    [(6, 40, True), (6, 40, False), (3, 3000, True), (2, 9000, False)],
)
def test_results(rows: int, points: int, is_chain: bool, last: int) -> None:
    kernel = kernel_of(rows, points, is_chain, last)
    given = np.random.default_rng(0).integers(-4, 5, rows * points).astype(np.float32)
    wanted = [np.full(slot.size, np.nan, slot.dtype.numpy) for slot in kernel.slots]
    wanted[0][:] = given
    interpret(kernel, wanted, [])
    tiles = tile(kernel, H200)
    found = run_host(compile_host([tiles]), tiles, {0: given})
    for number, values in found.items():
        np.testing.assert_array_equal(values, wanted[number])


def test_threads() -> None:
    """As many as hold 32 elements each, but not more than there are points."""
    part = kernel_of(2, 40, True, 4).parts[0]
    assert pieces_of(part) == PIECES and threads_of_pieces(part, 40) == 8
    assert threads_of_pieces(part, 10000) == 512 and threads_of_pieces(part, 1) == 1
    single = replace(part, computes=part.computes[PIECES : PIECES + 1])
    assert pieces_of(single) == 1 and not threads_of_pieces(single, 40)


def test_rows_are_stored_before_they_are_summed_if_registers_are_full() -> None:
    tiles = tile(kernel_of(200, 8000, True, 4), H200)
    names = [type(step).__name__ for step in tiles.parts[0].steps]
    assert names.index("Store") < names.index("Accumulate")
    short = stores_of(tile(kernel_of(200, 40, True, 4), H200))
    assert stores_ahead(short[:1], ()) == ([], short[:1]), "registers are left"

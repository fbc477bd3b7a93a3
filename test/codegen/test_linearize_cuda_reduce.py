"""Reductions over the threads of a block, from Tile IR, run through the shim."""

import numpy as np
import pytest
from cuda_tiles import COLUMNS, MONOIDS, ROWS, build, run, tile_read, values
from cuda_tools import load, source_of

from picograd.codegen.layout import Blocked
from picograd.codegen.tile import Accumulate, Assign, For, Store, Tile, TilePart
from picograd.dtype import float32
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr, Slot, const

# (threads, layout over (rows of the block, columns)): within a thread, a warp, several warps
REDUCTIONS = [
    (32, Blocked((1, COLUMNS), (1, 32), (1, 1))),
    (32, Blocked((1, COLUMNS), (1, 32), (1, 4))),
    (256, Blocked((1, COLUMNS), (1, 256), (1, 1))),
    (128, Blocked((4, COLUMNS), (4, 32), (1, 1))),
    (128, Blocked((8, COLUMNS), (2, 64), (1, 2))),
    (128, Blocked((16, COLUMNS), (16, 8), (1, 1))),
    (128, Blocked((16, COLUMNS), (16, 4), (1, 4))),
    (64, Blocked((4, COLUMNS), (4, 1), (1, 1))),
]


@pytest.mark.parametrize("number", range(len(REDUCTIONS)))
def test_row_reductions(number):
    threads, layout = REDUCTIONS[number]
    rows = layout.shape[0]
    grid, r, c = Axis("block", ROWS // rows), Axis("r", rows), Axis("c", COLUMNS)
    row = axis_index(grid) * rows + axis_index(r)
    narrow = Blocked((rows,), layout.threads[:1], (1,))
    tiles, steps = [], []
    for slot, monoid in enumerate(MONOIDS, 1):
        tiles.append(Tile(monoid, (rows,), float32, "register", narrow))
        read = load(0, row * COLUMNS + axis_index(c), float32)
        steps.append(Accumulate(monoid, (r,), (c,), monoid, read, True, layout))
        steps.append(Store(slot, row, (r,), tile_read(monoid, r)))
    slots = [Slot(float32, ROWS * COLUMNS, "in")] + [Slot(float32, ROWS, "out")] * 4
    part = TilePart((grid,), tuple(tiles), tuple(steps))
    x = values(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    got = run(build(f"rows_{number}", slots, [part], threads), {0: x})
    for slot, function in enumerate(MONOIDS.values(), 1):
        np.testing.assert_allclose(got[slot], function(x, axis=1), rtol=3e-6, atol=3e-6)


COLUMN_LAYOUTS = [
    (64, Blocked((64, 30), (64, 1), (1, 1))),
    (256, Blocked((64, 30), (64, 4), (1, 1))),
    (256, Blocked((64, 30), (16, 16), (4, 1))),
    (256, Blocked((64, 30), (16, 16), (4, 1), True)),
    (256, Blocked((64, 30), (32, 8), (1, 1), True)),
    (256, Blocked((64, 30), (8, 16), (4, 1), True)),
    (32, Blocked((64, 30), (4, 4), (4, 1), True)),
]


@pytest.mark.parametrize("number", range(len(COLUMN_LAYOUTS)))
def test_column_sums_in_chunks(number):
    threads, layout = COLUMN_LAYOUTS[number]
    c, r, chunk = Axis("c", 64), Axis("r", 30), Axis("chunk", 3)
    own = layout.threads[:1], layout.vector[:1], layout.is_first_fastest
    narrow = Blocked((64,), *own)
    row = axis_index(chunk) * 30 + axis_index(r)
    expr = load(0, row * 64 + axis_index(c), float32)
    steps = (
        Assign("total", (c,), const(1.5, float32)),
        For(chunk, (Accumulate("total", (c,), (r,), "sum", expr, False, layout),)),
        Store(1, axis_index(c), (c,), tile_read("total", c)),
    )
    part = TilePart((), (Tile("total", (64,), float32, "register", narrow),), steps)
    slots = [Slot(float32, 90 * 64, "in"), Slot(float32, 64, "out")]
    x = values(90 * 64).reshape(90, 64)
    got = run(build(f"columns_{number}", slots, [part], threads), {0: x})[1]
    np.testing.assert_allclose(got, x.sum(0) + 1.5, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("is_joined", [True, False])
def test_reductions_over_the_same_elements_read_them_once(is_joined):
    row, column = Axis("row", ROWS), Axis("column", COLUMNS)
    narrow, layout = Blocked((), (), ()), Blocked((COLUMNS,), (32,), (1,))
    x = load(0, axis_index(row) * COLUMNS + axis_index(column), float32)
    second = Expr("mul", (x, x if is_joined else tile_read("a")), None, float32)
    tiles = tuple(Tile(name, (), float32, "register", narrow) for name in "ab")
    steps = [Accumulate("a", (), (column,), "sum", x, True, layout)]
    steps += [Accumulate("b", (), (column,), "sum", second, True, layout)]
    steps += [Store(n, axis_index(row), (), tile_read(name)) for n, name in enumerate("ab", 1)]
    slots = [Slot(float32, ROWS * COLUMNS, "in")] + [Slot(float32, ROWS, "out")] * 2
    kernel = build("both", slots, [TilePart((row,), tiles, tuple(steps))], 32)
    array = values(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    found = run(kernel, {0: array})
    total = array.sum(1)
    wanted = (array * (array if is_joined else total[:, None])).sum(1)
    np.testing.assert_allclose(found[1], total, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[2], wanted, rtol=1e-4, atol=1e-4)
    assert source_of(kernel)[0].count("? s0[") == (1 if is_joined else 2)


@pytest.mark.parametrize("vector", [1, 4])
def test_softmax_keeps_rows_in_registers(vector):
    rows, layout = 4, Blocked((4, COLUMNS), (4, 32), (1, vector))
    grid, r, c = Axis("block", ROWS // rows), Axis("r", rows), Axis("c", COLUMNS)
    place = (axis_index(grid) * rows + axis_index(r)) * COLUMNS + axis_index(c)
    narrow = Blocked((rows,), (4,), (1,))
    tiles = (
        Tile("x", (rows, COLUMNS), float32, "register", layout),
        Tile("high", (rows,), float32, "register", narrow),
        Tile("sum", (rows,), float32, "register", narrow),
    )
    shifted = Expr("sub", (tile_read("x", r, c), tile_read("high", r)), None, float32)
    quotient = Expr("div", (tile_read("x", r, c), tile_read("sum", r)), None, float32)
    steps = (
        Assign("x", (r, c), load(0, place, float32)),
        Accumulate("high", (r,), (c,), "max", tile_read("x", r, c), True, layout),
        Assign("x", (r, c), Expr("exp", (shifted,), None, float32)),
        Accumulate("sum", (r,), (c,), "sum", tile_read("x", r, c), True, layout),
        Store(1, place, (r, c), quotient, (), layout),
    )
    slots = [Slot(float32, ROWS * COLUMNS, "in"), Slot(float32, ROWS * COLUMNS, "out")]
    part = TilePart((grid,), tiles, steps)
    x = values(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    got = run(build(f"softmax_{vector}", slots, [part], 128), {0: x})[1].reshape(x.shape)
    expected = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(got, expected / expected.sum(1, keepdims=True), rtol=1e-5)

"""Steps of Tile IR as CUDA: reductions over threads, shared tiles, parts, tickets, scatter."""

import numpy as np
import pytest
from cuda_tools import compile_cuda, compile_host, load, row_major, run_host, source_of

from picograd.codegen.layout import Blocked
from picograd.codegen.tile import (
    Accumulate,
    Assign,
    Barrier,
    For,
    LastBlock,
    ScatterStep,
    Store,
    Tile,
    TileKernel,
    TilePart,
    When,
)
from picograd.dtype import float32, int32
from picograd.schedule.index import Axis, Dynamic, axis_index, constant
from picograd.schedule.loop import Expr, Kernel, Slot, const

ROWS, COLUMNS = 16, 100
MONOIDS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


def tile_read(name, *axes, dtype=float32):
    return Expr("tile", (), (name, tuple(axis_index(a) for a in axes)), dtype)


def build(name, slots, parts, threads):
    kernel = Kernel(name, "reduce.row", tuple(slots), (), ())
    return TileKernel(kernel, tuple(parts), threads)


def values(count, seed=0):
    return np.random.default_rng(seed).standard_normal(count).astype(np.float32)


def run(tile_kernel, inputs):
    """Run in both thread orders; a missing barrier shows as a difference."""
    library = compile_host([tile_kernel])
    one = run_host(library, tile_kernel, inputs)
    two = run_host(library, tile_kernel, inputs, is_reversed=True)
    for slot, array in one.items():
        np.testing.assert_array_equal(array, two[slot])
    cubin, log = compile_cuda(source_of(tile_kernel)[0], "sm_90a")
    assert cubin and "0 bytes spill stores" in log
    return one


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


def test_transpose_through_shared_memory():
    i, j, layout = Axis("i", 32), Axis("j", 32), Blocked((32, 32), (4, 32), (1, 1))
    tile = Tile("tile", (32, 32), float32, "shared", row_padding=1)
    steps = (
        Assign("tile", (i, j), load(0, row_major(i, j), float32), layout=layout),
        Barrier(),
        Store(1, row_major(i, j), (i, j), tile_read("tile", j, i), (), layout),
    )
    slots = [Slot(float32, 1024, "in"), Slot(float32, 1024, "out")]
    x = values(1024).reshape(32, 32)
    got = run(build("transpose", slots, [TilePart((), (tile,), steps)], 128), {0: x})[1]
    np.testing.assert_array_equal(got.reshape(32, 32), x.T)


def test_parts_are_ranges_of_blocks_and_the_last_block_sums():
    layout = Blocked((64,), (64,), (1,))
    parts = []
    for slot in (0, 1):
        grid, over, number = Axis("block", 5), Axis("i", 64), Axis("number", 5)
        single = Blocked((), (), ())
        place = axis_index(grid) * 64 + axis_index(over)
        total = Tile("total", (), float32, "register", single)
        partial = Tile("partial", (5,), float32, "workspace", workspace=0)
        read = load(slot, place, float32)
        ended = (
            Accumulate("total", (), (number,), "sum", tile_read("partial", number), True,
                       Blocked((5,), (1,), (1,))),
            Store(slot + 2, constant(0), (), tile_read("total")),
        )  # fmt: skip
        steps = (
            Accumulate("total", (), (over,), "sum", read, True, layout),
            Assign("partial", (), tile_read("total"), (axis_index(grid),)),
            LastBlock(1, constant(0), 5, ended),
        )
        spaces = ((20, False), (4, True))
        parts.append(TilePart((grid,), (total, partial), steps, spaces))
    slots = [Slot(float32, 320, "in")] * 2 + [Slot(float32, 1, "out")] * 2
    x, y = values(320), values(320, 1)
    got = run(build("parts", slots, parts, 64), {0: x, 1: y})
    np.testing.assert_allclose([got[2][0], got[3][0]], [x.sum(), y.sum()], rtol=1e-5)


@pytest.mark.parametrize("monoid", [None, "sum", "max"])
def test_scatter_applies_updates_in_order(monoid):
    serial, inner = Axis("update", 9), Axis("i", 40)
    row = Dynamic(load(1, axis_index(serial), int32), 0, 4)
    target = constant(0)
    target = (target + type(target)(((row, 1),), 0)) * 40 + axis_index(inner)
    update = load(0, axis_index(serial) * 40 + axis_index(inner), float32)
    step = ScatterStep((serial,), (inner,), 2, target, monoid, update)
    only = When(((axis_index(serial), 0, 8),), ())
    assert only.body == ()
    slots = [Slot(float32, 360, "in"), Slot(int32, 9, "in"), Slot(float32, 200, "inout")]
    x, base = values(360).reshape(9, 40), values(200, 1).reshape(5, 40)
    rows = np.array([3, 0, 3, 4, 1, 3, 0, 0, 4])
    expected = base.copy()
    for number, place in enumerate(rows):
        if monoid == "sum":
            expected[place] += x[number]
        elif monoid == "max":
            expected[place] = np.maximum(expected[place], x[number])
        else:
            expected[place] = x[number]
    tile_kernel = build(f"scatter_{monoid}", slots, [TilePart((), (), (step,))], 64)
    got = run(tile_kernel, {0: x, 1: rows, 2: base})[2]
    np.testing.assert_allclose(got.reshape(5, 40), expected, rtol=1e-6)


def test_wide_indices_are_used_only_where_needed():
    axis, grid = Axis("i", 256), Axis("block", 4)
    sources = []
    for size in (1 << 10, 1 << 32):
        place = axis_index(grid) * (size // 4) + axis_index(axis)
        store = Store(0, place, (axis,), const(1.0, float32))
        slots = [Slot(float32, size, "out")]
        sources.append(source_of(build("wide", slots, [TilePart((grid,), (), (store,))], 256))[0])
    assert "int64 v" not in sources[0].split("extern")[-1]
    assert "const int64 v" in sources[1].split("extern")[-1]
    compile_cuda(sources[1], "sm_80")

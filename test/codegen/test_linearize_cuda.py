"""Steps of Tile IR as CUDA: reductions over threads, shared tiles, parts, tickets, scatter."""

import numpy as np
import pytest
from cuda_tiles import build, run, tile_read, values
from cuda_tools import load, source_of

from picograd.codegen.layout import Blocked
from picograd.codegen.tile import Accumulate, Assign, LastBlock, Store, Tile, TilePart, When
from picograd.dtype import float32, int32
from picograd.schedule.index import Axis, Dynamic, axis_index, constant
from picograd.schedule.loop import Expr, Scatter, Slot


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


def test_long_loops_that_index_no_registers_are_not_written_out():
    column, row, over = Axis("column", 64), Axis("row", 200), Axis("over", 200)
    held = Blocked((64,), (64,), (1,))
    walked = Blocked((64, 200), (64, 2), (1, 1))

    def read(y):
        return load(0, axis_index(y) * 64 + axis_index(column), float32)

    mean = tile_read("sum", column)
    less = Expr("sub", (read(row), mean), None, float32)
    steps = (
        Accumulate("sum", (column,), (over,), "sum", read(over), True, walked),
        Store(1, axis_index(row) * 64 + axis_index(column), (column, row), less, layout=walked),
    )
    part = TilePart((), (Tile("sum", (64,), float32, "register", held),), steps)
    slots = [Slot(float32, 12800, "in"), Slot(float32, 12800, "out")]
    kernel = build("centre", slots, [part], 128)
    assert "#pragma unroll\n" not in source_of(kernel)[0].split("__global__")[1]
    x = values(12800)
    wanted = (x.reshape(200, 64) - x.reshape(200, 64).sum(0)).ravel()
    np.testing.assert_allclose(run(kernel, {0: x})[1], wanted, rtol=1e-4, atol=1e-5)


def test_what_several_registers_read_under_a_guard_is_read_once():
    x, first = Axis("i", 64), Axis("block", 5)
    place = axis_index(first) * 64 + axis_index(x)
    before = load(0, place - 1, float32)
    zero = Expr("const", (), 0.0, float32)
    inside = Expr("guard", (before, zero), ((place, 1, 319),), float32)
    layout, names = Blocked((64,), (64,), (1,)), ("add", "sub")
    both = [Expr(op, (inside, load(0, place, float32)), None, float32) for op in names]
    tiles = tuple(Tile(name, (64,), float32, "register", layout) for name in names)
    steps = [Assign(name, (x,), each) for name, each in zip(names, both)]
    steps += [Store(n + 1, place, (x,), tile_read(name, x)) for n, name in enumerate(names)]
    part = TilePart((first,), tiles, tuple(steps))
    slots = [Slot(float32, 320, way) for way in ("in", "out", "out")]
    kernel = build("beside", slots, [part], 64)
    assert source_of(kernel)[0].split("__global__")[1].count("s0[") == 2
    given = values(320)
    shifted = np.concatenate([[0], given[:-1]]).astype(np.float32)
    got = run(kernel, {0: given})
    np.testing.assert_array_equal(got[1], shifted + given)
    np.testing.assert_array_equal(got[2], shifted - given)


@pytest.mark.parametrize(("step", "count", "stores"), [(4, 4, 1), (2, 2, 1), (6, 3, 2), (5, 4, 4)])
def test_stores_that_go_on_are_one_vector(step, count, stores):
    x, first = Axis("i", 64), Axis("block", 5)
    place = axis_index(first) * 64 + axis_index(x)
    tile = Tile("x", (64,), float32, "register", Blocked((64,), (64,), (1,)))
    read = Assign("x", (x,), load(0, place, float32))
    parts = [
        Store(1, place * step + n, (x,), Expr(op, (tile_read("x", x),) * 2, None, float32))
        for n, op in zip(range(count), ("add", "mul", "sub", "maximum"))
    ]
    part = TilePart((first,), (tile,), (read, *parts))
    slots = [Slot(float32, 320, "in"), Slot(float32, 320 * step, "out")]
    kernel = build("row", slots, [part], 64)
    assert source_of(kernel)[0].split("__global__")[1].count("s1") == 1 + stores
    given = values(320)
    wanted = np.stack([given + given, given * given, given - given, given], 1)[:, :count]
    got = run(kernel, {0: given})[1].reshape(320, step)[:, :count]
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("monoid", [None, "sum", "max"])
def test_scatter_applies_updates_in_order(monoid):
    serial, inner = Axis("update", 9), Axis("i", 40)
    row = Dynamic(load(1, axis_index(serial), int32), 0, 4)
    target = constant(0)
    target = (target + type(target)(((row, 1),), 0)) * 40 + axis_index(inner)
    update = load(0, axis_index(serial) * 40 + axis_index(inner), float32)
    step = Scatter((serial,), (inner,), monoid, update, 2, target)
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

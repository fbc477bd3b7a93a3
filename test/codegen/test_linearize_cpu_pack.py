"""Packing steps: vectors, guards in outer loops, guards that limit the inner loop."""

import numpy as np
import pytest

from picograd.codegen import interpret_program
from picograd.codegen.layout import Blocked
from picograd.codegen.linearize_cpu import linearize
from picograd.codegen.linearize_cpu_pack import sharing, without_guards
from picograd.codegen.templates.contract_thin import pack
from picograd.codegen.tile import Assign, Store, Tile, TileKernel, TilePart
from picograd.dtype import float16, float32
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Condition, Expr, Kernel, Part, Slot, const
from picograd.target import Target

TARGET = Target("llvm", "generic", 64)


def packed(
    rows: int, columns: int, index: tuple[int, int, int], limits: tuple[int, int, int, int]
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Pack x[i*s0 + j*s1 + s2] where lo <= i <= hi and lo <= j <= hi; also the expected tile."""
    i, j = Axis("i", rows), Axis("j", columns)
    at: Index = axis_index(i) * index[0] + axis_index(j) * index[1] + index[2]
    data = np.arange(1, at.hi + 2, dtype=np.float32)
    tests: tuple[Condition, ...] = (
        (axis_index(i), limits[0], limits[1]),
        (axis_index(j), limits[2], limits[3]),
    )
    load = Expr("load", (), (0, at), float32)
    value = Expr("guard", (load, const(0.0, float32)), tests, float32)
    here = axis_index(i), axis_index(j)
    layout = Blocked((rows, columns), (1, 1), (1, 16))
    tile = Tile("t", (rows, columns), float32, "shared", row_padding=3)
    steps = (
        Assign("t", (i, j), value, here, layout),
        Store(1, axis_index(i) * columns + axis_index(j), (i, j),
              Expr("tile", (), ("t", here), float32)),
    )  # fmt: skip
    slots = (Slot(float32, data.size, "in"), Slot(float32, rows * columns, "out"))
    kernel = Kernel("pack", "contract", slots, (), (Part((), ()),))
    program = linearize(TileKernel(kernel, (TilePart((), (tile,), steps),)), TARGET)
    out = np.full(rows * columns, -1, np.float32)
    interpret_program.interpret(program, [data, out])
    grid = np.arange(rows)[:, None], np.arange(columns)[None, :]
    expected = data[grid[0] * index[0] + grid[1] * index[1] + index[2]]
    held = (grid[0] >= limits[0]) & (grid[0] <= limits[1])
    held = held & (grid[1] >= limits[2]) & (grid[1] <= limits[3])
    wide = [x for x in program.instructions if x.op == "store" and x.lanes > 1]
    return out.reshape(rows, columns), np.where(held, expected, 0), [x.op for x in wide]


@pytest.mark.parametrize("columns", [1, 3, 16, 31, 70])
@pytest.mark.parametrize("index", [(100, 1, 0), (1, 7, 2), (0, 1, 0), (3, 0, 0)])
@pytest.mark.parametrize("limits", [(0, 9, 0, 99), (1, 3, 0, 99), (0, 9, 2, 20), (2, 2, 1, 1)])
def test_pack(columns: int, index: tuple[int, int, int], limits: tuple[int, int, int, int]) -> None:
    got, expected, wide = packed(5, columns, index, limits)
    assert np.array_equal(got, expected)
    if columns >= 16 and index[1] == 1:
        assert wide


def test_guards_are_found_below_casts() -> None:
    axis = Axis("i", 5)
    load = Expr("load", (), (0, axis_index(axis)), float16)
    test = ((axis_index(axis), 1, 3),)
    inner = Expr("guard", (load, const(0.0, float16)), test, float16)
    expr, conditions = without_guards(Expr("cast", (inner,), None, float32))
    assert conditions == test and repr(expr) == "float32(s0[i])"
    other = Expr("guard", (load, const(1.0, float16)), test, float16)
    assert without_guards(other) == (other, ())


@pytest.mark.parametrize("columns", [5, 16, 35])
def test_rows_that_are_packed_as_columns_are_turned_by_vectors(columns: int) -> None:
    i, j = Axis("i", 20), Axis("j", columns)
    at = axis_index(i) * 37 + axis_index(j) + 3
    data = np.arange(1, at.hi + 2, dtype=np.float16)
    load = Expr("load", (), (0, at), float16)
    value = Expr("cast", (load,), None, float32)
    tile = Tile("t", (columns, 20), float32, "shared", row_padding=16)
    here = axis_index(j), axis_index(i)
    layout = Blocked((20, columns), (1, 1), (1, 16))
    read = Expr("tile", (), ("t", here), float32)
    steps = Assign("t", (i, j), value, here, layout), Store(1, here[0] * 20 + here[1], (j, i), read)
    slots = (Slot(float16, data.size, "in"), Slot(float32, 20 * columns, "out"))
    kernel = Kernel("pack", "contract", slots, (), (Part((), ()),))
    program = linearize(TileKernel(kernel, (TilePart((), (tile,), steps),)), TARGET)
    out = np.full(20 * columns, -1, np.float32)
    interpret_program.interpret(program, [data, out])
    rows = np.arange(20)[None, :] * 37 + np.arange(columns)[:, None] + 3
    assert np.array_equal(out.reshape(columns, 20), data[rows].astype(np.float32))
    assert any(x.op == "interleave" for x in program.instructions)


def test_packing_steps_share_loops_unless_one_reads_what_another_writes() -> None:
    row, lane = Axis("row", 3), Axis("lane", 16)
    here = axis_index(row), axis_index(lane)

    def step(written: str, read: str) -> Assign:
        return pack(written, (row, lane), Expr("tile", (), (read, here), float32), here)

    apart = [step("b", "a"), step("c", "a"), step("d", "a")]
    assert sharing(apart, 0, (row, lane)) == 3 and sharing(apart, 1, (row, lane)) == 2
    chained = [step("b", "a"), step("c", "a"), step("d", "c"), step("e", "a")]
    assert sharing(chained, 0, (row, lane)) == 2  # d waits for c, which is not the first
    assert sharing([step("b", "a"), step("a", "x")], 0, (row, lane)) == 1
    assert sharing([step("b", "a")], 0, (lane,)) == 1


def test_steps_that_share_loops_have_vectors_of_their_own() -> None:
    """One reads rows, one columns, and one the same element for all lanes."""
    row, lane = Axis("row", 16), Axis("lane", 16)
    i, j = axis_index(row), axis_index(lane)
    reads = {"rows": (i, j), "columns": (j, i), "first": (i, axis_index(row) * 0)}
    places = {name: Expr("tile", (), ("a", place), float32) for name, place in reads.items()}
    fill = pack("a", (row, lane), Expr("load", (), (0, i * 16 + j), float32), (i, j))
    steps = [pack(name, (row, lane), expr, (i, j)) for name, expr in places.items()]
    assert sharing(steps, 0, (row, lane)) == 3
    stores = [
        Store(number, i * 16 + j, (row, lane), Expr("tile", (), (name, (i, j)), float32))
        for number, name in enumerate(reads, 1)
    ]
    tiles = tuple(Tile(name, (16, 16), float32, "shared") for name in ("a", *reads))
    slots = Slot(float32, 256, "in"), *(Slot(float32, 256, "out") for _ in reads)
    part = TilePart((), tiles, (fill, *steps, *stores))
    program = linearize(TileKernel(Kernel("pack", "map", slots, (), ()), (part,)), TARGET)
    data = np.random.default_rng(0).normal(size=(16, 16)).astype(np.float32)
    out = [np.zeros(256, np.float32) for _ in reads]
    interpret_program.interpret(program, [data.reshape(-1).copy(), *out])
    wanted = data, data.T, np.repeat(data[:, :1], 16, 1)
    for found, expected in zip(out, wanted, strict=True):
        assert np.array_equal(found.reshape(16, 16), expected)

"""Elementwise kernels."""

from collections.abc import Callable

import harness
import numpy as np
import pytest
from cases import guard, kernel, load, op
from cuda_tools import from_raw, source_of, to_raw

from picograd.codegen.interpret_program import interpret
from picograd.codegen.interpret_tile import interpret as interpret_tile
from picograd.codegen.linearize_cpu import linearize as linearize_cpu
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.program import verify as verify_program
from picograd.codegen.templates.map import build, is_aligned, loads_inside
from picograd.codegen.tile import Accumulate, Barrier, Store, TileKernel, When, verify
from picograd.dtype import DType, bfloat16, float32, int32, int64
from picograd.schedule.index import Axis, Dynamic, Index, axis_index
from picograd.schedule.loop import Compute, Expr, Part, const, walk
from picograd.target import cuda_target

GPU = cuda_target("sm_90a")


def test_many_rows_that_were_joined_are_computed_one_by_one() -> None:
    """The gradient of 40 slices: each row is one of them, however many there are."""
    i, j = Axis("i", 40), Axis("j", 64)
    row, column = axis_index(i), axis_index(j)
    total = const(0.0, float32)
    for place in range(40):
        slice_ = load(0, float32, column + 64 * (39 - place))
        total = op("add", total, guard(slice_, 0.0, (row - place, 0, 0)))
    compute = Compute((i, j), (), None, total, float32, (1, row * 64 + column))
    slots = [(float32, 2560, "in"), (float32, 2560, "out")]
    parts = build(kernel("rows", "map", slots, Part((i, j), (compute,))), harness.TARGET).parts
    exprs = [expr.op for part in parts for step in part.steps for expr in walk(step.expr)]
    assert "guard" not in exprs and exprs.count("load") == 40


def test_parts_of_a_sum_are_added_where_they_are() -> None:
    """Twelve short slices put in their places, which no loop is cut for."""
    i, j = Axis("i", 5), Axis("j", 36)
    row, column = axis_index(i), axis_index(j)
    total = const(0.0, float32)
    for place in range(12):
        value = load(0, float32, row * 36 + column)
        total = op("add", total, guard(value, 0.0, (column - 3 * place, 0, 3)))
    compute = Compute((i, j), (), None, total, float32, (1, row * 36 + column))
    slots = [(float32, 180, "in"), (float32, 180, "out")]
    tiles = build(kernel("slices", "map", slots, Part((i, j), (compute,))), harness.TARGET)
    (part,) = tiles.parts
    added = [step.body[0] for step in part.steps if isinstance(step, When)]
    assert len(added) == 13 and all(isinstance(step, Accumulate) for step in added)
    x = np.arange(1, 181, dtype=np.float32)
    times = np.array([1 + (at > 0 and at % 3 == 0) for at in range(36)])  # slices of 4 overlap
    for stage in (lambda arrays: interpret_tile(tiles, arrays), compiled(tiles)):
        arrays = [x.copy(), np.zeros_like(x)]
        stage(arrays)
        np.testing.assert_array_equal(arrays[1].reshape(5, 36), x.reshape(5, 36) * times)


def compiled(tiles: TileKernel) -> Callable[[list[np.ndarray]], None]:
    program = linearize_cpu(tiles, harness.TARGET)
    return lambda arrays: interpret(program, arrays)


def test_what_neighbours_share_narrows_no_vector() -> None:
    """A label of int64 for a row of bfloat16: a thread still takes 16 bytes."""
    rows, columns = Axis("i", 6), Axis("j", 1024)
    here = axis_index(rows) * 1024 + axis_index(columns)
    for place, lanes in ((axis_index(rows), 8), (here, 2)):
        label = Expr("cast", (load(1, int64, place),), None, bfloat16)
        body = op("mul", load(0, bfloat16, here), label)
        part = Part(
            (rows, columns), (Compute((rows, columns), (), None, body, bfloat16, (2, here)),)
        )
        sizes = [(bfloat16, 6144, "in"), (int64, 6144, "in"), (bfloat16, 6144, "out")]
        (built,) = build(kernel("labels", "map", sizes, part), cuda_target("sm_90a")).parts
        assert built.steps[0].dims[-1].size == lanes


def test_threads_without_vectors_have_several_loads_under_way() -> None:
    """Rows of 4,097 bfloat16 begin anywhere: a thread takes 8 elements, far apart, not one."""
    target = cuda_target("sm_90a")
    for rows, rounds in ((4096, 8), (1, 1)):
        i, j = Axis("i", rows), Axis("j", 4096)
        body = load(0, bfloat16, axis_index(i) * 4097 + axis_index(j))
        store = 1, axis_index(i) * 4096 + axis_index(j)
        part = Part((i, j), (Compute((i, j), (), None, body, bfloat16, store),))
        slots = ((bfloat16, rows * 4097, "in"), (bfloat16, rows * 4096, "out"))
        (made,) = build(kernel("rows", "map", slots, part), target).parts
        (step,) = made.steps
        assert isinstance(step, Store) and step.dims[0].size == 256 * rounds


def test_windows_take_vectors_where_channels_are_the_nearest() -> None:
    """Sums of three neighbours: each thread has eight channels of 16 bits."""
    place, channel, tap = Axis("place", 6), Axis("channel", 16), Axis("tap", 3)
    at = axis_index(place) + axis_index(tap) - 1
    near = load(0, bfloat16, at * 16 + axis_index(channel))
    body = Expr("cast", (guard(near, 0.0, (at, 0, 5)),), None, float32)
    axes = (place, channel)
    total = Compute(axes, (tap,), "sum", body, float32, None)
    rounded = Expr("cast", (Expr("ref", (), 0, float32),), None, bfloat16)
    store = 1, axis_index(place) * 16 + axis_index(channel)
    part = Part(axes, (total, Compute(axes, (), None, rounded, bfloat16, store)))
    slots = [(bfloat16, 96, "in"), (bfloat16, 96, "out")]
    tiles = verify(build(kernel("near", "map", slots, part), cuda_target("sm_90a")))
    assert tiles.parts[0].tiles[0].layout.vector == (1, 1, 8)
    numbers = np.random.default_rng(0).integers(-4, 5, 96).astype(np.float32)
    raw = [to_raw(numbers, bfloat16), to_raw(np.full(96, np.nan), bfloat16)]
    interpret(verify_program(linearize(tiles, cuda_target("sm_90a"))), raw)
    rows = np.pad(numbers.reshape(6, 16), ((1, 1), (0, 0)))
    wanted = rows[:-2] + rows[1:-1] + rows[2:]
    np.testing.assert_array_equal(from_raw(raw[1], bfloat16).reshape(6, 16), wanted)


def built(body: Expr, axes: tuple[Axis, Axis], dtype: DType, size: int) -> TileKernel:
    """A kernel that stores a body over two axes, row-major."""
    i, j = axes
    place = axis_index(i) * j.size + axis_index(j)
    compute = Compute(axes, (), None, body, dtype, (1, place))
    slots = [(dtype, size, "in"), (dtype, i.size * j.size, "out")]
    return verify(build(kernel("turned", "map", slots, Part(axes, (compute,))), GPU))


def values_of(tiles: TileKernel, given: np.ndarray, dtype: DType) -> np.ndarray:
    """Run on the host's double of a GPU, on a poisoned result."""
    size = tiles.kernel.slots[1].size
    raw = [to_raw(given.ravel(), dtype), to_raw(np.full(size, np.nan, np.float32), dtype)]
    interpret(verify_program(linearize(tiles, GPU)), raw)
    return from_raw(raw[1], dtype)


@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(33, 70), (64, 32), (100, 17)], ids=str)
def test_a_transpose_passes_through_shared_memory(shape: tuple[int, int], dtype: DType) -> None:
    i, j = Axis("i", shape[0]), Axis("j", shape[1])
    stored = load(0, dtype, axis_index(j) * i.size + axis_index(i))
    tiles = built(op("add", stored, stored), (i, j), dtype, i.size * j.size)
    (part,) = tiles.parts
    assert [type(step) for step in part.steps].count(Barrier) == 1
    (tile,) = part.tiles
    row = tile.shape[1] + tile.row_padding
    banks = {number * row * dtype.itemsize // 4 % 32 for number in range(tile.shape[0])}
    assert tile.space == "shared" and len(banks) == tile.shape[0]
    given = np.random.default_rng(0).integers(-9, 9, (j.size, i.size)).astype(np.float32)
    assert (values_of(tiles, given, dtype) == 2 * given.T.ravel()).all()


def test_what_is_read_backwards_passes_through_shared_memory() -> None:
    """A quarter turn."""
    i, j = Axis("i", 40), Axis("j", 33)
    stored = load(0, float32, axis_index(j) * i.size - axis_index(i) + (i.size - 1))
    tiles = built(op("add", stored, stored), (i, j), float32, i.size * j.size)
    (part,) = tiles.parts
    assert [tile.space for tile in part.tiles] == ["shared"]
    given = np.random.default_rng(0).integers(-9, 9, (j.size, i.size)).astype(np.float32)
    assert (values_of(tiles, given, float32) == 2 * np.rot90(given).ravel()).all()


def test_elements_of_windows_are_read_where_they_are() -> None:
    """They have an axis that no square has."""
    i, j, tap = Axis("i", 33), Axis("j", 40), Axis("tap", 3)
    place = axis_index(i) * 40 + axis_index(j)
    seen = load(0, float32, axis_index(j) * 35 + axis_index(i) + axis_index(tap))
    total = Compute((i, j), (tap,), "sum", seen, float32, (1, place))
    slots = [(float32, 40 * 35, "in"), (float32, 33 * 40, "out")]
    tiles = verify(build(kernel("windows", "map", slots, Part((i, j), (total,))), GPU))
    given = np.random.default_rng(0).integers(-9, 9, (40, 35)).astype(np.float32)
    expected = given[:, :-2] + given[:, 1:-1] + given[:, 2:]
    assert (values_of(tiles, given, float32) == expected.T.ravel()).all()


def test_large_arrays_have_large_squares() -> None:
    sides = []
    for size in (256, 4096):
        i, j = Axis("i", size), Axis("j", size)
        stored = load(0, float32, axis_index(j) * size + axis_index(i))
        sides.append(built(stored, (i, j), float32, size * size).parts[0].tiles[0].shape)
    assert sides == [(32, 32), (64, 64)]


@pytest.mark.parametrize(("columns", "lanes"), [(128, 2), (131, 1)])
def test_elements_of_16_bits_go_by_two(columns: int, lanes: int) -> None:
    """Where pairs are aligned; nothing is rounded on the way."""
    target = cuda_target("sm_90a", 1)
    i, j = Axis("i", 192), Axis("j", columns)
    stored = load(0, bfloat16, axis_index(j) * 192 + axis_index(i))
    compute = Compute(
        (i, j), (), None, stored, bfloat16, (1, axis_index(i) * columns + axis_index(j))
    )
    slots = [(bfloat16, 192 * columns, "in"), (bfloat16, 192 * columns, "out")]
    tiles = verify(build(kernel("turn", "map", slots, Part((i, j), (compute,))), target))
    assert tiles.parts[0].steps[0].layout.vector == (1, lanes)
    values = np.random.default_rng(0).standard_normal(columns * 192)
    given = to_raw(values, bfloat16).reshape(columns, 192)
    found = np.zeros(given.size, np.uint16)
    interpret(verify_program(linearize(tiles, target)), [given.ravel(), found])
    text = source_of(tiles, target)[0].split("__global__")[-1]
    assert columns % 64 or "round_" not in text
    np.testing.assert_array_equal(found, given.T.ravel())


def test_what_a_guard_keeps_from_memory_is_not_loaded_ahead() -> None:
    """Rows before the first do not exist: whoever needs an element loads it."""
    i, j = Axis("i", 40), Axis("j", 36)
    row = axis_index(i) - 3
    inside = load(0, float32, axis_index(j) * 37 + row)
    padded = guard(inside, 7.0, (row, 0, 36))
    tiles = built(padded, (i, j), float32, 36 * 37)
    assert loads_inside(padded) >= {inside} and not loads_inside(padded, padded.arg)
    assert not tiles.parts[0].tiles
    given = np.random.default_rng(0).standard_normal((36, 37)).astype(np.float32)
    expected = np.full((40, 36), 7.0, np.float32)
    expected[3:] = given.T
    assert (values_of(tiles, given, float32) == expected.ravel()).all()


def test_rows_of_a_table_are_read_in_vectors() -> None:
    """Where the place of a row is read from memory, and of all its elements the same."""
    i, j = Axis("i", 500), Axis("j", 24)
    places = np.random.default_rng(0).integers(0, 30, 500).astype(np.int32)
    for at, lanes in ((axis_index(i), 8), (axis_index(j), 1)):
        place = Dynamic(load(0, int32, at), 0, 29)
        index = Index(((place, 24), (j, 1)), 0)
        compute = Compute(
            (i, j),
            (),
            None,
            load(1, bfloat16, index),
            bfloat16,
            (2, axis_index(i) * 24 + axis_index(j)),
        )
        slots = [(int32, 500, "in"), (bfloat16, 720, "in"), (bfloat16, 12000, "out")]
        tiles = build(kernel("rows", "gather", slots, Part((i, j), (compute,))), GPU)
        (step,) = verify(tiles).parts[0].steps
        assert step.layout.vector[-1] == lanes
        table = to_raw(np.arange(720) % 200, bfloat16)
        found = np.zeros(12000, np.uint16)
        interpret(verify_program(linearize(tiles, GPU)), [places, table, found])
        chosen = places[np.arange(500)[:, None] if lanes > 1 else np.arange(24)]
        wanted = table[np.broadcast_to(chosen * 24 + np.arange(24), (500, 24))]
        np.testing.assert_array_equal(found, wanted.ravel())


def test_vectors_share_what_is_asked_of_runs_of_places() -> None:
    place = Axis("place", 64)
    run = axis_index(place) // 8
    assert is_aligned(run, place, 8) and is_aligned(run + 3, place, 4)
    assert not is_aligned(run, place, 16)
    assert not is_aligned(axis_index(place) % 8, place, 8)


def test_statistics_of_channels_do_not_narrow_vectors() -> None:
    i, j = Axis("i", 64), Axis("j", 32)
    here = axis_index(i) * 32 + axis_index(j)
    wide = Expr("cast", (load(0, bfloat16, here),), None, float32)
    body = Expr("mul", (wide, load(1, float32, axis_index(j))), None, float32)
    narrow = Expr("cast", (body,), None, bfloat16)
    compute = Compute((i, j), (), None, narrow, bfloat16, (2, here))
    slots = [(bfloat16, 2048, "in"), (float32, 32, "in"), (bfloat16, 2048, "out")]
    tiles = build(kernel("scaled", "map", slots, Part((i, j), (compute,))), GPU)
    assert verify(tiles).parts[0].steps[0].layout.vector[-1] == 8
    values = np.random.default_rng(0).standard_normal(2048)
    x, scale = to_raw(values, bfloat16), np.arange(32, dtype=np.float32)
    found = np.zeros(2048, np.uint16)
    interpret(verify_program(linearize(tiles, GPU)), [x, scale, found])
    wanted = from_raw(x, bfloat16).reshape(64, 32) * scale
    np.testing.assert_array_equal(found, to_raw(wanted.ravel(), bfloat16))


def test_few_elements_of_which_much_is_computed_have_a_thread_each() -> None:
    """Gates of a recurrent network: four neighbours of a thread take as long as four in turn."""

    def lanes(count: int, times: int) -> int:
        axis = Axis("i", count)
        body = load(0, float32, axis_index(axis))
        for _ in range(times):
            body = op("tanh", body)
        part = Part((axis,), (Compute((axis,), (), None, body, float32, (1, axis_index(axis))),))
        slots = [(float32, count, "in"), (float32, count, "out")]
        (made,) = build(kernel("map", "map", slots, part), GPU).parts
        return int(made.steps[-1].dims[-1].size) if len(made.steps[-1].dims) > 1 else 1

    few, more, many = 16384, 1 << 16, 1 << 20
    assert [lanes(each, 4) for each in (few, more, many)] == [1, 1, 4]
    assert [lanes(each, 1) for each in (few, more, many)] == [4, 4, 4]

"""Short rows are turned round in tiles and worked on side by side, on a CPU."""

from typing import Any

import numpy as np
import plain_nodes
import pytest
from harness import TARGET, run

from picograd.buffer import Buffer, Storage
from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.linearize_cpu import linearize
from picograd.codegen.pipeline import tile
from picograd.codegen.templates.turned_rows import is_slow
from picograd.codegen.tile import format_tiles, verify
from picograd.dtype import DType, float16, float32, float64, int32
from picograd.graph import build
from picograd.schedule.index import Axis, position_over
from picograd.schedule.loop import Expr, Kernel, Part, Scan, Slot
from picograd.schedule.schedule import schedule
from picograd.target import Target


def softmax(*shape: int, dtype: DType = float32, near: int = 0) -> Kernel:
    """A softmax of rows, of which the last `near` axes lie between one another."""
    x = plain_nodes.buffer(Storage(Buffer("cpu", dtype, int(np.prod(shape)), 0)), shape)
    (kernel,) = schedule([build.softmax(x, len(shape) - 1 - near)], TARGET).kernels
    return kernel


def sums(rows: int, length: int, monoid: str = "sum", dtype: DType = float32) -> Kernel:
    """Running sums or products of rows."""
    row, k = Axis("row", rows), Axis("k", length)
    place = position_over((row, k))
    body = Expr("load", (), (0, place), dtype)
    scan = Scan((row,), k, (), monoid, body, None, 1, place)
    slots = (Slot(dtype, rows * length, "in"), Slot(dtype, rows * length, "out"))
    return Kernel("sums", "scan", slots, (), (Part((), (), along=scan),))


def is_turned(kernel: Kernel) -> bool:
    """Tell whether rows go through tiles."""
    return "shared t0" in format_tiles(tile(kernel, TARGET))


def values_of(*shape: int, dtype: DType = float32) -> Any:
    return (np.random.default_rng(0).standard_normal(shape) * 3).astype(dtype.numpy)


def expected(values: Any, axis: int = -1) -> Any:
    powers = np.exp(values - values.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def check(kernel: Kernel, values: Any, wanted: Any, rtol: float) -> None:
    """Compare machine code and both interpreters, of vectors of 64 and of 32 bytes."""
    out = np.zeros(values.size, values.dtype)
    found = [run(kernel, [values.ravel(), out])[1]]
    tiles = verify(tile(kernel, TARGET))
    for width in (0, 64, 32):
        arrays = [values.ravel(), out.copy()]
        if width:
            program = linearize(tiles, Target("llvm", "host", width, threads=2))
            interpret_program.interpret(program, arrays)
        else:
            interpret_tile.interpret(tiles, arrays)
        found.append(arrays[1])
    for each in found:
        np.testing.assert_allclose(each, wanted.ravel(), rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    "shape", [(16, 9), (21, 15), (24, 16), (3, 7, 31), (18, 47)], ids=str
)  # whole blocks of rows and some left over; whole vectors of elements and some left over
def test_rows_side_by_side(shape: tuple[int, ...]) -> None:
    values = values_of(*shape)
    assert is_turned(softmax(*shape))
    check(softmax(*shape), values, expected(values), 1e-5)


@pytest.mark.parametrize("shape", [(16, 9, 5), (19, 17, 3)], ids=str)
def test_rows_between_one_another(shape: tuple[int, ...]) -> None:
    values = values_of(*shape)
    assert is_turned(softmax(*shape, near=1))
    check(softmax(*shape, near=1), values, expected(values, 1), 1e-5)


@pytest.mark.parametrize(("dtype", "rtol"), [(float16, 2e-3), (float64, 1e-12)], ids=str)
def test_rows_of_other_types(dtype: DType, rtol: float) -> None:
    values = values_of(35, 13, dtype=dtype)
    wanted = expected(values.astype(np.float64))
    check(softmax(35, 13, dtype=dtype), values, wanted, rtol)


@pytest.mark.parametrize(("monoid", "dtype"), [("sum", float32), ("prod", float64), ("sum", int32)])
def test_running_sums_side_by_side(monoid: str, dtype: DType) -> None:
    values = values_of(37, 21, dtype=dtype)
    wanted = values.cumsum(1) if monoid == "sum" else values.cumprod(1)
    assert is_turned(sums(37, 21, monoid, dtype))
    check(sums(37, 21, monoid, dtype), values, wanted, 1e-5)


@pytest.mark.parametrize("length", [129, 192, 330])
def test_running_sums_of_long_rows_go_on_from_piece_to_piece(length: int) -> None:
    values = values_of(33, length)
    kernel = sums(33, length)
    assert is_turned(kernel)
    check(kernel, values, values.cumsum(1), 1e-4)


@pytest.mark.parametrize(("monoid", "dtype"), [("max", float32), ("min", int32)])
def test_running_extremes_side_by_side(monoid: str, dtype: DType) -> None:
    values = values_of(33, 150, dtype=dtype)
    if dtype is float32:
        values[3, 70] = np.nan
    extreme = np.maximum if monoid == "max" else np.minimum
    assert is_turned(sums(33, 150, monoid, dtype)) and not is_turned(sums(37, 16, monoid, dtype))
    check(sums(33, 150, monoid, dtype), values, extreme.accumulate(values, 1), 0)


def test_rows_that_are_not_turned() -> None:
    """Few or long ones, rows of up to 8 elements, and those of many whole vectors."""
    assert not any(map(is_turned, (softmax(15, 9), softmax(100, 8), softmax(100, 300))))
    assert not any(map(is_turned, (sums(15, 9), sums(100, 8), sums(100, 300, dtype=float64))))
    assert is_turned(sums(32, 300)) and not is_turned(sums(31, 300)), "a block for each worker"
    assert not is_turned(softmax(100, 96)) and is_slow(33) and not is_slow(96)
    assert is_turned(softmax(100, 8, dtype=float64))
    near = [(15, 9, 5), (100, 8, 5), (100, 200, 5), (100, 20, 8)]
    assert not any(is_turned(softmax(*shape, near=1)) for shape in near)


def test_what_lies_across_is_read_as_it_is() -> None:
    """A weight of every element, and a factor of every row, are no tiles."""
    arrays = [plain_nodes.buffer(Storage(Buffer("cpu", float32, n, 0)), s) for n, s in SHAPES]
    x, factor, weight = arrays
    scaled = build.elementwise("mul", x, build.expand(factor, x.shape))
    soft = build.elementwise("mul", build.softmax(scaled, 1), build.expand(weight, x.shape))
    (kernel,) = schedule([soft], TARGET).kernels
    text = format_tiles(tile(kernel, TARGET))
    assert "shared t0" in text and "shared t1" not in text


SHAPES = [(40 * 20, (40, 20)), (40, (40, 1)), (20, (1, 20))]


def test_rows_of_many_arrays_are_not_turned() -> None:
    def kernel(count: int) -> Kernel:
        total = 0.0
        for _ in range(count):
            buffer = Storage(Buffer("cpu", float32, 64 * 16, 0))
            total = plain_nodes.buffer(buffer, (64, 16)) + total
        (kernel,) = schedule([plain_nodes.reduce("sum", total, (1,))], TARGET).kernels
        return kernel

    assert is_turned(kernel(3)) and not is_turned(kernel(20))

"""Register micro-kernel: its program against NumPy."""

import itertools

import numpy as np
import pytest

from picograd.codegen import interpret_program
from picograd.codegen.dot import Digit, Dot, Runs
from picograd.codegen.linearize_cpu import linearize
from picograd.codegen.linearize_cpu_dot import readers_of
from picograd.codegen.tile import Assign, Store, Tile, TileKernel, TilePart
from picograd.dtype import DType, float32, float64, int32
from picograd.schedule.index import Axis, axis_index, constant
from picograd.schedule.loop import Expr, Kernel, Part, Slot
from picograd.target import Target

TARGET = Target("llvm", "generic", 64)


def tile_kernel(dtype: DType, is_km: bool, is_first: bool, depth: int) -> TileKernel:
    """c[2:5, 16:48] (+)= a[1:4, :] b[1, :, :] of a padded a, stored to slot 2 with all of c."""
    a_shape = (depth, 5) if is_km else (5, depth)
    shapes = {"a": a_shape, "b": (2, depth, 32), "c": (6, 48)}
    tiles = tuple(
        Tile(name, shape, dtype, "shared", row_padding=4 if name == "a" else 0)
        for name, shape in shapes.items()
    )
    steps = []
    for slot, tile in enumerate(tiles):
        dims = tuple(Axis(f"d{n}", size) for n, size in enumerate(tile.shape))
        here = tuple(map(axis_index, dims))
        flat = constant(0)
        for axis in dims:
            flat = flat * axis.size + axis_index(axis)
        load = Expr("load", (), (slot, flat), dtype)
        steps.append(Assign(tile.name, dims, load, here))
        if tile.name == "c":
            out = Store(2, flat, dims, Expr("tile", (), ("c", here), dtype))
    zero, one = constant(0), constant(1)
    a_origin = (zero, one) if is_km else (one, zero)
    dot = Dot("c", "a", "b", depth, a_is_km=is_km, a_origin=a_origin, is_first=is_first,
              b_origin=(one, zero, zero), acc_origin=(constant(2), constant(16)),
              block=(3, 32))  # fmt: skip
    slots = (Slot(dtype, 5 * depth, "in"), Slot(dtype, 64 * depth, "in"), Slot(dtype, 288, "inout"))
    kernel = Kernel("dot", "contract", slots, (), (Part((), ()),))
    return TileKernel(kernel, (TilePart((), tiles, (*steps, dot, out)),))


CASES = list(itertools.product([float32, float64, int32], [True, False], [True, False], [1, 6]))


@pytest.mark.parametrize("dtype, is_km, is_first, depth", CASES)
def test_block_product(dtype: DType, is_km: bool, is_first: bool, depth: int) -> None:
    generator = np.random.default_rng(0)
    slots = [generator.integers(-9, 9, size).astype(dtype.numpy)
             for size in (5 * depth, 64 * depth, 288)]  # fmt: skip
    a = slots[0].reshape((depth, 5) if is_km else (5, depth))
    expected = slots[2].reshape(6, 48).copy()
    made = (a.T if is_km else a)[1:4] @ slots[1].reshape(2, depth, 32)[1]
    expected[2:5, 16:48] = made + (0 if is_first else expected[2:5, 16:48])
    program = linearize(tile_kernel(dtype, is_km, is_first, depth), TARGET)
    interpret_program.interpret(program, slots)
    assert np.array_equal(slots[2].reshape(6, 48), expected)
    fused = sum(instr.op == "fma" for instr in program.instructions)
    assert bool(fused) == dtype.is_float


def test_what_runs_read_for_taps_is_read_once() -> None:
    """Three rows of an image and three taps read five rows, under a stride of two phases."""
    read = dict(readers_of(Digit(3, 10), Runs(3, 10, 1)))
    assert list(read) == [0, 10, 20, 30, 40]
    assert read[20] == [(0, 2), (1, 1), (2, 0)]
    strided = dict(readers_of(Digit(3, 10, 2, 500), Runs(2, 10, 1)))
    assert list(strided) == [0, 10, 20, 500, 510]
    assert strided[10] == [(0, 2), (1, 0)]
    assert len(readers_of(Digit(3, 20), Runs(3, 10, 1))) == 7  # gaps: rows between are other taps'

"""Products of shared tiles on CUDA cores."""

import numpy as np
import pytest

from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.dot import Dot
from picograd.codegen.layout import Blocked
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.program import verify as verify_program
from picograd.codegen.tile import Assign, Barrier, Store, Tile, TileKernel, TilePart, verify
from picograd.dtype import float32
from picograd.errors import InternalError
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr, Kernel, Slot
from picograd.target import cuda_target

TARGET = cuda_target("sm_80")
M, N, K = 16, 64, 8


def tiles_of(b_is_nk, is_first, vector=(1, 4), depth=K):
    """Write c = a @ b, or c = 1 + a @ b, with both operands in shared memory."""
    layout = Blocked((M, N), (8, 16), vector)
    shape = (N, K) if b_is_nk else (K, N)
    tiles = [Tile("a", (M, K), float32, "shared", row_padding=4)]
    tiles += [Tile("b", shape, float32, "shared", row_padding=4)]
    tiles += [Tile("c", (M, N), float32, "register", layout)]
    steps = []
    for slot, (tile, size) in enumerate(zip("ab", ((M, K), shape), strict=True)):
        dims = Axis("x", size[0]), Axis("y", size[1])
        index = axis_index(dims[0]) * size[1] + axis_index(dims[1])
        steps.append(Assign(tile, dims, Expr("load", (), (slot, index), float32)))
    dims = Axis("m", M), Axis("n", N)
    place = tuple(map(axis_index, dims))
    steps += [Assign("c", dims, Expr("const", (), 1.0, float32)), Barrier()]
    steps.append(Dot("c", "a", "b", depth, b_is_nk=b_is_nk, is_first=is_first))
    value = Expr("tile", (), ("c", place), float32)
    steps.append(Store(2, place[0] * N + place[1], dims, value, layout=layout))
    slots = [Slot(float32, M * K, "in"), Slot(float32, N * K, "in"), Slot(float32, M * N, "out")]
    kernel = Kernel("product", "map", tuple(slots), (), ())
    return TileKernel(kernel, (TilePart((), tuple(tiles), tuple(steps)),), 128)


@pytest.mark.parametrize("b_is_nk", [False, True])
@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("vector", [(1, 4), (1, 1)])
def test_values(b_is_nk, is_first, vector):
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(size).astype(np.float32) for size in (M * K, N * K))
    matrix = b.reshape(N, K).T if b_is_nk else b.reshape(K, N)
    wanted = a.reshape(M, K) @ matrix + (0 if is_first else 1)
    tiles = verify(tiles_of(b_is_nk, is_first, vector))
    program = verify_program(linearize(tiles, TARGET))
    for run, given in ((interpret_tile.interpret, tiles), (interpret_program.interpret, program)):
        found = np.full(M * N, np.nan, np.float32)
        run(given, [a, b, found])
        assert np.allclose(found.reshape(M, N), wanted, atol=1e-5)


def test_others_are_refused():
    with pytest.raises(InternalError, match="groups of their depth"):
        linearize(tiles_of(False, True, depth=6), TARGET)

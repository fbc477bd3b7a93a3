"""Reflections of columns: Tile IR, threads in turn, the text, and columns that are no trouble."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_tools import H200, compile_cuda, compile_host, disassemble, run_host, source_of
from rowwise_cases import leaf, wanted

from picograd.codegen.interpret_program import interpret as interpret_program
from picograd.codegen.interpret_tile import interpret as interpret_tiles
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.pipeline import tile
from picograd.codegen.tile import verify
from picograd.dtype import DType, float32, float64
from picograd.graph.elimination import eliminate
from picograd.schedule.loop import Kernel
from picograd.schedule.schedule import schedule

Shape = tuple[int, int, int]
CASES: dict[str, tuple[Shape, DType]] = {
    "one": ((3, 1, 1), float32),
    "few": ((3, 9, 6), float32),
    "square": ((2, 8, 8), float64),
    "many": ((2, 75, 19), float64),
}


def kernel_of(name: str, shape: Shape, dtype: DType) -> Kernel:
    node = eliminate(leaf(shape, dtype, "cuda:0"), "reflect", shape[2])
    kernel: Kernel = schedule([node], H200).steps[-1].kernel  # type: ignore[union-attr]
    object.__setattr__(kernel, "name", name)
    return kernel


@cache
def library() -> tuple[dict[str, Kernel], dict[str, Any], Any]:
    kernels = {name: kernel_of(name, *case) for name, case in CASES.items()}
    tiles = {name: verify(tile(kernel, H200)) for name, kernel in kernels.items()}
    return kernels, tiles, compile_host(list(tiles.values()))


def matrices(name: str) -> Any:
    shape, dtype = CASES[name]
    return np.random.default_rng(3).standard_normal(shape).astype(dtype.numpy)


def arrays_of(name: str, x: Any) -> list[Any]:
    slots = library()[0][name].slots
    return [x.ravel(), np.zeros(slots[1].size, x.dtype)]


def compare(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


def check(x: Any, found: Any) -> None:
    """Turn R back, vector after vector: each column is as good as it is large."""
    rows, columns = x.shape[1:]
    found = found.reshape(len(x), -1).astype(float)
    both = found[:, : x[0].size].reshape(x.shape)
    back = np.triu(both, 1)
    back[:, range(columns), range(columns)] = found[:, x[0].size :]
    for step in reversed(range(columns)):
        vector = both[:, :, step, None] * (np.arange(rows) >= step)[:, None]
        squares = (vector * vector).sum(1)
        compare(np.where(squares == 0, 2, squares), 2)
        back -= vector * (vector.transpose(0, 2, 1) @ back)
    size = np.abs(x).max(1, keepdims=True)
    size = np.where(size == 0, 1, size)
    compare(back / size, x / size)


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    kernels, tiles, compiled = library()
    x = matrices(name)
    arrays = arrays_of(name, x)
    expected = wanted(kernels[name], arrays)[1]
    check(x, expected)
    interpret_tiles(tiles[name], arrays)
    compare(arrays[1], expected)
    for is_reversed in (False, True):
        (made,) = run_host(compiled, tiles[name], {0: x.ravel()}, (), is_reversed).values()
        compare(made, expected)


@pytest.mark.parametrize("name", ["few", "many"])
def test_columns_that_have_nothing_to_turn(name: str) -> None:
    """Zeros stay, equal columns leave nothing, and squares neither overflow nor vanish."""
    x = matrices(name)
    x[0, :, 1] = 0
    x[0, :, 3] = x[0, :, 2]
    x[0, :, 4] *= 1e30
    x[0, :, 5] *= 1e-30
    x[1, 1:, 0] = 0
    arrays = arrays_of(name, x)
    interpret_tiles(library()[1][name], arrays)
    check(x, arrays[1])
    found = arrays[1].reshape(len(x), -1)
    assert found[0, x[0].size + 1] == 0
    assert found[1, x[0].size] == x[1, 0, 0]  # keeps its sign, as LAPACK's


def test_shared_memory_is_read_behind_barriers() -> None:
    kernels, tiles, _ = library()
    arrays = arrays_of("few", matrices("few"))
    expected = wanted(kernels["few"], arrays)[1]
    interpret_program(linearize(tiles["few"], H200), arrays)
    compare(arrays[1], expected)


@pytest.mark.parametrize(("shape", "dtype"), [((1, 1024, 32), float32), ((1, 512, 32), float64)])
def test_columns_stay_in_registers(shape: Shape, dtype: DType, tmp_path: Path) -> None:
    made = tile(kernel_of("large", shape, dtype), H200)
    cubin, _ = compile_cuda(source_of(made)[0], "sm_90a")
    text = disassemble(cubin, tmp_path)
    assert "STL" not in text and "LDL" not in text
    assert text.count(";") < 3000

"""The elimination of columns of small matrices: Loop IR, Tile IR, threads in turn, and the text."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from cuda_tools import H200, compile_host, run_host
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

CASES: dict[str, tuple[str, int, tuple[int, int, int], DType]] = {
    "lu": ("lu", 5, (3, 5, 5), float32),
    "lu_wide": ("lu", 7, (2, 7, 11), float64),
    "lu_tall": ("lu", 4, (2, 40, 4), float32),
    "panel": ("panel", 5, (2, 40, 5), float32),
    "panel_tall": ("panel", 4, (1, 600, 4), float64),
    "below": ("below", 6, (3, 20, 6), float32),
    "below_many": ("below", 9, (1, 73, 9), float64),
    "solve": ("solve", 8, (4, 8, 9), float32),
    "solve_large": ("solve", 33, (1, 33, 70), float32),
    "solve_one": ("solve", 1, (2, 1, 2), float64),
    "cholesky": ("cholesky", 6, (3, 6, 6), float32),
    "cholesky_large": ("cholesky", 40, (1, 40, 40), float64),
    "cholesky_larger": ("cholesky", 70, (1, 70, 70), float64),
    "below_wide": ("below", 48, (2, 96, 48), float32),
    "lower": ("lower", 9, (2, 9, 12), float32),
    "upper": ("upper", 9, (2, 9, 12), float32),
    "unit_lower": ("unit_lower", 9, (2, 9, 12), float32),
    "unit_upper": ("unit_upper", 35, (1, 35, 36), float64),
}


def kernel_of(name: str) -> Kernel:
    kind, count, shape, dtype = CASES[name]
    node = eliminate(leaf(shape, dtype, "cuda:0"), kind, count)
    kernel: Kernel = schedule([node], H200).steps[-1].kernel  # type: ignore[union-attr]
    object.__setattr__(kernel, "name", name)
    return kernel


def matrices(name: str) -> Any:
    """Regular matrices whose rows are swapped; those that are factored are positive definite."""
    kind, count, shape, dtype = CASES[name]
    x = np.random.default_rng(3).standard_normal(shape)
    if kind == "cholesky":
        x = x @ x.transpose(0, 2, 1) + np.eye(count)
    elif kind == "below":
        corner = x[:, :count]
        x[:, :count] = corner @ corner.transpose(0, 2, 1) + np.eye(count)
    elif kind not in ("lu", "panel", "solve"):
        x[:, range(count), range(count)] += 4
    return x.astype(dtype.numpy)


@cache
def library() -> tuple[dict[str, Kernel], dict[str, Any], Any]:
    kernels = {name: kernel_of(name) for name in CASES}
    tiles = {name: verify(tile(kernel, H200)) for name, kernel in kernels.items()}
    return kernels, tiles, compile_host(list(tiles.values()))


def compare(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    kernels, tiles, compiled = library()
    kernel, x = kernels[name], matrices(name)
    arrays = [x.ravel(), np.zeros(kernel.slots[1].size, x.dtype)]
    expected = wanted(kernel, arrays)[1]
    check_meaning(name, x, expected)
    found = [each.copy() for each in arrays]
    interpret_tiles(tiles[name], found)
    compare(found[1], expected)
    for is_reversed in (False, True):
        (made,) = run_host(compiled, tiles[name], {0: x.ravel()}, (), is_reversed).values()
        compare(made, expected)


def check_meaning(name: str, x: Any, found: Any) -> None:
    """Multiply the result back."""
    kind, count, (stack, rows, columns), _ = CASES[name]
    found = found.reshape(stack, -1)
    if kind == "cholesky":
        factor = found.reshape(x.shape)
        compare(factor @ factor.transpose(0, 2, 1), x)
    elif kind == "below":
        factor = np.linalg.cholesky(x[:, :count])
        below = found.reshape(stack, -1, count)
        compare(below @ factor.transpose(0, 2, 1), x[:, count:])
    elif kind in ("lu", "panel"):
        both = found[:, : rows * columns].reshape(x.shape)
        order = np.tile(np.arange(rows), (stack, 1))
        for number, step in np.ndindex(stack, count):
            other = int(found[number, rows * columns + step]) - 1
            order[number, [step, other]] = order[number, [other, step]]
        lower = np.tril(both[:, :, :count], -1) + np.eye(rows, count)
        compare(lower @ np.triu(both[:, :count]), np.take_along_axis(x, order[:, :, None], 1))
        if kind == "panel":
            compare(found[:, -rows:], order)
    else:
        triangle = x[:, :, :count]
        if kind != "solve":
            triangle = np.triu(triangle) if "upper" in kind else np.tril(triangle)
        if "unit" in kind:
            triangle[:, range(count), range(count)] = 1
        size = rows * (columns - count)
        compare(triangle @ found[:, :size].reshape(stack, rows, -1), x[:, :, count:])


@pytest.mark.parametrize("name", ["lu", "panel", "solve", "cholesky", "cholesky_large"])
def test_matrices_that_are_refused(name: str) -> None:
    """A column of zeros is none that is eliminated, and the first is told; no root is real."""
    kernels, tiles, _ = library()
    kind, count, shape, _ = CASES[name]
    x = matrices(name)
    if kind == "cholesky":
        x[0, 3, 3] = -1
    else:
        x[0, :, 1] = x[0, :, 3] = 0
    arrays = [x.ravel(), np.zeros(kernels[name].slots[1].size, x.dtype)]
    expected = wanted(kernels[name], arrays)[1].reshape(shape[0], -1)
    interpret_tiles(tiles[name], arrays)
    found = arrays[1].reshape(shape[0], -1)
    compare(found[1:], expected[1:])
    if kind in ("lu", "panel"):
        compare(found, expected)
    elif kind == "solve":
        assert found[:, -1].tolist() == [2, 0, 0, 0] and not np.isfinite(found[0, :-1]).all()
    else:
        size = 3 * count
        assert np.isfinite(found[0, :size].reshape(3, count)[:, :3]).all()
        assert np.isnan(found[0, -1])


@pytest.mark.parametrize("name", ["lu", "panel", "solve", "cholesky", "below", "lower"])
def test_shared_memory_is_read_behind_barriers(name: str) -> None:
    kernels, tiles, _ = library()
    x = matrices(name)
    arrays = [x.ravel(), np.zeros(kernels[name].slots[1].size, x.dtype)]
    expected = wanted(kernels[name], arrays)[1]
    interpret_program(linearize(tiles[name], H200), arrays)
    compare(arrays[1], expected)

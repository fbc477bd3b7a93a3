"""Eigenvalues and eigenvectors of small matrices: Tile IR, and the text on threads."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from cuda_tools import H200, compile_host, run_host
from rowwise_cases import leaf

from picograd.codegen.interpret_program import interpret as interpret_program
from picograd.codegen.interpret_tile import interpret as interpret_tiles
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.pipeline import tile
from picograd.codegen.tile import verify
from picograd.dtype import DType, float32, float64
from picograd.graph.elimination import eliminate
from picograd.schedule.loop import Kernel
from picograd.schedule.schedule import schedule

CASES: dict[str, tuple[tuple[int, ...], DType]] = {
    "one": ((3, 1, 1), float32),
    "two": ((3, 2, 2), float64),
    "odd": ((2, 5, 5), float32),
    "even": ((2, 8, 8), float64),
    "large": ((1, 32, 32), float32),
}


def kernel_of(name: str) -> Kernel:
    shape, dtype = CASES[name]
    node = eliminate(leaf(shape, dtype, "cuda:0"), "eigh", shape[-1], "rotate")
    kernel: Kernel = schedule([node], H200).steps[-1].kernel  # type: ignore[union-attr]
    object.__setattr__(kernel, "name", name)
    return kernel


@cache
def library() -> tuple[dict[str, Kernel], dict[str, Any], Any]:
    kernels = {name: kernel_of(name) for name in CASES}
    tiles = {name: verify(tile(kernel, H200)) for name, kernel in kernels.items()}
    return kernels, tiles, compile_host(list(tiles.values()))


def matrices(shape: tuple[int, ...], dtype: DType) -> Any:
    """Symmetric ones, with other numbers above the diagonal, which nobody reads."""
    x = np.random.default_rng(1).standard_normal(shape)
    x = np.tril(x + x.transpose(0, 2, 1)) + np.triu(np.full(shape, 77.0), 1)
    return x.astype(dtype.numpy)


def check(x: Any, found: Any, tolerance: float) -> None:
    """Multiply back: eigenvectors have any sign, and any basis where eigenvalues are equal."""
    size = x.shape[-1]
    whole = np.tril(x) + np.tril(x, -1).transpose(0, 2, 1)
    found = found.reshape(len(x), -1).astype(float)
    values, vectors = found[:, :size], found[:, size:].reshape(x.shape)
    scale = np.abs(np.linalg.eigvalsh(whole)).max() or 1.0
    assert np.abs(values - np.linalg.eigvalsh(whole.astype(float))).max() < tolerance * scale
    assert np.abs(vectors.transpose(0, 2, 1) @ vectors - np.eye(size)).max() < tolerance
    back = (vectors * values[:, None]) @ vectors.transpose(0, 2, 1)
    assert np.abs(back - whole).max() < tolerance * scale
    assert (np.diff(values) >= 0).all()


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    kernels, tiles, compiled = library()
    shape, dtype = CASES[name]
    tolerance = 3e-5 if dtype is float32 else 1e-13
    x = matrices(shape, dtype)
    arrays = [x.ravel(), np.full(kernels[name].slots[1].size, np.nan, x.dtype)]
    interpret_tiles(tiles[name], arrays)
    check(x, arrays[1], tolerance)
    for is_reversed in (False, True):
        (made,) = run_host(compiled, tiles[name], {0: x.ravel()}, (), is_reversed).values()
        check(x, made, tolerance)


def test_shared_memory_is_read_behind_barriers() -> None:
    kernels, tiles, _ = library()
    x = matrices(*CASES["odd"])
    arrays = [x.ravel(), np.zeros(kernels["odd"].slots[1].size, x.dtype)]
    interpret_program(linearize(tiles["odd"], H200), arrays)
    check(x, arrays[1], 3e-5)


@pytest.mark.parametrize("kind", ["equal", "ones", "diagonal", "zeros", "graded", "scaled"])
def test_matrices_that_are_not_random(kind: str) -> None:
    _, tiles, _ = library()
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0]
    chosen = {
        "equal": (basis * [1, 1, 1, 2, 2, 3, 3, 3]) @ basis.T,
        "ones": np.ones((8, 8)),
        "diagonal": np.diag([3.0, -1, 2, 2, 0, 0, 5, 1]),
        "zeros": np.zeros((8, 8)),
        "graded": (basis * 10.0 ** -np.arange(8.0)) @ basis.T,
        "scaled": np.outer(*[10.0 ** -np.arange(8.0)] * 2) * (basis + basis.T + 9 * np.eye(8)),
    }
    x = np.stack([chosen[kind]] * 2)
    x = (x + x.transpose(0, 2, 1)) / 2
    arrays = [x.ravel(), np.full(144, np.nan)]
    interpret_tiles(tiles["even"], arrays)
    check(x, arrays[1], 1e-12)


def test_nan_is_everywhere() -> None:
    _, tiles, _ = library()
    x = matrices(*CASES["even"])
    x[0, 3, 1] = np.nan
    arrays = [x.ravel(), np.zeros(144)]
    interpret_tiles(tiles["even"], arrays)
    found = arrays[1].reshape(2, -1)
    assert np.isnan(found[0]).all() and np.isfinite(found[1]).all()

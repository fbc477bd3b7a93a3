"""Columns of small matrices that are turned: Tile IR, and the text on threads."""

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
from picograd.codegen.templates import rotations
from picograd.codegen.tile import verify
from picograd.dtype import DType, float32, float64
from picograd.graph.elimination import eliminate
from picograd.schedule.loop import Kernel
from picograd.schedule.schedule import schedule

CASES: dict[str, tuple[tuple[int, ...], int, DType]] = {  # matrices, rows that count
    "one": ((3, 1, 1), 1, float32),
    "two": ((3, 2, 2), 2, float64),
    "odd": ((2, 5, 5), 5, float32),
    "even": ((2, 8, 8), 8, float64),
    "more": ((2, 14, 7), 7, float64),
    "tall": ((2, 9, 4), 9, float32),
    "large": ((1, 64, 32), 32, float32),
    "nearly": ((2, 24, 12), 12, float64),
}


def kernel_of(name: str) -> Kernel:
    shape, count, dtype = CASES[name]
    kind = "sweep" if name == "nearly" else "turn"
    node = eliminate(leaf(shape, dtype, "cuda:0"), kind, count, "rotate")
    kernel: Kernel = schedule([node], H200).steps[-1].kernel  # type: ignore[union-attr]
    object.__setattr__(kernel, "name", name)
    return kernel


@cache
def library() -> tuple[dict[str, Kernel], dict[str, Any], Any]:
    kernels = {name: kernel_of(name) for name in CASES}
    tiles = {name: verify(tile(kernel, H200)) for name, kernel in kernels.items()}
    return kernels, tiles, compile_host(list(tiles.values()))


def matrices(name: str) -> Any:
    """Random ones, with an identity matrix behind the rows that count."""
    shape, count, dtype = CASES[name]
    x = np.random.default_rng(1).standard_normal(shape)
    x[:, count:] = np.eye(*shape[1:])[: shape[1] - count]
    if name == "nearly":
        lengths = np.arange(1, count + 1)  # the shortest first: every two meet
        x[:, :count] = np.diag(lengths) + 1e-8 * x[:, :count]
    return x.astype(dtype.numpy)


def check(x: Any, found: Any, count: int, tolerance: float) -> None:
    """Columns are at right angles, and sorted: their lengths are the singular values.

    What they are multiplied by is a rotation: their products with one another stay.
    """
    size = x.shape[-1]
    x = x.astype(float)
    found = found.reshape(len(x), -1).astype(float)
    squares, turned = found[:, :size], found[:, size:].reshape(x.shape)
    top = turned[:, :count]
    lengths = np.linalg.svd(x[:, :count], compute_uv=False)
    scale = lengths.max() or 1.0
    assert (np.diff(squares) <= 0).all()
    assert np.abs(np.sqrt(squares) - lengths).max() < tolerance * scale
    products = top.swapaxes(1, 2) @ top - np.eye(size) * squares[:, None]
    assert np.abs(products).max() < tolerance * scale**2
    both = turned @ turned.swapaxes(1, 2) - x @ x.swapaxes(1, 2)
    assert np.abs(both).max() < tolerance * max(scale, 1) ** 2


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    kernels, tiles, compiled = library()
    _, count, dtype = CASES[name]
    tolerance = 4e-6 if dtype is float32 else 1e-14
    x = matrices(name)
    arrays = [x.ravel(), np.full(kernels[name].slots[1].size, np.nan, x.dtype)]
    interpret_tiles(tiles[name], arrays)
    check(x, arrays[1], count, tolerance)
    for is_reversed in (False, True):
        (made,) = run_host(compiled, tiles[name], {0: x.ravel()}, (), is_reversed).values()
        check(x, made, count, tolerance)


def test_shared_memory_is_read_behind_barriers() -> None:
    kernels, tiles, _ = library()
    x = matrices("odd")
    arrays = [x.ravel(), np.zeros(kernels["odd"].slots[1].size, x.dtype)]
    interpret_program(linearize(tiles["odd"], H200), arrays)
    check(x, arrays[1], 5, 4e-6)


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
    arrays = [x.ravel(), np.full(144, np.nan)]
    interpret_tiles(tiles["even"], arrays)
    check(x, arrays[1], 8, 1e-14)


def test_nan_is_everywhere() -> None:
    _, tiles, _ = library()
    x = matrices("even")
    x[0, 3, 1] = np.nan
    arrays = [x.ravel(), np.zeros(144)]
    interpret_tiles(tiles["even"], arrays)
    found = arrays[1].reshape(2, -1)
    assert np.isnan(found[0]).all() and np.isfinite(found[1]).all()


def test_a_thread_may_have_several_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotations, "MOST_THREADS", 32)
    made = verify(tile(kernel_of("large"), H200))
    assert made.threads == 32
    x = matrices("large")
    (found,) = run_host(compile_host([made]), made, {0: x.ravel()}).values()
    check(x, found, 32, 4e-6)


@pytest.mark.parametrize(
    ("length", "dtype", "lanes"),
    [(1, float32, 1), (3, float32, 4), (128, float32, 4), (256, float32, 8), (220, float64, 16)],
)
def test_long_columns_are_shared_by_more_threads(length: int, dtype: DType, lanes: int) -> None:
    """So that their elements fit registers."""
    assert rotations.lanes_of(length, dtype, 4) == lanes

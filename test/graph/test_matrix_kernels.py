"""Matrices by kernels of a GPU beside the host's calls; what these do is in templates/."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graph_support import leaf, value

from picograd.graph import matrix_kernels, matrix_loops
from picograd.graph.expand import expand_composites
from picograd.graph.host_call import HostCall, host_call
from picograd.graph.node import Node, toposort
from picograd.target import cuda_target

CUDA = cuda_target("sm_90a")
RANDOM = np.random.default_rng(3)
SQUARE = RANDOM.normal(size=(2, 3, 3)) + 4 * np.eye(3)
SPD = SQUARE @ np.swapaxes(SQUARE, 1, 2)
RIGHT = RANDOM.normal(size=(2, 3, 2))
TRIANGLES = [(upper, unit) for upper in (False, True) for unit in (False, True)]
CALLS: dict[str, tuple[list[Any], list[Any]]] = {  # options of calls, and what they are given
    "inv": ([()], [SQUARE]),
    "inv_told": ([()], [SQUARE]),
    "solve": ([()], [SQUARE, RIGHT]),
    "solve_told": ([()], [SQUARE, RIGHT]),
    "solve_triangular": (TRIANGLES, [SQUARE, RIGHT]),
    "cholesky": ([()], [SPD]),
    "lu": ([()], [SQUARE]),
    "det": ([()], [SQUARE]),
    "slogdet": ([()], [SQUARE]),
}


def check_kernels(node: Node, tolerance: float = 1e-13) -> None:
    """Compute a call by what it becomes on a GPU, and compare with the call."""
    (root,) = expand_composites([node], target=CUDA)
    assert "host_call" not in {each.op for each in toposort([root])}
    found, wanted = value(root), value(node)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    assert np.linalg.norm(found - wanted) < tolerance * np.linalg.norm(wanted)


@pytest.mark.parametrize("name", CALLS)
def test_a_gpu_eliminates_small_matrices(name: str) -> None:
    every, arrays = CALLS[name]
    for options in every:
        check_kernels(host_call(name, *map(leaf, arrays), options=options))
        check_kernels(host_call(name, *(leaf(x[:, None]) for x in arrays), options=options))
        check_kernels(host_call(name, *(leaf(x[0]) for x in arrays), options=options))


@pytest.mark.parametrize("order", [[1, 0, 2], [1, 2, 0]])
def test_swapped_rows_have_a_sign(order: list[int]) -> None:
    for name in ("det", "slogdet"):
        check_kernels(host_call(name, leaf(SQUARE[:, order])))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_tiny_matrices_have_a_thread_each(size: int) -> None:
    """In any order of rows, equal ones, and singular ones of all kinds."""
    orders = [*itertools.permutations(range(size))][::5]
    x = RANDOM.normal(size=(1, size, size)) + size * np.eye(size)
    turned = np.concatenate([x[:, order] for order in orders])
    for name in ("det", "slogdet"):
        node = host_call(name, leaf(turned))
        check_kernels(node)
        ops = {each.op for each in toposort(expand_composites([node], target=CUDA))}
        assert ("eliminate" in ops) is (size > 4)
        equal, empty = np.ones((1, size, size)), turned[:1].copy()
        empty[:, :, 0] = 0
        (root,) = expand_composites([host_call(name, leaf(empty))], target=CUDA)
        assert value(root)[0, 0] == 0 if name == "slogdet" else value(root)[0] == 0
        (root,) = expand_composites([host_call(name, leaf(equal))], target=CUDA)
        np.testing.assert_array_equal(value(root), value(host_call(name, leaf(equal))))


@pytest.mark.parametrize("name", ["inv", "inv_told", "solve", "solve_told"])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_tiny_systems_have_a_thread_each(name: str, size: int) -> None:
    orders = [*itertools.permutations(range(size))][::5]
    x = RANDOM.normal(size=(1, size, size)) + size * np.eye(size)
    turned = np.concatenate([x[:, order] for order in orders])
    right = [RANDOM.normal(size=(len(turned), size, 1))] if "solve" in name else []
    unknowns = size if right else size * size
    node = host_call(name, *map(leaf, (turned, *right)))
    check_kernels(node)
    ops = {each.op for each in toposort(expand_composites([node], target=CUDA))}
    assert ("eliminate" in ops) is (unknowns > 4)
    if "told" in name:  # the pivot that is 0
        turned[:, :, -1] = 0
        turned[:1, :, 0] = 0
        node = host_call(name, *map(leaf, (turned, *right)))
        (root,) = expand_composites([node], target=CUDA)
        np.testing.assert_array_equal(value(root)[..., -1], value(node)[..., -1])


@pytest.mark.parametrize("shape", [(2, 4, 3), (2, 2, 3)])
def test_lu_of_any_shape(shape: tuple[int, ...]) -> None:
    check_kernels(host_call("lu", leaf(RANDOM.normal(size=shape))))


@pytest.mark.parametrize("name", CALLS)
def test_complex_matrices_stay_with_the_host(name: str) -> None:
    (options, *_), arrays = CALLS[name]
    node = host_call(name, *(leaf(x.astype(complex)) for x in arrays), options=options)
    assert expand_composites([node], target=CUDA) == [node]
    small = cuda_target("sm_89", shared_bytes=99 << 10)
    large = host_call("lu", leaf(np.ones((9000, 4))))
    assert expand_composites([large], target=small) == [large]


@pytest.mark.parametrize("name", ["inv", "inv_told", "solve", "solve_told", "lu", "det", "slogdet"])
@pytest.mark.parametrize("size", [160, 203])
def test_large_matrices_fall_into_panels(name: str, size: int, monkeypatch: Any) -> None:
    x = np.random.default_rng(size).normal(size=(2, size, size)) / 8
    arrays = [x, x[:, :, :3]] if "solve" in name else [x]
    check_kernels(host_call(name, *map(leaf, arrays)), 1e-11)
    monkeypatch.setattr(matrix_loops, "LOOPED", 64)  # columns in blocks, triangles in halves
    monkeypatch.setattr(matrix_loops, "COLUMNS", 64)
    check_kernels(host_call(name, *map(leaf, arrays)), 1e-11)


@pytest.mark.parametrize("shape", [(200, 160), (140, 250)])
def test_large_matrices_that_are_not_square(shape: tuple[int, int]) -> None:
    check_kernels(host_call("lu", leaf(RANDOM.normal(size=shape))), 1e-11)


def test_halves_of_large_matrices(monkeypatch: Any) -> None:
    monkeypatch.setattr(matrix_loops, "LOOPED", 64)
    test_large_triangles_fall_into_blocks(200)


@pytest.mark.parametrize("size", [130, 200, 700])
def test_large_triangles_fall_into_blocks(size: int) -> None:
    x = np.random.default_rng(size).normal(size=(size, size))
    definite = leaf(x @ x.T + size * np.eye(size))
    check_kernels(host_call("cholesky", definite))
    right = leaf(x[:, : size // 2])
    for is_upper, is_unit in ((False, False), (True, False), (True, True), (False, True)):
        triangle = leaf(x / size + np.eye(size))
        check_kernels(host_call("solve_triangular", triangle, right, options=(is_upper, is_unit)))


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", [(2, 2, 5, 3), (3, 5), (60, 40)])
def test_q_and_r(shape: tuple[int, ...], mode: str) -> None:
    """Signs of rows and columns are the host's; columns beyond those of the matrix are any."""
    node = host_call("qr", leaf(RANDOM.normal(size=shape)), options=(mode,))
    if mode == "reduced" or shape[-2] <= shape[-1]:
        check_kernels(node)
    else:
        (root,) = expand_composites([node], target=CUDA)
        assert root.op != "host_call" and root.shape == node.shape


def test_the_host_finds_what_a_square_is_nearest_to() -> None:
    """It sees as many rows as columns: the rank and the solution of least length are its own."""
    x = RANDOM.normal(size=(2, 40, 5))
    x[1, :, 2] = x[1, :, 1]
    node = host_call("lstsq", leaf(x), leaf(x[:, :, :1] + 1), options=(1e-12,))
    (root,) = expand_composites([node], target=CUDA)
    (call,) = [each for each in toposort([root]) if each.op == "host_call"]
    assert [each.shape for each in call.inputs] == [(2, 5, 5), (2, 5, 1)]
    np.testing.assert_allclose(value(root), value(node), atol=1e-12)
    assert value(root)[:, -1].tolist() == [5, 4]


def test_what_went_wrong_is_told() -> None:
    """As the host tells it: which pivot is 0 first, from 1, and NaN where there is no result."""
    singular = SQUARE.copy()
    singular[1, :, 1] = 0
    large = np.random.default_rng(2).normal(size=(2, 200, 200))
    large[1, :, 1] = 0
    cases = ("inv_told", singular), ("solve_told", singular, RIGHT), ("inv_told", large)
    for name, singular, *right in cases:
        node = host_call(name, *map(leaf, [singular, *right]))
        for each in (node, *expand_composites([node], target=CUDA)):
            result = value(each)
            assert result[0, -1] == 0 and result[1, -1] == 2
            assert np.isfinite(result[0]).all() and not np.isfinite(result[1]).all()
    (root,) = expand_composites([host_call("cholesky", leaf(-SPD))], target=CUDA)
    assert np.isnan(value(root)[:, -1, -1]).all()


def test_products_keep_the_digits_of_float32() -> None:
    """Beside tensor cores that multiply with fewer, large matrices are float64 meanwhile."""
    node = host_call("cholesky", leaf((np.eye(200) * 4).astype("f4")))
    (root,) = expand_composites([node], target=replace(CUDA, tf32=True))
    bodies = [each.arg.body.order for each in toposort([root]) if each.op == "recur"]
    kinds = {each.dtype.name for each in sum(bodies, ()) if each.op == "contract"}
    assert kinds == {"float64"} and root.dtype.name == "float32"


@pytest.mark.parametrize("shape", [(16384, 2), (513, 10), (2, 20000), (181, 181)])
def test_what_a_block_has_no_room_for(shape: tuple[int, int]) -> None:
    """Registers, shared memory beside the matrix, or rows for a warp."""
    x = leaf(np.ones(shape, "f4"))
    call = Node("host_call", (x,), HostCall("lu"), shape, x.dtype, x.device)
    assert not matrix_kernels.fits(call, *shape, cuda_target("sm_89", shared_bytes=99 << 10))
    assert matrix_kernels.fits(call, *shape, CUDA) is (shape in ((181, 181),))


@pytest.mark.parametrize("size", [0.0, 0.5, 3.0, 1000.0])
def test_exponentials(size: float) -> None:
    """Each matrix of a stack is squared as often as its norm asks."""
    x = np.stack([SQUARE[0] * 0.01, (SQUARE[1] - SQUARE[1].T) * size])
    for options in ((), (16,)):
        check_kernels(host_call("matrix_exp", leaf(x), options=options), 1e-11)
    check_kernels(host_call("matrix_exp", leaf(np.diag([-1e10, -1.0, 0.0]))))
    large = host_call("matrix_exp", leaf(x), options=(64,))
    assert expand_composites([large], target=CUDA) == [large]


def test_exponentials_that_take_more_squarings_are_nan() -> None:
    """Those of other matrices of the stack are not."""
    x = np.stack([SQUARE[0] * 0.01, SQUARE[1] * 100, np.full((3, 3), np.nan)])
    (root,) = expand_composites([host_call("matrix_exp", leaf(x), options=(1,))], target=CUDA)
    found = value(root)
    assert np.isfinite(found[0]).all() and np.isnan(found[1:]).all()

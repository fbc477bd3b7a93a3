"""Eigenvalues and singular values by rotations of columns, beside the host's calls."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graph_support import leaf, value

from picograd.graph.expand import expand_composites
from picograd.graph.host_call import host_call
from picograd.graph.node import Node, toposort
from picograd.target import cuda_target

CUDA = cuda_target("sm_90a")
RANDOM = np.random.default_rng(7)
BASIS = np.linalg.qr(RANDOM.normal(size=(8, 8)))[0]
SYMMETRIC = {
    "random": RANDOM.normal(size=(2, 1, 5, 5)),
    "one": np.array([[-3.0]]),
    "zeros": np.zeros((3, 3)),
    "ones": np.ones((4, 4)),
    "diagonal": np.diag([3.0, -1.0, 0.0, 0.0, 2.0]),
    "equal": (BASIS * [-1, 1, 1, -1, 2, 2, 2, -1]) @ BASIS.T,
    "graded": (BASIS * 10.0 ** (-2 * np.arange(8))) @ BASIS.T,
    "huge": np.ones((3, 3)) * 1e300,
    "tiny": np.eye(3) * 1e-300,
}
ANY = {
    **SYMMETRIC,
    "tall": RANDOM.normal(size=(2, 9, 4)),
    "wide": RANDOM.normal(size=(3, 7)),
    "column": RANDOM.normal(size=(6, 1)),
    "short rank": RANDOM.normal(size=(2, 7, 2)) @ RANDOM.normal(size=(2, 2, 5)),
    "columns of zeros": RANDOM.normal(size=(6, 4)) * [1, 0, 1, 0],
    "large": RANDOM.normal(size=(64, 64)),
}


def expanded(node: Node) -> Node:
    """Give what a call becomes on a GPU."""
    (root,) = expand_composites([node], target=CUDA)
    return root


def kernels_of(name: str, x: Any, options: tuple[Any, ...] = ()) -> tuple[Any, Any]:
    """Compute a call by kernels alone, and as the host does."""
    node = host_call(name, leaf(x), options=options)
    root = expanded(node)
    assert "host_call" not in {each.op for each in toposort([root])}
    found, wanted = value(root), value(node)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    return found, wanted


def size_of(x: Any) -> float:
    """Give the largest element, or 1."""
    return float(np.abs(x).max()) or 1.0


@pytest.mark.parametrize("name", SYMMETRIC)
def test_eigenvalues_and_vectors(name: str) -> None:
    x = np.tril(SYMMETRIC[name])  # the other triangle is not read
    whole = x + np.swapaxes(np.tril(x, -1), -1, -2)
    count, scale = x.shape[-1], size_of(x)
    values, wanted = kernels_of("eigvalsh", x)
    np.testing.assert_allclose(values / scale, wanted / scale, atol=1e-14)
    both, _ = kernels_of("eigh", x)
    np.testing.assert_array_equal(both[..., :count], values)
    vectors = both[..., count:].reshape(x.shape)
    back = (vectors * (values / scale)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    np.testing.assert_allclose(back, whole / scale, atol=1e-14)
    assert (np.diff(values) >= 0).all()


@pytest.mark.parametrize("name", ANY)
def test_singular_values_and_vectors(name: str) -> None:
    x = ANY[name]
    (rows, columns), scale = x.shape[-2:], size_of(x)
    least = min(rows, columns)
    values, wanted = kernels_of("svdvals", x)
    np.testing.assert_allclose(values / scale, wanted / scale, atol=4e-14)
    found, _ = kernels_of("svd", x)
    u, values, vh = np.split(found, [rows * least, rows * least + least], -1)
    u, vh = u.reshape(*x.shape[:-1], least), vh.reshape(*x.shape[:-2], least, columns)
    np.testing.assert_allclose(values / scale, wanted / scale, atol=4e-14)
    back = (u * (values / scale)[..., None, :]) @ vh
    np.testing.assert_allclose(back, x / scale, atol=4e-14)
    for each in (np.swapaxes(u, -1, -2) @ u, vh @ np.swapaxes(vh, -1, -2)):
        np.testing.assert_allclose(each, np.broadcast_to(np.eye(least), each.shape), atol=4e-14)


@pytest.mark.parametrize("name", sorted({*ANY} - {"large", "graded"}))
@pytest.mark.parametrize("limits", [(1e-10, 0.0), (1e-14, 1e-5), (1e-3, 1e-5)])
def test_pseudo_inverses(name: str, limits: tuple[float, float]) -> None:
    found, wanted = kernels_of("pinv", ANY[name], limits)
    np.testing.assert_allclose(found / size_of(wanted), wanted / size_of(wanted), atol=1e-11)


@pytest.mark.parametrize("name", ["svdvals", "svd", "eigh", "eigvalsh", "pinv", "matrix_exp"])
def test_products_keep_the_digits_of_float32(name: str) -> None:
    """Beside tensor cores that multiply with fewer, what is multiplied is float64 meanwhile."""
    options = (1e-6, 0.0) if name == "pinv" else ()
    node = host_call(name, leaf(np.eye(40, dtype="f4")), options=options)
    (root,) = expand_composites([node], target=replace(CUDA, tf32=True))
    nodes = toposort([root])
    bodies = [each.arg.body.order for each in nodes if each.op == "recur"]
    every = sum(bodies, tuple(nodes))
    kinds = {each.dtype.name for each in every if each.op == "contract"}
    assert kinds == {"float64"} and root.dtype.name == "float32"


@pytest.mark.parametrize("name", ["svdvals", "svd", "eigh", "eigvalsh"])
def test_complex_matrices_and_many_columns_of_float64_stay_with_the_host(name: str) -> None:
    x = np.eye(3) * 1j
    node = host_call(name, leaf(x))
    assert expanded(node) is node
    assert expanded(host_call(name, leaf(np.eye(100)))).op != "host_call"
    small = cuda_target("sm_89", shared_bytes=99 << 10)
    for target, size in ((CUDA, 129), (small, 120)):
        node = host_call(name, leaf(np.eye(size)))
        assert expand_composites([node], target=target) == [node]


def square(size: int) -> Any:
    """Random matrices of float32."""
    return RANDOM.normal(size=(size, size)).astype("f4")


MANY = {
    "random": square(150),
    "stack": np.stack([square(130)] * 2),
    "tall": RANDOM.normal(size=(300, 140)).astype("f4"),
    "wide": RANDOM.normal(size=(130, 200)).astype("f4"),
    "short rank": square(140)[:, :20] @ square(140)[:20],
    "ones": np.ones((129, 129), "f4"),
    "zeros": np.zeros((129, 129), "f4"),
}
CLOSE = 4e-6  # of float32


@pytest.mark.parametrize("name", sorted({*MANY} - {"tall", "wide"}))
def test_eigenvalues_of_many_columns(name: str) -> None:
    x = MANY[name]
    whole = x + np.swapaxes(x, -1, -2)
    count, scale = x.shape[-1], np.linalg.norm(whole, 2, (-2, -1)).max() or 1.0
    values, wanted = kernels_of("eigvalsh", whole)
    np.testing.assert_allclose(values / scale, wanted / scale, atol=CLOSE)
    both, _ = kernels_of("eigh", whole)
    vectors = both[..., count:].reshape(x.shape).astype("f8")
    turned = np.swapaxes(vectors, -1, -2)
    np.testing.assert_allclose(vectors @ turned, np.eye(count) + 0 * x, atol=CLOSE)
    back = (vectors * both[..., None, :count]) @ turned
    np.testing.assert_allclose(back / scale, whole / scale, atol=CLOSE)


@pytest.mark.parametrize("name", MANY)
def test_singular_values_of_many_columns(name: str) -> None:
    x = MANY[name]
    (rows, columns), scale = x.shape[-2:], np.linalg.norm(x, 2, (-2, -1)).max() or 1.0
    least = min(rows, columns)
    values, wanted = kernels_of("svdvals", x)
    np.testing.assert_allclose(values / scale, wanted / scale, atol=CLOSE)
    found, _ = kernels_of("svd", x)
    u, values, vh = np.split(found.astype("f8"), [rows * least, rows * least + least], -1)
    u, vh = u.reshape(*x.shape[:-1], least), vh.reshape(*x.shape[:-2], least, columns)
    np.testing.assert_allclose((u * values[..., None, :]) @ vh / scale, x / scale, atol=CLOSE)
    for each in (np.swapaxes(u, -1, -2) @ u, vh @ np.swapaxes(vh, -1, -2)):
        np.testing.assert_allclose(each, np.eye(least) + 0 * each, atol=CLOSE)
    inverse, wanted = kernels_of("pinv", x, (1e-4, 0.0))
    size = np.abs(wanted).max() or 1.0
    np.testing.assert_allclose(inverse / size, wanted / size, atol=1e-4)


@pytest.mark.parametrize("shape", [(2, 1, 300, 130), (130, 260), (130, 130), (135, 130)])
def test_the_host_has_less_to_do_with_long_matrices(shape: tuple[int, ...]) -> None:
    x = leaf(RANDOM.normal(size=shape))
    for node in (host_call("svdvals", x), host_call("pinv", x, options=(1e-12, 0.0))):
        root = expanded(node)
        (call,) = [each for each in toposort([root]) if each.op == "host_call"]
        is_long = max(shape) >= 2 * min(shape)
        assert call.inputs[0].shape[-2:] == ((130, 130) if is_long else shape)
        np.testing.assert_allclose(value(root), value(node), atol=1e-12)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (2, 0, 0), (0, 3, 3)])
def test_nothing_has_no_values(shape: tuple[int, ...]) -> None:
    node = host_call("svdvals", leaf(np.zeros(shape)))
    assert value(expanded(node)).shape == value(node).shape

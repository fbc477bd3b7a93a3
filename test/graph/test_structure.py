"""Views and reductions: values against NumPy, gradients of both orders by finite differences."""

from typing import Any

import numpy as np
import pytest
from graph_support import Build, check_both_orders, check_gradients, gradients_of, leaf, value

from picograd.buffer import RuntimeScalar
from picograd.dtype import ALL, DType, bfloat16, float16, float32, int32
from picograd.graph import build
from picograd.graph.node import Node
from picograd.graph.structure import STRUCTURE

torch = pytest.importorskip("torch")

Array = Any
X = np.random.default_rng(0).normal(size=(2, 3, 6))
WIDE = ((1, 2, 1, 1), (2, 3, 2, 1))
APART = ((2, 2, 2, 1),)  # windows that do not overlap
GAPPED = ((2, 2, 3, 2),)
VIEWS: dict[str, tuple[Build, Build, Array]] = {
    "reshape": (lambda n: build.reshape(n, (6, -1)), lambda a: a.reshape(6, 6), X),
    "permute": (lambda n: build.permute(n, (2, 0, -2)), lambda a: a.transpose(2, 0, 1), X),
    "expand": (
        lambda n: build.expand(n, (4, 2, -1, 6)),
        lambda a: np.broadcast_to(a, (4, 2, 3, 6)),
        X[:, :, :1].repeat(6, 2),
    ),
    "expand one": (
        lambda n: build.expand(n, (2, 5, 6)),
        lambda a: np.broadcast_to(a, (2, 5, 6)),
        X[:, :1],
    ),
    "slice": (
        lambda n: build.slice_(n, ((0, 2, 1), (1, 3, 1), (1, 6, 2))),
        lambda a: a[:, 1:3, 1:6:2],
        X,
    ),
    "slice nothing": (
        lambda n: build.slice_(n, ((0, 2, 1), (2, 2, 1), (0, 6, 4))),
        lambda a: a[:, 2:2, ::4],
        X,
    ),
    "slice of a step": (
        lambda n: build.slice_(n, ((0, 2, 1), (0, 3, 3), (0, 6, 4))),
        lambda a: a[:, ::3, ::4],
        X,
    ),
    "flip": (lambda n: build.flip(n, (0, 2)), lambda a: np.flip(a, (0, 2)), X),
    "pad": (
        lambda n: build.pad(n, ((0, 1), (2, 0), (0, 0)), 7.0),
        lambda a: np.pad(a, ((0, 1), (2, 0), (0, 0)), constant_values=7.0),
        X,
    ),
    "pad and cut": (
        lambda n: build.pad(n, ((0, 0), (0, 0), (1, -2))),
        lambda a: np.pad(a, ((0, 0), (0, 0), (1, 0)))[..., :5],
        X,
    ),
    "window": (lambda n: build.window(n, WIDE), lambda a: torch_windows(a, WIDE), X),
    "window apart": (lambda n: build.window(n, APART), lambda a: torch_windows(a, APART), X),
    "window gapped": (lambda n: build.window(n, GAPPED), lambda a: torch_windows(a, GAPPED), X),
    "copy": (lambda n: there_and_back(n), lambda a: a, X),
    "contiguous": (lambda n: build.contiguous(n), lambda a: a, X),
}


def there_and_back(n: Node) -> Node:
    moved = build.copy(n, "cuda:0")
    assert moved.device == "cuda:0"
    return build.copy(moved + moved, "cpu") - n


def torch_windows(a: Array, windows: Any) -> Array:
    """Unfold with PyTorch, which has no dilation: take a wider window and step through it."""
    x = torch.tensor(a)
    for axis, kernel, stride, gap in windows:
        x = x.unfold(axis, (kernel - 1) * gap + 1, stride)[..., ::gap]
    return x.numpy()


@pytest.mark.parametrize("name", VIEWS)
class TestViews:
    def test_value(self, name: str) -> None:
        ours, numpy, x = VIEWS[name]
        np.testing.assert_array_equal(value(ours(leaf(x))), numpy(x))

    def test_integers(self, name: str) -> None:
        ours, numpy, x = VIEWS[name]
        whole = (x * 9).astype(np.int32)
        np.testing.assert_array_equal(value(ours(leaf(whole))), numpy(whole))

    def test_gradients(self, name: str) -> None:
        ours, _, x = VIEWS[name]
        check_both_orders(lambda n: ours(n) * ours(n) * ours(n), x)

    def test_permuted_input(self, name: str) -> None:
        ours, _, x = VIEWS[name]
        turned = np.ascontiguousarray(x.transpose(1, 0, 2))
        check_gradients(lambda n: ours(build.permute(n, (1, 0, 2))), turned)


FOLDS = [
    (((0, 2, 1, 1),), (4,), (3, 2)),
    (((0, 3, 2, 1), (1, 2, 2, 1)), (7, 5), (3, 2, 3, 2)),
    (((0, 2, 2, 1),), (7,), (3, 2)),  # apart, with a remainder
    (((1, 2, 1, 2),), (5,), (2, 3, 2)),
    (((0, 2, 3, 1),), (8,), (3, 2)),  # apart, with gaps, cut at the end
    (((0, 1, 3, 2), (1, 2, 2, 1)), (9, 5), (3, 2, 1, 2)),
]


@pytest.mark.parametrize("windows, sizes, shape", FOLDS)
def test_fold_is_the_adjoint_of_window(windows: Any, sizes: Any, shape: Any) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=shape)
    node = build.fold(leaf(x), windows, sizes)
    y = random.normal(size=node.shape)
    back = value(build.window(leaf(y), windows))
    np.testing.assert_allclose(np.sum(value(node) * y), np.sum(back * x))
    check_both_orders(lambda n: build.fold(n * n, windows, sizes), x)


def test_disjoint_fold_is_a_view() -> None:
    node = build.fold(leaf(np.ones((3, 2))), ((0, 2, 2, 1),), (6,))
    assert node.op == "reshape"


MONOIDS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


@pytest.mark.parametrize("monoid", MONOIDS)
@pytest.mark.parametrize("axes", [None, 1, (0, 2), ()], ids=str)
class TestReduce:
    @pytest.mark.parametrize("dtype", [d for d in ALL if d.kind not in ("bool", "float8")], ids=str)
    @pytest.mark.filterwarnings("ignore:overflow")  # the product overflows float16: so it should
    def test_value(self, monoid: str, axes: Any, dtype: DType) -> None:
        x = leaf(np.random.default_rng(0).integers(1, 3, (2, 3, 4)).astype(dtype.numpy), dtype)
        for keepdim in (False, True):
            got = value(build.reduce(monoid, x, axes, keepdim))
            numpy_axes = axes if axes is not None else (0, 1, 2)
            exact = MONOIDS[monoid](value(x).astype(np.float64), numpy_axes, keepdims=keepdim)
            exact = np.asarray(exact).astype(np.int64).astype(dtype.numpy)
            np.testing.assert_allclose(got, exact, rtol=1e-2 if dtype.bits == 16 else 1e-6)

    def test_gradients(self, monoid: str, axes: Any) -> None:
        check_gradients(lambda n: build.reduce(monoid, n * n + n, axes), X)
        if monoid != "max":
            check_both_orders(lambda n: build.reduce(monoid, n, axes), np.abs(X) + 0.5)


@pytest.mark.parametrize("name", ["amax", "amin", "prod", "sum"])
def test_ties_and_zeros_as_pytorch(name: str) -> None:
    monoid = {"amax": "max", "amin": "min"}.get(name, name)
    x = np.array([[2.0, 5.0, 5.0], [0.0, 3.0, 4.0], [0.0, 0.0, 2.0], [1.0, 1.0, 1.0]])
    t = torch.tensor(x, requires_grad=True)
    getattr(torch, name)(t, 1).sum().backward()
    (ours,) = gradients_of(lambda n: build.reduce(monoid, n, 1), [x], np.ones(4))
    np.testing.assert_allclose(ours, t.grad.numpy())


def test_sixteen_bit_sums_accumulate_in_float32() -> None:
    ones = np.ones(5000)
    for dtype in (float16, bfloat16):
        total = value(build.reduce("sum", leaf(ones.astype(np.float32), dtype)))
        assert abs(total - 5000) <= 5000 / 128


def test_reduce_of_empty_and_scalar() -> None:
    empty = leaf(np.ones((0, 3)))
    np.testing.assert_array_equal(value(build.reduce("sum", empty, 0)), np.zeros(3))
    np.testing.assert_array_equal(value(build.reduce("prod", empty, 0)), np.ones(3))
    check_gradients(lambda n: build.reduce("sum", n), np.ones((0, 3)))
    check_gradients(lambda n: build.reduce("max", n), np.array(2.0))


def test_nan_propagates() -> None:
    x = leaf(np.array([1.0, np.nan, 3.0]))
    assert np.isnan(value(build.reduce("max", x))) and np.isnan(value(build.reduce("min", x)))


def test_leaves() -> None:
    np.testing.assert_array_equal(value(build.const(2, (2, 2), int32, "cpu")), np.full((2, 2), 2))
    np.testing.assert_array_equal(value(build.iota((2, 3), 1, "cpu")), [[0, 1, 2]] * 2)
    number = RuntimeScalar(1.5)
    node = build.scalar(number, "cpu", float32)
    assert value(node) == 1.5
    number.value = 2.5
    assert value(node) == 2.5


def test_assign_has_the_value_written() -> None:
    target = leaf(np.zeros(3))
    np.testing.assert_array_equal(value(build.assign(target, target + 1.0)), np.ones(3))


def test_every_row_is_interpreted() -> None:
    assert all(row.numpy is not None for row in STRUCTURE.values())

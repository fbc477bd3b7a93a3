"""Views and folds: values against NumPy, gradients of both orders by finite differences."""

from typing import Any

import numpy as np
import plain_nodes
import pytest
from graph_support import Build, check_both_orders, check_gradients, leaf, value

from picograd.graph import build
from picograd.graph.node import Node

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
    "window": (lambda n: plain_nodes.window(n, WIDE), lambda a: torch_windows(a, WIDE), X),
    "window apart": (lambda n: plain_nodes.window(n, APART), lambda a: torch_windows(a, APART), X),
    "window gapped": (
        lambda n: plain_nodes.window(n, GAPPED),
        lambda a: torch_windows(a, GAPPED),
        X,
    ),
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
    back = value(plain_nodes.window(leaf(y), windows))
    np.testing.assert_allclose(np.sum(value(node) * y), np.sum(back * x))
    check_both_orders(lambda n: build.fold(n * n, windows, sizes), x)


def test_disjoint_fold_is_a_view() -> None:
    node = build.fold(leaf(np.ones((3, 2))), ((0, 2, 2, 1),), (6,))
    assert node.op == "reshape"

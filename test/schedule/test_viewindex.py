"""Index maps of views against NumPy: element by element, the source is where NumPy takes it."""

from typing import Any

import numpy as np
import pytest

from picograd.dtype import float32
from picograd.errors import InternalError
from picograd.graph import build
from picograd.graph.node import Node
from picograd.schedule.index import Axis, axis_index, evaluate
from picograd.schedule.viewindex import (
    fold_source,
    pad_source,
    reshape_blocks,
    reshape_source,
    view_source,
)

Array = Any


def iota(*shape: int) -> Node:
    return build.const(0.0, shape, float32, "cpu")


def view(op: str, node: Node, arg: Any, shape: tuple[int, ...]) -> Node:
    return Node(op, (node,), arg, shape, float32, "cpu")


def places(axes: list[Axis]) -> dict[Axis, Array]:
    grid = np.indices([axis.size for axis in axes], sparse=True)
    return dict(zip(axes, grid, strict=True))


def taken(node: Node) -> Array:
    """Flat source position of every element of a view."""
    axes = [Axis(f"i{d}", n) for d, n in enumerate(node.shape)]
    found = view_source(node, tuple(axis_index(axis) for axis in axes))
    grids = [evaluate(index, places(axes), lambda e: None) for index in found]
    full = [np.broadcast_to(g, node.shape) for g in grids]
    return np.ravel_multi_index(full, node.inputs[0].shape)


X = np.arange(24).reshape(2, 3, 4)
BASE = iota(2, 3, 4)
WINDOWS = np.lib.stride_tricks.sliding_window_view(X, 2, 2)[:, :, ::2]
SLICE = ((0, 2, 1), (1, 3, 1), (0, 4, 3))
VIEWS = {
    "merge": (view("reshape", BASE, (6, 4), (6, 4)), X.reshape(6, 4)),
    "split": (view("reshape", BASE, (2, 3, 2, 2), (2, 3, 2, 2)), X.reshape(2, 3, 2, 2)),
    "cross": (view("reshape", BASE, (4, 6), (4, 6)), X.reshape(4, 6)),
    "permute": (view("permute", BASE, (2, 0, 1), (4, 2, 3)), X.transpose(2, 0, 1)),
    "slice": (view("slice", BASE, SLICE, (2, 2, 2)), X[:, 1:3, ::3]),
    "flip": (view("flip", BASE, (0, 2), (2, 3, 4)), X[::-1, :, ::-1]),
    "window": (view("window", BASE, ((2, 2, 2, 1),), (2, 3, 2, 2)), WINDOWS),
}


@pytest.mark.parametrize("name", VIEWS)
def test_view_takes_what_numpy_takes(name: str) -> None:
    node, expected = VIEWS[name]
    np.testing.assert_array_equal(taken(node), expected)


def test_expand_reads_position_0() -> None:
    node = view("expand", iota(1, 3), (5, 3), (5, 3))
    np.testing.assert_array_equal(taken(node), np.broadcast_to(np.arange(3), (5, 3)))


def test_what_is_no_view_is_our_bug() -> None:
    with pytest.raises(InternalError, match="exp is no view"):
        view_source(view("exp", iota(2), None, (2,)), ())


def test_reshape_works_block_by_block() -> None:
    blocks = list(reshape_blocks((2, 3, 4, 5), (6, 20)))
    assert blocks == [(slice(0, 2), slice(0, 1)), (slice(2, 4), slice(1, 2))]
    axis = Axis("i", 7)
    assert reshape_source((7, 1), (1, 7), (axis_index(axis) * 0, axis_index(axis)))[0] == (
        axis_index(axis)
    )
    assert [index.const for index in reshape_source((0, 2), (0,), (axis_index(axis),))] == [0, 0]


def test_what_guards_keep_inside_is_merged_as_it_is() -> None:
    """Rows and columns around an image stay sums of axes, which boxes can follow."""
    i, j = axis_index(Axis("i", 6)), axis_index(Axis("j", 7))
    (place,) = reshape_source((20,), (4, 5), (i - 1, j - 1))
    assert place == i * 5 + j - 6
    row, column = reshape_source((2, 10), (4, 5), (i - 1, j - 1))
    assert (row.lo, row.hi, column.lo, column.hi) == (0, 1, 0, 9), "what is cut has bounds"


def test_pad_tests_only_padded_axes() -> None:
    node = view("pad", iota(3, 4), (((1, 2), (0, 0)), 9.0), (6, 4))
    i, j = Axis("i", 6), Axis("j", 4)
    found, tests = pad_source(node, (axis_index(i), axis_index(j)))
    assert (found[0].lo, found[0].hi) == (-1, 4) and found[1] == axis_index(j)
    assert [(low, high) for _, low, high in tests] == [(0, 2)]


@pytest.mark.parametrize(("kernel", "stride", "dilation"), [(3, 1, 1), (3, 2, 1), (2, 2, 2)])
def test_fold_sums_every_window_once(kernel: int, stride: int, dilation: int) -> None:
    count = 4
    size = (count - 1) * stride + (kernel - 1) * dilation + 1
    source = view("buffer", iota(1), None, (count, kernel))
    node = view("fold", source, (((0, kernel, stride, dilation),), (size,)), (size,))
    at = Axis("p", size)
    found, tests, axes = fold_source(node, (axis_index(at),), (count, kernel))
    values = places([at, *axes])
    window, element = (evaluate(index, values, lambda e: None) for index in found)
    held: Array = np.array(True)
    for index, low, high in tests:
        value = evaluate(index, values, lambda e: None)
        held = held & (value >= low) & (value <= high)
    seen = np.zeros((count, kernel), int)
    grids = np.broadcast_arrays(held, window, element, values[at])
    for is_held, o, k, p in zip(*(g.ravel() for g in grids), strict=True):
        if is_held:
            seen[o, k] += 1
            assert p == o * stride + k * dilation
    assert (seen == 1).all()

"""Movement on nodes against NumPy: every function, with negative and odd arguments."""

import numpy as np
import pytest
from graph_support import leaf, value

from picograd import Tensor
from picograd.dtype import bool_
from picograd.errors import PicogradError
from picograd.graph import build
from picograd.graph.node import toposort
from picograd.tensor.shaping import movement as m

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
X = leaf(A)
S = leaf(A[0])


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (m.reshape(X, (4, -1)), A.reshape(4, -1)),
        (m.permute(X, (2, 0, -2)), A.transpose(2, 0, 1)),
        (m.transpose(X, 0, -1), A.swapaxes(0, -1)),
        (m.move_axis(X, 0, -1), np.moveaxis(A, 0, -1)),
        (m.expand(leaf(A[:1]), (5, -1, 4)), np.broadcast_to(A[:1], (5, 3, 4))),
        (m.squeeze(leaf(A[:1, :, :1]), None), A[0, :, 0]),
        (m.unsqueeze(X, -1), A[..., None]),
        (m.flatten(X, 1, -1), A.reshape(2, 12)),
        (m.unflatten(X, 2, (2, -1)), A.reshape(2, 3, 2, 2)),
        (m.flip(X, (0, -1)), A[::-1, :, ::-1]),
        (m.pad(X, (1, 2), 7.0), np.pad(A, ((0, 0), (0, 0), (1, 2)), constant_values=7)),
        (m.pad(X, (-1, -1)), A[:, :, 1:-1]),
        (m.pad_mode(S, (1, 2), "reflect"), np.pad(A[0], ((0, 0), (1, 2)), mode="reflect")),
        (m.pad_mode(S, (1, 2), "replicate"), np.pad(A[0], ((0, 0), (1, 2)), mode="edge")),
        (m.pad_mode(S, (1, 2), "circular"), np.pad(A[0], ((0, 0), (1, 2)), mode="wrap")),
        (m.repeat(X, (2, 1, 1, 3)), np.tile(A, (2, 1, 1, 3))),
        (m.repeat_interleave(X, 2, 1), A.repeat(2, 1)),
        (m.roll(X, 1, None), np.roll(A, 1)),
        (m.roll(X, (1, -2), (0, 2)), np.roll(A, (1, -2), (0, 2))),
        (m.cat([X, X], -1), np.concatenate([A, A], -1)),
        (m.stack([X, X], 1), np.stack([A, A], 1)),
        (m.narrow(X, 2, -3, 2), A[:, :, 1:3]),
        (m.triangle(X, 1, True), np.tril(A, 1)),
        (m.triangle(X, -1, False), np.triu(A, -1)),
        (m.diagonal(X, 1, 1, 2), A.diagonal(1, 1, 2)),
        (m.diagonal(X, -1, 1, 2), A.diagonal(-1, 1, 2)),
    ],
)
def test_equals_numpy(found, wanted) -> None:
    np.testing.assert_array_equal(value(found), wanted)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (m.split(X, 3, 2), [A[:, :, :3], A[:, :, 3:]]),
        (m.split(X, (1, 3), 2), [A[:, :, :1], A[:, :, 1:]]),
        (m.chunk(X, 3, 2), [A[:, :, :2], A[:, :, 2:]]),
        (m.unbind(X, 0), [A[0], A[1]]),
    ],
)
def test_pieces(found, wanted) -> None:
    assert len(found) == len(wanted)
    for piece, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(value(piece), expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: m.reshape(X, (5, -1)), lambda: m.permute(X, (0, 0, 1)),
        lambda: m.expand(X, (2, 5, 4)), lambda: m.cat([X, S]), lambda: m.cat([]),
        lambda: m.split(X, (1, 1), 2), lambda: m.pad_mode(S, (4, 0), "reflect"),
        lambda: m.narrow(X, 2, 3, 2), lambda: m.unflatten(X, 2, (3, -1)),
        lambda: m.unbind(leaf(np.float32(1))),
    ],
)  # fmt: skip
def test_mistakes(make) -> None:
    with pytest.raises(PicogradError):
        make()


def test_one_axis_flattened_is_the_tensor_itself() -> None:
    """As in PyTorch: a leaf stays a leaf, and several axes that are merged are a view."""
    x, rows = Tensor([1.0, 2.0], requires_grad=True), Tensor([[1.0, 2.0]])
    assert x.flatten() is x and x.flatten(0, -1) is x and rows.flatten(1) is rows
    assert rows.flatten() is not rows and Tensor(3.0).flatten().shape == (1,)
    with pytest.raises(IndexError):
        x.flatten(1)


def test_a_triangle_of_ones_is_a_mask_of_positions():
    """As attention reads it: nothing of ones is left to look at."""
    ones = build.const(True, (3, 4), bool_, "cpu")
    seen = m.triangle(ones, 0, True)
    assert seen.dtype is bool_ and ones not in toposort([seen])
    np.testing.assert_array_equal(value(seen), np.tril(np.ones((3, 4), bool)))

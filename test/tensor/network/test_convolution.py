"""Convolution arguments: sizes, padding and what does not fit; values are in test/ops."""

import numpy as np
import pytest
from graph_support import leaf, value

from picograd.errors import PicogradError, ShapeError
from picograd.tensor.network import convolution as c

X = leaf(np.random.default_rng(0).normal(size=(2, 3, 7, 8)))
W = leaf(np.random.default_rng(1).normal(size=(4, 3, 3, 3)))
PLAIN = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}


def test_per_axis() -> None:
    assert c.per_axis("conv2d", "stride", 2, 2) == (2, 2)
    assert c.per_axis("conv2d", "stride", (1, 3), 2) == (1, 3)
    for wrong in ((1, 2, 3), 0, "two"):
        with pytest.raises(PicogradError, match="^conv2d"):
            c.per_axis("conv2d", "stride", wrong, 2)


def test_same_padding_puts_the_odd_element_last() -> None:
    assert c.same_padding("conv2d", (2, 3), (1, 1), (1, 1)) == [(0, 1), (1, 1)]


def test_convolve_shapes_and_values() -> None:
    found = c.convolve("conv2d", 2, X, W, None, {**PLAIN, "stride": 2, "padding": 1})
    assert found.shape == (2, 4, 4, 4)
    x = np.pad(value(X), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2]
    np.testing.assert_allclose(value(found), np.einsum("nchwij,ocij->nohw", windows, value(W)))


@pytest.mark.parametrize(
    ("x", "w", "options"),
    [
        (X, leaf(np.zeros((4, 2, 3, 3))), {}),
        (X, leaf(np.zeros((4, 3, 9, 3))), {}),
        (X, W, {"groups": 2}),
    ],
)
def test_what_does_not_fit(x, w, options) -> None:
    with pytest.raises(ShapeError, match="^conv2d"):
        c.convolve("conv2d", 2, x, w, None, {**PLAIN, **options})

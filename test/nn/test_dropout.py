"""Dropout: the share of zeros, the scale of the rest, and nothing at all in evaluation."""

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import PicogradError

X = Tensor(np.ones((100, 100), np.float32))


def test_share_and_scale() -> None:
    picograd.manual_seed(0)
    found = nn.Dropout(0.25)(X).numpy()
    np.testing.assert_allclose(np.unique(found), [0, 1 / 0.75], rtol=1e-6)
    assert abs((found == 0).mean() - 0.25) < 0.02


def test_evaluation_and_zero_probability_change_nothing() -> None:
    for layer in (nn.Dropout(0.5).eval(), nn.Dropout(0.0)):
        np.testing.assert_array_equal(layer(X).numpy(), X.numpy())


def test_channels_are_dropped_whole() -> None:
    picograd.manual_seed(0)
    found = nn.Dropout2d(0.5)(Tensor(np.ones((8, 8, 3, 3), np.float32))).numpy().reshape(64, 9)
    assert all(len(set(row.tolist())) == 1 for row in found) and 0 < (found == 0).mean() < 1


def test_probability_is_checked() -> None:
    for wrong in (-0.1, 1.1):
        with pytest.raises(PicogradError):
            nn.Dropout(wrong)

"""Inverse tangents of float32: errors, edges, and the text; the CUDA text: test_angles.py."""

import numpy as np
import pytest

import picograd
from picograd import Tensor


def errors(found, want):
    """Errors in units in the last place."""
    unit = np.spacing(np.abs(want).astype(np.float32))
    return np.abs(found - want) / unit


def sizes(count, most):
    """Draw numbers of all sizes and both signs."""
    generator = np.random.default_rng(count)
    drawn = np.exp2(generator.uniform(-most, most, count)) * generator.choice((-1, 1), count)
    return drawn.astype(np.float32)


def test_atan():
    x = np.concatenate([np.linspace(-4, 4, 200_001, dtype=np.float32), sizes(50_000, 126)])
    found = Tensor(x).atan()
    assert "float64" not in str(picograd.explain(found, "cpu")).split("== Program")[1]
    assert errors(found.numpy(), np.arctan(x.astype(np.longdouble))).max() < 1.3


@pytest.mark.parametrize("most", [1, 20, 126])
def test_atan2(most):
    y, x = sizes(100_000, most), sizes(100_001, most)[1:]
    found = Tensor(y).atan2(Tensor(x))
    assert "float64" not in str(picograd.explain(found, "cpu")).split("== Program")[1]
    want = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
    assert errors(found.numpy(), want).max() < 1.5


def test_edges():
    edges = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3e38], np.float32)
    y, x = (each.ravel() for each in np.meshgrid(edges, edges))
    for found, want in (
        (Tensor(edges).atan(), np.arctan(edges.astype(np.float64))),
        (Tensor(y).atan2(Tensor(x)), np.arctan2(y.astype(np.float64), x.astype(np.float64))),
    ):
        np.testing.assert_allclose(found.numpy(), want.astype(np.float32), rtol=2e-7, atol=0)
        zero = want == 0
        np.testing.assert_array_equal(np.signbit(found.numpy()[zero]), np.signbit(want[zero]))

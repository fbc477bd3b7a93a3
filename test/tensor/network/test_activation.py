"""Activations on nodes: values far from 0, integers, and the slope where two pieces meet."""

import math

import numpy as np
import pytest

from picograd import Tensor
from picograd.tensor.core.recording import apply
from picograd.tensor.network import activation

X = np.array([-1000.0, -2.0, -0.0, 0.5, 30.0, 1000.0])


def both(function, *args, device="cpu"):
    """Apply to X in float64; returns values and slopes."""
    x = Tensor(X, requires_grad=True, device=device)
    y = apply(function, x, *args)
    y.sum().backward()
    return y.numpy(), x.grad.numpy()


def test_slopes_left_of_zero(device: str) -> None:
    below = X <= 0
    values, slopes = both(activation.leaky_relu, 0.1, device=device)
    np.testing.assert_allclose(values, np.where(below, 0.1 * X, X))
    np.testing.assert_allclose(slopes, np.where(below, 0.1, 1.0))
    values, slopes = both(activation.elu, 2.0, device=device)
    np.testing.assert_allclose(values, np.where(below, 2 * np.expm1(np.minimum(X, 0)), X))
    np.testing.assert_allclose(slopes, np.where(below, 2 * np.exp(np.minimum(X, 0)), 1.0))


def test_softplus_does_not_overflow(device: str) -> None:
    exact = np.logaddexp(0, X)
    values, slopes = both(activation.softplus, 1.0, math.inf, device=device)
    np.testing.assert_allclose(values, exact, rtol=1e-12)
    np.testing.assert_allclose(slopes, 0.5 * (1 + np.tanh(X / 2)), atol=1e-12)
    values, _ = both(activation.softplus, 2.0, 0.5, device=device)
    np.testing.assert_allclose(values, np.where(2 * X > 0.5, X, np.logaddexp(0, 2 * X) / 2))
    values, _ = both(activation.log_sigmoid, device=device)
    np.testing.assert_allclose(values, -np.logaddexp(0, -X), rtol=1e-12)


def test_hard_limit_has_no_slope_on_its_limits() -> None:
    values, slopes = both(activation.hard_limit, -2.0, 0.5)
    assert values.tolist() == [-2.0, -2.0, 0.0, 0.5, 0.5, 0.5]
    assert slopes.tolist() == [0, 0, 1, 0, 0, 0]


def test_integers() -> None:
    x = Tensor([-3, 0, 2])
    assert apply(activation.relu, x).tolist() == [0, 0, 2]
    assert apply(activation.relu, x).dtype is x.dtype
    assert apply(activation.sigmoid, x).dtype.name == "float32"


@pytest.mark.parametrize("function", [activation.relu, activation.sigmoid])
def test_nan_stays(function) -> None:
    assert math.isnan(apply(function, Tensor([math.nan]))[0].item())

"""lgamma of float32 beside math.lgamma: near its roots and poles, and its gradient."""

import math

import numpy as np
import pytest

from picograd import Tensor

ROOTS = (
    1.0,
    2.0,
    -2.4570247,
    -2.7476827,
    -3.1435809,
    -3.9552943,
    -4.0393618,
    -4.9915445,
    -5.0082182,
)
RANGES = (
    (0.0, 0.7),
    (0.7, 2.0),
    (2.0, 4.5),
    (4.5, 40.0),
    (-2.0, 0.0),
    (-11.5, -2.0),
    (-40.0, -11.5),
)


def units_off(x: np.ndarray, device: str) -> np.ndarray:
    """Tell how many units in the last place each result is off."""
    found = Tensor(x, device=device).lgamma().numpy().astype("f8")
    exact = np.array([math.lgamma(each) for each in x.tolist()])
    return np.abs(found - exact) / np.spacing(np.abs(exact).astype("f4")).astype("f8")


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_errors_in_a_range(low: float, high: float, device: str) -> None:
    x = np.random.default_rng(0).uniform(low, high, 20_000).astype("f4")
    assert units_off(x[x != np.round(x)], device).max() < 4


@pytest.mark.parametrize("near", [*ROOTS, *range(-11, 0)])
def test_errors_beside_roots_and_poles(near: float, device: str) -> None:
    bits = np.float32(near).view(np.int32) + np.arange(-500, 501, dtype=np.int32)
    x = bits.view(np.float32)
    assert units_off(x[x != np.round(x)], device).max() < 4


def test_edges_and_gradients(device: str) -> None:
    edges = [0.0, -0.0, -1.0, -7.0, -1e9, math.inf, -math.inf, 3e38]
    assert Tensor(edges, device=device).lgamma().tolist() == [math.inf] * 8
    assert math.isnan(Tensor([math.nan], device=device).lgamma().item())
    assert Tensor([1e-40], device=device).lgamma().item() == pytest.approx(92.1034, 1e-6)
    x = Tensor([0.3, 1.7, 9.0, -2.5], device=device, requires_grad=True)
    x.lgamma().sum().backward()
    wanted = x.detach().double().digamma()
    np.testing.assert_allclose(x.grad.numpy(), wanted.numpy(), 1e-6)

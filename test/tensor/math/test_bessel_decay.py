"""Bessel functions K0 and K1: equal to SciPy's with their gradients; PyTorch has fewer digits."""

from typing import Any

import numpy as np
import pytest
from op_support import library
from special_support import call

from picograd import Tensor

scipy = pytest.importorskip("scipy.special")
torch = pytest.importorskip("torch")

POINTS = np.array([*np.linspace(0.05, 40, 80), 0.02, 1.9999, 2.0, 2.0001, 80.0])
FUNCTIONS: dict[str, tuple[Any, Any]] = {  # name: function, derivative
    "modified_bessel_k0": (scipy.k0, lambda x: -scipy.k1(x)),
    "modified_bessel_k1": (scipy.k1, lambda x: -scipy.k0(x) - scipy.k1(x) / x),
    "scaled_modified_bessel_k0": (scipy.k0e, lambda x: scipy.k0e(x) - scipy.k1e(x)),
    "scaled_modified_bessel_k1": (
        scipy.k1e,
        lambda x: scipy.k1e(x) - scipy.k0e(x) - scipy.k1e(x) / x,
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name: str, dtype: str, device: str) -> None:
    function, slope = FUNCTIONS[name]
    points = POINTS.astype(dtype)
    x = Tensor(points, device=device, requires_grad=True)
    y = call(name)(x)
    y.sum().backward()
    digits = 1e-12 if dtype == "float64" else 2e-6
    exact = points.astype(np.float64)
    assert y.dtype.name == dtype and library(x) is not torch
    np.testing.assert_allclose(y.detach().numpy(), function(exact), digits, digits)
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), slope(exact), 10 * digits, digits)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges(name: str, device: str) -> None:
    points = np.array([0.0, -0.0, -1.0, np.inf, -np.inf, np.nan, 30.0])
    found = call(name)(Tensor(points, device=device)).numpy()
    np.testing.assert_allclose(found, call(name)(torch.tensor(points)).numpy(), 1e-5, 1e-5)
    assert call(name)(Tensor(points[:0], device=device)).shape == (0,)

"""Airy's function: values equal SciPy's, gradients their derivatives; PyTorch has fewer digits."""

from typing import Any

import numpy as np
import pytest
from op_support import library
from special_support import call

from picograd import Tensor

scipy = pytest.importorskip("scipy.special")
torch = pytest.importorskip("torch")

POINTS = np.array([*np.linspace(-20, 20, 81), -3.5001, -3.4999, 3.4999, 3.5001, 60.0])
FUNCTIONS: dict[str, tuple[Any, Any]] = {  # name: function, derivative
    "airy_ai": (lambda x: scipy.airy(x)[0], lambda x: scipy.airy(x)[1])
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
    points = np.array([0.0, -0.0, np.nan, 110.0])
    found = call(name)(Tensor(points, device=device)).numpy()
    np.testing.assert_allclose(found, call(name)(torch.tensor(points)).numpy(), 1e-5, 1e-5)
    assert call(name)(Tensor(points[:0], device=device)).shape == (0,)


def test_far_right_it_is_zero(device: str) -> None:
    assert call("airy_ai")(Tensor([np.inf, 1e9], device=device)).tolist() == [0.0, 0.0]

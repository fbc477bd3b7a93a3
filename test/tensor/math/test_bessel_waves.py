"""Bessel functions J and Y: equal to SciPy's with their gradients; PyTorch has fewer digits."""

from typing import Any

import numpy as np
import pytest
from special_support import check_edges, check_exactly

scipy = pytest.importorskip("scipy.special")
torch = pytest.importorskip("torch")

POINTS = np.array([*np.linspace(0.05, 40, 80), 1e-3, 7.9999, 8.0, 8.0001, 200.0])
FUNCTIONS: dict[str, tuple[Any, Any]] = {  # name: function, derivative
    "bessel_j0": (scipy.j0, lambda x: -scipy.j1(x)),
    "bessel_j1": (scipy.j1, lambda x: scipy.j0(x) - scipy.j1(x) / x),
    "bessel_y0": (scipy.y0, lambda x: -scipy.y1(x)),
    "bessel_y1": (scipy.y1, lambda x: scipy.y0(x) - scipy.y1(x) / x),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name: str, dtype: str, device: str) -> None:
    check_exactly(name, FUNCTIONS[name], POINTS, dtype, device)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges(name: str, device: str) -> None:
    points = np.array([0.0, -0.0, -1.0, -20.0, np.inf, -np.inf, np.nan, 30.0])
    check_edges(name, points, device)

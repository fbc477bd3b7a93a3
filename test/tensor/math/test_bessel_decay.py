"""Bessel functions K0 and K1: equal to SciPy's with their gradients; PyTorch has fewer digits."""

from typing import Any

import numpy as np
import pytest
from special_support import check_edges, check_exactly

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
    check_exactly(name, FUNCTIONS[name], POINTS, dtype, device)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges(name: str, device: str) -> None:
    points = np.array([0.0, -0.0, -1.0, np.inf, -np.inf, np.nan, 30.0])
    check_edges(name, points, device)

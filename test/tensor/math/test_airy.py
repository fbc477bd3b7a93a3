"""Airy's function: values equal SciPy's, gradients their derivatives; PyTorch has fewer digits."""

from typing import Any

import numpy as np
import pytest
from special_support import call, check_edges, check_exactly

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
    check_exactly(name, FUNCTIONS[name], POINTS, dtype, device)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges(name: str, device: str) -> None:
    points = np.array([0.0, -0.0, np.nan, 110.0])
    check_edges(name, points, device)


def test_far_right_it_is_zero(device: str) -> None:
    assert call("airy_ai")(Tensor([np.inf, 1e9], device=device)).tolist() == [0.0, 0.0]

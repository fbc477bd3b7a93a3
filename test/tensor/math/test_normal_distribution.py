"""The normal distribution: values and gradients equal PyTorch's, far out too."""

import numpy as np
import pytest
from special_support import WIDE, check_functions

POINTS = {
    "ndtr": WIDE,
    "log_ndtr": WIDE,
    "erfcx": np.array([-5.0, -1.0, 0.0, 0.5, 3.0, 26.0, 49.0, 51.0, 1e5]),
    "ndtri": np.array([1e-30, 1e-10, 0.001, 0.2, 0.45, 0.5, 0.7, 0.999]),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_and_gradients(dtype: str, device: str) -> None:
    check_functions(POINTS, dtype, device)

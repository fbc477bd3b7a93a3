"""Bessel functions: values and gradients equal PyTorch's, far out and at the edges too."""

import pytest
from special_support import WIDE, check_functions

POINTS = {"i0": WIDE, "i0e": WIDE, "i1": WIDE, "i1e": WIDE}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_and_gradients(dtype: str, device: str) -> None:
    check_functions(POINTS, dtype, device)

"""Bessel functions: values and gradients equal PyTorch's, far out and at the edges too."""

import numpy as np
import pytest
from special_support import WIDE, check_functions

import picograd
from picograd import Tensor

POINTS = {"i0": WIDE, "i0e": WIDE, "i1": WIDE, "i1e": WIDE}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_and_gradients(dtype: str, device: str) -> None:
    check_functions(POINTS, dtype, device)


@pytest.mark.parametrize("name", POINTS)
def test_errors_of_float32(name: str, device: str) -> None:
    random = np.random.default_rng(0)
    x = np.concatenate([random.uniform(*ends, 20_000) for ends in ((-9, 9), (9, 91))])
    x = x.astype(np.float32)
    function = getattr(picograd.special, name)
    exact = function(Tensor(x.astype(np.float64))).numpy()
    found = function(Tensor(x, device=device)).numpy()
    units = np.abs(found - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert units.max() < 4

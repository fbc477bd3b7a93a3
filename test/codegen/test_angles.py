"""Angles and lengths, here and in the CUDA text."""

import numpy as np
import pytest
from formula_cases import cases_of, check_bits, check_values

from picograd import Tensor
from picograd.codegen.angles import ANGLES
from picograd.dtype import DType, float64


@pytest.mark.parametrize("name, dtype", cases_of(ANGLES), ids=str)
def test_values_everywhere(name: str, dtype: DType) -> None:
    check_values(name, dtype)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_double_angles_of_a_cpu(name: str) -> None:
    check_values(name, float64)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_double_angles_next_to_multiples_of_a_quarter(name: str) -> None:
    x = np.arange(1, 60000) * (np.pi / 2)
    found = getattr(Tensor(x), name)().numpy()
    np.testing.assert_allclose(found, getattr(np, name)(x), rtol=5e-16)


def test_cuda_text_has_the_same_bits() -> None:
    check_bits(ANGLES)

"""Angles and lengths, here and in the CUDA text."""

import numpy as np
import pytest
from formula_cases import cases_of, check_bits, check_values

import picograd
from picograd import Tensor
from picograd.codegen.elementary import ANGLES
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


@pytest.mark.parametrize("name", ["asin", "acos"])
def test_float32_arcs_are_computed_in_float32(name: str) -> None:
    """Over all exponents, and densely where the formula changes: 1.5 units in the last place."""
    half, one = (int(np.float32(x).view(np.int32)) for x in (0.5, 1.0))
    dense = [np.arange(end - 20_000, end + 1) for end in (half, half + 20_000, one)]
    bits = np.concatenate([np.arange(0, one, 40_009), *dense]).astype(np.int32)
    x = np.concatenate([bits.view(np.float32), -bits.view(np.float32)])
    found = getattr(Tensor(x), name)()
    assert "float64" not in str(picograd.explain(found, "cpu")).split("== Program")[1]
    exact = {"asin": np.arcsin, "acos": np.arccos}[name](x.astype(np.float64))
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    assert (np.abs(found.numpy() - exact) / unit).max() < 1.5


@pytest.mark.parametrize("name", ["asin", "acos"])
def test_float64_arcs_are_no_angles_of_ratios(name: str) -> None:
    found = getattr(Tensor(np.linspace(-1, 1, 1001)), name)()
    assert "fdiv" not in str(picograd.explain(found, "cpu"))
    exact = {"asin": np.arcsin, "acos": np.arccos}[name](np.linspace(-1, 1, 1001))
    np.testing.assert_array_max_ulp(found.numpy(), exact, 2)


def test_angles_beyond_the_least_normal_number_are_exact() -> None:
    y, x = np.array([2.69e-140, 3e-200, 5e-324]), np.array([3.44e174, 2e120, 1e300])
    np.testing.assert_array_equal(Tensor(y).atan2(Tensor(x)).numpy(), y / x)
    y = np.array([1.7e308, 1.7e308, 1e-300])
    found = Tensor(y).atan2(Tensor(y[::-1].copy())).numpy()
    np.testing.assert_allclose(found, np.arctan2(y, y[::-1]), rtol=3e-16)

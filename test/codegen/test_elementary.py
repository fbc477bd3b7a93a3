"""Exponentials and logarithms, here and in the CUDA text."""

import numpy as np
import pytest
from cases import unary
from formula_cases import PLAIN, cases_of, check_bits, check_values
from harness import run

from picograd.codegen.elementary import EXPONENTIALS
from picograd.codegen.quick import LOGISTIC
from picograd.dtype import DType, float32, float64


@pytest.mark.parametrize("name, dtype", cases_of([*EXPONENTIALS, *LOGISTIC, *PLAIN]), ids=str)
def test_values_everywhere(name: str, dtype: DType) -> None:
    check_values(name, dtype)


def test_cuda_text_has_the_same_bits() -> None:
    check_bits([*EXPONENTIALS, *LOGISTIC, *PLAIN])


@pytest.mark.parametrize("dtype", [float32, float64], ids=repr)
def test_exact_where_the_result_is(dtype: DType) -> None:
    low, high = (-149, 127) if dtype is float32 else (-1074, 1023)
    whole = np.arange(low, high + 1).astype(dtype.numpy)
    powers = np.ldexp(np.ones_like(whole), whole.astype(int))
    found = run(unary("exp2", dtype, len(whole)).kernel, [whole, np.zeros_like(whole)])[1]
    np.testing.assert_array_equal(found, powers)
    found = run(unary("log2", dtype, len(whole)).kernel, [powers, np.zeros_like(whole)])[1]
    np.testing.assert_array_equal(found, whole)
    tens = np.array([float(10**k) for k in range(11 if dtype is float32 else 23)], dtype.numpy)
    found = run(unary("log10", dtype, len(tens)).kernel, [tens, np.zeros_like(tens)])[1]
    np.testing.assert_array_equal(found, np.arange(len(tens)))

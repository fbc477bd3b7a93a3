"""Compiled LLVM kernels equal the Loop-IR interpreter."""

from typing import Any

import numpy as np
import pytest
from cases import BINARY, INTEGER, UNARY, Case, binary, unary
from compare import check_arrays
from harness import run

from picograd import Tensor
from picograd.dtype import bfloat16, float16, float32, float64, int8, int32, int64, uint8
from picograd.schedule.verify import verify

FLOATS = [float32, float64, float16, bfloat16]
INTEGERS = [int32, uint8, int64, int8]


def compare(case: Case) -> None:
    verify(case.kernel)
    check_arrays(case, run(case.kernel, case.arrays, case.scalars))


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_unary(name: str, dtype: Any) -> None:
    compare(unary(name, dtype))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", FLOATS[:2], ids=lambda d: d.name)
def test_binary(name: str, dtype: Any) -> None:
    compare(binary(name, dtype))


@pytest.mark.parametrize("name", INTEGER)
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.name)
def test_integer(name: str, dtype: Any) -> None:
    compare(binary(name, dtype))


def test_a_truncated_value_alone_behind_whole_vectors_is_stored_no_wider() -> None:
    """LLVM wrote the first element of the next row with it, and behind the last row."""
    values = np.random.default_rng(0).standard_normal((16, 33)).astype(np.float32)
    x = Tensor(values).realize()
    found = (x - x.amax(1, keepdims=True)).bfloat16().realize()
    np.testing.assert_allclose(
        found.float().numpy(), values - values.max(1, keepdims=True), rtol=2**-8
    )

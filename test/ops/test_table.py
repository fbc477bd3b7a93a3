"""Every elementwise row of the op table, on the device and as CUDA C; a new row needs no test."""

import numpy as np
import pytest

from picograd import Tensor
from picograd.codegen.pipeline import generate
from picograd.dtype import DType, bool_, float32, float64, int32, uint8
from picograd.engine.inspect import inspect
from picograd.graph import build
from picograd.graph.elementwise import ELEMENTWISE
from picograd.graph.node import Node
from picograd.graph.row import Op
from picograd.runtime.nvrtc import compile_together
from picograd.target import cuda_target

ROWS = [row for row in ELEMENTWISE.values() if row.name not in ("cast", "bitcast")]
DTYPES = (float32, float64, int32, uint8, bool_)
TOLERANCE = {"float32": 2e-6, "float64": 1e-12}


def sample(row: Op, dtype: DType, seed: int) -> np.ndarray:
    """Draw inputs from the row's domain, special values of floats included."""
    random, (low, high) = np.random.default_rng(seed), row.domain
    if dtype is bool_:
        return random.integers(0, 2, 64).astype(bool)
    if dtype.is_integer:
        low = max(low, 0 if dtype.kind == "uint" else low) if low <= 0 else max(low, 1)
        return random.integers(int(low), int(high) + 1, 64).astype(dtype.numpy)
    values = random.uniform(low, high, 64).astype(dtype.numpy)
    if row.arity == 1:
        values[:4] = [np.nan, np.inf, 0.0, 1.0]
    return values


def arrays_of(row: Op, dtype: DType) -> list[np.ndarray]:
    arrays = [sample(row, dtype, seed) for seed in range(row.arity)]
    return [arrays[0] > 0, *arrays[1:]] if row.kind == "ternary" else arrays


def applied(row: Op, arrays: list[np.ndarray], device: str) -> Node:
    return build.elementwise(row.name, *(Tensor(a, device=device).node for a in arrays))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_device_computes_what_the_row_says(row: Op, device: str) -> None:
    for dtype in (d for d in DTYPES if d.kind in row.dtype_rule.kinds):
        arrays = arrays_of(row, dtype)
        wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
        with np.errstate(all="ignore"):
            expected = np.asarray(row.numpy(*wide))
        found = Tensor.from_node(applied(row, arrays, device)).numpy()
        tolerance = TOLERANCE.get(dtype.name, 0.0)
        expected = expected.astype(found.dtype)
        np.testing.assert_allclose(found, expected, tolerance, tolerance, err_msg=dtype.name)


def test_cuda_c_of_every_row_compiles() -> None:
    codes, target = [], cuda_target("sm_90a")
    for row in ROWS:
        dtype = next(d for d in DTYPES if d.kind in row.dtype_rule.kinds)
        (kernel,) = inspect([applied(row, arrays_of(row, dtype), "cpu")]).kernels
        codes.append(generate(kernel.kernel, target))
    assert len({code.entry for code in codes}) == len(codes)
    assert compile_together(codes, target.arch) is not None

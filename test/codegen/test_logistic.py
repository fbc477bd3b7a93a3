"""sigmoid and silu where exp over- or underflows; their errors: test/ops/test_accuracy.py."""

import numpy as np
import pytest
from cases import unary
from harness import run

from picograd.dtype import DType, float32, float64


def found(name: str, dtype: DType, values: list[float]) -> np.ndarray:
    x = np.array(values, dtype.numpy)
    return run(unary(name, dtype, len(x)).kernel, [x, np.zeros_like(x)])[1]


@pytest.mark.parametrize("dtype, low", [(float32, -104.5), (float64, -746.0)], ids=str)
def test_edges(dtype: DType, low: float) -> None:
    values = [np.inf, -np.inf, np.nan, 0.0, -0.0, low, 1e30, -1e30]
    np.testing.assert_array_equal(
        found("sigmoid", dtype, values), [1, 0, np.nan, 0.5, 0.5, 0, 1, 0]
    )
    one = np.array(1e30, dtype.numpy)
    silu = found("silu", dtype, [*values[:5], *values[6:]])
    np.testing.assert_array_equal(silu, [np.inf, np.nan, np.nan, 0, 0, one, 0])
    np.testing.assert_array_equal(np.signbit(silu[3:5]), [False, True])


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_denormal_results(dtype: DType) -> None:
    """Far below 0 the sigmoid is exp(x), and silu x exp(x), which is larger."""
    x = np.linspace(-103, -87, 200) if dtype is float32 else np.linspace(-744, -708, 200)
    x = x.astype(dtype.numpy)
    wide = np.longdouble(x)
    tiny = np.finfo(dtype.numpy).smallest_subnormal
    for name, exact in (("sigmoid", np.exp(wide)), ("silu", wide * np.exp(wide))):
        error = np.abs(found(name, dtype, list(x)) - exact)
        assert np.all(error <= np.maximum(tiny, 3e-7 * np.abs(exact))), name

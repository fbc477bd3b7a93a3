"""Signs and bits of floats as ONNX operators, run by ONNX Runtime."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

import picograd  # noqa: E402
import picograd.onnx  # noqa: E402
from picograd import Tensor  # noqa: E402
from picograd.errors import DataError  # noqa: E402

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, 1e-40, -1e-40, -3.5], np.float32)
INSIDE = np.linspace(-0.95, 0.95, 23, dtype=np.float32)


def run(function: Callable[..., Any], x: Any, opset: int) -> Any:
    """Export a function, and run it on an array."""
    model = picograd.onnx.export(function, (Tensor(x),), opset=opset)
    session = runtime.InferenceSession(model.SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: x})[0]


@pytest.mark.parametrize("opset", [20, 26])
def test_signs(opset: int) -> None:
    for dtype in (np.float32, np.float64):
        x = SPECIAL.astype(dtype)
        np.testing.assert_array_equal(run(Tensor.signbit, x, opset), np.signbit(x))
        found = run(lambda x: picograd.copysign(2.0, x), x, opset)
        np.testing.assert_array_equal(found, np.copysign(2.0, x))


@pytest.mark.parametrize("opset", [20, 26])
@pytest.mark.parametrize("name", ["erfinv", "lgamma", "digamma"])
def test_functions_that_ask_for_signs(name: str, opset: int) -> None:
    function = getattr(picograd, name)
    x = INSIDE if name == "erfinv" else INSIDE * 4
    np.testing.assert_allclose(run(function, x, opset), function(Tensor(x)).numpy(), 2e-5, 1e-6)


def test_bits_have_an_operator_from_opset_26_on() -> None:
    def bits(x: Tensor) -> Tensor:
        return x.bitcast("int32") + 1

    np.testing.assert_array_equal(run(bits, SPECIAL, 26), SPECIAL.view(np.int32) + 1)
    for function in (bits, lambda x: x.bitcast("int32") < 5):
        with pytest.raises(DataError, match=r"bitcast of \(float32.* Fix: pass opset=26"):
            picograd.onnx.export(function, (Tensor(SPECIAL),))


def test_integers_have_no_sign_of_zero() -> None:
    whole = np.array([-1, 0, 5], np.int32)
    found = run(lambda x: x.bitcast("float32") < 1, whole, 26)
    np.testing.assert_array_equal(found, whole.view(np.float32) < 1)

"""Values of the host and tensors: dtypes go over unchanged."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from picograd import Tensor  # noqa: E402
from picograd.onnx.values import DTYPES, constant, to_array, to_tensor  # noqa: E402


@pytest.mark.parametrize("number", DTYPES)
def test_arrays_come_back(number: int) -> None:
    kind = onnx.helper.tensor_dtype_to_np_dtype(number)
    array = np.array([[0, 1], [1, 1]]).astype(kind)
    tensor = to_tensor(array)
    assert isinstance(tensor, Tensor) and tensor.dtype is DTYPES[number]
    assert to_array(tensor).dtype == kind and (to_array(tensor) == array).all()


def test_small_integers_and_texts_stay_on_the_host() -> None:
    assert isinstance(constant(np.arange(3)), np.ndarray)
    assert isinstance(constant(np.arange(3000)), Tensor)
    assert to_tensor(np.array(["a"])).dtype.kind == "U" and to_tensor(np.float32(2)).shape == ()

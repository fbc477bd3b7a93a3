"""Tensors of data: as_tensor and asarray."""

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import ExportError


def test_asarray_and_as_tensor(device: str) -> None:
    x = Tensor([1.0, 2.0], device=device)
    assert picograd.as_tensor(x) is x and picograd.asarray(x) is x
    assert picograd.asarray(x, copy=True) is not x
    assert picograd.as_tensor(x, dtype="float64").dtype is picograd.float64
    array = np.ones(3)
    shared = picograd.as_tensor(array, device="cpu")
    array[0] = 5
    assert shared[0].item() == 5
    apart = picograd.asarray(array, device="cpu", copy=True)
    array[0] = 6
    assert apart[0].item() == 5
    assert picograd.asarray([1, 2], dtype="float32", requires_grad=True).requires_grad
    assert picograd.as_tensor(3).shape == ()
    with pytest.raises(ExportError, match="must be copied"):
        picograd.asarray([1.0], copy=False)

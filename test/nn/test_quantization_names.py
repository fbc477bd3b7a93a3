"""Stubs of quantisation leave floats as they are; what would quantise says that it cannot."""

import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import DTypeError


def test_models_with_stubs_run_in_floats() -> None:
    stubs = picograd.ao.quantization
    model = nn.Sequential(stubs.QuantStub(), nn.ReLU(), stubs.DeQuantStub())
    assert model(Tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    same = nn.quantized.FloatFunctional()
    assert same.add(Tensor([1.0]), 2).tolist() == [3.0] and same.mul_scalar(
        Tensor([2.0]), 3
    ).tolist() == [6.0]
    assert same.cat([Tensor([1.0]), Tensor([2.0])]).tolist() == [1.0, 2.0]
    with pytest.raises(DTypeError, match="no quantised tensors"):
        picograd.quantization.quantize_dynamic(model)

"""Stubs of quantisation leave floats as they are; what would quantise says that it cannot."""

import numpy as np
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


def test_fake_quantisation_is_that_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    data = np.linspace(-2.0, 30.0, 24, dtype=np.float32).reshape(2, 3, 4)
    steps, zeros = np.float32([0.1, 0.5, 1.7]), np.int32([0, 3, 1])
    for name, options in (
        ("tensor", lambda lib: (0.1, 3)),
        ("channel", lambda lib: (lib.tensor(steps), lib.tensor(zeros), 1)),
    ):
        found = []
        for lib in (picograd, torch):
            x = lib.tensor(data, requires_grad=True)
            fake = getattr(lib, f"fake_quantize_per_{name}_affine")
            y = fake(x, *options(lib), 0, 15)
            (y * lib.tensor(data)).sum().backward()
            found.append((y.tolist(), x.grad.tolist()))
        np.testing.assert_allclose(*[np.array(each) for each in found], rtol=1e-6)

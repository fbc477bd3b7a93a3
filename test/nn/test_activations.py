"""Activations against PyTorch, with gradients."""

import numpy as np
import pytest
from nn_support import array, compare, copy_state, torch

from picograd import Tensor, nn
from picograd.errors import DTypeError, ShapeError, ValueRangeError

CASES = {
    "ReLU": [{"inplace": False}],
    "ReLU6": [{}],
    "LeakyReLU": [{}, {"negative_slope": 0.3}],
    "ELU": [{}, {"alpha": 0.5}],
    "CELU": [{"alpha": 2.0}],
    "SELU": [{}],
    "Mish": [{}],
    "Hardswish": [{}],
    "Hardsigmoid": [{}],
    "Hardtanh": [{"min_val": -0.5, "max_val": 2.0}],
    "Softplus": [{}, {"beta": 3.0, "threshold": 2.0}],
    "Softsign": [{}],
    "Softshrink": [{"lambd": 0.7}],
    "Hardshrink": [{}],
    "Tanhshrink": [{}],
    "Threshold": [{"threshold": 0.2, "value": -3.0}],
    "LogSigmoid": [{}],
    "GLU": [{}, {"dim": 0}],
    "Softmin": [{"dim": 1}],
    "PReLU": [{}, {"num_parameters": 6}],
    "RReLU": [{}],
}


@pytest.mark.parametrize("name", CASES)
def test_activation_equals_pytorch(name, device):
    for options in CASES[name]:
        ours = getattr(nn, name)(**options).to(device).eval()
        reference = getattr(torch.nn, name)(**options).eval()
        copy_state(ours, reference)
        compare(ours, reference, [array(4, 6) * 3], device)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 4, 5)], ids=str)
def test_softmax2d(shape, device):
    compare(nn.Softmax2d(), torch.nn.Softmax2d(), [array(*shape)], device)


def test_rrelu_draws_slopes_in_training(device):
    y = nn.RReLU(0.1, 0.2)(-Tensor.ones(1000, device=device)).numpy()
    assert y.min() >= -0.2 and y.max() <= -0.1 and len(np.unique(y)) > 900


def test_gumbel_softmax(device):
    soft = nn.functional.gumbel_softmax(Tensor(array(5, 4), device=device), tau=0.5)
    np.testing.assert_allclose(soft.numpy().sum(-1), 1.0, rtol=1e-5)
    hard = nn.functional.gumbel_softmax(Tensor(array(5, 4), device=device), hard=True).numpy()
    np.testing.assert_allclose(np.sort(hard, -1)[:, :3], 0.0, atol=1e-6)


def test_wrong_sizes_are_named():
    with pytest.raises(ShapeError, match="glu: axis -1 of shape .* has an odd size"):
        nn.GLU()(Tensor.ones(2, 3))
    with pytest.raises(ShapeError, match="prelu: 4 weights for 3 channels"):
        nn.PReLU(4)(Tensor.ones(2, 3))
    with pytest.raises(ShapeError, match=r"Softmax2d: needs .* got \(2, 3\)"):
        nn.Softmax2d()(Tensor.ones(2, 3))
    with pytest.raises(ValueRangeError, match="softshrink: lambd=-1 is negative"):
        nn.Softshrink(-1)(Tensor.ones(2))


def test_a_tensor_is_for_the_call() -> None:
    for layer in (nn.Softmax, nn.LogSoftmax, nn.Softmin, nn.GLU):
        with pytest.raises(DTypeError, match=rf"dim is a tensor. Fix: .* {layer.__name__}\(-1\)"):
            layer(Tensor([1.0, 2.0]))


def test_slopes_start_again() -> None:
    layer = nn.PReLU(2, init=0.5)
    nn.init.zeros_(layer.weight)
    layer.reset_parameters()
    assert layer.weight.tolist() == [0.5, 0.5]

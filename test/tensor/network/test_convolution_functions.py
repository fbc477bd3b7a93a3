"""Convolutions as functions beside PyTorch's: options by position and by name."""

import pytest
from nn_support import array, compare, torch

import picograd
from picograd.errors import DTypeError
from picograd.nn import functional

CASES = {
    "conv1d": ((2, 3, 7), (4, 3, 3), dict(stride=2, padding=1)),
    "conv2d": ((1, 4, 5, 5), (4, 2, 3, 2), dict(groups=2, dilation=(1, 2), padding="same")),
    "conv3d": ((1, 1, 3, 3, 3), (2, 1, 2, 2, 2), dict(padding="valid")),
    "conv_transpose1d": ((2, 3, 4), (3, 2, 3), dict(stride=2, output_padding=1)),
    "conv_transpose2d": ((1, 4, 3, 3), (4, 1, 2, 2), dict(groups=2, padding=1)),
    "conv_transpose3d": ((1, 1, 2, 2, 2), (1, 2, 2, 2, 2), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_convolution_equals_pytorch(name, device):
    shape, kernel, options = CASES[name]
    ours, reference = getattr(functional, name), getattr(torch.nn.functional, name)
    outputs = kernel[1] * options.get("groups", 1) if "transpose" in name else kernel[0]
    data = [array(*shape), array(*kernel), array(outputs)]
    compare(lambda *x: ours(*x, **options), lambda *x: reference(*x, **options), data, device)


@pytest.mark.parametrize("name", CASES)
def test_convolutions_of_integers(name, device):
    shape, kernel, options = CASES[name]
    x, weight = (torch.arange(torch.Size(s).numel()).reshape(s) - 9 for s in (shape, kernel))
    ours, reference = getattr(functional, name), getattr(torch.nn.functional, name)
    found = ours(*(picograd.tensor(t.numpy(), device=device) for t in (x, weight)), **options)
    assert found.tolist() == reference(x, weight, **options).tolist()
    bias = picograd.zeros(found.shape[1], device=device)
    with pytest.raises(DTypeError, match="the bias is float32, the input int64"):
        ours(*(picograd.tensor(t.numpy(), device=device) for t in (x, weight)), bias, **options)


@pytest.mark.parametrize("pad", [0, 2])
def test_convolution_of_time_first(pad: int) -> None:
    x, weight, bias = array(5, 2, 3), array(3, 3, 4), array(4)
    compare(picograd.conv_tbc, torch.conv_tbc, [x, weight, bias], pad=pad)

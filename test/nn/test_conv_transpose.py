"""Adjoint convolutions against PyTorch."""

import pytest
from nn_support import array, compare, compare_layer, compare_state, copy_state, torch

from picograd import Tensor, nn
from picograd.errors import ShapeError, ValueRangeError

CASES = {
    "transpose1d": ("ConvTranspose1d", (2, 3, 3), {"stride": 2, "padding": 1}, (2, 2, 5)),
    "transpose2d": (
        "ConvTranspose2d",
        (4, 6, 3),
        {"stride": 2, "groups": 2, "output_padding": 1, "dilation": 2},
        (2, 4, 4, 5),
    ),
    "transpose2d_single": ("ConvTranspose2d", (2, 3, 2), {"bias": False}, (2, 4, 5)),
    "transpose3d": ("ConvTranspose3d", (2, 2, 2), {"stride": 2}, (1, 2, 2, 3, 2)),
}


@pytest.mark.parametrize("case", CASES)
def test_layer_equals_pytorch(case, device):
    compare_layer(CASES[case], device)


def test_output_size_of_an_adjoint_convolution(device):
    ours = nn.ConvTranspose2d(2, 3, 3, 2).to(device)
    reference = torch.nn.ConvTranspose2d(2, 3, 3, 2)
    copy_state(ours, reference)
    compare(ours, reference, [array(1, 2, 4, 4)], device, output_size=(10, 9))
    with pytest.raises(ShapeError, match="cannot come from"):
        ours(Tensor.ones(1, 2, 4, 4, device=device), output_size=(20, 9))


def test_one_sample_without_a_batch(device):
    reference = torch.nn.ConvTranspose1d(2, 3, 3, stride=2, padding=1)
    ours = nn.ConvTranspose1d(2, 3, 3, stride=2, padding=1).to(device)
    copy_state(ours, reference)
    compare(ours, reference, [array(2, 5)], device)


def test_state_is_pytorchs():
    compare_state("ConvTranspose2d", 2, 3, 3)


def test_only_zeros_are_padded():
    for options in ({"padding_mode": "reflect"}, {"padding": "same"}):
        with pytest.raises(ValueRangeError, match="ConvTranspose1d: only padding in numbers"):
            nn.ConvTranspose1d(1, 1, 2, **options)

"""Functions that rearrange against PyTorch: any number of axes in front, and the way back."""

import numpy as np
import pytest
from nn_support import array, compare, torch

from picograd import Tensor
from picograd.errors import ShapeError
from picograd.nn import functional

CALLS = [
    ("pixel_shuffle", (8, 1, 2), (2,)),
    ("pixel_shuffle", (2, 1, 9, 1, 2), (3,)),
    ("pixel_unshuffle", (1, 4, 2), (2,)),
    ("channel_shuffle", (2, 6, 3), (3,)),
    ("pad", (2, 3, 4), ((1, 2, 0, 1), "constant", 7.0)),
    ("pad", (2, 3, 4), ((2, 1), "replicate")),
]


@pytest.mark.parametrize("name, shape, options", CALLS)
def test_equals_pytorch(name, shape, options, device):
    calls = [
        lambda x, f=f: getattr(f, name)(x, *options) for f in (functional, torch.nn.functional)
    ]
    compare(*calls, [array(*shape)], device)


def test_unshuffling_is_the_way_back():
    x = array(2, 8, 3, 2)
    found = functional.pixel_unshuffle(functional.pixel_shuffle(Tensor(x), 2), 2)
    np.testing.assert_array_equal(found.numpy(), x)


def test_groups_that_do_not_divide_are_named():
    with pytest.raises(ShapeError, match="channel_shuffle: 5 channels do not divide into 2"):
        functional.channel_shuffle(Tensor.ones(1, 5, 2), 2)

"""The native copy of boxes copies what two layouts have both, and nothing else."""

import numpy as np
import pytest

from picograd.dtype import float32, float64, uint8
from picograd.runtime.cpu import CpuDevice


@pytest.mark.parametrize(
    ("to", "source", "dtype"),
    [
        ((3, 64, 8), (3, 37, 8), float32),
        ((3, 37, 8), (3, 64, 8), float32),
        ((3, 64), (3, 37), uint8),
        ((5, 3), (7, 4), float64),
        ((9,), (5,), float32),
        ((), (), float32),
        ((2, 3, 2, 3, 2, 3), (3, 2, 3, 2, 3, 4), float32),
        ((0, 3), (4, 3), float32),
    ],
)
def test_copies_what_two_layouts_have_both(to, source, dtype):
    device = CpuDevice(1)
    array = np.arange(1, 1 + np.prod(source)).astype(dtype.numpy).reshape(source)
    made, given = (device.new_buffer(dtype, int(np.prod(shape))) for shape in (to, source))
    device.copy_in(given, array)
    device.copy_in(made, np.zeros(to, dtype.numpy))
    device.copy_common((made, to), (given, source))
    wanted = np.zeros(to, dtype.numpy)
    both = tuple(slice(min(pair)) for pair in zip(to, source))
    wanted[both] = array[both]
    np.testing.assert_array_equal(device.copy_out(made).view(dtype.numpy), wanted.reshape(-1))

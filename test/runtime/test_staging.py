import numpy as np
import pytest

from picograd.runtime.driver import Driver
from picograd.runtime.staging import Staging


@pytest.mark.parametrize("nbytes", [0, 1, 100, 101, 250, 1000])
def test_copies_of_every_length(fake_driver, nbytes):
    staging = Staging(Driver(fake_driver()), "stream", size=100)
    source = np.random.default_rng(0).integers(0, 255, nbytes, np.uint8)
    device, back = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    staging.write(device.ctypes.data, source.ctypes.data, nbytes)
    np.testing.assert_array_equal(device, source)
    staging.read(back.ctypes.data, device.ctypes.data, nbytes)
    np.testing.assert_array_equal(back, source)

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


@pytest.mark.parametrize("count", [0, 1, 3, 4, 9])
def test_bytes_from_many_places(fake_driver, count):
    staging = Staging(Driver(fake_driver()), "stream", size=3)
    memory = np.arange(100, dtype=np.uint8)
    places = [(17 * number) % 100 for number in range(count)]
    found = staging.gather([memory.ctypes.data + place for place in places])
    assert list(found) == places

import ctypes
import threading

import numpy as np
import pytest

from picograd.runtime import staging
from picograd.runtime.driver import Driver
from picograd.runtime.staging import Gate, Staging


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


class Module:
    """Counts what the stream was asked to wait for."""

    def __init__(self):
        self.memory = np.zeros(64, np.uint8)
        self.waits = []

    def cuMemHostAlloc(self, size, flags):
        return 0, self.memory.ctypes.data

    def cuStreamWaitValue32(self, stream, address, value, flags):
        self.waits.append((address, value))
        return (0,)

    def passes(self):
        address, value = self.waits[-1]
        return ctypes.c_uint32.from_address(address).value >= value


@pytest.fixture
def module():
    return Module()


@pytest.fixture
def closed(module):
    return Gate(Driver(module), "stream").closed


def test_open_after_each_block(module, closed):
    for number in (1, 2, 3):
        with closed():
            assert not module.passes()
        assert module.passes() and module.waits[-1][1] == number


def test_open_after_an_error(module, closed):
    with pytest.raises(ZeroDivisionError), closed():
        raise ZeroDivisionError
    assert module.passes()


def test_a_block_that_waits_for_the_gpu_is_rescued(module, closed, monkeypatch):
    monkeypatch.setattr(staging, "PATIENCE", 0.01)
    opened = threading.Event()
    real = Gate.open
    monkeypatch.setattr(Gate, "open", lambda self: (real(self), opened.set()))
    with closed():
        assert opened.wait(5)
        assert module.passes()

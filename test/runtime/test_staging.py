import ctypes
import threading

import numpy as np
import pytest

from picograd.runtime import staging
from picograd.runtime.driver import Driver
from picograd.runtime.staging import Gate, Staging, Stagings


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


@pytest.mark.parametrize("moment", ["cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuEventSynchronize"])
def test_a_copy_in_the_middle_of_another(fake_driver, moment):
    """The handler of a signal copies, and does not touch what is on its way."""
    module = fake_driver()
    plain, inside, seen = getattr(module, moment), [], []
    source, device, back = np.arange(1, 251, dtype=np.uint8), *np.zeros((2, 250), np.uint8)
    own = np.full(90, 77, np.uint8)

    def interrupted(*args):
        if not inside:
            inside.append(True)
            with stagings.one() as staging:
                target = np.zeros(90, np.uint8)
                staging.write(target.ctypes.data, own.ctypes.data, 90)
                result = np.zeros(90, np.uint8)
                staging.read(result.ctypes.data, target.ctypes.data, 90)
                seen.append(result)
                staging.gather([target.ctypes.data])
            inside.clear()
        return plain(*args)

    stagings = Stagings(lambda: Staging(Driver(module), "stream", size=100))
    monkey = pytest.MonkeyPatch()
    monkey.setattr(module, moment, interrupted, raising=False)
    for _ in range(2):
        with stagings.one() as staging:
            staging.write(device.ctypes.data, source.ctypes.data, 250)
            staging.read(back.ctypes.data, device.ctypes.data, 250)
            found = staging.gather([device.ctypes.data + 9, device.ctypes.data])
        np.testing.assert_array_equal(back, source)
        assert list(found) == [10, 1] and all((each == own).all() for each in seen) and seen
    assert len(stagings.free) == 2


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

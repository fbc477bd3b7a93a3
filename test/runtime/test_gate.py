"""The gate opens at the end of its block, on an error, and when the block takes too long."""

import ctypes
import threading

import numpy as np
import pytest

from picograd.runtime import gate
from picograd.runtime.driver import Driver
from picograd.runtime.gate import Gate


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
    monkeypatch.setattr(gate, "PATIENCE", 0.01)
    opened = threading.Event()
    real = Gate.open
    monkeypatch.setattr(Gate, "open", lambda self: (real(self), opened.set()))
    with closed():
        assert opened.wait(5)
        assert module.passes()

"""Staging: copies between pageable host memory and a GPU through two halves of pinned memory.

While the copy engine moves one half, the processor fills or empties the other.
"""

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import memmove, string_at
from typing import Any

from picograd.runtime.driver import Driver

HALF = 4 << 20  # bytes; enough to hide the launch of each copy, small enough to pin lightly
NO_TIMING = 2  # CU_EVENT_DISABLE_TIMING


class Half:
    """Pinned memory, and the event that says when the GPU is done with it."""

    def __init__(self, driver: Driver, stream: Any, address: int) -> None:
        self.call = driver.call
        self.stream = stream
        self.address = address
        self.event = driver.call("cuEventCreate", NO_TIMING)

    def wait(self) -> None:
        """Wait until the GPU is done with this half."""
        self.call("cuEventSynchronize", self.event)

    def copy(self, function: str, target: int, source: int, size: int) -> None:
        """Start a copy to or from this half."""
        self.call(function, target, source, size, self.stream)
        self.call("cuEventRecord", self.event, self.stream)


class Staging:
    """The two halves, used in turn."""

    def __init__(self, driver: Driver, stream: Any, size: int = HALF) -> None:
        base = driver.call("cuMemHostAlloc", 2 * size, 0)
        self.halves = (Half(driver, stream, int(base)), Half(driver, stream, int(base) + size))
        self.size = size

    def pieces(self, nbytes: int) -> Iterator[tuple[int, int, Half]]:
        """Split a copy: (start, size, a half that is free by now)."""
        for number, start in enumerate(range(0, nbytes, self.size)):
            half = self.halves[number % 2]
            half.wait()
            yield start, min(self.size, nbytes - start), half

    def write(self, device: int, host: int, nbytes: int) -> None:
        """Copy to the GPU; the host memory may change as soon as this returns."""
        for start, size, half in self.pieces(nbytes):
            memmove(half.address, host + start, size)
            half.copy("cuMemcpyHtoDAsync", device + start, half.address, size)

    def read(self, host: int, device: int, nbytes: int) -> None:
        """Copy from the GPU; finished when this returns."""
        waiting = []
        for start, size, half in self.pieces(nbytes):
            half.copy("cuMemcpyDtoHAsync", half.address, device + start, size)
            waiting.append((host + start, size, half))
            if len(waiting) == 2:
                empty(*waiting.pop(0))
        for piece in waiting:
            empty(*piece)

    def gather(self, addresses: Sequence[int]) -> bytes:
        """Read a byte at each address of the GPU; finished when this returns."""
        found, half = b"", self.halves[0]
        for first in range(0, len(addresses), self.size):
            some = addresses[first : first + self.size]
            half.wait()
            for number, address in enumerate(some):
                half.call("cuMemcpyDtoHAsync", half.address + number, address, 1, half.stream)
            half.call("cuEventRecord", half.event, half.stream)
            half.wait()
            found += string_at(half.address, len(some))
        return found


class Stagings:
    """Hands out halves that nobody is in the middle of using.

    The handler of a signal may copy while a copy of the same thread is between two of its steps.
    """

    def __init__(self, make: Callable[[], Staging]) -> None:
        self.make = make
        self.free = [make()]

    @contextmanager
    def one(self) -> Iterator[Staging]:
        """Give halves for as long as the block lasts."""
        staging = self.free.pop() if self.free else self.make()
        try:
            yield staging
        finally:
            self.free.append(staging)


def empty(host: int, size: int, half: Half) -> None:
    """Move what a half holds, once it is there, to host memory."""
    half.wait()
    memmove(host, half.address, size)


AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ
PATIENCE = 1.0  # seconds; a launch may wait for the GPU, for example to enlarge local memory


class Gate:
    """A number in pinned memory the stream waits for; made at first use.

    It holds a GPU's stream back while work is queued, so that timing shows the GPU alone.
    """

    def __init__(self, driver: Driver, stream: Any) -> None:
        self.driver: Driver = driver
        self.stream: Any = stream
        self.number: Any = None
        self.passed: int = 0

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Keep what is queued in this block from starting before its end, also on an error.

        A block that takes long may itself be waiting for the GPU: then the gate opens early.
        """
        if self.number is None:
            address = int(self.driver.call("cuMemHostAlloc", 8, 0))
            self.number = ctypes.c_uint32.from_address(address)
            self.number.value = 0
        self.passed += 1
        place = ctypes.addressof(self.number)
        self.driver.call("cuStreamWaitValue32", self.stream, place, self.passed, AT_LEAST)
        rescue = threading.Timer(PATIENCE, self.open)
        rescue.start()
        try:
            yield
        finally:
            self.open()
            rescue.cancel()

    def open(self) -> None:
        """Let the stream go on."""
        self.number.value = self.passed

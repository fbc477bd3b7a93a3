"""Staging: copies between pageable host memory and a GPU through two halves of pinned memory.

While the copy engine moves one half, the processor fills or empties the other.
"""

import ctypes
from collections.abc import Iterator
from typing import Any

from picograd.runtime.driver import Driver

HALF = 4 << 20  # bytes; enough to hide the launch of each copy, small enough to pin lightly


class Staging:
    """Two pinned halves and an event each that says when the GPU is done with it."""

    def __init__(self, driver: Driver, stream: Any, half: int = HALF) -> None:
        self.driver, self.stream, self.half = driver, stream, half
        base = int(driver.call("cuMemHostAlloc", 2 * half, 0))
        self.addresses = (base, base + half)
        self.events = tuple(driver.call("cuEventCreate", 2) for _ in range(2))  # 2: no timing
        self.turn = 0

    def pieces(self, nbytes: int) -> Iterator[tuple[int, int, int]]:
        """Split a copy: (start, size, number of a half that is free by now)."""
        for start in range(0, nbytes, self.half):
            self.turn ^= 1
            self.wait(self.turn)
            yield start, min(self.half, nbytes - start), self.turn

    def wait(self, turn: int) -> None:
        """Wait until the GPU is done with a half."""
        self.driver.call("cuEventSynchronize", self.events[turn])

    def enqueue(self, function: str, target: int, source: int, size: int, turn: int) -> None:
        """Start a copy to or from a half, and mark its end."""
        self.driver.call(function, target, source, size, self.stream)
        self.driver.call("cuEventRecord", self.events[turn], self.stream)

    def write(self, device: int, host: int, nbytes: int) -> None:
        """Copy to the GPU; the host memory may change as soon as this returns."""
        for start, size, turn in self.pieces(nbytes):
            pinned = self.addresses[turn]
            ctypes.memmove(pinned, host + start, size)
            self.enqueue("cuMemcpyHtoDAsync", device + start, pinned, size, turn)

    def read(self, host: int, device: int, nbytes: int) -> None:
        """Copy from the GPU; finished when this returns."""
        waiting: list[tuple[int, int, int]] = []
        for start, size, turn in self.pieces(nbytes):
            pinned = self.addresses[turn]
            self.enqueue("cuMemcpyDtoHAsync", pinned, device + start, size, turn)
            self.empty(host, waiting)
            waiting = [(start, size, turn)]
        self.empty(host, waiting)

    def empty(self, host: int, waiting: list[tuple[int, int, int]]) -> None:
        """Move what halves hold, once it is there, to the host memory."""
        for start, size, turn in waiting:
            self.wait(turn)
            ctypes.memmove(host + start, self.addresses[turn], size)

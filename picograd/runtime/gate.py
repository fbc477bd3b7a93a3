"""Gate: holds a GPU's stream back while work is queued, so that timing shows the GPU alone."""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from picograd.runtime.driver import Driver

AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ
PATIENCE = 1.0  # seconds; a launch may wait for the GPU, for example to enlarge local memory


class Gate:
    """A number in pinned memory the stream waits for; made at first use."""

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

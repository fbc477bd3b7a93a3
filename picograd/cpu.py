"""The host under torch.cpu's names: it is always there, and has one stream."""

from typing import Any

from picograd.cuda import Stream as Stream
from picograd.cuda import current_stream as current_stream
from picograd.cuda import stream as stream
from picograd.tensor.core.annotations import DeviceLike

__path__: list[str] = []  # so that Python asks for PyTorch's modules below
__all__ = [
    "Stream", "current_device", "current_stream", "device_count", "is_available", "is_initialized",
    "set_device", "stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Tell that there is a host.

    >>> import picograd
    >>> picograd.cpu.is_available(), picograd.cpu.device_count()
    (True, 1)
    """
    return True


is_initialized = is_available


def device_count() -> int:
    """Count the hosts: one."""
    return 1


def current_device() -> str:
    """Name the device."""
    return "cpu"


def set_device(device: DeviceLike) -> None:
    """Accept a choice among one."""


def synchronize(device: Any = None) -> None:
    """Wait for nothing: what was asked of the host is done when it answers."""

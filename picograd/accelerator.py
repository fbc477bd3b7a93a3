"""The machine's fastest device under torch.accelerator's names: a GPU, where there is one."""

import importlib
from types import ModuleType

import picograd.cuda as cuda
from picograd.device_name import device as named
from picograd.tensor.core.annotations import DeviceLike

__all__ = ["is_available"]


def is_available() -> bool:
    """Tell whether there is a GPU that works."""
    return cuda.is_available()


def current_accelerator(check_available: bool = False) -> named | None:
    """Name the kind of the accelerator; None without one.

    >>> import picograd
    >>> name = picograd.accelerator.current_accelerator()
    >>> name is None or name.type == "cuda"
    True
    """
    return named("cuda") if cuda.is_available() else None


def synchronize(device: DeviceLike | None = None) -> None:
    """Wait until the accelerator has done all its work; nothing without one."""
    if is_available():
        cuda.synchronize(device)


def _get_available_device_type() -> str | None:
    """Name the kind of the accelerator, as programs for several kinds ask."""
    return "cuda" if is_available() else None


def _get_device_module(device_type: str) -> ModuleType:
    """Give the module of a kind of device."""
    return importlib.import_module(f"picograd.{device_type}")


device_count = cuda.device_count
current_device_index = cuda.current_device
set_device_index = set_device_idx = cuda.set_device
empty_cache = cuda.empty_cache
memory_allocated = cuda.memory_allocated
max_memory_allocated = cuda.max_memory_allocated
memory_reserved = cuda.memory_reserved
reset_peak_memory_stats = cuda.reset_peak_memory_stats

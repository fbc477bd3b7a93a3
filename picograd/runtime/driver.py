"""The CUDA driver through cuda.bindings: opened lazily, calls checked, dead after a fork."""

import ctypes
import importlib
import os
import weakref
from typing import Any, NoReturn

from picograd.errors import DeviceError
from picograd.runtime.nvrtc_library import INSTALL

NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
NO_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
BAD_IMAGE = (200, 209, 218, 500)  # invalid image, no binary for this GPU, bad PTX, no such entry
FIX_IMAGE = "empty the cache folder (PICOGRAD_CACHE): it may hold a damaged or foreign kernel"
FIX_LAUNCH = "a kernel launched before may be at fault: run with DEBUG=1 to find out which"
NEWEST_OLD = 13000  # drivers below CUDA 13.0 cannot load the cubins that NVRTC 13 writes


class Driver:
    """Checked calls into the driver module, or into a double of it in tests."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.tables: list[Any] = []  # words with addresses of its functions, for machine code
        DRIVERS.add(self)

    def call(self, name: str, *args: Any) -> Any:
        """Call a driver function: its one result, a tuple of several, or None."""
        result = getattr(self.module, name)(*args)
        if int(result[0]):
            raise self.error(name, result[0])
        return result[1] if len(result) == 2 else result[1:] or None

    def error(self, name: str, status: Any) -> DeviceError:
        """Make the error for a failed call."""
        problem = f"{name} failed with {getattr(status, 'name', status)} ({int(status)})"
        is_image = int(status) in BAD_IMAGE
        return DeviceError("cuda", problem, FIX_IMAGE if is_image else FIX_LAUNCH)


class ForkedModule:
    """Stands for the driver in a child process, where the parent's state of it is unusable."""

    def __getattr__(self, name: str) -> NoReturn:
        problem = "CUDA was used before this process was forked and cannot be used in the child"
        fix = "start processes with the 'spawn' method, or fork before the first use of CUDA"
        raise DeviceError("cuda", problem, fix)


DRIVERS: "weakref.WeakSet[Driver]" = weakref.WeakSet()


def disable_all() -> None:
    """Make every driver of the parent unusable in the child process."""
    for driver in list(DRIVERS):
        driver.module = ForkedModule()
        for words in driver.tables:
            words[:] = [0] * len(words)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=disable_all)


def has_driver() -> bool:
    """Tell whether NVIDIA's driver library is installed; far cheaper than the bindings."""
    for library in ("libcuda.so.1", "nvcuda.dll"):
        try:
            ctypes.CDLL(library)
            return True
        except OSError:
            continue
    return False


def open_driver() -> Driver:
    """Import and initialise the driver; DeviceError naming what is missing."""
    try:
        module = importlib.import_module("cuda.bindings.driver")
    except ImportError:
        raise DeviceError("cuda", "the package cuda-bindings is missing", INSTALL) from None
    try:
        status = int(module.cuInit(0)[0])
    except RuntimeError:  # DynamicLibNotFoundError
        problem = "NVIDIA's driver library (libcuda) is not installed"
        fix = "install the NVIDIA driver, or use the CPU: PICOGRAD_DEVICE=cpu"
        raise DeviceError("cuda", problem, fix) from None
    return checked_driver(Driver(module), status)


def checked_driver(driver: Driver, status: int) -> Driver:
    """Check that initialising worked, that there is a GPU and that the driver is new enough."""
    fix = "use the CPU: PICOGRAD_DEVICE=cpu"
    if status == NO_DEVICE:
        raise DeviceError("cuda", "this machine has no usable NVIDIA GPU", fix)
    if status:
        raise DeviceError("cuda", f"the driver does not start: cuInit gave error {status}", fix)
    version = driver.call("cuDriverGetVersion")
    if version < NEWEST_OLD:
        problem = f"the driver supports CUDA {version // 1000}.{version % 1000 // 10} only"
        raise DeviceError("cuda", problem, "install driver 580 or newer (CUDA 13)")
    return driver

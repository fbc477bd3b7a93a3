"""The OpenCL library through ctypes: found at first use, calls checked, dead after a fork.

The installable client driver loader (`libOpenCL`) is asked first, which knows what the system has;
then Intel's runtime for processors, which `pip install intel-opencl-rt` puts beside Python.
"""

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from picograd.errors import DeviceError

LOADERS = ("libOpenCL.so.1", "libOpenCL.so", "libOpenCL.dylib")
BESIDE = ("lib/libOpenCL.so.1", "lib/libintelocl.so")  # of Python's own folder
INSTALL = "install a driver with OpenCL, or: pip install 'picograd[opencl]'"
ALL_KINDS = 0xFFFFFFFF  # CL_DEVICE_TYPE_ALL
POINTERS = (
    "clCreateContext", "clCreateCommandQueue", "clCreateProgramWithSource",
    "clCreateProgramWithBinary", "clCreateKernel", "clSVMAlloc",
)  # fmt: skip
NAMES = {
    -1: "no device", -3: "no compiler", -4: "no memory for a buffer", -5: "out of resources",
    -6: "no memory on the host", -11: "the program does not build", -30: "a value is invalid",
    -45: "the program is not built", -46: "no such kernel", -48: "the kernel is invalid",
    -50: "an argument is invalid", -52: "arguments are missing", -54: "the group is too large",
    -55: "the device has not so much",
}  # fmt: skip


class Library:
    """Checked calls of the functions of one OpenCL library."""

    def __init__(self, path: str) -> None:
        self.functions: Any = ctypes.CDLL(path)
        self.path, self.process = path, os.getpid()
        for name in POINTERS:
            getattr(self.functions, name).restype = ctypes.c_void_p

    def call(self, name: str, *args: Any) -> None:
        """Call a function that gives its status."""
        self.check(name, self.function(name)(*args))

    def create(self, name: str, *args: Any) -> int:
        """Call a function that gives an object, and its status at the end of the arguments."""
        status = ctypes.c_int()
        found = self.function(name)(*args, ctypes.byref(status))
        self.check(name, status.value)
        return int(found or 0)

    def function(self, name: str) -> Any:
        """Find a function; DeviceError in a child process, whose state of the driver is lost."""
        if os.getpid() != self.process:
            problem = "OpenCL was used before this process was forked"
            raise DeviceError("opencl", problem, "start processes with the 'spawn' method")
        return getattr(self.functions, name)

    def check(self, name: str, status: int) -> None:
        """Raise what a failed call reports."""
        if status:
            problem = f"{name} failed with {status} ({NAMES.get(status, 'see cl.h')})"
            raise DeviceError("opencl", problem, "run with DEBUG=1 to see which kernel is at fault")

    def text(self, function: str, handle: int, what: int, *more: Any) -> str:
        """Read a text about an object."""
        size = ctypes.c_size_t()
        where = (ctypes.c_void_p(handle), *more, what)
        self.call(function, *where, ctypes.c_size_t(0), None, ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        self.call(function, *where, size, content, None)
        return content.value.decode(errors="replace")

    def number(self, function: str, handle: int, what: int) -> int:
        """Read a number about an object."""
        found = ctypes.c_uint64()
        size = ctypes.c_size_t(ctypes.sizeof(found))
        self.call(function, ctypes.c_void_p(handle), what, size, ctypes.byref(found), None)
        return found.value

    def devices(self) -> list[int]:
        """List the devices of all platforms, GPUs first."""
        found: list[int] = []
        for platform in self.listed("clGetPlatformIDs"):
            arguments = ctypes.c_void_p(platform), ctypes.c_uint64(ALL_KINDS)
            found += self.listed("clGetDeviceIDs", *arguments)
        return sorted(found, key=lambda each: self.number("clGetDeviceInfo", each, TYPE) != GPU)

    def listed(self, name: str, *args: Any) -> list[int]:
        """Ask how many there are, and for all of them; an error says that there are none."""
        count = ctypes.c_uint()
        if self.function(name)(*args, 0, None, ctypes.byref(count)) or not count.value:
            return []
        handles = (ctypes.c_void_p * count.value)()
        self.call(name, *args, count, handles, None)
        return [handle or 0 for handle in handles]


TYPE, GPU = 0x1000, 4  # CL_DEVICE_TYPE, CL_DEVICE_TYPE_GPU


def candidates() -> Iterator[str]:
    """List where a library may be."""
    yield from LOADERS
    yield from (str(Path(sys.prefix) / name) for name in BESIDE)


def open_library() -> tuple[Library, list[int]]:
    """Find a library with devices, and list these; DeviceError if there is none."""
    has_library = False
    for path in candidates():
        try:
            library = Library(path)
        except (OSError, AttributeError):
            continue
        has_library = True
        if devices := library.devices():
            return library, devices
    problem = "no OpenCL library has a device" if has_library else "there is no OpenCL library"
    raise DeviceError("opencl", problem, INSTALL)

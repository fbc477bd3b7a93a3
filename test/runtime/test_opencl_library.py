"""Finding the OpenCL library, and what a failed call says."""

import os

import pytest

from picograd.errors import DeviceError
from picograd.runtime import opencl_library
from picograd.runtime.opencl_library import Library, candidates, open_library


class Functions:
    """Stands for a library without devices, whose calls fail."""

    def clGetPlatformIDs(self, room: int, found: object, count: object) -> int:
        return -1001

    def clFinish(self, queue: object) -> int:
        return -5

    def clSVMAlloc(self, *args: object) -> None:
        return None


def library() -> Library:
    made = Library.__new__(Library)
    made.functions, made.path, made.process = Functions(), "", os.getpid()
    return made


def test_a_machine_without_opencl_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl_library, "candidates", lambda: ["/no/such/library.so"])
    with pytest.raises(DeviceError, match="there is no OpenCL library"):
        open_library()
    monkeypatch.setattr(opencl_library, "candidates", lambda: ["here"])
    monkeypatch.setattr(opencl_library, "Library", lambda path: library())
    with pytest.raises(DeviceError, match="no OpenCL library has a device"):
        open_library()
    assert any("lib" in path for path in candidates())


def test_failed_calls_name_the_function_and_the_status() -> None:
    with pytest.raises(DeviceError, match=r"clFinish failed with -5 \(out of resources\)"):
        library().call("clFinish", None)
    assert library().devices() == []


def test_a_forked_process_may_not_use_it() -> None:
    forked = library()
    forked.process = -1
    with pytest.raises(DeviceError, match="before this process was forked"):
        forked.call("clFinish", None)

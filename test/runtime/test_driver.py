import os

import pytest

from picograd.errors import DeviceError
from picograd.runtime import driver
from picograd.runtime.driver import Driver, checked_driver


class Module:
    """A driver with functions of one, two and three results, and one that fails."""

    def __init__(self, version=13000, status=0):
        self.version, self.status = version, status

    def cuInit(self, flags):
        return (self.status,)

    def cuDriverGetVersion(self):
        return 0, self.version

    def cuMemGetInfo(self):
        return 0, 1, 2

    def cuMemFree(self, address):
        return (1,)


def test_results_and_errors():
    checked = Driver(Module())
    assert checked.call("cuInit", 0) is None
    assert checked.call("cuDriverGetVersion") == 13000
    assert checked.call("cuMemGetInfo") == (1, 2)
    with pytest.raises(DeviceError, match="cuda: cuMemFree failed with 1"):
        checked.call("cuMemFree", 0)


@pytest.mark.parametrize(
    ("version", "status", "text"),
    [
        (13000, 100, "no usable NVIDIA GPU. Fix: use the CPU: PICOGRAD_DEVICE=cpu"),
        (13000, 999, "the driver does not start: cuInit gave error 999"),
        (12080, 0, "supports CUDA 12.8 only. Fix: install driver 580 or newer"),
    ],
)
def test_what_is_missing_is_named(version, status, text):
    with pytest.raises(DeviceError, match=text):
        checked_driver(Driver(Module(version)), status)


def test_missing_package_and_library(monkeypatch):
    def missing(name):
        raise ImportError(name)

    class NoLibrary:
        def cuInit(self, flags):
            raise RuntimeError("cannot find libcuda.so.1")

    monkeypatch.setattr(driver.importlib, "import_module", missing)
    with pytest.raises(DeviceError, match="package cuda-bindings is missing"):
        driver.open_driver()
    monkeypatch.setattr(driver.importlib, "import_module", lambda name: NoLibrary())
    with pytest.raises(DeviceError, match=r"driver library \(libcuda\) is not installed"):
        driver.open_driver()
    monkeypatch.setattr(driver.importlib, "import_module", lambda name: Module())
    assert driver.open_driver().call("cuDriverGetVersion") == 13000


def test_child_after_fork_cannot_use_cuda():
    parent = Driver(Module())
    child = os.fork()
    if child == 0:
        try:
            parent.call("cuDriverGetVersion")
        except DeviceError as error:
            os._exit(0 if "before this process was forked" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert parent.call("cuDriverGetVersion") == 13000

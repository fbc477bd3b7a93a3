import subprocess
import sys

import pytest

from picograd.config import config
from picograd.engine import backends
from picograd.engine.backends import default_device, get_device, normalize_device
from picograd.errors import DeviceError
from picograd.runtime.driver import has_driver


def test_names_have_one_form():
    names = ["cpu", "CPU", "cpu:0", "cuda", "cuda:0", " cuda:12", "null"]
    forms = [normalize_device(name) for name in names]
    assert forms == ["cpu", "cpu", "cpu", "cuda:0", "cuda:0", "cuda:12", "null"]


@pytest.mark.parametrize("name", ["gpu", "", "cuda:", "cuda:x", "cuda:-1", "cpu:1", "null:2"])
def test_unknown_names_list_the_devices(name):
    with pytest.raises(DeviceError, match=f"there is no device {name!r}. Fix: use cpu, cuda, null"):
        normalize_device(name)


def test_devices_open_once():
    assert get_device("cpu") is get_device("cpu:0") is get_device("cpu")
    assert get_device("null").name == "null"


def test_threads_follow_the_setting():
    with config.override(threads=3):
        assert get_device("cpu").target.threads == 3
    assert get_device("cpu").target.threads == config.threads


def test_default_device():
    with config.override(device="null"):
        assert default_device() == "null" and get_device().name == "null"
    with config.override(device="tpu"), pytest.raises(DeviceError, match="no device 'tpu'"):
        get_device()


@pytest.mark.skipif(has_driver(), reason="this machine has the driver")
def test_without_driver_the_default_is_the_cpu():
    with config.override(device=""):
        assert default_device() == "cpu"
    with pytest.raises(DeviceError, match="libcuda"):
        get_device("cuda")
    assert not backends.is_usable("cuda:1")


def test_cuda_bindings_are_not_imported_for_the_cpu():
    program = "import sys; from picograd.engine.backends import get_device; get_device('cpu');"
    program += "print([n for n in sys.modules if n.startswith('cuda')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr

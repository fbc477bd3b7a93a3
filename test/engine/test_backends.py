import os
import subprocess
import sys
from pathlib import Path

import pytest
from debug_tools import fresh_engine

import picograd
from picograd import Tensor
from picograd.config import config
from picograd.engine import backends
from picograd.engine.backends import default_device, get_device, normalize_device
from picograd.engine.cache import HEAD, head
from picograd.errors import DeviceError
from picograd.runtime import llvm, nvrtc, nvrtc_library
from picograd.runtime.driver import has_driver
from picograd.runtime.null import NullDevice


def test_names_have_one_form():
    names = ["cpu", "CPU", "cpu:0", "cuda", "cuda:0", " cuda:12", "null"]
    forms = [normalize_device(name) for name in names]
    assert forms == ["cpu", "cpu", "cpu", "cuda:0", "cuda:0", "cuda:12", "null"]


@pytest.mark.parametrize("name", ["gpu", "", "cuda:", "cuda:x", "cuda:-1", "cpu:1", "null:2"])
def test_unknown_names_list_the_devices(name):
    with pytest.raises(
        DeviceError, match=f"there is no device {name!r}. Fix: use cpu, cuda, opencl"
    ):
        normalize_device(name)


def test_devices_open_once():
    assert get_device("cpu") is get_device("cpu:0") is get_device("cpu")
    assert get_device("null").name == "null"


def test_a_device_is_one_row(monkeypatch):
    mine = NullDevice()
    mine.name = "mine"
    monkeypatch.setattr(backends, "OPEN", {**backends.OPEN})
    monkeypatch.setitem(backends.OPENERS, "mine", lambda number: mine)
    x = Tensor([1.0, 2.0]).to("mine") + 1
    assert x.realize().device.type == "mine" and mine.launches == 1
    assert picograd.ones(2, device=picograd.device("mine")).device == "mine"


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


told = pytest.mark.skipif(backends.name_of_host() is None, reason="nothing is told here")
PROGRAM = """
import sys
from picograd import Tensor
print((Tensor([1.0, 2.0], device="cpu") * 3).tolist(), "llvmlite" in sys.modules)
"""


def never():
    raise AssertionError("LLVM was asked")


@told
def test_it_is_what_llvm_says(tmp_path, monkeypatch):
    with fresh_engine(cache=str(tmp_path)):
        found = [backends.known_host() for _ in range(2)]
        assert found == [llvm.description()] * 2
        monkeypatch.setattr(backends, "description", never)
        assert backends.known_host() == found[0]
        monkeypatch.setattr(os, "uname", lambda: ("another", "machine"))
        with pytest.raises(AssertionError):
            backends.known_host()


@told
@pytest.mark.parametrize("payload", [b"", b"[]", b"7", b'["a", "b"]'])
def test_a_damaged_entry_is_done_without(payload, tmp_path):
    with fresh_engine(cache=str(tmp_path)):
        backends.known_host()
        (file,) = Path(tmp_path, "kernels").iterdir()
        assert len(file.read_bytes()) > HEAD
        name = backends.name_of_host()
        file.write_bytes(head(name, payload) + payload)
        assert backends.known_host() == llvm.description()


@told
def test_where_the_system_does_not_tell_llvm_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(backends, "PROCESSOR", str(tmp_path / "none"))
    assert backends.name_of_host() is None
    with fresh_engine(cache=str(tmp_path)):
        assert backends.known_host() == llvm.description()


@pytest.mark.parametrize(
    "text", ["vendor_id : a\nflags : b\n", "processor : 0\n\n"], ids=["no end", "nothing known"]
)
def test_a_processor_that_is_told_in_part_has_no_name(text, tmp_path, monkeypatch):
    file = tmp_path / "cpuinfo"
    file.write_text(text)
    monkeypatch.setattr(backends, "PROCESSOR", str(file))
    assert backends.name_of_host() is None


@told
def test_a_second_process_loads_no_llvm(tmp_path):
    told = []
    for _ in range(2):
        environment = {**os.environ, "PICOGRAD_CACHE": str(tmp_path), "PICOGRAD_VERIFY": "0"}
        environment.pop("PICOGRAD_DEBUG", None)
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        told.append(done.stdout.split("] "))
    assert told == [["[3.0, 6.0", "True\n"], ["[3.0, 6.0", "False\n"]], done.stderr


def test_the_compiler_of_cuda_is_known_until_its_file_changes(tmp_path, monkeypatch):
    pytest.importorskip("cuda.pathfinder")
    library, path = nvrtc.load_nvrtc()
    (copy := tmp_path / "libnvrtc.so").write_bytes(b"of one size")
    asked = []

    def load():
        asked.append(1)
        return library, str(copy)

    monkeypatch.setattr(nvrtc, "load_nvrtc", load)
    with fresh_engine(cache=str(tmp_path / "cache")):
        found = [backends.known_nvrtc() for _ in range(3)]
        assert found == [nvrtc.nvrtc_version(nvrtc_library.version(library))] * 3
        assert asked == [1]
        copy.write_bytes(b"of another size")
        assert backends.known_nvrtc() == found[0] and asked == [1, 1]
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
        assert backends.known_nvrtc() == found[0] and asked == [1, 1, 1]
        copy.unlink()
        monkeypatch.setattr(nvrtc, "load_nvrtc", lambda: (library, path))
        assert backends.known_nvrtc() == found[0]


@pytest.mark.parametrize("payload", [b"", b"[]", b"7", b'["a", 1, 2]', b'{"a": 1}'])
def test_a_damaged_entry_of_the_compiler_is_done_without(payload, tmp_path):
    pytest.importorskip("cuda.pathfinder")
    with fresh_engine(cache=str(tmp_path)):
        wanted = backends.known_nvrtc()
        (file,) = Path(tmp_path, "kernels").iterdir()
        file.write_bytes(head(file.stem, payload) + payload)
        assert backends.known_nvrtc() == wanted

"""Only regular files are read, without waiting; what is read is the tensors' own memory."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from picograd import Tensor, nn
from picograd.errors import DataError, MissingFileError, StateError
from picograd.nn.torch_file import fill, opened

LOADS = [nn.load, nn.load_torch]


@pytest.mark.parametrize("load", LOADS)
def test_what_is_no_file_is_named_and_never_waited_for(load, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe: it is a pipe"):
        load(tmp_path / "pipe")
    with pytest.raises(DataError, match="/dev/zero: it is a device"):
        load("/dev/zero")
    with pytest.raises(DataError, match="Is a directory"):
        load(tmp_path)
    with pytest.raises(DataError, match="null"):
        load("a\0b")


@pytest.mark.parametrize("load", LOADS)
def test_a_missing_file_is_a_file_not_found_error(load, tmp_path):
    with pytest.raises(FileNotFoundError, match="load: cannot read .*nothing: No such file"):
        load(tmp_path / "nothing")
    assert issubclass(MissingFileError, DataError)


@pytest.mark.parametrize("load", LOADS)
def test_an_empty_file(load, tmp_path):
    (tmp_path / "empty").touch()
    with pytest.raises(StateError, match="empty is "):
        load(tmp_path / "empty")


def test_a_file_that_ends_early():
    assert fill(io.BytesIO(b"abcd"), 3).tobytes() == b"abc"
    with pytest.raises(EOFError, match="5 bytes should follow, 4 are there"):
        fill(io.BytesIO(b"abcd"), 5)


def test_large_files_are_filled_in_pieces(tmp_path):
    content = np.arange(3_000_000, dtype=np.int32).tobytes()
    (tmp_path / "large").write_bytes(content)
    with opened(tmp_path / "large") as (file, size):
        assert size == len(content) and fill(file, size).tobytes() == content


@pytest.mark.parametrize("change", ["replaced", "truncated"])
def test_a_loaded_state_does_not_depend_on_its_file(change, tmp_path):
    path = tmp_path / "state"
    nn.save({"a": Tensor.ones(300_000)}, path)
    state = nn.load(path)
    if change == "truncated":
        os.truncate(path, 10)
    else:
        nn.save({"a": Tensor.zeros(300_000)}, path)
    assert state["a"].sum().item() == 300_000


MEASURE = """
import sys
from picograd import Tensor, nn

def most():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024

Tensor.ones(3).realize()
state = {}
if sys.argv[1] == "save":
    state = {str(k): Tensor.rand(1024, 4096).realize() for k in range(4)}
    open("/proc/self/clear_refs", "w").write("5")
before = most()
if sys.argv[1] == "save":
    nn.save(state, sys.argv[2])
else:
    state = nn.load(sys.argv[2])
    for each in state.values():
        each.realize()
print(most() - before)
"""


def peak(what, path):
    command = [sys.executable, "-c", MEASURE, what, str(path)]
    on_cpu = {**os.environ, "PICOGRAD_DEVICE": "cpu"}
    done = subprocess.run(command, capture_output=True, check=True, timeout=120, env=on_cpu)
    return int(done.stdout)


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="Linux only")
@pytest.mark.parametrize("layout", ["safetensors", "zip", "old"])
def test_loading_takes_the_memory_of_the_file_once(layout, tmp_path):
    path: Path = tmp_path / "state"
    size = 4 * 1024 * 4096 * 4
    if layout == "safetensors":
        assert peak("save", path) < 0.15 * size
    else:
        torch = pytest.importorskip("torch")
        state = {str(k): torch.ones(1024, 4096) for k in range(4)}
        torch.save(state, path, _use_new_zipfile_serialization=layout == "zip")
    assert peak("load", path) < 1.25 * size

"""The processor is described from disk; a process whose kernels are there loads no LLVM."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from debug_tools import fresh_engine

from picograd.engine import known_host
from picograd.engine.cache import HEAD, head
from picograd.runtime import llvm

pytestmark = pytest.mark.skipif(known_host.name_of_host() is None, reason="nothing is told here")
PROGRAM = """
import sys
from picograd import Tensor
print((Tensor([1.0, 2.0], device="cpu") * 3).tolist(), "llvmlite" in sys.modules)
"""


def never():
    raise AssertionError("LLVM was asked")


def test_it_is_what_llvm_says(tmp_path, monkeypatch):
    with fresh_engine(cache=str(tmp_path)):
        found = [known_host.known_host() for _ in range(2)]
        assert found == [llvm.description()] * 2
        monkeypatch.setattr(known_host, "description", never)
        assert known_host.known_host() == found[0]
        monkeypatch.setattr(os, "uname", lambda: ("another", "machine"))
        with pytest.raises(AssertionError):
            known_host.known_host()


@pytest.mark.parametrize("payload", [b"", b"[]", b"7", b'["a", "b"]'])
def test_a_damaged_entry_is_done_without(payload, tmp_path):
    with fresh_engine(cache=str(tmp_path)):
        known_host.known_host()
        (file,) = Path(tmp_path, "kernels").iterdir()
        assert len(file.read_bytes()) > HEAD
        name = known_host.name_of_host()
        file.write_bytes(head(name, payload) + payload)
        assert known_host.known_host() == llvm.description()


def test_where_the_system_does_not_tell_llvm_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(known_host, "PROCESSOR", str(tmp_path / "none"))
    assert known_host.name_of_host() is None
    with fresh_engine(cache=str(tmp_path)):
        assert known_host.known_host() == llvm.description()


@pytest.mark.parametrize(
    "text", ["vendor_id : a\nflags : b\n", "processor : 0\n\n"], ids=["no end", "nothing known"]
)
def test_a_processor_that_is_told_in_part_has_no_name(text, tmp_path, monkeypatch):
    file = tmp_path / "cpuinfo"
    file.write_text(text)
    monkeypatch.setattr(known_host, "PROCESSOR", str(file))
    assert known_host.name_of_host() is None


def test_a_second_process_loads_no_llvm(tmp_path):
    told = []
    for _ in range(2):
        environment = {**os.environ, "PICOGRAD_CACHE": str(tmp_path), "PICOGRAD_VERIFY": "0"}
        environment.pop("PICOGRAD_DEBUG", None)
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        told.append(done.stdout.split("] "))
    assert told == [["[3.0, 6.0", "True\n"], ["[3.0, 6.0", "False\n"]], done.stderr

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from picograd.runtime import compilers, nvrtc, nvrtc_library
from picograd.runtime.compilers import Compilers

pytest.importorskip("cuda.bindings.nvrtc")
OPTIONS = [b"--gpu-architecture=sm_90a"]
GOOD = b'extern "C" __global__ void f(float* x) { x[0] = 1.0f; }'


def made(limit: int) -> Compilers:
    """Compilers that never compile here first."""
    found = Compilers(*nvrtc.load_nvrtc(), limit)
    found.is_busy = True
    return found


def test_another_process_compiles_and_is_gone_afterwards() -> None:
    here = nvrtc_library.compile_program(nvrtc.load_nvrtc().library, GOOD, OPTIONS)
    with made(2) as found:
        assert found.compile(GOOD, OPTIONS) == here
        is_done, log = found.compile(b"nonsense", OPTIONS)
        assert not is_done and b"error" in log
        (process,) = found.started
        assert found.idle == [process] and process.poll() is None
    assert found.end is not None
    found.end.join(10)
    assert process.returncode is not None and process.stdin is not None and process.stdin.closed


def test_a_process_that_dies_is_replaced_by_this_one() -> None:
    with made(2) as found:
        found.compile(GOOD, OPTIONS)
        found.started[0].kill()
        assert found.compile(GOOD, OPTIONS)[0]
        assert not found.idle and found.compile(GOOD, OPTIONS)[0] and len(found.started) == 1


def test_where_an_answer_is_wrong_this_one_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    def garbage(*_: object) -> None:
        raise OverflowError("an answer of 2^63 bytes")

    monkeypatch.setattr(compilers, "ask", garbage)
    with made(2) as found:
        assert found.compile(GOOD, OPTIONS)[0] and not found.idle


def test_this_process_compiles_first_and_where_no_other_may() -> None:
    with Compilers(*nvrtc.load_nvrtc(), 8) as found:
        assert found.compile(GOOD, OPTIONS)[0] and not found.started and not found.is_busy
    with made(1) as found, ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda source: found.compile(source, OPTIONS)[0], [GOOD] * 4))
        assert all(results) and not found.started


def test_where_no_process_can_be_started_this_one_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("no processes here")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with made(8) as found:
        assert found.compile(GOOD, OPTIONS)[0] and found.room == 0


def test_a_program_that_embeds_python_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compilers.can_start()
    for name in ("", os.path.join("folder", "app"), "python_app", None):
        monkeypatch.setattr(sys, "executable", name)
        assert not compilers.can_start()
    for name in ("python", "python3.12", "python3.13t", "pythonw.exe", "pypy3"):
        monkeypatch.setattr(sys, "executable", os.path.join("folder", name))
        assert compilers.can_start()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert not compilers.can_start()

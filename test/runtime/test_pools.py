"""Threads that compile, and what computes while Python ends."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from picograd.runtime.pools import pool

PROGRAM = """
import atexit

def end():
    print((x @ x.T).softmax(1).sum().round().int().item(), (x.sin().cumsum(0) > 0).any().item())

atexit.register(end)
import picograd
x = picograd.ones(700, 700)
"""


def test_functions_of_atexit_compute(tmp_path: Path) -> None:
    """Kernels are compiled, and run, where no thread may be started any more."""
    setting = {"PICOGRAD_CACHE": str(tmp_path), "PICOGRAD_THREADS": "2", "PICOGRAD_DEVICE": "cpu"}
    command = [sys.executable, "-c", PROGRAM]
    found = subprocess.run(command, env=os.environ | setting, capture_output=True, text=True)
    assert found.stdout.split() == ["700", "True"], found.stderr


def test_a_pool_without_threads_runs_in_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.main_thread(), "is_alive", lambda: False)
    with pool(2) as executor:
        assert executor.submit(threading.get_ident).result() == threading.get_ident()
        assert list(executor.map(str, [1, 2])) == ["1", "2"]
        with pytest.raises(ZeroDivisionError):
            executor.submit(lambda: 1 / 0).result()

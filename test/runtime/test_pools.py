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


LIMITED = """
import threading
import numpy, picograd

left = [{left}]
begin = threading.Thread.start

def start(thread):
    if not left[0]:
        raise RuntimeError("can't start new thread")
    left[0] -= 1
    begin(thread)

threading.Thread.start = start
x = numpy.arange(490000.0).reshape(700, 700) % 7
y = picograd.from_numpy(x)
assert (y @ y).numpy().tolist() == (x @ x).tolist()
assert (picograd.ones(3000000) * 2).sum().item() == 6000000
assert (y.flatten().sort()[0].diff() >= 0).all()
step = picograd.jit(lambda x: (x * 2 + 1).sum(1))
assert all(step(y).tolist() == (x * 2 + 1).sum(1).tolist() for _ in range(3))
loader = picograd.nn.DataLoader(range(4), num_workers=9)
try:
    list(loader)
except picograd.errors.StateError as error:
    print(error)
"""


@pytest.mark.parametrize("left", range(4))
def test_programs_do_with_fewer_threads(left: int, tmp_path: Path) -> None:
    """The system starts no more threads: the limit of processes, or of memory, is reached."""
    setting = {"PICOGRAD_CACHE": str(tmp_path), "PICOGRAD_THREADS": "4", "PICOGRAD_DEVICE": "cpu"}
    command = [sys.executable, "-c", LIMITED.format(left=left)]
    found = subprocess.run(command, env=os.environ | setting, capture_output=True, text=True)
    assert not found.stderr and "use fewer workers" in found.stdout


def test_a_pool_shut_down_runs_nothing_else() -> None:
    begun, go = threading.Event(), threading.Event()
    executor = pool(1)
    first = executor.submit(lambda: begun.set() or go.wait(10))
    later = executor.submit(print)
    begun.wait(10)
    executor.shutdown(wait=False, cancel_futures=True)
    go.set()
    assert first.result(10) and later.cancelled()

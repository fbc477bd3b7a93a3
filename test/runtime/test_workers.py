import os
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

from picograd.dtype import int64
from picograd.runtime.cpu import CpuDevice
from picograd.runtime.device import TapeLaunch

ONE_CORE = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
"""
EXIT = """
from picograd.code import Code
from picograd.runtime.cpu import CpuDevice
source = "define void @f(ptr %a, ptr %b, ptr %c, i64 %d, i64 %e) { ret void }"
device = CpuDevice(8)
code = Code("f", "llvm", "f", source, 1000)
executable = device.load(code, device.compile(code))
for _ in range(300):
    device.launch(executable, ())
print("done")
"""


def total_of(device, code, launches):
    executable = device.load(code, device.compile(code))
    total = device.new_buffer(int64, 1)
    device.copy_in(total, np.zeros(1, np.int64))
    device.run_tape(device.make_tape([TapeLaunch(executable, (0,))] * launches), (total.address,))
    return int(device.copy_out(total).view(np.int64)[0])


def test_threads_start_when_needed_and_stop_when_dropped(count):
    device = CpuDevice(3)
    assert total_of(device, count(1), 5) == 5
    assert device.runner.state is device.runner.serial
    assert total_of(device, count(9), 5) == 45
    threads = device.runner.state.threads
    assert len(threads) == 2 and all(thread.is_alive() for thread in threads)
    del device
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


def test_sleeping_workers_wake(count):
    device = CpuDevice(2)
    for _ in range(5):
        assert total_of(device, count(16), 3) == 48
        time.sleep(0.02)  # longer than workers spin


def test_stress_with_more_threads_than_cores(count):
    device = CpuDevice(4 * (os.cpu_count() or 1))
    assert total_of(device, count(37), 3000) == 37 * 3000


def test_scratch_grows_for_every_worker(count):
    device = CpuDevice(4)
    for scratch in (64, 100_000, 1_000_000):
        assert total_of(device, count(64, scratch), 20) == 64 * 20


@pytest.mark.parametrize("prefix", ["", ONE_CORE], ids=["all cores", "one core"])
def test_clean_exit(prefix):
    done = subprocess.run(
        [sys.executable, "-c", prefix + EXIT], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_child_after_fork_has_workers_of_its_own(count):
    device = CpuDevice(2)
    code = count(50)
    assert total_of(device, code, 10) == 500
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads, from 3.12 on
        child = os.fork()
    if child == 0:
        os._exit(0 if total_of(device, code, 200) == 50 * 200 else 1)
    deadline = time.monotonic() + 30
    status = 0
    while time.monotonic() < deadline:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0
    assert total_of(device, code, 10) == 500

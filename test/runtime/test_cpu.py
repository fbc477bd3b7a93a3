import gc
import os
import platform
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from picograd.dtype import float32, int64
from picograd.errors import DeviceError, OutOfMemoryError
from picograd.runtime import cpu
from picograd.runtime.compiler import Host
from picograd.runtime.cpu import CpuDevice
from picograd.runtime.device import TapeLaunch


@pytest.fixture(scope="module", params=[1, 2, 5])
def device(request):
    return CpuDevice(request.param)


def run_scale(device, code, count, factor):
    x = np.arange(count, dtype=np.float32)
    source, target = device.new_buffer(float32, count), device.new_buffer(float32, count)
    device.copy_in(source, x)
    executable = device.load(code, device.compile(code))
    device.launch(executable, (source.address, target.address), (factor,))
    result = device.copy_out(target).view(np.float32)
    np.testing.assert_array_equal(result, x * np.float32(factor) + 1)


@pytest.mark.parametrize("tasks", [0, 1, 2, 3, 64, 10_007])
def test_launch_runs_every_task_once(device, scale, tasks):
    run_scale(device, scale(tasks), tasks, 2.5)


def test_zeroed_workspace_and_scratch(device, count):
    code = count(100)
    executable = device.load(code, device.compile(code))
    total = device.new_buffer(int64, 1)
    device.copy_in(total, np.zeros(1, np.int64))
    for _ in range(500):
        device.launch(executable, (total.address,))
    assert device.copy_out(total).view(np.int64)[0] == 500 * 100


@pytest.mark.parametrize(("megabytes", "is_run"), [(2, True), (64, False)])
def test_machine_code_runs_what_one_thread_does_in_a_millisecond(scale, megabytes, is_run):
    device = CpuDevice(1)
    code = replace(scale(1000), bytes_moved=megabytes << 20)
    launch = TapeLaunch(device.load(code, device.compile(code)), (0, 1), (0,))
    tape = device.make_tape((launch,), 2, (float32,))
    assert (device.entry(tape) is not None) == is_run


def test_tape_gathers_slots_and_scalars(device, scale):
    code = scale(1000)
    executable = device.load(code, device.compile(code))
    buffers = [device.new_buffer(float32, 1000) for _ in range(3)]
    launches = (TapeLaunch(executable, (0, 1), (1,)), TapeLaunch(executable, (1, 2), (0,)))
    tape = device.make_tape(launches, 4, (float32, float32))
    x = np.random.default_rng(0).standard_normal(1000, np.float32)
    device.copy_in(buffers[0], x)
    addresses = [buffer.address for buffer in buffers]
    for first, second in ((2.0, 3.0), (0.5, 4.0)):
        device.run_tape(tape, [*addresses, 0], (first, second))
        want = (x * np.float32(second) + 1) * np.float32(first) + 1
        got = device.copy_out(buffers[2]).view(np.float32)
        np.testing.assert_allclose(got, want, rtol=1e-6)
    seconds = device.time_tape(tape, [*addresses, 0], (2.0, 3.0))
    assert len(seconds) == 2 and all(0 < s < 1 for s in seconds)


@pytest.mark.parametrize("tasks", [3, 1000])
def test_loop_moves_addresses_by_rules(device, increment, tasks):
    """Row t + 1 of the first array is row t plus one; the second gets it two rows in turn."""
    code = increment(tasks)
    executable = device.load(code, device.compile(code))
    history, pair = device.new_buffer(float32, 8 * tasks), device.new_buffer(float32, 2 * tasks)
    device.copy_in(history, np.zeros(8 * tasks, np.float32))
    launches = (TapeLaunch(executable, (0, 1)), TapeLaunch(executable, (1, 2)))
    tape = device.make_tape(launches, 4)
    size, base = 4 * tasks, history.address
    rules = [(0, base, size, -1, 0), (1, base, size, -1, 1), (2, pair.address, size, 1, 0)]
    device.run_loop(tape, [0, 0, 0, 0], rules, 7)
    rows = device.copy_out(history).view(np.float32).reshape(8, tasks)
    np.testing.assert_array_equal(rows, np.arange(8)[:, None] + np.zeros(tasks))
    rows = device.copy_out(pair).view(np.float32).reshape(2, tasks)
    np.testing.assert_array_equal(rows[:, 0], [8, 7])
    back = [(0, base + 7 * size, -size, -1, 0), (1, base + 6 * size, -size, -1, 0), rules[2]]
    device.run_loop(tape, [0, 0, 0, 0], back, 7)
    rows = device.copy_out(history).view(np.float32).reshape(8, tasks)
    np.testing.assert_array_equal(rows[:, -1], [14, 13, 12, 11, 10, 9, 8, 7])


def test_empty_tape(device):
    tape = device.make_tape(())
    device.run_tape(tape, ())
    assert device.time_tape(tape, ()) == []


def test_many_tiny_launches_from_several_python_threads(device, count):
    code = count(7, scratch=64)
    executable = device.load(code, device.compile(code))
    totals = [device.new_buffer(int64, 1) for _ in range(3)]

    def work(total):
        device.copy_in(total, np.zeros(1, np.int64))
        tape = device.make_tape([TapeLaunch(executable, (0,))] * 100)
        for _ in range(30):
            device.run_tape(tape, (total.address,))

    threads = [threading.Thread(target=work, args=(total,)) for total in totals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "deadlock"
    assert [int(device.copy_out(t).view(np.int64)[0]) for t in totals] == [21_000] * 3


def test_memory_is_aligned_and_reused(device):
    before = device.memory_stats()["in_use"]
    first = device.new_buffer(float32, 1_000_000)
    address = first.address
    assert address % 64 == 0
    del first
    second = device.new_buffer(float32, 1_000_000)
    assert second.address == address
    del second
    assert device.memory_stats()["in_use"] == before
    device.empty_cache()
    assert device.memory_stats()["reserved"] == before


def test_adopt_shares_memory_and_keeps_it_alive(device):
    x = np.arange(10, dtype=np.float32)
    buffer = device.adopt(x)
    assert buffer.address == x.ctypes.data and (buffer.dtype, buffer.count) == (float32, 10)
    x[3] = 33
    del x
    gc.collect()
    assert device.view(buffer).view(np.float32)[3] == 33
    strided = np.arange(10, dtype=np.float32)[::2]
    np.testing.assert_array_equal(device.copy_out(device.adopt(strided)).view(np.float32), strided)


def test_view_keeps_the_buffer_alive(device):
    buffer = device.new_buffer(float32, 1000)
    device.copy_in(buffer, np.full(1000, 7, np.float32))
    array = device.view(buffer).view(np.float32)
    address = buffer.address
    del buffer
    assert device.new_buffer(float32, 1000).address != address
    assert (array == 7).all()


def test_large_copies_are_independent_and_outlive_the_buffer(device):
    x = np.arange(100_000, dtype=np.float32)
    buffer = device.new_buffer(float32, x.size)
    device.copy_in(buffer, x)
    before = device.memory_stats()["in_use"]
    result = device.copy_out(buffer).view(np.float32)
    device.copy_in(buffer, np.zeros_like(x))
    del buffer
    np.testing.assert_array_equal(result, x)
    result += 1
    del result
    assert device.memory_stats()["in_use"] < before


def test_copy_and_empty_buffers(device):
    a, b = device.new_buffer(float32, 5), device.new_buffer(float32, 5)
    device.copy_in(a, np.arange(5, dtype=np.float32))
    device.copy(b, a)
    np.testing.assert_array_equal(device.copy_out(b).view(np.float32), np.arange(5))
    empty = device.new_buffer(float32, 0)
    device.copy_in(empty, np.empty(0, np.float32))
    assert device.copy_out(empty).size == 0


def test_damaged_object_is_refused(device, scale):
    with pytest.raises(DeviceError, match="object of kernel scale cannot be loaded"):
        device.load(scale(1), b"not an object file")
    run_scale(device, scale(3), 3, 2.0)


def test_a_function_that_the_library_lacks(device, scale):
    code = scale(1)
    call = "%unknown = call double @not_in_any_library(double %wide)\n"
    source = code.source.replace("%a = fptrunc double %wide", f"{call}%a = fptrunc double %unknown")
    source += "\ndeclare double @not_in_any_library(double)\n"
    code = replace(code, source=source)
    with pytest.raises(DeviceError, match=r"undefined symbol.* Fix: give the op a formula"):
        device.load(code, device.compile(code))


def test_out_of_memory():
    device = CpuDevice(1, capacity=1 << 20)
    kept = device.new_buffer(float32, 1000, "user.py:7")
    with pytest.raises(OutOfMemoryError, match=r"3.9 KiB float32\[1000\] user.py:7"):
        device.allocate(1 << 30)
    assert kept.nbytes == 4000


def test_target_describes_the_host(device):
    target = device.target
    assert target.language == "llvm" and target.vector_bytes in (16, 32, 64)
    assert target.arch and ",-" not in f",{target.features}"  # what is there, not what is not


def test_host_calls_see_the_memory_itself(device):
    x, y = device.new_buffer(float32, 6), device.new_buffer(float32, 2)
    device.copy_in(x, np.arange(6, dtype=np.float32))
    seen = []

    def total(array):
        seen.append(array)
        return array.sum(0, dtype=np.float64)

    device.call_host(total, [(x, (3, 2))], (y, (2,)))
    assert device.copy_out(y).view(np.float32).tolist() == [6, 9]
    assert seen[0].ctypes.data == x.address


def test_an_error_among_kernels_closes_those_that_were_begun(device, scale, monkeypatch):
    """A context that is collected before its module ends the process."""
    begun = []
    start = device.machine.start
    monkeypatch.setattr(
        device.machine, "start", lambda code: begun.append(start(code)) or begun[-1]
    )

    def codes():
        yield from (scale(3), scale(5))
        raise ValueError("no third one")

    with pytest.raises(ValueError, match="no third"):
        list(device.compile_many(codes()))
    assert len(begun) == 2 and not any(job.words.module or job.context._owned for job in begun)


class Slow:
    """A translation that runs until it is told to end."""

    def __init__(self):
        self.begun, self.end, self.is_closed = threading.Event(), threading.Event(), False

    def run(self):
        self.begun.set()
        self.end.wait(5)

    def close(self):
        self.is_closed = True


def test_a_translation_that_still_runs_is_not_closed(device, scale, monkeypatch):
    """Whoever presses Ctrl-C again does not wait for the threads."""
    slow = Slow()
    monkeypatch.setattr(device.machine, "start", lambda code: slow)

    def codes():
        yield scale(3)
        slow.begun.wait(5)
        raise KeyboardInterrupt

    def join(thread, timeout=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "join", join)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(device.compile_many(codes()))
        assert not slow.is_closed
    finally:
        slow.end.set()


@pytest.mark.skipif(platform.system() != "Linux", reason="pages are protected as on Linux")
@pytest.mark.parametrize("threads, side", [(2, "behind"), (1, "before")])
def test_kernels_touch_nothing_beside_their_memory(threads, side):
    """What a NumPy array ends with may be the end of what a process may read."""
    program = Path(__file__).with_name("guarded_programs.py")
    alone = {"PICOGRAD_CACHE": "0", "PICOGRAD_NATIVE": "0", "PICOGRAD_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, program, side],
        env=os.environ | alone,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-100:] + done.stderr
    assert done.stdout.endswith("all\n")


@pytest.mark.parametrize("may", [True, False])
def test_tiles_are_used_if_the_system_lets_a_process_have_them(
    monkeypatch: pytest.MonkeyPatch, may: bool
) -> None:
    """And what is compiled for one case is not taken in the other: a target is in every key."""
    monkeypatch.setattr(cpu, "may_use_tiles", lambda: may)
    target = cpu.cpu_target(Host("sapphirerapids", "+avx512f,+amx-bf16,-sse4a"), 1)
    assert target.multiplies_tiles == may
    assert target.vector_bytes == 64
    without = cpu.cpu_target(Host("icelake", "+avx512f,-amx-bf16"), 1)
    assert not without.multiplies_tiles

"""Ancestors' list: M28."""

import gc

import numpy as np

from picograd.code import Code, Workspace
from picograd.dtype import float32
from picograd.runtime.device import TapeLaunch
from picograd.runtime.null import NullDevice
from picograd.target import Target

CODE = Code(
    "k", "cuda", "k", 'extern "C" __global__ void k() {}', 5, workspaces=(Workspace(64, True),)
)


def test_counts_and_runs_nothing():
    device = NullDevice()
    assert (device.target.language, device.target.arch) == ("cuda", "sm_90a")
    executable = device.load(CODE, device.compile(CODE))
    tape = device.make_tape([TapeLaunch(executable, (0,))] * 3)
    a, b = device.new_buffer(float32, 100), device.new_buffer(float32, 100)
    assert a.address != b.address and a.address % 512 == 0
    device.copy_in(a, np.ones(100, np.float32))
    device.copy(b, a)
    device.run_tape(tape, (a.address,))
    assert device.time_tape(tape, (a.address,)) == [0.0] * 3
    device.launch(executable, (a.address,))
    device.run_loop(tape, (a.address,), [(0, a.address, 4, -1, 0)], 5)
    assert not device.copy_out(b).any()
    assert (device.launches, device.compiled, device.copied_bytes) == (22, 1, 1200)
    del a, b, executable, tape
    gc.collect()  # an executable and the tape it launches itself through are a cycle
    device.synchronize()
    device.empty_cache()
    assert device.memory_stats()["in_use"] == 0


def test_compiles_when_asked():
    assert NullDevice(is_compiling=True).compile(CODE)[:4] == b"\x7fELF"
    assert NullDevice(Target("llvm", "cpu", 64), is_compiling=True).compile(CODE) == b"null"


def test_host_calls_are_counted_and_not_made():
    device = NullDevice()
    a, b = device.new_buffer(float32, 4), device.new_buffer(float32, 2)
    device.call_host(lambda x: 1 // 0, [(a, (2, 2))], (b, (2,)))
    assert (device.host_calls, device.copied_bytes) == (1, 24)

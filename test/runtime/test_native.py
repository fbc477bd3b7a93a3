"""The native runner: its text for every machine, threads without a futex, and copies of boxes."""

import ctypes

import numpy as np
import pytest

from picograd.code import Code
from picograd.dtype import float32, float64, uint8
from picograd.runtime import native
from picograd.runtime.compiler import Compiler
from picograd.runtime.cpu import CpuDevice
from picograd.runtime.llvm import host


def test_context_fields_of_different_writers_do_not_share_a_cache_line():
    lines = [native.CONTEXT[name] // 64 for name in ("ticket", "completed", "sleepers", "entry")]
    assert len(set(lines)) == 4 and max(native.CONTEXT.values()) < native.CONTEXT_BYTES


@pytest.mark.parametrize("system", ["linux", "darwin"])
@pytest.mark.parametrize("machine", ["x86_64", "arm64", "riscv64"])
def test_source_for_every_machine(monkeypatch, system, machine):
    monkeypatch.setattr(native.sys, "platform", system)
    monkeypatch.setattr(native.platform, "machine", lambda: machine)
    source = native.runner_source()
    assert ("@syscall" in source) == (system == "linux")
    assert ("sse2.pause" in source) == (machine == "x86_64")
    assert "world" not in source  # a word that is written keeps it from being an image


def test_runner_without_futex_compiles(monkeypatch):
    monkeypatch.setattr(native.sys, "platform", "darwin")
    compiler = Compiler(host())
    binary = compiler.compile(Code("runner", "llvm", "picograd_run", native.runner_source(), 1))
    library = compiler.load(binary, ("picograd_stop",))
    context = (ctypes.c_uint64 * (native.CONTEXT_BYTES // 8))()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library["picograd_stop"])(ctypes.addressof(context))
    assert context[0] == 1 << 32


@pytest.mark.parametrize(
    ("to", "source", "dtype"),
    [
        ((3, 64, 8), (3, 37, 8), float32),
        ((3, 37, 8), (3, 64, 8), float32),
        ((3, 64), (3, 37), uint8),
        ((5, 3), (7, 4), float64),
        ((9,), (5,), float32),
        ((), (), float32),
        ((2, 3, 2, 3, 2, 3), (3, 2, 3, 2, 3, 4), float32),
        ((0, 3), (4, 3), float32),
    ],
)
def test_copies_what_two_layouts_have_both(to, source, dtype):
    device = CpuDevice(1)
    array = np.arange(1, 1 + np.prod(source)).astype(dtype.numpy).reshape(source)
    made, given = (device.new_buffer(dtype, int(np.prod(shape))) for shape in (to, source))
    device.copy_in(given, array)
    device.copy_in(made, np.zeros(to, dtype.numpy))
    device.copy_common((made, to), (given, source))
    wanted = np.zeros(to, dtype.numpy)
    both = tuple(slice(min(pair)) for pair in zip(to, source))
    wanted[both] = array[both]
    np.testing.assert_array_equal(device.copy_out(made).view(dtype.numpy), wanted.reshape(-1))

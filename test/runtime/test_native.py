import ctypes

import pytest

from picograd.code import Code
from picograd.runtime import native
from picograd.runtime.llvm import Compiler, host


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
    for word in ("PAUSE", "WORDS", "NUMBER", "CLOCK", "%entry.p\n"):
        assert word not in source


def test_runner_without_futex_compiles(monkeypatch):
    monkeypatch.setattr(native.sys, "platform", "darwin")
    compiler = Compiler(host())
    binary = compiler.compile(Code("runner", "llvm", "picograd_run", native.runner_source(), 1))
    library = compiler.load(binary, ("picograd_stop",))
    context = (ctypes.c_uint64 * (native.CONTEXT_BYTES // 8))()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library["picograd_stop"])(ctypes.addressof(context))
    assert context[0] == 1 << 32

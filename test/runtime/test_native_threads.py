"""Threads of the native runner: how they sleep and wake where there is no futex."""

import ctypes

from picograd.code import Code
from picograd.runtime import native
from picograd.runtime.compiler import Compiler
from picograd.runtime.llvm import host


def test_runner_without_futex_compiles(monkeypatch):
    monkeypatch.setattr(native.sys, "platform", "darwin")
    compiler = Compiler(host())
    binary = compiler.compile(Code("runner", "llvm", "picograd_run", native.runner_source(), 1))
    library = compiler.load(binary, ("picograd_stop",))
    context = (ctypes.c_uint64 * (native.CONTEXT_BYTES // 8))()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library["picograd_stop"])(ctypes.addressof(context))
    assert context[0] == 1 << 32

"""The compiler as other files see it: errors in IR, what an object takes, LLVM only on demand."""

import pytest

from picograd.code import Code
from picograd.errors import CompileError
from picograd.runtime.compiler import LIBRARY_BYTES, Compiler, loaded_bytes
from picograd.runtime.images import PAGE
from picograd.runtime.llvm import host


@pytest.fixture(scope="module")
def compiler():
    return Compiler(host())


def test_syntax_error_shows_numbered_lines(compiler):
    source = "define void @f() {\n  %x = ad i32 1, 2\n  ret void\n}\n"
    with pytest.raises(CompileError) as caught:
        compiler.compile(Code("bad", "llvm", "f", source, 1))
    text = str(caught.value)
    assert "kernel bad does not compile" in text and "expected instruction opcode" in text
    assert ">    2   %x = ad i32 1, 2" in text and "     3   ret void" in text
    assert compiler.compile(Code("good", "llvm", "f", "define void @f() {\n  ret void\n}\n", 1))


def test_invalid_ir_is_refused(compiler):
    store = "store atomic i32 0, ptr %p acquire, align 4"
    source = f"define void @f(ptr %p) {{\n  {store}\n  ret void\n}}"
    with pytest.raises(CompileError, match="kernel bad does not compile"):
        compiler.compile(Code("bad", "llvm", "f", source, 1))


def test_what_is_linked_takes_more_memory():
    assert loaded_bytes(b"\x7fELF") == 4 + LIBRARY_BYTES
    assert loaded_bytes(b"image {}") == 8 + PAGE

"""Objects laid out for memory: what they compute, what stays an object, what is damaged."""

import ctypes
import platform
import sys

import pytest

from picograd.code import Code
from picograd.runtime import images
from picograd.runtime.compiler import Compiler
from picograd.runtime.images import HEAD, Image
from picograd.runtime.llvm import host

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="objects are laid out there"
)
# a table of constants and a function of the C library; what `bump` counts is writable
TABLE = """
@table = internal constant [4 x i32] [i32 3, i32 5, i32 7, i32 11]
declare ptr @memcpy(ptr, ptr, i64)
define i32 @pick(i64 %at) {
  %room = alloca [4 x i32]
  %done = call ptr @memcpy(ptr %room, ptr @table, i64 16)
  %place = getelementptr i32, ptr %room, i64 %at
  %found = load volatile i32, ptr %place
  ret i32 %found
}
"""
COUNTER = """
@count = internal global i32 0
define i32 @bump() {
  %old = load volatile i32, ptr @count
  %new = add i32 %old, 2
  store volatile i32 %new, ptr @count
  ret i32 %new
}
"""


def built(name, source):
    compiler = Compiler(host())
    return compiler, compiler.compile(Code(name, "llvm", name, source, 1))


def test_constants_and_functions_of_the_c_library_are_found():
    compiler, binary = built("pick", TABLE)
    assert binary.startswith(HEAD)
    loaded = [compiler.load(binary, ("pick",)) for _ in range(2)]
    assert loaded[0]["pick"] != loaded[1]["pick"]
    for each in loaded:
        pick = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64)(each["pick"])
        assert [pick(at) for at in range(4)] == [3, 5, 7, 11]


def test_what_has_more_to_it_stays_an_object():
    compiler, binary = built("bump", COUNTER)
    assert binary.startswith(b"\x7fELF")
    library = compiler.load(binary, ("bump",))
    bump = ctypes.CFUNCTYPE(ctypes.c_int32)(library["bump"])
    assert [bump(), bump()] == [2, 4]


def test_addresses_of_another_kind_stay_in_an_object(monkeypatch):
    monkeypatch.setattr(images, "WORD", -1)
    assert built("pick", TABLE)[1].startswith(b"\x7fELF")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b'{"names": ',
        b'{"names": {}}',
        b'{"names": {}, "inside": [[4096, 0]], "outside": []}',
        b'{"names": {}, "inside": [], "outside": [[0, "no_function_of_this_name", 0]]}',
    ],
)
def test_what_is_damaged_is_refused(head):
    with pytest.raises(RuntimeError, match="damaged"):
        Image(HEAD + head + b"\n" + bytes(64))


def test_a_symbol_that_is_missing_is_an_error():
    compiler, binary = built("pick", TABLE)
    with pytest.raises(RuntimeError, match="lacks one of other"):
        compiler.load(binary, ("other",))

"""The NVRTC library through ctypes, in this process or in one that compiles for another.

    python nvrtc_library.py LIBRARY     answers the requests on stdin, on stdout, until stdin ends

The standard library is all it imports, so that such a process is ready in 25 ms. A request is the
lengths of options and source, then these; an answer is 1 or 0, a length, and the cubin or the log.
"""

import ctypes
import os
import signal
import struct
import sys
from collections.abc import Sequence
from typing import IO, Any

INSTALL = "pip install 'cuda-bindings>=13.0.3,<14' nvidia-cuda-nvrtc"
REQUEST, ANSWER = struct.Struct("<QQ"), struct.Struct("<BQ")


class NvrtcError(Exception):
    """This error says that a call failed that never should: not that a program is wrong."""


def open_library(path: str) -> Any:
    """Load the library; ctypes calls it without Python's lock."""
    library = ctypes.CDLL(path)
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def version(library: Any) -> tuple[int, int]:
    """Read the version of the compiler."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    must(library, library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return major.value, minor.value


def must(library: Any, status: int) -> None:
    """Raise what a failed call reports."""
    if status:
        raise NvrtcError(library.nvrtcGetErrorString(status).decode())


def compile_program(library: Any, source: bytes, options: Sequence[bytes]) -> tuple[bool, bytes]:
    """Compile: whether it worked, and the cubin or what is wrong."""
    program = ctypes.c_void_p()
    reference = ctypes.byref(program)
    create = library.nvrtcCreateProgram
    must(library, create(reference, source, b"kernel.cu", 0, None, None))
    try:
        listed = (ctypes.c_char_p * len(options))(*options)
        status = library.nvrtcCompileProgram(program, len(options), listed)
        if not status:
            return True, read(library, program, "CUBIN")
        log = read(library, program, "ProgramLog").rstrip(b"\0 ")
        return False, log or library.nvrtcGetErrorString(status)
    finally:
        library.nvrtcDestroyProgram(reference)


def read(library: Any, program: Any, what: str) -> bytes:
    """Read what a program was compiled to."""
    size = ctypes.c_size_t()
    must(library, getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    content = ctypes.create_string_buffer(size.value)
    must(library, getattr(library, f"nvrtcGet{what}")(program, content))
    return content.raw


def ask(
    requests: IO[bytes], answers: IO[bytes], source: bytes, options: Sequence[bytes]
) -> tuple[bool, bytes]:
    """Let another process compile; OSError or struct.error if it is gone."""
    words = b"\0".join(options)
    requests.write(REQUEST.pack(len(words), len(source)) + words + source)
    requests.flush()
    is_done, size = ANSWER.unpack(answers.read(ANSWER.size))
    content = answers.read(size)
    if len(content) < size:
        raise OSError("the answer ends early")
    return bool(is_done), content


def serve(library: Any, requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until they end."""
    while head := requests.read(REQUEST.size):
        words, source = (requests.read(size) for size in REQUEST.unpack(head))
        is_done, content = compile_program(library, source, words.split(b"\0"))
        answers.write(ANSWER.pack(is_done, len(content)) + content)
        answers.flush()


def main() -> None:
    """Serve the process that started this one. Ctrl-C is that one's, which ends this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(open_library(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)
    os._exit(0)  # nothing to put in order


if __name__ == "__main__":
    main()

"""NVRTC: CUDA C -> cubin for one architecture. Needs neither a GPU nor its driver.

A program costs about as much as the kernels in it, so several small kernels are compiled as one
text: every helper in a source guards itself against a second definition, and entry names differ.
`--Ofast-compile` is never used: it changes the code of later compilations in the same process.
"""

import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from picograd.code import Code
from picograd.errors import CompileError, DeviceError
from picograd.runtime.device import compile_error

# Arithmetic is rounded as written, as on the CPU; matrix products say fma where they mean it.
OPTIONS = ("-default-device", "-fmad=false")
# Helpers take 30 ms to read, once a batch; 16 small kernels 60 ms together and 500 ms apart.
BATCH_TEXT = 100_000
ERROR_LINE = re.compile(r"\((\d+)\): (?:catastrophic )?error")
INSTALL = "pip install 'cuda-bindings>=13.0.3,<14' nvidia-cuda-nvrtc"


@cache
def load_nvrtc() -> Any:
    """Import the bindings; DeviceError naming the package that is missing."""
    try:
        nvrtc = importlib.import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except ImportError:
        problem = "the package cuda-bindings is missing"
        raise DeviceError("cuda", problem, INSTALL) from None
    except RuntimeError:  # DynamicLibNotFoundError: the bindings come without the compiler
        problem = "the CUDA compiler (package nvidia-cuda-nvrtc) is missing"
        raise DeviceError("cuda", problem, INSTALL) from None
    return nvrtc


def nvrtc_version() -> str:
    """Name the compiler and its options: part of the key of cached cubins."""
    _, major, minor = load_nvrtc().nvrtcVersion()
    return f"nvrtc {major}.{minor} {' '.join(OPTIONS)}"


def must(result: tuple[Any, ...]) -> Any:
    """Unpack what a binding returned; DeviceError when it failed."""
    if int(result[0]) != 0:
        raise DeviceError("nvrtc", f"a call failed with {result[0]}", "reinstall nvidia-cuda-nvrtc")
    return result[1] if len(result) > 1 else None


def compile_text(
    source: str, arch: str, flags: Sequence[str] = OPTIONS
) -> tuple[bytes | None, str]:
    """Compile a program; the cubin (None if it has errors) and the compiler's log."""
    nvrtc = load_nvrtc()
    program = must(nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []))
    try:
        options = [f"--gpu-architecture={arch}".encode(), *(o.encode() for o in flags)]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        # The binding writes into these bytes: never 1, because Python shares bytes of length 1.
        log = bytes(must(nvrtc.nvrtcGetProgramLogSize(program)) + 1)
        must(nvrtc.nvrtcGetProgramLog(program, log))
        text = log.rstrip(b"\0 ").decode(errors="replace")
        if int(status) != 0:
            return None, text or str(status)
        cubin = bytes(must(nvrtc.nvrtcGetCUBINSize(program)))
        must(nvrtc.nvrtcGetCUBIN(program, cubin))
        return cubin, text
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def compile_cuda(code: Code, arch: str) -> bytes:
    """Compile one kernel to a cubin; CompileError with the lines around the first error."""
    cubin, log = compile_text(code.source, arch)
    if cubin is None:
        raise nvrtc_error(code, log)
    return cubin


def nvrtc_error(code: Code, log: str) -> CompileError:
    """Make the error for a kernel NVRTC rejects."""
    found = ERROR_LINE.search(log)
    return compile_error(code, log, int(found.group(1)) if found else None)


def compile_together(codes: Sequence[Code], arch: str) -> bytes | None:
    """Compile kernels with different entries as one program; None if it has errors."""
    cubin, _ = compile_text("\n".join(code.source for code in codes), arch)
    return cubin


def batches(codes: Iterable[Code], listed: list[Code]) -> Iterator[list[int]]:
    """Put kernels into batches as they come, adding them to `listed`; the positions of each.

    A batch is full with BATCH_TEXT characters, or where an entry would have the name of another.
    """
    batch: list[int] = []
    entries: set[str] = set()
    size = 0
    for position, code in enumerate(codes):
        listed.append(code)
        if batch and (size + len(code.source) > BATCH_TEXT or code.entry in entries):
            yield batch
            batch, entries, size = [], set(), 0
        batch.append(position)
        entries.add(code.entry)
        size += len(code.source)
    if batch:
        yield batch

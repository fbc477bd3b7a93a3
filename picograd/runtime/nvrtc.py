"""NVRTC: CUDA C -> cubin for one architecture. Needs neither a GPU nor its driver.

A program costs about as much as the kernels in it, so several small kernels are compiled as one
text: every helper in a source guards itself against a second definition, and entry names differ.
`--Ofast-compile` is never used: it changes the code of later compilations in the same process.
"""

import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any, NamedTuple

from picograd.code import Code
from picograd.config import config
from picograd.errors import CompileError, DeviceError
from picograd.runtime import nvrtc_library
from picograd.runtime.compilers import Compilers
from picograd.runtime.device import compile_error
from picograd.runtime.pools import pool

# Arithmetic is rounded as written, as on the CPU; matrix products say fma where they mean it.
OPTIONS = ("-default-device", "-fmad=false")
# A program takes 20 ms whatever is in it, a kernel of a network's step 30 to 150. As long as there
# are processes for all programs, one of a kernel or two is compiled before one of four.
BATCH_TEXT, SMALL_BATCH_TEXT = 40_000, 20_000
ERROR_LINE = re.compile(r"\((\d+)\): (?:catastrophic )?error")


class Nvrtc(NamedTuple):
    """The library, and where it is for other processes to load."""

    library: Any
    path: str


@cache
def load_nvrtc() -> Nvrtc:
    """Load the library; DeviceError naming the package that is missing."""
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
        path = pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path
    except ImportError:
        problem = "the package cuda-bindings is missing"
        raise DeviceError("cuda", problem, nvrtc_library.INSTALL) from None
    except RuntimeError:  # DynamicLibNotFoundError: the bindings come without the compiler
        problem = "the CUDA compiler (package nvidia-cuda-nvrtc) is missing"
        raise DeviceError("cuda", problem, nvrtc_library.INSTALL) from None
    return Nvrtc(nvrtc_library.open_library(path), path)


def find_nvrtc() -> tuple[str, tuple[int, int]]:
    """Find the compiler: its file, and its version."""
    library, path = load_nvrtc()
    return path, nvrtc_library.version(library)


def nvrtc_version(known: Sequence[int] | None = None) -> str:
    """Name the compiler and its options: part of the key of cached cubins.

    Its version may be `known`: to find and load it takes 50 ms.
    """
    major, minor = known or find_nvrtc()[1]
    return f"nvrtc {major}.{minor} {' '.join(OPTIONS)}"


def compile_text(
    source: str, arch: str, flags: Sequence[str] = OPTIONS, compilers: Compilers | None = None
) -> tuple[bytes | None, str]:
    """Compile a program, here or by `compilers`; the cubin, or None and what is wrong with it."""
    options = [f"--gpu-architecture={arch}".encode(), *(flag.encode() for flag in flags)]
    try:
        if compilers:
            is_done, content = compilers.compile(source.encode(), options)
        else:
            library = load_nvrtc().library
            is_done, content = nvrtc_library.compile_program(library, source.encode(), options)
    except nvrtc_library.NvrtcError as error:
        problem = f"a call failed with {error}"
        raise DeviceError("nvrtc", problem, "reinstall nvidia-cuda-nvrtc") from None
    return (content, "") if is_done else (None, content.decode(errors="replace"))


def compile_cuda(code: Code, arch: str, compilers: Compilers | None = None) -> bytes:
    """Compile one kernel to a cubin; CompileError with the lines around the first error."""
    cubin, log = compile_text(code.source, arch, OPTIONS, compilers)
    if cubin is None:
        raise nvrtc_error(code, log)
    return cubin


def nvrtc_error(code: Code, log: str) -> CompileError:
    """Make the error for a kernel NVRTC rejects."""
    found = ERROR_LINE.search(log)
    return compile_error(code, log, int(found.group(1)) if found else None)


def compile_together(
    codes: Sequence[Code], arch: str, compilers: Compilers | None = None
) -> bytes | None:
    """Compile kernels with different entries as one program; None if it has errors."""
    text = "\n".join(code.source for code in codes)
    cubin, _ = compile_text(text, arch, OPTIONS, compilers)
    return cubin


def batches(codes: Iterable[Code], listed: list[Code], small: int = 0) -> Iterator[list[int]]:
    """Put kernels into batches as they come, adding them to `listed`; the positions of each.

    A batch is full with BATCH_TEXT characters, or where an entry would have the name of another.
    The first ones, of that number, are `small`.
    One that is full does not wait for the next kernel to be written: the longest come first.
    """
    batch: list[int] = []
    entries: set[str] = set()
    size = 0
    for position, code in enumerate(codes):
        listed.append(code)
        full = SMALL_BATCH_TEXT if small > 0 else BATCH_TEXT
        if batch and (size + len(code.source) > full or code.entry in entries):
            yield batch
            batch, entries, size, small = [], set(), 0, small - 1
        batch.append(position)
        entries.add(code.entry)
        size += len(code.source)
        if size >= full:
            yield batch
            batch, entries, size, small = [], set(), 0, small - 1
    if batch:
        yield batch


def compile_batches(codes: Iterable[Code], arch: str) -> Iterator[tuple[int, bytes]]:
    """Compile kernels in batches on all cores, in several processes, while the next are written.

    All are written, and being compiled, when this returns.
    """
    listed: list[Code] = []

    def compile_batch(positions: list[int]) -> list[tuple[int, bytes]]:
        members = [listed[position] for position in positions]
        together = compile_together(members, arch, compilers) if len(members) > 1 else None
        # Where a batch fails, one by one, to find the kernel at fault.
        return [
            (position, together or compile_cuda(code, arch, compilers))
            for position, code in zip(positions, members, strict=True)
        ]

    with ExitStack() as stack:
        most = config.compile_processes
        compilers = stack.enter_context(Compilers(*load_nvrtc(), most))
        executor = stack.enter_context(pool(most))
        # after an error, or Ctrl-C, nothing else begins
        stack.callback(executor.shutdown, wait=False, cancel_futures=True)
        found = batches(codes, listed, most)
        jobs = [executor.submit(compile_batch, batch) for batch in found]
        return results_of(jobs, stack.pop_all())


def results_of(jobs: Sequence[Any], used: ExitStack) -> Iterator[tuple[int, bytes]]:
    """Give what jobs made, and let go of what they used."""
    with used:
        for job in jobs:
            yield from job.result()

"""Machine code as text, for people: host assembly, or SASS with registers, shared memory, spills.

SASS needs the program `nvdisasm`: from the CUDA toolkit, or the wheel of `picograd[debug]`. What is
missing here is said in the text itself: looking at a kernel never stops a program.
"""

import importlib
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache

from picograd.code import Code
from picograd.errors import PicogradError
from picograd.runtime.compiler import Host
from picograd.runtime.llvm import Job
from picograd.runtime.log import log
from picograd.runtime.nvrtc import compile_text, nvrtc_error
from picograd.target import Target

# Attributes in a cubin's .nv.info (what `cuobjdump -elf` calls EIATTR_...), and one of ELF.
REGISTER_COUNT, FRAME_SIZE, SIZED, NO_BITS = 0x2F, 0x11, 4, 8
RESERVED_SHARED = 1024  # bytes the system takes of each block's, from sm_90 on
SASS_STORE, SASS_LOAD = re.compile(r"\bSTL[. ]"), re.compile(r"\bLDL[. ]")
INSTALL = "no SASS: python -m pip install 'picograd[debug]' brings nvdisasm"
# x86, AT&T syntax: vector registers, and moves of them to and from the stack.
VECTOR_REGISTER = re.compile(r"%([xyz]mm\d+)")
SPILL_STORE = re.compile(r"\tv?mov\w+\t%[xyz]mm\d+, -?\d*\(%rsp\)")
SPILL_LOAD = re.compile(r"\tv?\w+\t-?\d*\(%rsp\)(?:\{\w+\})?, .*%[xyz]mm\d+")


def assembly_of(code: Code, target: Target) -> str:
    """Compile a kernel and write its machine code as text; needs no GPU."""
    if code.language not in ("llvm", "cuda"):
        return f"// no assembly: only the driver of {code.language} reads its binaries"
    try:
        return sass(code, target.arch) if target.has_blocks else host_assembly(code, target)
    except (PicogradError, RuntimeError) as error:  # the real compilation reports it properly
        return f"// no assembly: {error}"


def host_assembly(code: Code, target: Target) -> str:
    """Translate LLVM IR to assembly of the processor `target` names, under what it uses.

    Of a kernel that gets all passes when it has run often, as it is then.
    """
    text = Job(code, Host(target.arch, target.features), code.is_small).assembly()
    used = host_resources(text)
    return f"# {used}\n{text}" if used else text


def host_resources(text: str) -> str:
    """Count vector registers, and vectors moved to and from the stack; empty if not x86."""
    numbers = {name[3:] for name in VECTOR_REGISTER.findall(text)}
    if not numbers:
        return ""
    stores, loads = len(SPILL_STORE.findall(text)), len(SPILL_LOAD.findall(text))
    return f"{len(numbers)} vector registers, {stores} stores to and {loads} loads from the stack"


def sass(code: Code, arch: str) -> str:
    """Disassemble a CUDA kernel under one line of what it uses."""
    cubin, report = compile_text(code.source, arch)
    if cubin is None:
        raise nvrtc_error(code, report)
    head = f"// {cuda_resources(cubin)}, {code.shared_bytes} bytes dynamic shared memory"
    program = find_nvdisasm()
    if program is None:
        warn_once()
        return head
    text = disassemble(cubin, program)
    stores, loads = len(SASS_STORE.findall(text)), len(SASS_LOAD.findall(text))
    spills = f"{stores} stores to and {loads} loads from local memory (spills)"
    return f"{head}, {spills}\n{text}"


def cuda_resources(cubin: bytes) -> str:
    """Read from a cubin what one thread and one block of its kernel take."""
    registers, stack, shared = [0], [0], 0
    for name, content in sections(cubin):
        if name == ".nv.info":
            registers += attributes(content, REGISTER_COUNT)
            stack += attributes(content, FRAME_SIZE)
        elif name.startswith(".nv.shared.reserved"):
            shared -= RESERVED_SHARED  # it lies before the kernel's own and is counted with it
        elif name.startswith(".nv.shared."):
            shared += len(content)
    static = f"{max(shared, 0)} bytes static shared memory"
    return f"{max(registers)} registers, {max(stack)} bytes stack, {static}"


def sections(cubin: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of every section of an ELF file of 64 bits."""
    start = struct.unpack_from("<Q", cubin, 0x28)[0]
    size, count, names = struct.unpack_from("<3H", cubin, 0x3A)
    headers = [
        struct.unpack_from("<2I4Q", cubin, place)
        for place in range(start, start + size * count, size)
    ]
    text = headers[names][4] if headers else 0
    for name, kind, _, _, offset, length in headers:
        end = cubin.index(b"\0", text + name)
        content = bytes(length) if kind == NO_BITS else cubin[offset : offset + length]
        yield cubin[text + name : end].decode(), content


def attributes(content: bytes, wanted: int) -> list[int]:
    """List the values of one attribute of an .nv.info section, one a function."""
    found, place = [], 0
    while place + 4 <= len(content):
        form, attribute, size = struct.unpack_from("<BBH", content, place)
        place += 4
        if form != SIZED:
            continue  # the value stands in place of the size
        if attribute == wanted:
            found.append(struct.unpack_from("<I", content, place + 4)[0])
        place += size
    return found


@cache
def find_nvdisasm() -> str | None:
    """Look for the disassembler among the installed wheels and on the path."""
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
        found = pathfinder.find_nvidia_binary_utility("nvdisasm")
    except (ImportError, AttributeError, RuntimeError):  # not installed, or too old to know
        found = None
    return found or shutil.which("nvdisasm")


@cache
def warn_once() -> None:
    """Say once what is missing."""
    log(0, INSTALL)


def disassemble(cubin: bytes, program: str) -> str:
    """Run nvdisasm on a cubin; only the instructions of its code sections."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [program, "--print-code", file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout or f"// nvdisasm failed: {done.stderr.strip()}"

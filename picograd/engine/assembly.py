"""Machine code as text, for people: host assembly, or SASS with registers, shared memory, spills.

SASS needs the program `nvdisasm`: from the CUDA toolkit, or the wheel of `picograd[debug]`.
"""

import re
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from picograd.code import Code
from picograd.runtime.llvm import Host, optimize, target_machine
from picograd.runtime.nvrtc import OPTIONS, compile_text, nvrtc_error
from picograd.target import Target

VERBOSE = "--ptxas-options=-v"  # makes the compiler report registers and spills
REMARK = re.compile(r"^ptxas[\s:.]*(info)?[\s:]*")
INSTALL = "(no SASS: python -m pip install 'picograd[debug]' brings nvdisasm)"


def assembly_of(code: Code, target: Target) -> str:
    """Compile a kernel and write its machine code as text; needs no GPU."""
    return host_assembly(code, target) if target.language == "llvm" else sass(code, target.arch)


def host_assembly(code: Code, target: Target) -> str:
    """Translate LLVM IR to assembly of the processor `target` names."""
    machine = target_machine(Host(target.arch, target.features))
    return str(machine.emit_assembly(optimize(code.source, machine)))


def sass(code: Code, arch: str) -> str:
    """Disassemble a CUDA kernel under one line of what it uses."""
    cubin, log = compile_text(code.source, arch, (*OPTIONS, VERBOSE))
    if cubin is None:
        raise nvrtc_error(code, log)
    used = [REMARK.sub("", line) for line in log.splitlines() if "Used" in line or "spill" in line]
    head = f"// {'; '.join(used)}; {code.shared_bytes} bytes dynamic shared memory"
    program = find_nvdisasm()
    return f"{head}\n{disassemble(cubin, program) if program else INSTALL}"


def find_nvdisasm() -> str | None:
    """Look for the disassembler on the path and among the installed wheels."""
    wheels = Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    found = sorted(wheels.glob("*/bin/nvdisasm"))
    return shutil.which("nvdisasm") or (str(found[-1]) if found else None)


def disassemble(cubin: bytes, program: str) -> str:
    """Run nvdisasm on a cubin; only the instructions of its code sections."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [program, "--print-code", file.name]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

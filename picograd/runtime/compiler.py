"""The compiler of the CPU as other files see it: LLVM itself is imported when it is needed.

That takes 25 ms, and a process whose kernels are all on disk, laid out for memory (images.py),
does without.
"""

import re
from typing import Any

from picograd.code import Code
from picograd.errors import CompileError
from picograd.helpers import on_demand
from picograd.late_methods import dataclass
from picograd.runtime.device import compile_error
from picograd.runtime.images import HEAD, PAGE, Image

begin = on_demand("picograd.runtime.llvm", "Job")
Linker = on_demand("picograd.runtime.llvm", "Linker")
LIBRARY_BYTES = 45 << 10  # of memory that a linked library takes beside its object (measured)
ERROR_LINE = re.compile(r":(\d+):\d+: error")


@dataclass(frozen=True, slots=True)
class Host:
    """The processor kernels are compiled for."""

    cpu: str
    features: str


def loaded_bytes(binary: bytes) -> int:
    """Count the bytes of memory that an object takes once it is loaded."""
    return len(binary) + (PAGE if binary.startswith(HEAD) else LIBRARY_BYTES)


def refused(code: Code, log: str) -> CompileError:
    """Make the error for IR that is not valid."""
    found = ERROR_LINE.search(log) or re.search(r":(\d+):", log)
    return compile_error(code, log, int(found.group(1)) if found else None)


class Compiler:
    """Compiles for one processor and loads objects into this process."""

    def __init__(self, machine: Host) -> None:
        self.host = machine
        self.linker: Any = None

    def start(self, code: Code, passes: int | None = None) -> Any:
        """Begin to translate IR to an object file, with these passes or as suits its work."""
        return begin(code, self.host, code.passes if passes is None else passes)

    def compile(self, code: Code, passes: int | None = None) -> bytes:
        """Translate IR to an object file; CompileError if it is not valid."""
        job = self.start(code, passes)
        job.run()
        return job.result()

    def load(self, binary: bytes, symbols: tuple[str, ...]) -> Any:
        """Load an object; the result maps symbols to addresses and unloads it when dropped.

        RuntimeError if the object is damaged or lacks a symbol.
        """
        if binary.startswith(HEAD):
            return Image(binary, symbols)
        if self.linker is None:
            self.linker = Linker(self.host)
        return self.linker.link(binary, symbols)

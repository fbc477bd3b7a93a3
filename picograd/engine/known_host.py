"""What the processor and its compiler are, noted on disk: asking LLVM takes 25 ms, its import.

The entry is named by all that LLVM looks at, as far as the system tells it: what it says of the
first processor, the machine's own name, and the file of LLVM. Where it does not say, LLVM is asked.
"""

import hashlib
import importlib.util
import json
import os

from picograd.engine.cache import disk_cache, generator_version
from picograd.helpers import on_demand
from picograd.runtime.compiler import Host

PROCESSOR = "/proc/cpuinfo"
# What stays as it is: speeds do not.
TOLD = ("vendor_id", "cpu family", "model", "stepping", "flags", "CPU ", "Features")
ENOUGH = 1 << 14  # characters: more than one processor takes

description = on_demand("picograd.runtime.llvm", "description")


def known_host() -> tuple[Host, str]:
    """Describe this machine's processor and the compiler, as an earlier process found them."""
    cache, name = disk_cache(), name_of_host()
    text = cache.get(name) if cache and name else None
    if text is not None:
        try:
            cpu, features, compiler = map(str, json.loads(text))
            return Host(cpu, features), compiler
        except (ValueError, TypeError):
            pass
    machine, compiler = description()
    if cache and name:
        cache.put(name, json.dumps([machine.cpu, machine.features, compiler]).encode())
    return machine, compiler


def name_of_host() -> str | None:
    """Name the entry of this machine; None where the system does not tell enough."""
    try:
        place = importlib.util.find_spec("llvmlite").origin  # type: ignore[union-attr]
        library = os.path.join(os.path.dirname(str(place)), "binding", "libllvmlite.so")
        status = os.stat(library)
        with open(PROCESSOR) as file:
            text = file.read(ENOUGH)
    except (OSError, AttributeError):
        return None
    first, end, _ = text.partition("\n\n")
    lines = [line for line in first.splitlines() if line.startswith(TOLD)]
    if not end or not lines:
        return None
    file_of_llvm = library, status.st_size, status.st_mtime_ns
    parts = ("host", lines, tuple(os.uname()), file_of_llvm, generator_version())
    return hashlib.sha256(repr(parts).encode()).hexdigest()

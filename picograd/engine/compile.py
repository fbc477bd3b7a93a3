"""From kernels to loaded executables: generate, look up on disk, compile, load. Each kernel once.

Kernels are told apart by `canonical_key` before any code is generated, so that a network of a
hundred equal layers pays for one.
"""

import sys
import time
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from picograd.code import Code
from picograd.codegen.pipeline import generate
from picograd.config import config
from picograd.engine import cache
from picograd.engine.assembly import assembly_of
from picograd.engine.debug import log_stage
from picograd.errors import DeviceError
from picograd.runtime.device import Device, Executable
from picograd.runtime.log import log_action
from picograd.schedule.canonical import canonical_key
from picograd.schedule.loop import Kernel

# Plans own the kernels they run: one that no plan runs any more is unloaded.
LOADED: "weakref.WeakValueDictionary[tuple[Any, ...], Executable]" = weakref.WeakValueDictionary()
PROGRESS_AFTER = 1.0  # seconds of compiling before a progress bar appears


def executables(kernels: Sequence[Kernel], device: Device) -> list[Executable]:
    """Find or make the executable of every kernel, compiling what is new in one batch."""
    settings = (device.name, config.key())
    distinct = {id(kernel): kernel for kernel in kernels}  # launches share kernels
    names = {number: canonical_key(kernel) for number, kernel in distinct.items()}
    keys = [(settings, names[id(kernel)]) for kernel in kernels]
    found = {key: LOADED.get(key) for key in keys}
    new = {key: kernel for key, kernel in zip(keys, kernels, strict=True) if found[key] is None}
    if config.debug < 2:  # from there on every kernel shows how it is made
        found |= load_known(new, device)
    missing = {key: kernel for key, kernel in new.items() if found[key] is None}
    if missing:
        codes = {key: generate_code(kernel, device) for key, kernel in missing.items()}
        for key, executable in zip(codes, build(list(codes.values()), device), strict=True):
            found[key] = executable
            cache.describe_kernel(key[-1], executable.code, device)
    kept = {key: each for key, each in found.items() if each is not None}
    LOADED.update(kept)
    return [kept[key] for key in keys]


def load_known(
    new: dict[tuple[Any, ...], Kernel], device: Device
) -> dict[tuple[Any, ...], Executable | None]:
    """Load the kernels that another process left on disk."""
    known = {key: cache.find_kernel(key[-1], device) for key in new}
    return {key: try_load(*each, device) for key, each in known.items() if each is not None}


def try_load(code: Code, binary: bytes, device: Device) -> Executable | None:
    """Load a binary from disk; None for a damaged one, which is compiled anew."""
    try:
        return device.load(code, binary)
    except DeviceError:
        return None


def generate_code(kernel: Kernel, device: Device) -> Code:
    """Run code generation for one kernel; DEBUG=3 prints every stage, 4 assembly."""
    trace = log_stage if config.debug >= 3 else None
    if trace:
        trace("loop", kernel)
    start = time.perf_counter()
    code = generate(kernel, device.target, trace, bool(config.verify))
    log_action("generate", f"{code.name}, {(time.perf_counter() - start) * 1e3:.1f} ms")
    if config.debug >= 4:
        log_stage("assembly", assembly_of(code, device.target))
    return code


def build(codes: Sequence[Code], device: Device) -> list[Executable]:
    """Load what the disk cache has, compile and load the rest."""
    loaded: dict[int, Executable] = {}
    for number, code in enumerate(codes):
        known = cache.lookup(code, device)
        executable = None if known is None else try_load(code, known, device)
        if executable is not None:
            loaded[number] = executable
    missing = [number for number in range(len(codes)) if number not in loaded]
    start = time.perf_counter()
    with progress(len(missing)) as bar:
        for number, binary in device.compile_many([codes[n] for n in missing]):
            position = missing[number]
            loaded[position] = device.load(codes[position], binary)
            cache.store(codes[position], device, binary)
            bar.update()
    if config.debug >= 2:
        log_build(codes, missing, device.target.arch, time.perf_counter() - start)
    return [loaded[number] for number in range(len(codes))]


class NoProgress(AbstractContextManager["NoProgress"]):
    """This class is a progress bar that nobody sees."""

    def update(self) -> None:
        """Count a step."""

    def __exit__(self, *_: object) -> None:
        pass


def progress(count: int) -> Any:
    """Make a progress bar that appears when compiling takes long, and only on a terminal."""
    if not count or sys.stderr is None or not sys.stderr.isatty():
        return NoProgress()
    from tqdm import tqdm  # here, as most runs need none

    return tqdm(
        total=count, desc="compiling kernels", delay=PROGRESS_AFTER, leave=False, file=sys.stderr
    )


def log_build(codes: Sequence[Code], missing: Sequence[int], arch: str, seconds: float) -> None:
    """Print which kernels the disk cache had, and how long it took to compile the others."""
    for number, code in enumerate(codes):
        log_action("compile", f"{code.name}, {'miss' if number in missing else 'hit'}")
    if missing:
        log_action("compile", f"{len(missing)} kernels for {arch}, {seconds * 1e3:.1f} ms")

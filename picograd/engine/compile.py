"""From kernels to loaded executables: generate, look up on disk, compile, load. Each kernel once.

Kernels are told apart by `canonical_key` before any code is generated, so that a network of a
hundred equal layers pays for one.
"""

import sys
import time
from collections.abc import Sequence
from typing import Any

from tqdm import tqdm

from picograd.code import Code
from picograd.codegen.pipeline import generate
from picograd.config import config
from picograd.engine import cache
from picograd.engine.assembly import assembly_of
from picograd.engine.debug import log_action, log_stage
from picograd.errors import DeviceError
from picograd.runtime.device import Device, Executable
from picograd.schedule.canonical import canonical_key
from picograd.schedule.loop import Kernel

LOADED: dict[tuple[Any, ...], Executable] = {}
PROGRESS_AFTER = 1.0  # seconds of compiling before a progress bar appears


def executables(kernels: Sequence[Kernel], device: Device) -> list[Executable]:
    """Find or make the executable of every kernel, compiling what is new in one batch."""
    settings = (device.name, config.key())
    keys = [(settings, canonical_key(kernel)) for kernel in kernels]
    new = {key: kernel for key, kernel in zip(keys, kernels, strict=True) if key not in LOADED}
    if config.debug < 2:  # from there on every kernel shows how it is made
        load_known(new, device)
    if new:
        codes = {key: generate_code(kernel, device) for key, kernel in new.items()}
        for key, executable in zip(codes, build(list(codes.values()), device), strict=True):
            LOADED[key] = executable
            cache.describe_kernel(key[-1], executable.code, device)
    return [LOADED[key] for key in keys]


def load_known(new: dict[tuple[Any, ...], Kernel], device: Device) -> None:
    """Load the kernels that another process left on disk; they leave `new`."""
    for key in list(new):
        known = cache.find_kernel(key[-1], device)
        if known is not None and (loaded := try_load(*known, device)) is not None:
            LOADED[key] = loaded
            del new[key]


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


def progress(count: int) -> Any:
    """Make a progress bar that appears when compiling takes long, and only on a terminal."""
    return tqdm(
        total=count,
        desc="compiling kernels",
        delay=PROGRESS_AFTER,
        disable=None,  # no bar where the error stream is not a terminal
        leave=False,
        file=sys.stderr,
    )


def log_build(codes: Sequence[Code], missing: Sequence[int], arch: str, seconds: float) -> None:
    """Print which kernels the disk cache had, and how long it took to compile the others."""
    for number, code in enumerate(codes):
        log_action("compile", f"{code.name}, {'miss' if number in missing else 'hit'}")
    if missing:
        log_action("compile", f"{len(missing)} kernels for {arch}, {seconds * 1e3:.1f} ms")

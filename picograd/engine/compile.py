"""From kernels to loaded executables: generate, look up on disk, compile, load. Each kernel once.

Kernels are told apart by `canonical_key` before any code is generated, so that a network of a
hundred equal layers pays for one.
"""

import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from picograd.code import Code
from picograd.config import config
from picograd.engine import cache
from picograd.engine.backends import target_of
from picograd.engine.debug import log_stage
from picograd.engine.watch import tell_span
from picograd.errors import DeviceError
from picograd.helpers import on_demand
from picograd.runtime.device import Device, Executable
from picograd.runtime.log import log_action

if TYPE_CHECKING:  # kernels from disk are loaded without what they were made of
    from picograd.schedule.loop import Kernel

generate = on_demand("picograd.codegen.pipeline", "generate")
canonical_key = on_demand("picograd.schedule.canonical", "canonical_key")
walk = on_demand("picograd.schedule.loop", "walk")
assembly_of = on_demand("picograd.engine.assembly", "assembly_of")


Name = tuple[Any, ...]  # device, settings and canonical key

# Plans own the kernels they run: one that no plan runs any more is unloaded.
LOADED: "weakref.WeakValueDictionary[Name, Executable]" = weakref.WeakValueDictionary()
PROGRESS_AFTER = 1.0  # seconds of compiling before a progress bar appears


def executables(kernels: "Sequence[Kernel]", device: Device) -> list[Executable]:
    """Find or make the executable of every kernel, compiling what is new in one batch."""
    settings = (device.name, config.key())
    distinct = {id(kernel): kernel for kernel in kernels}  # launches share kernels
    names = {number: canonical_key(kernel) for number, kernel in distinct.items()}
    keys = [(settings, names[id(kernel)]) for kernel in kernels]
    found = {key: LOADED.get(key) for key in keys}
    new = {key: kernel for key, kernel in zip(keys, kernels, strict=True) if found[key] is None}
    if config.debug < 2:  # from there on every kernel shows how it is made
        found |= {key: find_on_disk(key, device) for key in new}
    missing = {key: kernel for key, kernel in new.items() if found[key] is None}
    if missing:
        for key, executable in build(missing, device).items():
            found[key] = executable
            cache.describe_kernel(key[-1], executable.code, device)
    kept = keep(found)
    return [kept[key] for key in keys]


def keep(found: Mapping[Name, Executable | None]) -> dict[Name, Executable]:
    """Let other plans find loaded kernels; gives those that are."""
    kept = {key: each for key, each in found.items() if each is not None}
    for key, each in kept.items():
        each.canonical = key[-1]
    LOADED.update(kept)
    return kept


def load_named(canonical: Sequence[str], device: Device) -> list[Executable] | None:
    """Find the kernels of these canonical keys, in memory or on disk; None if one is missing."""
    settings = (device.name, config.key())
    keys = [(settings, name) for name in canonical]
    known = {key: LOADED.get(key) or find_on_disk(key, device) for key in keys}
    kept = keep(known)
    return [kept[key] for key in keys] if len(kept) == len(known) else None


def find_on_disk(key: Name, device: Device) -> Executable | None:
    """Load a kernel that another process left on disk."""
    known = cache.find_kernel(key[-1], device)
    return None if known is None else try_load(*known, device)


def try_load(code: Code, binary: bytes, device: Device) -> Executable | None:
    """Load a binary from disk; None for a damaged one, which is compiled anew."""
    try:
        return device.load(code, binary)
    except DeviceError:
        return None


def generate_code(kernel: "Kernel", device: Device) -> Code:
    """Run code generation for one kernel; DEBUG=3 prints every stage, 4 assembly."""
    trace = log_stage if config.debug >= 3 else None
    if trace:
        trace("loop", kernel)
    start = time.perf_counter()
    code: Code = generate(kernel, target_of(device), trace, bool(config.verify))
    log_action("generate", f"{code.name}, {(time.perf_counter() - start) * 1e3:.1f} ms")
    if config.debug >= 4:
        log_stage("assembly", assembly_of(code, device.target))
    return code


def size_of_code(kernel: "Kernel") -> tuple[bool, int, bool, int]:
    """Compare kernels by what they will be as code: products, then parts, then sums, then maps."""
    computes = [each for part in kernel.parts for each in part.computes]
    is_sum = any(each.monoid is not None for each in computes)
    is_product = kernel.hero in ("contract", "conv")
    return is_product, len(kernel.parts), is_sum, sum(len(walk(each.body)) for each in computes)


def build(kernels: "Mapping[Name, Kernel]", device: Device) -> dict[Name, Executable]:
    """Generate every kernel, load what the disk cache has, compile and load the rest.

    A device may compile the first ones while the next are generated.
    """
    codes: dict[Name, Code] = {}
    loaded: dict[Name, Executable] = {}
    missing: list[Executable] = []

    # Who watches wants to know what each part took: one after the other, as a kernel by itself.
    is_beside = config.debug < 2 and len(kernels) > 1
    ordered = list(kernels.items())
    if is_beside:  # what compiles longest first: nothing should wait for the last one
        ordered.sort(key=lambda item: size_of_code(item[1]), reverse=True)

    def new_codes() -> Iterator[Code]:
        for key, kernel in ordered:
            code = codes[key] = replace(generate_code(kernel, device), beside=len(kernels))
            known = cache.lookup(code, device)
            executable = None if known is None else try_load(code, known, device)
            loaded[key] = executable or Executable(code, None)
            if executable is None:
                missing.append(loaded[key])
                yield code
            else:
                bar.update()

    began = time.perf_counter()
    with progress(len(kernels)) as bar:
        new = new_codes() if is_beside else list(new_codes())
        start = time.perf_counter()
        load = partial(load_compiled, missing, [device.compile_many(new)], device, bar.update)
        backlog = device.backlog
        # Memory for workspaces, found later, might be what launches that wait used before.
        if backlog and backlog.is_open and not any(code.workspaces for code in codes.values()):
            backlog.add(load)
        else:
            load()
    tell_span("compile", f"{len(missing)} of {len(kernels)} kernels", began)
    if config.debug >= 2:
        seconds = time.perf_counter() - start
        hits = [loaded[key] not in missing for key in codes]
        log_build(list(codes.values()), hits, device.target.arch, seconds)
    return {key: loaded[key] for key in kernels}


def load_compiled(
    missing: Sequence[Executable],
    begun: list[Iterator[tuple[int, bytes]]],
    device: Device,
    tell: Callable[[], object],
) -> None:
    """Load kernels that are being compiled; those that are left, where that was interrupted."""
    left = missing if begun else [each for each in missing if each.function is None]
    binaries = begun.pop() if begun else device.compile_many([each.code for each in left])
    for number, binary in binaries:
        executable = left[number]
        executable.take(device.load(executable.code, binary))
        cache.store(executable.code, device, binary)
        tell()


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


def log_build(codes: Sequence[Code], hits: Sequence[bool], arch: str, seconds: float) -> None:
    """Print which kernels the disk cache had, and how long it took to compile the others."""
    for code, is_hit in zip(codes, hits, strict=True):
        log_action("compile", f"{code.name}, {'hit' if is_hit else 'miss'}")
    count = hits.count(False)
    if count:
        log_action("compile", f"{count} kernels for {arch}, {seconds * 1e3:.1f} ms")

"""Device names -> devices: the one place that knows every backend. Devices open at first use.

    cpu                       the host's processor, on `config.threads` threads
    cuda, cuda:0, cuda:1 ...  NVIDIA GPUs; "cuda" is "cuda:0"
    opencl, opencl:0 ...      devices of OpenCL drivers, GPUs first; "opencl" is "opencl:0"
    null                      a GPU that is not there: plans and compiles, runs nothing
    meta                      the same, and asking for values is an error: shapes alone

A backend is imported when its device is opened. Changing `config.threads` opens another "cpu";
buffers of the one before remain valid.
"""

import hashlib
import importlib
import importlib.util
import json
import os
import sys
import threading
from collections import Counter
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import cache

from picograd.config import config
from picograd.device_name import OPENERS
from picograd.engine.cache import disk_cache, generator_version, keep_improved, remember
from picograd.errors import DeviceError
from picograd.graph.node import Nodes
from picograd.helpers import on_demand
from picograd.runtime.compiler import Host
from picograd.runtime.device import Device
from picograd.runtime.driver import has_driver
from picograd.runtime.pools import has_started
from picograd.target import Target


def open_cpu(ordinal: int) -> Device:
    """Open the host's processor."""
    from picograd.runtime.cpu import CpuDevice

    described = known_host()
    known = remember(described)
    return CpuDevice(config.threads, known, described=described, keep=keep_improved)


def open_cuda(ordinal: int) -> Device:
    """Open a GPU; its driver takes 0.2 s, for which it needs no Python.

    Where nothing was compiled before, what makes kernels is imported meanwhile.
    """
    from picograd.runtime import cuda

    if has_driver() and noted_nvrtc() is None:
        has_started(threading.Thread(target=import_generator, daemon=True))
    return cuda.open_cuda(ordinal, known_nvrtc)


def import_generator() -> None:
    """Load the compiler of CUDA C, and import what a first plan and its kernels are made by."""
    from picograd.runtime import nvrtc

    with suppress(DeviceError):  # who needs it is told that it is missing
        nvrtc.load_nvrtc()
    for name in GENERATOR:
        importlib.import_module(name)


def open_opencl(ordinal: int) -> Device:
    """Open a device of an OpenCL driver."""
    from picograd.runtime import opencl

    return opencl.open_opencl(ordinal)


def open_null(ordinal: int) -> Device:
    """Open the machine that is not there."""
    from picograd.runtime.null import NullDevice

    return NullDevice()


def open_meta(ordinal: int) -> Device:
    """Open the machine of shapes alone."""
    from picograd.runtime.null import NullDevice

    return NullDevice(has_values=False)


OPENERS |= {
    "cpu": open_cpu,
    "cuda": open_cuda,
    "opencl": open_opencl,
    "null": open_null,
    "meta": open_meta,
}
NUMBERED = ("cuda", "opencl")  # kinds of which a machine may have several
GENERATOR = "picograd.schedule.schedule", "picograd.codegen.pipeline"
OPEN: dict[str, Device] = {}
LOCK = threading.RLock()


def normalize_device(name: str) -> str:
    """Write a device name in its one form ("cuda" -> "cuda:0"); DeviceError if unknown."""
    kind, colon, number = str(name).strip().lower().partition(":")
    is_known = kind in OPENERS and (number.isdecimal() if colon else True)
    if not is_known or (kind not in NUMBERED and int(number or 0) != 0):
        problem = f"there is no device {name!r}"
        fix = f"use {', '.join(OPENERS)}, or cuda:1 for the second GPU"
        raise DeviceError("device", problem, fix)
    return f"{kind}:{int(number or 0)}" if kind in NUMBERED else kind


def get_device(name: str = "") -> Device:
    """Find a device by name, opening it at first use; without a name, the default device."""
    device = OPEN.get(name)
    if device is not None and (name != "cpu" or device.target.threads == config.threads):
        return device
    with LOCK:
        known = normalize_device(name) if name else default_device()
        device = OPEN.get(known)
        is_stale = known == "cpu" and device and device.target.threads != config.threads
        if device is None or is_stale:
            kind, _, number = known.partition(":")
            device = OPEN[known] = OPENERS[kind](int(number or 0))
        return device


def compiling_beside(name: str) -> AbstractContextManager[None]:
    """Let what runs on a device wait for its kernels, if it can, while others are planned."""
    backlog = get_device(name).backlog
    return backlog.opened() if backlog else nullcontext()


def target_of(device: Device) -> Target:
    """Describe what kernels of a device are generated for, with what settings allow."""
    own: Target = device.target
    is_narrow = bool(config.tf32) and own.copies_boxes
    return replace(own, tf32=True) if is_narrow else own


def target_for(order: Nodes) -> Target:
    """Describe what one plan of a graph is for: the device that computes most of its nodes."""
    count = Counter(node.device for node in order if node.inputs)
    name = max(count, key=count.__getitem__) if count else order[-1].device
    return target_of(get_device(name))


def open_device(name: str) -> str:
    """Normalise a device name and open the device, so that a missing one is an error here."""
    known = normalize_device(name)
    if known not in OPEN:
        get_device(known)
    return known


def default_device() -> str:
    """Name the default device: PICOGRAD_DEVICE, else CUDA if usable, else the CPU."""
    wanted = config.device
    return normalize_device(wanted) if wanted else best_device()


@cache
def best_device() -> str:
    """Name the fastest device that works here."""
    return "cuda:0" if is_usable("cuda:0") else "cpu"


def is_usable(name: str) -> bool:
    """Tell whether a device can be opened; remembers it open if so."""
    if name.startswith("cuda") and not has_driver():
        return False  # without importing the bindings, which takes longer than all the rest
    try:
        get_device(name)
    except DeviceError:
        return False
    return True


PROCESSOR = "/proc/cpuinfo"
# What stays as it is: speeds do not.
TOLD = ("vendor_id", "cpu family", "model", "stepping", "flags", "CPU ", "Features")
ENOUGH = 1 << 14  # characters: more than one processor takes

# by which a library is found: paths of the system, and of CUDA
SEARCHED = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX")

description = on_demand("picograd.runtime.llvm", "description")


def known_host() -> tuple[Host, str]:
    """Describe this machine's processor and the compiler, as an earlier process found them.

    Asking LLVM takes 25 ms, its import. The entry is named by all that LLVM looks at, as far as the
    system tells it: what it says of the first processor, the machine's own name, and the file of
    LLVM. Where it does not say, LLVM is asked.
    """
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


def entry_of_nvrtc() -> str:
    """Name the entry of the compiler of CUDA C by all that tells where it is looked for."""
    variables = [os.environ.get(name) for name in SEARCHED]
    parts = ("nvrtc", sys.version, sys.path, variables, generator_version())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def noted_nvrtc() -> list[int] | None:
    """Find the version of the compiler of CUDA C that an earlier process noted.

    None if there is no note, or its file is not as it was then.
    """
    cache = disk_cache()
    text = cache.get(entry_of_nvrtc()) if cache else None
    if text is not None:
        try:
            path, size, changed, *version = json.loads(text)
            status = os.stat(path)
            if (status.st_size, status.st_mtime_ns) == (size, changed):
                return version
        except (OSError, ValueError, TypeError):
            pass
    return None


def known_nvrtc() -> str:
    """Name the compiler of CUDA C, as an earlier process found it, or as it is found now."""
    from picograd.runtime import nvrtc

    version = noted_nvrtc()
    if version is None:
        path, found = nvrtc.find_nvrtc()
        status, cache, version = os.stat(path), disk_cache(), list(found)
        if cache:
            entry = path, status.st_size, status.st_mtime_ns, *found
            cache.put(entry_of_nvrtc(), json.dumps(entry).encode())
    return nvrtc.nvrtc_version(version)

"""Disk cache of compiled kernels: a second process loads instead of compiling.

One file an entry: MAGIC, the SHA-256 of the payload, the payload. A file is written under another
name and renamed, so readers and other writers never see half of it; one that is damaged all the
same is a miss, and the next store replaces it. Reading refreshes an entry's time stamp; when the
folder is over its size, the entries unused for longest go. Nothing here ever raises for the state
of the disk: where a folder cannot be written, entries live in memory only.
"""

import functools
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path

from picograd.code import Code, Workspace
from picograd.config import config
from picograd.dtype import dtype_named
from picograd.runtime.device import Device

MAGIC = b"picogra1"
GENERATOR = ("graph", "schedule", "codegen")  # rooms whose code decides what a kernel looks like
LAUNCH_FACTS = tuple(field.name for field in fields(Code) if field.name != "source")
HEAD = len(MAGIC) + 32  # bytes before the payload
STORES_A_SCAN = 64  # listing the folder costs milliseconds: not at every store
KEPT = 0.8  # part of the allowed size that remains after entries were removed
ABANDONED = 3600.0  # seconds after which a temporary file's writer is taken for dead


class DiskCache:
    """Entries in a folder, at most `limit` bytes of them (checked every few stores)."""

    def __init__(self, folder: str, limit: int) -> None:
        self.folder, self.limit = folder, limit
        self.memory: dict[str, bytes] = {}
        self.stores = 0

    def path(self, key: str) -> str:
        """Name the file of an entry."""
        return os.path.join(self.folder, f"{key}.kernel")

    def get(self, key: str) -> bytes | None:
        """Find an entry; None if there is none, or a damaged one."""
        found = self.memory.get(key)
        if found is not None:
            return found
        try:
            with open(self.path(key), "rb") as file:
                content = file.read()
        except OSError:
            return None
        payload = content[HEAD:]
        if content[:HEAD] != MAGIC + hashlib.sha256(payload).digest():
            return None
        try:
            os.utime(self.path(key))
        except OSError:
            pass  # removed by another process just now, or a read-only folder: still a hit
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Write an entry."""
        temporary = ""
        try:
            os.makedirs(self.folder, exist_ok=True)
            handle, temporary = tempfile.mkstemp(suffix=".part", dir=self.folder)
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, self.path(key))
        except OSError:
            remove([temporary])
            self.memory[key] = payload
            return
        if self.stores % STORES_A_SCAN == 0:
            self.shrink()
        self.stores += 1

    def shrink(self) -> None:
        """Remove the entries unused for longest until the folder is small enough."""
        entries = self.entries()
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return
        for _, size, path in sorted(entries):
            if total <= self.limit * KEPT:
                break
            remove([path])
            total -= size

    def entries(self) -> list[tuple[float, int, str]]:
        """List (time of last use, bytes, path) of every entry; removes what dead writers left."""
        found: list[tuple[float, int, str]] = []
        try:
            with os.scandir(self.folder) as listing:
                for item in listing:
                    try:
                        status = item.stat()
                    except OSError:
                        continue  # removed by another process
                    is_part = item.name.endswith(".part")
                    if is_part and time.time() - status.st_mtime > ABANDONED:
                        remove([item.path])
                    elif item.name.endswith(".kernel"):
                        found.append((status.st_mtime, status.st_size, item.path))
        except OSError:
            pass
        return found


def remove(paths: Iterable[str]) -> None:
    """Delete files that may be gone already."""
    for path in paths:
        try:
            os.unlink(path)
        except OSError:
            pass


CACHES: dict[tuple[str, int], DiskCache] = {}


def disk_cache() -> DiskCache | None:
    """Find the cache the settings ask for; None when they ask for none."""
    folder, limit = config.cache, config.cache_size << 20
    if folder in ("", "0"):
        return None
    key = (folder, limit)
    if key not in CACHES:
        CACHES[key] = DiskCache(os.path.join(os.path.expanduser(folder), "kernels"), limit)
    return CACHES[key]


def kernel_key(code: Code, facts: tuple[object, ...]) -> str:
    """Name what a binary depends on: source, entry, machine and compiler, settings."""
    parts = (code.language, code.entry, code.source, facts, config.key())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def lookup(code: Code, device: Device) -> bytes | None:
    """Find the compiled form of a kernel for a device on disk."""
    found = disk_cache()
    return found.get(kernel_key(code, (device.target, device.compiler))) if found else None


def store(code: Code, device: Device, binary: bytes) -> None:
    """Keep the compiled form of a kernel for the next process."""
    found = disk_cache()
    if found:
        found.put(kernel_key(code, (device.target, device.compiler)), binary)


@functools.cache
def generator_version() -> str:
    """Name the state of the code that writes kernels: its files' sizes and times of change."""
    package = Path(__file__).parents[1]
    files = sorted(path for room in GENERATOR for path in (package / room).rglob("*.py"))
    states = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(repr(states).encode()).hexdigest()


def entry_key(canonical: str, device: Device) -> str:
    """Name the entry that describes a kernel known by its canonical key."""
    parts = (canonical, device.target, device.compiler, config.key(), generator_version())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def find_kernel(canonical: str, device: Device) -> tuple[Code, bytes] | None:
    """Find a kernel that an earlier process generated and compiled; its Code has no source."""
    found = disk_cache()
    described = found.get(entry_key(canonical, device)) if found else None
    if not found or not described:
        return None
    facts = json.loads(described)
    binary = found.get(facts.pop("binary"))
    if binary is None:
        return None
    facts["workspaces"] = tuple(Workspace(*pair) for pair in facts["workspaces"])
    facts["scalars"] = tuple(dtype_named(name) for name in facts["scalars"])
    return Code(source="", **facts), binary


def describe_kernel(canonical: str, code: Code, device: Device) -> None:
    """Store what `find_kernel` needs: the launch facts, and which entry holds the binary."""
    found = disk_cache()
    if not found:
        return
    facts = {name: getattr(code, name) for name in LAUNCH_FACTS}
    facts["workspaces"] = [(space.bytes, space.is_zeroed) for space in code.workspaces]
    facts["scalars"] = [dtype.name for dtype in code.scalars]
    facts["binary"] = kernel_key(code, (device.target, device.compiler))
    found.put(entry_key(canonical, device), json.dumps(facts).encode())


def remember(facts: tuple[object, ...]) -> Callable[[Code, Callable[[], bytes]], bytes]:
    """Make a function that finds a binary on disk, or makes and stores it."""

    def find(code: Code, make: Callable[[], bytes]) -> bytes:
        cache = disk_cache()
        key = kernel_key(code, facts)
        binary = cache.get(key) if cache else None
        if binary is None:
            binary = make()
            if cache:
                cache.put(key, binary)
        return binary

    return find

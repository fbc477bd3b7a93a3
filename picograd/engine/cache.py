"""Disk cache of compiled kernels: a second process loads instead of compiling.

One file an entry: MAGIC, a SHA-256 of key and payload, the payload. A file is written under another
name and renamed, so readers and other writers never see half of it; one that is damaged all the
same, or was given another entry's name, is a miss, and the next store replaces it. Reading
refreshes an entry's time stamp; when the folder is over its size, the entries unused for longest
go. Nothing here ever raises for the state of the disk: where a folder cannot be written, entries
live in memory only. Entries are machine code: see private_folder.py for whom a folder may belong
to; any other is left alone, with a warning.
"""

import functools
import hashlib
import json
import os
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from picograd.code import Code, TensorMap, Windows, Workspace, packed
from picograd.config import config
from picograd.dtype import BY_NAME
from picograd.engine.private_folder import PART, NotPrivate, PrivateFolder
from picograd.runtime.device import Device, Executable
from picograd.traced_number import plain

MAGIC = b"picogra2"
# Whose source decides what a kernel looks like, how it is compiled and how it is called: the
# modules at the top (dtypes, target, calling convention) and these rooms.
GENERATOR = ("graph", "schedule", "codegen", "runtime", "engine")
LAUNCH_FACTS = tuple(each.name for each in fields(Code) if each.name not in ("source", "packed"))
HEAD = len(MAGIC) + 32  # bytes before the payload
STORES_A_SCAN = 64  # listing the folder costs milliseconds: not at every store,
ROOM_A_SCAN = 8  # nor before a part of the room is taken: other processes may store too
SAMPLE = "0"  # a sixteenth of all names, which are hashes: what is looked at first
SAMPLED = 64  # entries of it that tell how much the folder holds, if it is far from full
KEPT = 0.8  # part of the allowed size that remains after entries were removed
ABANDONED = 3600.0  # seconds after which a temporary file's writer is taken for dead
SUFFIX = ".kernel"


class DiskCache:
    """Entries in a folder, at most `limit` bytes of them (checked every few stores)."""

    def __init__(self, folder: str, limit: int) -> None:
        self.folder: PrivateFolder = PrivateFolder(folder)
        self.limit: int = limit
        self.memory: OrderedDict[str, bytes] = OrderedDict()
        self.near: dict[str, bytes] = {}  # entries that were read together
        self.held: int = 0  # bytes in memory
        self.stores: int = 0
        self.written = self.room = 0  # bytes since the folder was listed, and room there was then
        self.is_private: bool = True

    def get(self, key: str) -> bytes | None:
        """Find an entry; None if there is none, or a damaged one."""
        found = self.memory.get(key) or self.near.get(key)
        if found is not None or not self.is_private:
            return found
        try:
            content = self.folder.read(f"{key}{SUFFIX}", self.limit + HEAD)
        except OSError as error:
            self.look_at(error)
            return None
        return content[HEAD:] if content[:HEAD] == head(key, content[HEAD:]) else None

    def put(self, key: str, payload: bytes) -> None:
        """Write an entry."""
        if not self.is_private:
            self.hold(key, payload)
            return
        try:
            self.folder.write(f"{key}{SUFFIX}", head(key, payload) + payload)
        except OSError as error:
            self.look_at(error)
            self.hold(key, payload)
            return
        self.written += len(payload)
        if self.stores % STORES_A_SCAN == 0 and self.written > self.room // ROOM_A_SCAN:
            self.shrink()
        self.stores += 1

    def hold(self, key: str, payload: bytes) -> None:
        """Keep an entry in memory; the oldest go where they take more than plans may."""
        self.held += len(payload) - len(self.memory.pop(key, b""))
        self.memory[key] = payload
        while self.held > config.plans_size << 20 and len(self.memory) > 1:
            self.held -= len(self.memory.popitem(last=False)[1])

    def look_at(self, error: OSError) -> None:
        """Give up a folder that is not only ours, with one warning."""
        if isinstance(error, NotPrivate) and self.is_private:
            self.is_private = False
            text = f"compiled kernels are not kept on disk: {error}. Fix: set PICOGRAD_CACHE to"
            warnings.warn(f"{text} a folder of your own", RuntimeWarning, stacklevel=2)

    def shrink(self) -> None:
        """Remove the entries unused for longest until the folder is small enough."""
        sample = self.entries(SAMPLE)
        estimate = 16 * sum(size for _, size, _ in sample)
        if len(sample) >= SAMPLED and estimate < self.limit // 2:
            self.written, self.room = 0, self.limit - estimate
            return
        entries = self.entries()
        total = sum(size for _, size, _ in entries)
        self.written, self.room = 0, self.limit - total
        if total <= self.limit:
            return
        for _, size, name in sorted(entries):
            if total <= self.limit * KEPT:
                break
            self.remove(name)
            total -= size

    def entries(self, start: str = "") -> list[tuple[float, int, str]]:
        """List (time of last use, bytes, name) of entries; removes what dead writers left."""
        found: list[tuple[float, int, str]] = []
        try:
            listing = self.folder.list(start)
        except OSError:
            return found
        for name, status in listing:
            if name.endswith(PART) and time.time() - status.st_mtime > ABANDONED:
                self.remove(name)
            elif name.endswith(SUFFIX):
                found.append((status.st_mtime, status.st_size, name))
        return found

    def drop(self, key: str) -> None:
        """Delete an entry, if it is there."""
        self.held -= len(self.memory.pop(key, b""))
        self.remove(f"{key}{SUFFIX}")

    def remove(self, name: str) -> None:
        """Delete a file that may be gone already."""
        try:
            self.folder.remove(name)
        except OSError:
            pass


def head(key: str, payload: bytes) -> bytes:
    """Begin the file of an entry: under another entry's name it is none."""
    return MAGIC + hashlib.sha256(key.encode() + payload).digest()


def start_of(cache: DiskCache, name: str) -> bytes:
    """Read how the payload of an entry begins, which is no use of it; empty if it is gone."""
    try:
        with open(os.path.join(cache.folder.path, name), "rb") as file:
            return file.read(HEAD + 16)[HEAD:]
    except OSError:
        return b""


CACHES: dict[tuple[str, int], DiskCache] = {}


def disk_cache() -> DiskCache | None:
    """Find the cache the settings ask for; None when they ask for none."""
    folder, limit = config.cache, config.cache_size << 20
    if folder in ("", "0"):
        return None
    key = (folder, limit)
    if key not in CACHES:
        CACHES[key] = DiskCache(place_of(folder), limit)
    return CACHES[key]


def place_of(folder: str) -> str:
    """Name the folder of kernels in a cache folder, whatever the current folder becomes."""
    whole = os.path.expanduser(folder).replace("\0", "")
    try:
        if not whole.startswith("~"):
            return os.path.join(os.path.abspath(whole), "kernels")
    except OSError:  # the current folder is gone
        pass
    return os.path.join(os.devnull, "kernels")  # without a home, too: `~` is found nowhere else


def kernel_key(code: Code, facts: tuple[object, ...]) -> str:
    """Name what a binary depends on: source, entry, machine and compiler, settings, our code."""
    parts = (
        code.language,
        code.entry,
        state_of(facts, config.epoch, generator_version()),
        code.is_warm,
    )
    return hashlib.sha256(f"{parts!r}\n{code.source}".encode()).hexdigest()


@functools.lru_cache(16)
def state_of(facts: tuple[object, ...], epoch: int, version: str) -> str:
    """Name a machine and its compiler, our code, and the settings of an epoch."""
    parts = (facts, config.key(), version)
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
    """Name the state of the code that writes, compiles and calls kernels: a hash of its text.

    Sizes and times of files would not do: installers set equal times for every version.
    """
    return version_of(os.path.dirname(os.path.dirname(__file__)))


def version_of(package: str) -> str:
    """Hash the names and texts of the modules that matter."""
    rooms: list[tuple[str, list[str], list[str]]] = [(package, [], os.listdir(package))]
    for room in GENERATOR:
        rooms += os.walk(os.path.join(package, room))
    result, start = hashlib.sha256(), len(package) + 1
    for path in sorted([os.path.join(room, name) for room, _, names in rooms for name in names]):
        if path.endswith(".py"):
            with open(path, "rb", buffering=0) as file:
                text = file.read()
            result.update(f"{path[start:]} {len(text)}\n".encode() + text)
    return result.hexdigest()


def entry_key(canonical: str, device: Device) -> str:
    """Name the entry that describes a kernel known by its canonical key."""
    state = state_of((device.target, device.compiler), config.epoch, generator_version())
    return hashlib.sha256(f"{canonical} {state}".encode()).hexdigest()


def find_kernel(canonical: str, device: Device) -> tuple[Code, bytes] | None:
    """Find a kernel that an earlier process generated and compiled.

    Its Code has a source, packed, only if it may be compiled again.
    """
    found = disk_cache()
    described = found.get(entry_key(canonical, device)) if found else None
    facts = read_facts(described) if described else None
    if not found or not facts:
        return None
    binary = found.get(facts.pop("binary"))
    return None if binary is None else (Code(**facts, source=""), binary)


def is_count(value: Any) -> bool:
    """Tell whether a value is an integer a description may hold."""
    return type(value) is int and 0 <= value < 1 << 63


def is_key(value: Any) -> bool:
    """Tell whether a value names an entry, and no file elsewhere."""
    return type(value) is str and len(value) == 64 and set(value) <= set("0123456789abcdef")


def is_dtype(value: Any) -> bool:
    """Tell whether a value names a dtype."""
    return type(value) is str and value in BY_NAME


def is_near(value: Any) -> bool:
    """Tell whether a value is where a window begins, which may be before an array."""
    return type(value) is int and abs(value) < 1 << 31


def is_tensor(value: Any) -> bool:
    """Tell whether a value describes a tensor map."""
    return is_formed(value, TENSOR) or is_formed(value, (*TENSOR, [is_near], *DIMS[1:]))


def is_formed(value: Any, form: Any) -> bool:
    """Tell whether plain data has a form: a type, a test, a list of one form, a row of several."""
    if isinstance(form, type):
        return type(value) is form
    if callable(form):
        return bool(form(value))
    forms = form if isinstance(form, tuple) or not isinstance(value, list) else form * len(value)
    fits = isinstance(value, list) and len(value) == len(forms)
    return fits and all(map(is_formed, value, forms))


DIMS = [is_count], [is_count], [is_count]
TENSOR = (is_count, is_dtype, is_count, *DIMS)
FORMS: dict[str, Any] = {  # of the facts of a kernel
    **dict.fromkeys(LAUNCH_FACTS, is_count),
    **dict.fromkeys(("name", "language", "entry", "packed"), str),
    "binary": is_key, "workspaces": [(is_count, bool)], "scalars": [is_dtype],
    "tensors": [is_tensor],
}  # fmt: skip


def read_facts(described: bytes) -> dict[str, Any] | None:
    """Read what `describe_kernel` wrote; None for anything else."""
    try:
        facts = json.loads(described)
    except (ValueError, RecursionError):
        return None
    if not isinstance(facts, dict) or facts.keys() != FORMS.keys():
        return None
    if not all(is_formed(facts[name], form) for name, form in FORMS.items()):
        return None
    facts["workspaces"] = tuple(Workspace(*pair) for pair in facts["workspaces"])
    facts["scalars"] = tuple(BY_NAME[name] for name in facts["scalars"])
    facts["tensors"] = tuple(map(read_tensor, facts["tensors"]))
    return facts


def read_tensor(found: list[Any]) -> TensorMap:
    """Read a tensor map."""
    slot, name, offset, *lists = found
    sizes, strides, box, *windows = map(tuple, lists)
    return TensorMap(
        slot, BY_NAME[name], offset, sizes, strides, box, Windows(*windows) if windows else None
    )


def describe_tensor(tensor: TensorMap) -> list[Any]:
    """Write a tensor map as `read_tensor` takes it."""
    windows = tensor.windows
    dims = [tensor.sizes, tensor.strides, tensor.box]
    dims += [windows.first, windows.counts, windows.steps] if windows else []
    return [tensor.slot, tensor.dtype.name, tensor.offset, *map(list, dims)]


def describe_kernel(canonical: str, code: Code, device: Device, is_improved: bool = False) -> None:
    """Store what `find_kernel` needs: the launch facts, and which entry holds the binary.

    One that was compiled anew, as it ran often, has all passes.
    """
    found = disk_cache()
    if not found:
        return
    facts = {name: getattr(code, name) for name in LAUNCH_FACTS}
    facts["workspaces"] = [(space.bytes, space.is_zeroed) for space in code.workspaces]
    facts["scalars"] = [dtype.name for dtype in code.scalars]
    facts["tensors"] = [describe_tensor(tensor) for tensor in code.tensors]
    may_improve = code.is_warm and not is_improved and not device.target.has_blocks
    facts["packed"] = packed(code.source) if may_improve else ""
    facts["binary"] = kernel_key(code, (device.target, device.compiler))
    found.put(entry_key(canonical, device), json.dumps(facts, default=plain).encode())


def keep_improved(device: Device, executable: Executable, code: Code, binary: bytes) -> None:
    """Let other processes begin with what a kernel that ran often was compiled to.

    Entries that have it together with others would still have what it was.
    """
    found = disk_cache()
    if found and executable.canonical:  # a kernel of a plan
        store(code, device, binary)
        describe_kernel(executable.canonical, code, device, is_improved=True)
        for pack in executable.packs:
            found.drop(pack)


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

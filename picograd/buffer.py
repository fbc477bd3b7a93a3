"""Buffer and Storage: names for device memory, without any allocation code.

A `Buffer` is `count` elements of `dtype` on a device; its handle belongs to the runtime that made
it, which attaches a finalizer there, so that dropping the last reference frees the memory.
A `Storage` is the slot that leaf nodes of the graph name. An in-place write gives the slot its
next version; leaves recorded before keep naming the version they saw.
"""

import weakref
from collections.abc import Callable
from typing import Any, Literal

from picograd.dtype import DType
from picograd.errors import GradientError, TraceError


def line_at(place: Any) -> str:
    """Name a line of a program, told as text or by its code and the place in that."""
    if isinstance(place, str):
        return place
    code, at = place
    lines = [line for first, end, line in code.co_lines() if first <= at < end]
    return f"{code.co_filename}:{lines[0]}"


class Buffer:
    """Device memory of `count` elements; `handle` is opaque here, `address` the device address."""

    __slots__ = (
        "device", "dtype", "count", "address", "handle", "origin", "room", "__weakref__"
    )  # fmt: skip

    def __init__(
        self, device: str, dtype: DType, count: int, address: int, handle: Any = None
    ) -> None:
        self.device: str = device
        self.dtype: DType = dtype
        self.count: int = count
        self.address: int = address
        self.handle: Any = handle
        self.origin: Any = ""  # the user's line that made it, or its code and place there: `line`
        self.room: int = count  # elements that the memory has: more, if it was made for more

    @property
    def nbytes(self) -> int:
        """Bytes the elements take."""
        return self.count * self.dtype.itemsize

    @property
    def line(self) -> str:
        """The user's line that made it, for out-of-memory reports; "" where nobody knows."""
        return line_at(self.origin)

    def resized(self, count: int) -> "Buffer":
        """Name the same memory as so many elements, of which there must be room."""
        made = Buffer(self.device, self.dtype, count, self.address, self.handle)
        made.origin, made.room = self.origin, self.room
        return made

    def __repr__(self) -> str:
        return f"Buffer({self.device}, {self.dtype.name}[{self.count}])"


# Replays of traces, which write without a version. No attribute of the class: whenever one is set,
# Python forgets what it knows of the class.
REPLAYS: list[int] = [0]


class Storage:
    """The slot a leaf names: a buffer and the number of in-place writes it has seen.

    `source` is the node that was computed into it, if graphs may still read that; `answers` is what
    was asked of its values, and when; False where others know its address.
    """

    __slots__ = ("answers", "buffer", "source", "version", "__weakref__")

    def __init__(self, buffer: Buffer | None) -> None:
        self.buffer: Buffer | None = buffer
        self.version: int = 0
        self.source: weakref.ref[Any] | None = None
        self.answers: tuple[tuple[int, int], dict[Any, Any]] | Literal[False] | None = None

    def moment(self) -> tuple[int, int]:
        """Tell moments apart between which the memory may have been written."""
        return self.version, REPLAYS[0]

    def count_writes(self, count: int = 1) -> None:
        """Note that the buffer was, or will be, written: what it held is computed again if read."""
        self.version += count
        node = None if self.source is None else self.source()
        if node is not None:
            node.realized = None
        self.source = None

    def __repr__(self) -> str:
        return f"Storage({self.buffer}, version {self.version})"


class Overwritten(Storage):
    """What a leaf names once its contents are gone: the storage, and the version it had seen."""

    __slots__ = ("storage",)

    def __init__(self, storage: Storage, version: int) -> None:
        self.storage: Storage = storage
        self.version: int = version

    def describe(self) -> str:
        """Say how far the storage has moved on."""
        return f"is at version {self.storage.version}; expected version {self.version}"

    @property
    def buffer(self) -> Buffer | None:  # type: ignore[override]
        """Raise: the contents are not there any more."""
        text = "a value recorded earlier was overwritten in place before it was computed: it "
        fix = "compute or call backward() before changing the tensor, or change a clone()"
        raise GradientError("realize", text + self.describe(), fix)


def memory_of(leaf: Any) -> Storage:
    """Find the storage of a leaf, whatever became of the contents that it names."""
    storage: Storage = leaf.arg
    return storage.storage if isinstance(storage, Overwritten) else storage


class Sample(Storage):
    """What the leaf names that stands for one sample inside `vmap`: it never has a buffer."""

    __slots__ = ()

    def __init__(self) -> None:
        self.version = 0

    @property
    def buffer(self) -> Buffer | None:  # type: ignore[override]
        """Raise: a sample is a symbol, its values are those of the batch."""
        text = "the value of one sample is not known: vmap records the function once for all"
        raise TraceError("vmap", text, "compute it with tensor operations, or read it outside")


class RuntimeScalar:
    """A number that may change between runs of one plan without recompiling: a kernel argument."""

    __slots__ = ("value", "renew", "__weakref__")
    renew: Callable[[], float | int] | None

    def __init__(self, value: float | int, renew: Callable[[], float | int] | None = None) -> None:
        self.value: float | int = value
        self.renew = renew  # gives the next value when a jitted plan runs again (random offsets)

    def __repr__(self) -> str:
        return f"RuntimeScalar({self.value})"

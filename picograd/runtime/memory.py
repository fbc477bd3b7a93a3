"""Caching memory pool: blocks by size class, freed in stream order, reported when memory runs out.

Every device runs its work in one order, so a freed block may be handed out again at once: whoever
writes it next does so after every launch that still reads it.
"""

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from picograd.buffer import Buffer
from picograd.code import Code, Workspace
from picograd.config import config
from picograd.errors import OutOfMemoryError
from picograd.helpers import round_up
from picograd.runtime.log import log_action

SMALLEST = 512  # bytes; a multiple of every alignment vector loads want
STEPS_AN_OCTAVE = 8  # so that rounding up wastes at most 1/8 of a block
LARGE = 16 << 20  # bytes; of so large blocks there are few, and they waste at most 1/128
STEPS_OF_LARGE = 128
WATCHERS: list[Callable[[str, int], None]] = []  # told of a device's bytes in use at every change


def size_class(nbytes: int) -> int:
    """Round a request up to the size of the blocks that serve it."""
    if nbytes <= SMALLEST:
        return SMALLEST
    octave = (1 << (nbytes - 1).bit_length()) // 2  # the largest power of two below
    steps = STEPS_OF_LARGE if nbytes > LARGE else STEPS_AN_OCTAVE
    return round_up(nbytes, max(octave // steps, SMALLEST))


def near_sizes(size: int) -> Iterator[int]:
    """List the sizes of blocks that serve one, the next first.

    Of large ones there are few: those that are up to an eighth larger do, too.
    """
    most = size + size // STEPS_AN_OCTAVE if size > LARGE else size
    while size <= most:
        yield size
        size = size_class(size + 1)


class Allocation:
    """One block of device memory; dropping the last reference gives it back to its pool."""

    __slots__ = ("__weakref__", "address", "pool", "size")

    def __init__(self, address: int, size: int, pool: "Pool") -> None:
        self.address: int = address
        self.size: int = size
        self.pool: Pool = pool

    def __del__(self) -> None:
        pool = getattr(self, "pool", None)  # Ctrl-C may end `__init__` before
        if pool is not None and config is not None:  # at the end of a process names are gone
            pool.release(self.address, self.size)


class Pool:
    """Blocks of one device. `reserve(size)` returns an address, or None if there is no memory."""

    __slots__ = (
        "__weakref__", "allocations", "device", "free", "give_back", "in_use", "peak", "reserve",
        "reserved", "spare",
    )  # fmt: skip

    def __init__(
        self,
        device: str,
        reserve: Callable[[int], int | None],
        give_back: Callable[[int], None],
        spare: int | None = None,
    ) -> None:
        """Make an empty pool; it grows to twice its peak of use and `spare` bytes, or any size."""
        self.device: str = device
        self.spare: int | None = spare
        self.reserve: Callable[[int], int | None] = reserve
        self.give_back: Callable[[int], None] = give_back
        self.free: defaultdict[int, list[int]] = defaultdict(list)
        self.in_use = self.reserved = self.peak = self.allocations = 0

    def allocate(self, nbytes: int) -> Allocation:
        """Hand out a block of at least `nbytes`; its content is undefined."""
        size = SMALLEST if nbytes <= SMALLEST else size_class(nbytes)
        if size > LARGE:
            size = next((other for other in near_sizes(size) if self.free.get(other)), size)
        blocks = self.free[size]
        try:
            address = blocks.pop()
        except IndexError:
            address = self.grow(nbytes, size)
        else:
            if config.debug >= 2:
                log_action("allocate", f"{self.device}  {format_bytes(size)}, reused")
        self.allocations += 1
        self.in_use += size
        self.peak = max(self.peak, self.in_use)
        if WATCHERS:
            self.tell()
        return Allocation(address, size, self)

    def grow(self, nbytes: int, size: int) -> int:
        """Reserve a new block; when that fails, once more after giving free blocks back."""
        if self.spare is not None:
            most = 2 * max(self.peak, self.in_use + size) + self.spare
            if self.reserved + size > most:
                self.empty(max(most - size, self.in_use))
        address = self.reserve(size)
        if address is None:
            gc.collect()  # buffers may be waiting in reference cycles
            self.empty()
            address = self.reserve(size)
        if address is None:
            raise out_of_memory(self, nbytes)
        self.reserved += size
        if config.debug >= 2:
            log_action("allocate", f"{self.device}  {format_bytes(size)}, from the system")
        return address

    def release(self, address: int, size: int) -> None:
        """Take a block back; called by the finalizer of its Allocation."""
        self.in_use -= size
        self.free[size].append(address)
        if WATCHERS:
            self.tell()
        if config.debug >= 2:
            log_action("free", f"{self.device}  {format_bytes(size)}")

    def sort(self, sizes: Iterable[int]) -> None:
        """Let free blocks of some sizes be handed out by address, whatever order they came in."""
        for size in sizes:
            self.free[size].sort(reverse=True)

    def tell(self) -> None:
        """Tell who watches how many bytes are in use."""
        for watcher in WATCHERS:
            watcher(self.device, self.in_use)

    def empty(self, kept: int = 0) -> None:
        """Give free blocks back to the system, oldest sizes first, until `kept` bytes remain."""
        for size, blocks in list(self.free.items()):
            while blocks and self.reserved > kept:
                self.give_back(blocks.pop())
                self.reserved -= size
                if config.debug >= 2:
                    log_action("give back", f"{self.device}  {format_bytes(size)}, to the system")

    def stats(self) -> dict[str, int]:
        """Bytes in use, reserved and at the peak of use, and the number of allocations so far."""
        return {
            "in_use": self.in_use,
            "reserved": self.reserved,
            "peak": self.peak,
            "allocations": self.allocations,
        }


def format_bytes(count: int) -> str:
    """Print a number of bytes for people."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def out_of_memory(pool: Pool, nbytes: int) -> OutOfMemoryError:
    """Make the error that names the largest live buffers and the lines that made them."""
    # Walking all objects is slow, but happens only here: the usual path pays nothing for it.
    # by type: `isinstance` asks objects of other libraries for their class, and some warn
    found = [item for item in gc.get_objects() if issubclass(type(item), Buffer)]
    live = [b for b in found if isinstance(b.handle, Allocation) and b.handle.pool is pool]
    live.sort(key=lambda buffer: -buffer.nbytes)
    lines = [
        f"\n  {format_bytes(b.nbytes)} {b.dtype.name}[{b.count}] {b.line or 'unknown line'}"
        for b in live[:5]
    ]
    problem = (
        f"no memory for {format_bytes(nbytes)} on {pool.device}: {format_bytes(pool.in_use)} in "
        f"use, {format_bytes(pool.reserved)} reserved; largest buffers:{''.join(lines) or ' none'}"
    )
    return OutOfMemoryError("allocate", problem, "use smaller tensors or drop references to them")


class Workspaces:
    """Scratch memory that kernels of one device use between launches or share.

    Work runs in one order, so all kernels share the memory of a workspace that need not be zero,
    where it does not lie in the arena of their plan. A zeroed one belongs to its kernel: each
    launch leaves it zero for the next. Kernels number zeroed ones last.
    """

    def __init__(self, pool: Pool, fill_zero: Callable[[int, int], None]) -> None:
        self.pool: Pool = pool
        self.fill_zero: Callable[[int, int], None] = fill_zero
        self.shared: dict[int, Allocation] = {}

    def bind(self, wanted: Iterable[Workspace]) -> tuple[Allocation, ...]:
        """Find memory for the workspaces of one kernel."""
        return tuple(self.find(number, workspace) for number, workspace in enumerate(wanted))

    def own(self, code: Code) -> tuple[Allocation, ...]:
        """Find memory for the zeroed workspaces of a kernel."""
        return self.bind([each for each in code.workspaces if each.is_zeroed])

    def shared_by(self, code: Code) -> tuple[Allocation, ...]:
        """Find memory for the other workspaces of a kernel."""
        return self.bind([each for each in code.workspaces if not each.is_zeroed])

    def find(self, number: int, workspace: Workspace) -> Allocation:
        """Find memory for workspace `number` of a kernel."""
        if workspace.is_zeroed:
            block = self.pool.allocate(workspace.bytes)
            self.fill_zero(block.address, block.size)
            return block
        shared = self.shared.get(number)
        if shared is None or shared.size < workspace.bytes:
            shared = self.shared[number] = self.pool.allocate(workspace.bytes)
        return shared

"""What the kernels of a tape get on a GPU: arrays of pointers into one table of words.

To run a tape on other buffers only the table changes. The driver copies parameters when a kernel is
launched, so the next run may fill the table at any time; a CUDA graph copies them when its nodes
are made, so a tape that has one notes which nodes read a word that changed (`replay.py`).
"""

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.dtype import DType
from picograd.errors import check
from picograd.runtime.device import Tape, TapeLaunch
from picograd.runtime.driver import Driver
from picograd.runtime.replay import Call, Replay
from picograd.runtime.tensor_maps import EncodedMap

FORMATS = {
    "bool": "?7x",
    "uint8": "B7x",
    "uint16": "H6x",
    "uint32": "I4x",
    "uint64": "Q",
    "int8": "b7x",
    "int16": "h6x",
    "int32": "i4x",
    "int64": "q",
    "float16": "e6x",
    "float32": "f4x",
    "float64": "d",
}
FEW_WORDS = 64  # of which Python sees faster than NumPy which have changed


class Parameters:
    """A tape as the driver takes it: one `void*` array a launch, pointing into its table.

    `known` is what the table held when maps and nodes were last brought up to date; nothing while
    they are: an interrupt leaves them to the next run. `held` is the same for machine code
    (cuda_calls.py), behind a word that is not 0 while it holds: each of the two forgets what the
    other ran on.
    """

    def __init__(self, tape: Tape, driver: Driver) -> None:
        self.slot_count = tape.slot_count
        words = tape.slot_count + len(tape.scalar_dtypes)
        self.table = (ctypes.c_uint64 * max(words, 1))()
        self.pack_addresses = struct.Struct(f"={tape.slot_count}Q").pack_into
        formats = "".join(cell(dtype) for dtype in tape.scalar_dtypes)
        self.pack_scalars = struct.Struct("=" + formats).pack_into
        self.keep: list[Any] = []
        self.events: list[Any] = []
        self.driver = driver
        self.maps: list[EncodedMap] = []
        self.replays: list[Replay] = []  # its graph; two until it is known which is faster
        self.times: list[float] = []  # of their first launches
        self.runs, self.known = 0, b""
        self.held = (ctypes.c_uint64 * (len(self.table) + 1))()
        # A launch of no blocks is an error to the driver.
        self.launches = tape.launches
        self.launched = [step for step in tape.launches if step.executable.code.tasks]
        self.calls: list[Call] = [self.call(step) for step in self.launched]

    def fill(self, addresses: Sequence[int], scalars: Sequence[int | float] = ()) -> None:
        """Write the table for one run, and bring up to date what was made of it."""
        self.pack_addresses(self.table, 0, *addresses)
        if scalars:
            self.pack_scalars(self.table, 8 * self.slot_count, *scalars)
        self.follow()

    def follow(self) -> None:
        """Let tensor maps, and nodes of a graph, see what the table holds now."""
        now = bytes(self.table)
        if self.held[0]:
            self.known = b""
            self.held[0] = 0
        if now == self.known:
            return
        changed = self.changed(now)
        self.known = b""
        for each in self.maps:
            each.update(self.table[each.slot])
        for replay in self.replays:
            replay.note(changed)
        self.known = now

    def changed(self, now: bytes) -> list[int]:
        """List the words of the table that are others than those known."""
        words = memoryview(now).cast("Q")
        if not self.known:
            return list(range(len(words)))
        if len(words) > FEW_WORDS:
            different = np.frombuffer(now, np.uint64) != np.frombuffer(self.known, np.uint64)
            return np.flatnonzero(different).tolist()
        known = memoryview(self.known).cast("Q")
        return [number for number, (a, b) in enumerate(zip(words, known)) if a != b]

    def words_of(self, launch: TapeLaunch) -> list[int]:
        """List the words of the table that a launch reads."""
        return [*launch.slots, *(self.slot_count + number for number in launch.scalars)]

    def call(self, launch: TapeLaunch) -> Call:
        """Prepare (function, blocks, threads, shared bytes, address of the parameter array)."""
        executable = launch.executable
        code = executable.code
        check(code.tasks < 1 << 31, f"kernel {code.name} has {code.tasks} blocks")
        blocks = [block.address for block in executable.workspaces]
        own = (ctypes.c_uint64 * max(len(blocks), 1))(*blocks)
        table = ctypes.addressof(self.table)
        tables = (
            (table, launch.slots),
            (ctypes.addressof(own), range(len(blocks))),
            (table + 8 * self.slot_count, launch.scalars),
        )
        places = [start + 8 * number for start, numbers in tables for number in numbers]
        maps = [EncodedMap(self.driver, t, launch.slots[t.slot]) for t in code.tensors]
        self.maps += maps
        places += [each.address for each in maps]
        array = (ctypes.c_uint64 * max(len(places), 1))(*places)
        self.keep += [own, array]
        params = ctypes.addressof(array)
        return executable.function, code.tasks, code.threads, code.shared_bytes, params


def cell(dtype: DType) -> str:
    """Find the struct format of a scalar: its C type, padded to an 8-byte cell."""
    check(dtype.name in FORMATS, f"a kernel cannot take a {dtype.name} scalar")
    return FORMATS[dtype.name]

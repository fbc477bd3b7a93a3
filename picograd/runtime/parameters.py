"""What the kernels of a tape get on a GPU: arrays of pointers into one table of words.

To run a tape on other buffers only the table changes. The driver copies parameters when a kernel is
launched, so the next run may fill the table at any time; a CUDA graph copies them when its nodes
are made, so a tape that has one notes which nodes read a word that changed (`replay.py`).
"""

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from picograd.code import TensorMap, Windows
from picograd.dtype import DType
from picograd.errors import check
from picograd.runtime.device import Tape, TapeLaunch
from picograd.runtime.driver import Driver
from picograd.runtime.memory import Workspaces
from picograd.runtime.replay import Call, Replay

FORMATS = {
    "bool": "?7x", "uint8": "B7x", "uint16": "H6x", "uint32": "I4x", "uint64": "Q", "int8": "b7x",
    "int16": "h6x", "int32": "i4x", "int64": "q", "float16": "e6x", "float32": "f4x",
    "float64": "d",
}  # fmt: skip
MOST_UNROLLED = 4096  # launches of all steps of a loop that are one tape
FEW_WORDS = 64  # of which Python sees faster than NumPy which have changed


class Parameters:
    """A tape as the driver takes it: one `void*` array a launch, pointing into its table.

    `known` is what the table held when maps and nodes were last brought up to date; nothing while
    they are: an interrupt leaves them to the next run. `held` is the same for machine code
    (cuda_calls.py), behind a word that is not 0 while it holds: each of the two forgets what the
    other ran on.
    """

    def __init__(self, tape: Tape, driver: Driver, workspaces: Workspaces) -> None:
        self.slot_count = tape.slot_count
        words = tape.slot_count + len(tape.scalar_dtypes)
        self.table = (ctypes.c_uint64 * max(words, 1))()
        self.pack_addresses = struct.Struct(f"={tape.slot_count}Q").pack_into
        self.pack_scalars = packer(tape.scalar_dtypes)
        self.keep: list[Any] = []
        self.events: list[Any] = []
        self.driver, self.workspaces = driver, workspaces
        self.maps: list[EncodedMap] = []
        self.replays: list[Replay] = []  # its graph; two until it is known which is faster
        self.times: list[float] = []  # of their first launches
        self.runs, self.known = 0, b""
        self.length = 0  # of the loop it ran in last
        self.whole: Parameters | None = None  # all of its steps
        self.held = (ctypes.c_uint64 * (len(self.table) + 1))()
        # A launch of no blocks is an error to the driver.
        self.launches = tape.launches
        self.launched = [step for step in tape.launches if step.executable.code.tasks]
        self.blocks: list[list[int]] = []  # of workspaces behind their slots, by launch
        self.calls: list[Call] = [self.call(step) for step in self.launched]

    def unrolled(self, tape: Tape, length: int) -> tuple["Parameters", int]:
        """Give all steps of a loop as one tape if it ran before; and how many steps a tape has."""
        is_again, self.length = length == self.length, length
        if not is_again or length * len(tape.launches) > MOST_UNROLLED:
            self.whole = None
            return self, 1
        if self.whole is None:
            moved = unrolled_launches(tape, length)
            whole = replace(tape, launches=moved, slot_count=length * tape.slot_count)
            self.whole = Parameters(whole, self.driver, self.workspaces)
        return self.whole, length

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
            for each in self.maps:
                each.encoded_for = -1
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
        shared = () if launch.spaces else self.workspaces.shared_by(code)
        blocks = [block.address for block in (*shared, *executable.workspaces)]
        self.blocks.append(blocks)
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
        self.keep += [own, array, shared]
        params = ctypes.addressof(array)
        return executable.function, code.tasks, code.threads, code.shared_bytes, params


def cell(dtype: DType) -> str:
    """Find the struct format of a scalar: its C type, padded to an 8-byte cell."""
    check(dtype.name in FORMATS, f"a kernel cannot take a {dtype.name} scalar")
    return FORMATS[dtype.name]


def packer(dtypes: Sequence[DType]) -> Callable[..., None]:
    """Make what writes scalars into cells; numbers beyond those of a dtype are infinite."""
    pack = struct.Struct("=" + "".join(map(cell, dtypes))).pack_into

    def packed(table: Any, place: int, *scalars: int | float) -> None:
        try:
            pack(table, place, *scalars)
        except OverflowError:
            with np.errstate(over="ignore"):
                held = [np.array(n).astype(t.storage).item() for n, t in zip(scalars, dtypes)]
            pack(table, place, *held)

    return packed


MAP_BYTES, MAP_ALIGNMENT = 128, 64  # of a CUtensorMap (cuda.h)
TILED, WINDOWED = "cuTensorMapEncodeTiled", "cuTensorMapEncodeIm2col"
LINE_BYTES = 128  # of the L2 cache
TYPES = {
    "bool": "CU_TENSOR_MAP_DATA_TYPE_UINT8",
    "bfloat16": "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16",
    "float16": "CU_TENSOR_MAP_DATA_TYPE_FLOAT16",
    "float32": "CU_TENSOR_MAP_DATA_TYPE_FLOAT32",
    "float8_e4m3fn": "CU_TENSOR_MAP_DATA_TYPE_UINT8",
    "float8_e5m2": "CU_TENSOR_MAP_DATA_TYPE_UINT8",
}


class EncodedMap:
    """One tensor map of one launch: `address` of the bytes that the kernel gets.

    It says what the bulk copy engine of Hopper must know of an array, and holds an address. The
    launches of a tape own one buffer of 128 bytes for each of their maps, which their parameters
    point to; it is encoded again only where the address of its slot has changed. The driver copies
    parameters at launch, and into a graph that it captures.
    """

    __slots__ = ("address", "driver", "encoded_for", "keep", "slot", "tensor")

    def __init__(self, driver: Driver, tensor: TensorMap, slot: int) -> None:
        """Reserve a map of what entry `slot` of the table of addresses points to."""
        self.driver, self.tensor, self.slot, self.encoded_for = driver, tensor, slot, -1
        self.keep = (ctypes.c_ubyte * (MAP_BYTES + MAP_ALIGNMENT))()
        start = ctypes.addressof(self.keep)
        self.address: int = start + -start % MAP_ALIGNMENT

    def update(self, address: int) -> None:
        """Encode the map again if its slot has moved to another address."""
        if address != self.encoded_for:
            made = encode(self.driver, self.tensor, address)
            ctypes.memmove(self.address, int(made.getPtr()), MAP_BYTES)
            self.encoded_for = address


def encode(driver: Driver, tensor: TensorMap, address: int) -> Any:
    """Encode a tensor map of an array at an address."""
    module = driver.module
    name, arguments = encoding(driver, tensor, address)
    kinds = {ctypes.c_uint64: module.cuuint64_t, ctypes.c_uint32: module.cuuint32_t}
    given = [
        [kinds.get(each._type_, int)(number) for number in each]
        if isinstance(each, ctypes.Array)
        else each
        for each in arguments
    ]
    return driver.call(name, *given)


def encoding(driver: Driver, tensor: TensorMap, address: int) -> tuple[str, list[Any]]:
    """Find the driver's function that encodes a map, and its arguments: numbers and arrays of C."""
    module, size = driver.module, tensor.dtype.itemsize
    rank, windows = len(tensor.sizes), tensor.windows
    steps = (1, *windows.steps, 1) if windows else (1,) * rank
    head = [
        getattr(module.CUtensorMapDataType, TYPES[tensor.dtype.name]),
        rank,
        address + tensor.offset * size,
        c_array(ctypes.c_uint64, tensor.sizes),
        c_array(ctypes.c_uint64, [stride * size for stride in tensor.strides]),
    ]
    # Rows that begin between lines touch two of them for a box: a pair for each is too much.
    has_lines = all(n * size % LINE_BYTES == 0 for n in (tensor.offset, *tensor.strides))
    promoted = "L2_256B" if has_lines else "L2_128B"
    tail = [
        c_array(ctypes.c_uint32, steps),
        module.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        module.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        getattr(module.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_{promoted}"),
        module.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    ]
    if windows is None:
        return TILED, [*head, c_array(ctypes.c_uint32, tensor.box), *tail]
    ends = window_ends(tensor, windows)
    corners = [c_array(ctypes.c_int32, each) for each in (windows.first, ends)]
    return WINDOWED, [*head, *corners, *tensor.box, *tail]


def c_array(kind: Any, numbers: Sequence[int]) -> Any:
    """Make an array as C has it."""
    return (kind * len(numbers))(*numbers)


def window_ends(tensor: TensorMap, windows: Windows) -> list[int]:
    """Find where the last window begins along each dimension, from the last element on."""
    rows = zip(windows.first, windows.counts, windows.steps, tensor.sizes[1:])
    return [first + (count - 1) * step + 1 - size for first, count, step, size in rows]


def unrolled_launches(tape: Tape, length: int) -> tuple[TapeLaunch, ...]:
    """List the launches of all steps of a loop, each on slots of its own.

    A step waits for all of the one before it; those of one wait for each other as in the tape.
    """
    count = len(tape.launches)
    waited = {number for each in tape.launches for number in each.waits or ()}
    last = [number for number in range(count) if number not in waited]
    found = []
    for t in range(length):
        for each in tape.launches:
            slots = tuple([t * tape.slot_count + n for n in each.slots])
            waits = each.waits
            if waits is not None:
                own = [t * count + n for n in waits]
                before = [(t - 1) * count + n for n in last] if t else []
                waits = tuple(own or before)
            found.append(replace(each, slots=slots, waits=waits))
    return tuple(found)

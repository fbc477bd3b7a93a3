"""Launching a tape on a GPU without Python: functions of the driver, called by their addresses.

`picograd_kernels` is to a GPU what the native runner's `picograd_run` is to a CPU: it runs a tape
on what its table holds: a graph, whose nodes it gives words that changed. It gives an error of the
driver, where nothing was launched, or 0. The language is that of python_code.py; the tables are
what `Launcher` and `launch_table` write.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

from picograd.errors import DeviceError
from picograd.runtime.device import Running, Tape
from picograd.runtime.driver import Driver
from picograd.runtime.parameters import TILED, WINDOWED, Parameters, c_array, encoding

FUNCTIONS = {
    "activate": b"cuCtxSetCurrent",
    "replay": b"cuGraphLaunch",
    "update": b"cuGraphExecKernelNodeSetParams",
    "tiled": TILED.encode(),
    "windowed": WINDOWED.encode(),
}
SINCE = 13000  # the version of the driver's interface; of the last there are two
GPU = *FUNCTIONS, "context", "stream"
TAPE = "table", "words", "held", "graph", "maps", "encoded", "count"
KERNEL = "node", "described", "reads", "read"
ADDRESSED = "slot", "offset", "function", "place", "dtype", "rank"
MOST_ARGUMENTS = 15  # of a function that encodes maps; those behind the address have numbers
MAP = *ADDRESSED, *(f"given_{number}" for number in range(4, MOST_ARGUMENTS))
SIZES = {"TAPE_HEAD": TAPE, "KERNEL_ROW": KERNEL, "MAP_ROW": MAP}
CONSTANTS = {"STATUS": 0xFFFFFFFF, **{name: 8 * len(table) for name, table in SIZES.items()}}

TEXT = """
def is_other(tape: tape, word):
    "whether a word of the table is not what nodes and maps hold"
    table = tape.table
    held = tape.held
    return table[word] != held[word + 1]

def encode_maps(gpu: gpu, tape: tape, is_new):
    "encodes maps of arrays that moved again; an error of the driver, or 0"
    table = tape.table
    for number in range(tape.maps):
        map: map = tape.encoded + number * MAP_ROW
        if is_new or is_other(tape, map.slot):
            status = enter(
                map.function, map.place, map.dtype, map.rank, table[map.slot] + map.offset,
                map.given_4, map.given_5, map.given_6, map.given_7, map.given_8, map.given_9,
                map.given_10, map.given_11, map.given_12, map.given_13, map.given_14,
            ) & STATUS
            if status:
                return status
    return 0

def is_stale(tape: tape, kernel: kernel):
    "whether a kernel reads a word that changed"
    words = kernel.read
    for number in range(kernel.reads):
        if is_other(tape, words[number]):
            return 1
    return 0

def update_nodes(gpu: gpu, tape: tape):
    "gives nodes that read a word that changed their parameters again; an error of the driver, or 0"
    table = tape.table
    held = tape.held
    is_new = held[0] == 0
    changed = is_new
    for number in range(tape.words):
        changed = changed | is_other(tape, number)
    need(changed)
    held[0] = 0
    status = encode_maps(gpu, tape, is_new)
    if status:
        return status
    for number in range(tape.count):
        kernel: kernel = tape + TAPE_HEAD + number * KERNEL_ROW
        if is_new or is_stale(tape, kernel):
            status = enter(gpu.update, tape.graph, kernel.node, kernel.described) & STATUS
            if status:
                return status
    for number in range(tape.words):
        held[number + 1] = table[number]
    held[0] = 1
    return 0

@public
def picograd_kernels(gpu: gpu, tape: tape):
    if gpu.replay == 0 or enter(gpu.activate, gpu.context) & STATUS:
        return 1
    status = update_nodes(gpu, tape)
    if status:
        return status
    return enter(gpu.replay, tape.graph, gpu.stream) & STATUS
"""


class Launcher(Running):
    """What machine code has to know of a GPU: the table `GPU`, at `context`.

    Without the driver's functions, and in a forked child, there are zeros.
    """

    __slots__ = ("words",)

    def __init__(self, driver: Driver, context: Any, stream: Any) -> None:
        self.running, self.is_inside = None, False
        self.words: Any = (ctypes.c_uint64 * len(GPU))()
        self.context = ctypes.addressof(self.words)
        try:
            found = [driver.call("cuGetProcAddress", name, SINCE, 0) for name in FUNCTIONS.values()]
            addresses = [int(address) for address, *_ in found]
        except DeviceError:
            return
        if all(addresses):
            self.words[:] = [*addresses, int(context), int(stream)]
            driver.tables.append(self.words)


def is_plain(tape: Tape) -> bool:
    """Tell whether machine code can write all numbers that the kernels of a tape are given."""
    return not any(dtype.name == "float16" for dtype in tape.scalar_dtypes)


def launch_table(state: Parameters, launcher: Launcher) -> int | None:
    """Write the table `TAPE` of a tape that is one graph, for good; None for others."""
    if len(state.replays) != 1:
        return None
    (replay,) = state.replays
    places = ctypes.addressof(state.table), len(state.table), ctypes.addressof(state.held)
    encoded = c_array(ctypes.c_uint64, map_rows(state, launcher))
    maps = len(state.maps), ctypes.addressof(encoded)
    listed = [*places, int(replay.executable), *maps, len(state.calls)]
    for node, described, launch in zip(replay.nodes, replay.params, state.launched, strict=True):
        words = c_array(ctypes.c_uint64, state.words_of(launch))
        state.keep.append(words)
        listed += [int(node), int(described.getPtr()), len(words), ctypes.addressof(words)]
    table = c_array(ctypes.c_uint64, listed)
    state.keep += [table, encoded]
    return ctypes.addressof(table)


def map_rows(state: Parameters, launcher: Launcher) -> list[int]:
    """List the words of the rows `MAP` of a tape."""
    functions = dict(zip([name.decode() for name in FUNCTIONS.values()], launcher.words))
    listed = []
    for each in state.maps:
        name, (dtype, rank, offset, *given) = encoding(state.driver, each.tensor, 0)
        arrays = [value for value in given if isinstance(value, ctypes.Array)]
        state.keep += arrays
        words = [ctypes.addressof(v) if isinstance(v, ctypes.Array) else int(v) for v in given]
        row = [each.slot, offset, functions[name], each.address, int(dtype), rank, *words]
        listed += row + [0] * (len(MAP) - len(row))
    return listed


def bits(numbers: Sequence[int]) -> int:
    """Set the bits that have these numbers."""
    found = 0
    for number in numbers:
        found |= 1 << number
    return found

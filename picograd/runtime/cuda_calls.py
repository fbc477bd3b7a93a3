"""Launching a tape on a GPU without Python: functions of the driver, called by their addresses.

`picograd_kernels` is to a GPU what the native runner's `picograd_run` is to a CPU: it runs a tape
on what its table holds, one kernel by itself, or a graph, whose nodes it gives words that changed.
It gives an error of the driver, where nothing was launched, or 0. The language is that of
python_code.py; the tables are what `Launcher` and `launch_table` write.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

from picograd.errors import DeviceError
from picograd.runtime.device import Running
from picograd.runtime.driver import Driver
from picograd.runtime.parameters import Parameters

FUNCTIONS = {
    "activate": b"cuCtxSetCurrent",
    "launch": b"cuLaunchKernel",
    "replay": b"cuGraphLaunch",
    "update": b"cuGraphExecKernelNodeSetParams",
}
SINCE = 13000  # the version of the driver's interface; of the last function there are two
GPU = *FUNCTIONS, "context", "stream"
TAPE = "table", "words", "held", "graph", "count"
KERNEL = "function", "blocks", "threads", "shared", "params", "node", "described", "reads"
MOST_WORDS = 64  # of a table: one bit each of `reads`
CONSTANTS = {"TAPE_HEAD": 8 * len(TAPE), "KERNEL_ROW": 8 * len(KERNEL), "STATUS": 0xFFFFFFFF}

TEXT = """
def update_nodes(gpu: gpu, tape: tape):
    "gives nodes that read a word that changed their parameters again; an error of the driver, or 0"
    table = tape.table
    held = tape.held
    changed = 0
    bit = 1
    for number in range(tape.words):
        if table[number] != held[number + 1]:
            changed = changed | bit
        bit = bit + bit
    if held[0] == 0:
        changed = 0 - 1
    if changed == 0:
        return 0
    held[0] = 0
    for number in range(tape.count):
        kernel: kernel = tape + TAPE_HEAD + number * KERNEL_ROW
        if kernel.reads & changed:
            status = enter(gpu.update, tape.graph, kernel.node, kernel.described) & STATUS
            if status:
                return status
    for number in range(tape.words):
        held[number + 1] = table[number]
    held[0] = 1
    return 0

def launch(gpu: gpu, kernel: kernel, grid, block):
    shared = kernel.shared
    stream = gpu.stream
    given = kernel.params
    function = kernel.function
    return enter(gpu.launch, function, grid, 1, 1, block, 1, 1, shared, stream, given, 0) & STATUS

@public
def picograd_kernels(gpu: gpu, tape: tape):
    kernel: kernel = tape + TAPE_HEAD
    if gpu.launch == 0 or enter(gpu.activate, gpu.context) & STATUS:
        return 1
    if tape.graph:
        status = update_nodes(gpu, tape)
        if status:
            return status
        return enter(gpu.replay, tape.graph, gpu.stream) & STATUS
    return launch(gpu, kernel, kernel.blocks, kernel.threads)
"""


class Launcher(Running):
    """What machine code has to know of a GPU: the table `GPU`, at `context`.

    Without the driver's functions, and in a forked child, there are zeros.
    """

    __slots__ = ("words",)
    words: Any

    def __init__(self, driver: Driver, context: Any, stream: Any) -> None:
        self.running, self.is_inside = None, False
        self.words = (ctypes.c_uint64 * len(GPU))()
        self.context = ctypes.addressof(self.words)
        try:
            found = [driver.call("cuGetProcAddress", name, SINCE, 0) for name in FUNCTIONS.values()]
            addresses = [int(address) for address, *_ in found]
        except DeviceError:
            return
        if all(addresses):
            self.words[:] = [*addresses, int(context), int(stream)]
            driver.tables.append(self.words)


def launch_table(state: Parameters) -> int | None:
    """Write the table `TAPE` of one kernel, or of a graph, for good; None for other tapes."""
    words, graphs = len(state.table), state.replays
    is_other = state.maps or not state.calls or words > MOST_WORDS
    if is_other or len(graphs) != (len(state.calls) > 1):
        return None
    graph = int(graphs[0].executable) if graphs else 0
    places = ctypes.addressof(state.table), words, ctypes.addressof(state.held)
    listed = [*places, graph, len(state.calls)]
    for number, (call, launch) in enumerate(zip(state.calls, state.launched, strict=True)):
        function, *shape = call
        listed += [int(function), *shape, *node_words(state, number)]
        listed.append(bits(state.words_of(launch)))
    table = (ctypes.c_uint64 * len(listed))(*listed)
    state.keep.append(table)
    return ctypes.addressof(table)


def node_words(state: Parameters, number: int) -> list[int]:
    """Give a node of the graph, and where its parameters are described; zeros without a graph."""
    if not state.replays:
        return [0, 0]
    (replay,) = state.replays
    return [int(replay.nodes[number]), int(replay.params[number].getPtr())]


def bits(numbers: Sequence[int]) -> int:
    """Set the bits that have these numbers."""
    found = 0
    for number in numbers:
        found |= 1 << number
    return found

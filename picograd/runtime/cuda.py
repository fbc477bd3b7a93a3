"""NVIDIA GPUs: kernels in CUDA C, compiled by NVRTC, launched in order on one stream of our own.

A tape that runs repeatedly becomes a CUDA graph, which the driver launches at once (`replay.py`);
one that does not is launched kernel by kernel.
"""

import ctypes
import hashlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from picograd.buffer import Buffer
from picograd.code import Code
from picograd.dtype import float32
from picograd.errors import DeviceError
from picograd.runtime import boxes
from picograd.runtime.backlog import Backlog
from picograd.runtime.cuda_calls import Launcher, bits, is_plain, launch_table
from picograd.runtime.device import Bytes, Device, Entry, Executable, Rule, Shaped, Tape, check_size
from picograd.runtime.driver import NO_MEMORY, Driver, open_driver
from picograd.runtime.log import log_action
from picograd.runtime.memory import Allocation, Pool, Workspaces
from picograd.runtime.nvrtc import compile_batches, compile_cuda, nvrtc_version
from picograd.runtime.parameters import Parameters
from picograd.runtime.replay import Call, Replay, chain_waits, node_waits
from picograd.runtime.staging import Gate, Staging, Stagings
from picograd.target import Target, cuda_target

NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: not serialised with the legacy default stream
# Values of CUdevice_attribute and CUfunction_attribute (cuda.h)
CAPABILITY_MAJOR, CAPABILITY_MINOR, MULTIPROCESSORS, SHARED_OPTIN = 75, 76, 16, 97
STATIC_SHARED, LOCAL_BYTES, REGISTERS, MAX_DYNAMIC_SHARED = 1, 3, 4, 8
MEMORY_CLOCK, BUS_WIDTH = 36, 37  # kHz, bits
FREE_SHARED = 48 << 10  # dynamic shared memory a kernel may use without asking (CUDA C guide)
TIMED = 128  # launches timed at once: the queue of a stream holds about 1000 commands
MODULE_BYTES = 16 << 10  # of a loaded module beside its cubin: what the driver keeps, about
MEMSETS = {1: "cuMemsetD8Async", 2: "cuMemsetD16Async", 4: "cuMemsetD32Async"}  # by bytes
PLAIN_RUNS, FEWEST_NODES = 4, 2  # before a tape gets a graph, and kernels from which it does
SHORT = 1e-3  # seconds of a tape that machine code launches, by
BYTES_A_SECOND, FLOPS_A_SECOND = 2e12, 2e13  # of a GPU that is not the fastest
RACES, WINS = 8, 0.98  # launches of two graphs, and the share of the time from which one wins


class CudaDevice(Device):
    """One GPU; see the module docstring."""

    def __init__(
        self, driver: Driver, ordinal: int, name_compiler: Callable[[], str] = nvrtc_version
    ) -> None:
        """Open GPU `ordinal` of an initialised driver."""
        self.driver, self.name = driver, f"cuda:{ordinal}"
        count = driver.call("cuDeviceGetCount")
        if not 0 <= ordinal < count:
            problem = f"there is no {self.name}: this machine has {count} GPU(s)"
            known = ", ".join(f"cuda:{number}" for number in range(count))
            raise DeviceError("cuda", problem, f"use {known or 'the CPU'}")
        self.number: Any = driver.call("cuDeviceGet", ordinal)
        self.context: Any = driver.call("cuDevicePrimaryCtxRetain", self.number)
        self.make_current()
        self.target = self.describe()
        self.compiler: str = name_compiler()
        self.stream: Any = driver.call("cuStreamCreate", NON_BLOCKING)
        self.launcher: Launcher = Launcher(driver, self.context, self.stream)
        self.backlog: Backlog = Backlog(self.launcher)
        self.stagings = Stagings(lambda: Staging(driver, self.stream))
        self.gate: Gate = Gate(driver, self.stream)
        self.pool: Pool = Pool(self.name, self.reserve, self.give_back)
        self.workspaces: Workspaces = Workspaces(self.pool, self.fill_zero)
        self.modules: weakref.WeakValueDictionary[bytes, Module] = weakref.WeakValueDictionary()
        self.dropped: deque[tuple[str, Any]] = deque()  # calls that free what nobody runs any more
        self.lock = threading.RLock()
        self.bandwidth: float = 0.0
        self.box_copiers: dict[int, Executable] = {}  # by the unit

    def activate(self) -> None:
        """Make this GPU's context current in the calling thread, whatever other libraries did.

        What waits for kernels is done first.
        """
        if self.backlog.waiting:
            with self.lock:
                self.backlog.finish()
        self.make_current()

    def make_current(self) -> None:
        """Make the context current where what waits may go on waiting."""
        self.driver.call("cuCtxSetCurrent", self.context)

    def describe(self) -> Target:
        """Find what code generation wants to know."""
        major = self.attribute(CAPABILITY_MAJOR)
        suffix = "a" if major >= 9 else ""  # unlocks wgmma, TMA multicast and the like
        arch = f"sm_{major}{self.attribute(CAPABILITY_MINOR)}{suffix}"
        shared = self.attribute(SHARED_OPTIN)
        return cuda_target(arch, self.attribute(MULTIPROCESSORS), shared)

    def attribute(self, number: int) -> int:
        """Read a device attribute."""
        name = self.driver.module.CUdevice_attribute(number)
        return int(self.driver.call("cuDeviceGetAttribute", name, self.number))

    def reserve(self, size: int) -> int | None:
        """Take device memory; None if there is not enough."""
        self.make_current()
        status, address = self.driver.module.cuMemAlloc(size)
        if int(status) == NO_MEMORY:
            return None
        if int(status):
            raise self.driver.error("cuMemAlloc", status)
        return int(address)

    def give_back(self, address: int) -> None:
        """Free device memory; waits for the GPU."""
        self.activate()
        self.driver.call("cuMemFree", address)

    def fill_zero(self, address: int, size: int) -> None:
        """Zero device memory, in stream order."""
        self.driver.call("cuMemsetD8Async", address, 0, size, self.stream)

    def allocate(self, nbytes: int) -> Allocation:
        """Reserve device memory; blocks are reused in stream order."""
        with self.lock:
            return self.pool.allocate(nbytes)

    def sort(self, sizes: Iterable[int]) -> None:
        """Hand out blocks of some sizes by address from now on."""
        with self.lock:
            self.pool.sort(sizes)

    def copy_in(self, buffer: Buffer, array: Bytes) -> None:
        """Write the bytes of an array, after all work given before."""
        check_size(buffer, array.nbytes)
        packed = np.ascontiguousarray(array)
        with self.lock:
            if self.backlog.waiting and self.backlog.takes(self.copy_in, buffer, packed.copy()):
                return
            self.activate()
            with self.stagings.one() as staging:
                staging.write(buffer.address, packed.ctypes.data, buffer.nbytes)

    def fill(self, buffer: Buffer, cell: Bytes) -> None:
        """Write one element everywhere, in stream order: nothing comes from the host."""
        word = cell.tobytes()
        if len(set(word)) == 1:
            word = word[:1]
        if len(word) not in MEMSETS:
            super().fill(buffer, cell)
            return
        value, count = int.from_bytes(word, "little"), buffer.nbytes // len(word)
        with self.lock:
            if not self.backlog.takes(self.fill, buffer, cell):
                self.make_current()
                self.driver.call(MEMSETS[len(word)], buffer.address, value, count, self.stream)

    def copy_out(self, buffer: Buffer) -> Bytes:
        """Read a buffer as a new uint8 array, after all work given before."""
        result: Bytes = np.empty(buffer.nbytes, np.uint8)
        with self.lock:
            self.activate()
            with self.stagings.one() as staging:
                staging.read(result.ctypes.data, buffer.address, buffer.nbytes)
        return result

    def read_bytes(self, buffers: Sequence[Buffer]) -> bytes:
        """Read many buffers of one byte, after all work given before; waits once."""
        with self.lock:
            self.activate()
            with self.stagings.one() as staging:
                return staging.gather([buffer.address for buffer in buffers])

    def copy(self, destination: Buffer, source: Buffer) -> None:
        """Copy between two buffers of this GPU, in stream order."""
        check_size(destination, source.nbytes)
        if source.nbytes:
            pair = (destination.address, source.address)
            with self.lock:
                if not self.backlog.takes(self.copy, destination, source):
                    self.make_current()
                    self.driver.call("cuMemcpyDtoDAsync", *pair, source.nbytes, self.stream)

    def copy_common(self, destination: Shaped, source: Shaped) -> None:
        """Copy what two layouts have both, in stream order: kernels that copy boxes."""
        box = boxes.common_box(destination[1], source[1])
        if not box:
            return
        (to, _), (other, _) = destination, source
        unit, calls = boxes.launches(box, to.dtype.itemsize, to.address, other.address)
        executable = self.box_copier(unit)
        for addresses, scalars in calls:
            self.launch(executable, addresses, scalars)

    def box_copier(self, unit: int) -> Executable:
        """Load the kernel that copies units of so many bytes, once."""
        with self.lock:
            if unit not in self.box_copiers:
                code = boxes.kernel(unit, self.target.multiprocessors)
                self.box_copiers[unit] = self.load(code, self.compile(code))
            return self.box_copiers[unit]

    def compile(self, code: Code) -> bytes:
        """Translate CUDA C to a cubin for this GPU's architecture."""
        return compile_cuda(code, self.target.arch)

    def compile_many(self, codes: Iterable[Code]) -> Iterator[tuple[int, bytes]]:
        """Compile in batches; the kernels of a batch share one cubin."""
        return compile_batches(codes, self.target.arch)

    def load(self, code: Code, binary: bytes) -> Executable:
        """Load a cubin, once however many kernels share it."""
        key = hashlib.sha256(binary).digest()
        with self.lock:
            self.activate()
            self.unload()
            module = self.modules.get(key)
            if module is None:
                module = Module(self.driver.call("cuModuleLoadData", binary), self.dropped)
                self.modules[key] = module
            entry = code.entry.encode()
            function = self.driver.call("cuModuleGetFunction", module.handle, entry)
            if code.shared_bytes > FREE_SHARED:
                name = self.driver.module.CUfunction_attribute(MAX_DYNAMIC_SHARED)
                self.driver.call("cuFuncSetAttribute", function, name, code.shared_bytes)
            workspaces = self.workspaces.own(code)
        nbytes = len(binary) + len(code.source) + MODULE_BYTES
        return Executable(code, function, module, workspaces, nbytes)

    def unload(self) -> None:
        """Free what was dropped: graphs, then modules when all work given before is done.

        With the lock held. The driver itself waits for a graph that it still runs.
        """
        found = [self.dropped.popleft() for _ in range(len(self.dropped))]
        modules = [each for each in found if each[0] == "cuModuleUnload"]
        for name, handle in found:
            if name != "cuModuleUnload":
                self.driver.call(name, handle)
        if modules:
            self.driver.call("cuStreamSynchronize", self.stream)
        for name, handle in modules:
            self.driver.call(name, handle)

    def resources(self, executable: Executable) -> dict[str, int]:
        """Count registers a thread, bytes of local memory (spills) and of static shared memory."""
        wanted = {"registers": REGISTERS, "local": LOCAL_BYTES, "shared": STATIC_SHARED}
        kind, function = self.driver.module.CUfunction_attribute, executable.function
        return {
            name: int(self.driver.call("cuFuncGetAttribute", kind(number), function))
            for name, number in wanted.items()
        }

    def peak_bandwidth(self) -> float:
        """Bytes a second its memory can deliver: two transfers a clock, as the driver says."""
        if not self.bandwidth:
            clock = self.attribute(MEMORY_CLOCK) * 1e3
            self.bandwidth = 2 * clock * self.attribute(BUS_WIDTH) / 8
        return self.bandwidth

    def prepare(self, tape: Tape) -> Parameters | None:
        """Build the parameter arrays of the launches; None while a kernel is being compiled."""
        if any(launch.executable.function is None for launch in tape.launches):
            return None
        with self.lock:
            return Parameters(tape, self.driver, self.workspaces)

    def state_of(self, tape: Tape) -> Parameters:
        """Find the parameter arrays of a tape that is about to run."""
        self.activate()
        if tape.state is None:
            tape.state = self.prepare(tape)
        state: Parameters = tape.state
        return state

    def run_tape(
        self, tape: Tape, addresses: Sequence[int], scalars: Sequence[int | float] = ()
    ) -> None:
        """Launch everything; returns before it is done."""
        with self.lock:
            may_wait = tape.state is None and self.backlog.is_open
            if may_wait and not any(each.executable.code.workspaces for each in tape.launches):
                if self.backlog.takes(self.run_tape, tape, addresses, scalars):
                    return
            state = self.state_of(tape)
            before = self.launcher.running  # of what the handler of a signal interrupted
            try:
                self.launcher.running = tape
                state.fill(addresses, scalars)
                self.run(state)
            finally:
                self.launcher.running = before

    def is_settled(self, tape: Tape) -> bool:
        """Tell whether it is known by now whether a tape is a graph, and which."""
        state = tape.state
        if state is None:  # a kernel is being compiled
            return False
        has_run = state.runs >= PLAIN_RUNS or len(state.calls) < FEWEST_NODES
        return has_run and len(state.replays) < 2

    def entry(self, tape: Tape) -> Entry | None:
        """Say how machine code may launch a tape of short kernels: as a graph, of one kernel too.

        Where the queue of the stream is full, a launch waits with the interpreter's lock held.
        """
        state, launcher = tape.state, self.launcher
        codes = [launch.executable.code for launch in tape.launches]
        seconds = sum(code.bytes_moved for code in codes) / BYTES_A_SECOND
        seconds += sum(code.flops for code in codes) / FLOPS_A_SECOND
        singles = bits([n for n, dtype in enumerate(tape.scalar_dtypes) if dtype is float32])
        if not any(launcher.words) or not is_plain(tape) or seconds > SHORT:
            return None
        if len(state.calls) == 1 and not state.replays:
            with self.lock:
                self.activate()
                self.make_graphs(state)
        call, table = launch_table(state, launcher), ctypes.addressof(state.table)
        if call is None:
            return None
        return Entry(launcher, 0, call, table, table + 8 * state.slot_count, singles)

    def run(self, state: Parameters) -> None:
        """Launch a tape on what its table holds now: its graph, or kernel by kernel."""
        if not state.replays:
            self.count_run(state)
        if not state.replays:
            self.launch_all(state.calls)
        elif len(state.replays) == 1:
            state.replays[0].launch(self.stream)
        else:
            self.race(state)

    def count_run(self, state: Parameters) -> None:
        """Make the graphs of a tape that has run often enough, with the lock held."""
        state.runs += 1
        if state.runs == PLAIN_RUNS and len(state.calls) >= FEWEST_NODES:
            self.make_graphs(state)

    def make_graphs(self, state: Parameters) -> None:
        """Make the graphs of a tape, with the lock held; none, where the driver makes none.

        Two, if it has kernels that need not wait for each other: a chain, and one with branches.
        """
        self.unload()
        words = [state.words_of(each) for each in state.launched]
        forms = [chain_waits(len(words)), node_waits(state.launches, state.blocks)]
        try:
            state.replays = [
                Replay(self.driver, state.calls, words, waits, self.dropped)
                for waits in (forms if forms[0] != forms[1] else forms[:1])
            ]
        except DeviceError as error:  # for want of memory: it goes on kernel by kernel
            log_action("graph", error.problem)

    def race(self, state: Parameters) -> None:
        """Launch one of two graphs, timed on the GPU alone; the faster one stays in the end.

        The first launch of each takes longer, and may wait for the GPU.
        """
        number = len(state.times)
        replay, call = state.replays[number % 2], self.driver.call
        if number < 2:
            replay.launch(self.stream)
            state.times.append(0.0)
            return
        while len(state.events) < 2:
            state.events.append(call("cuEventCreate", 0))
        start, end, *_ = state.events
        with self.gate.closed():
            call("cuEventRecord", start, self.stream)
            replay.launch(self.stream)
            call("cuEventRecord", end, self.stream)
        call("cuEventSynchronize", end)
        state.times.append(call("cuEventElapsedTime", start, end))
        if len(state.times) == RACES:
            in_order, branches = (min(state.times[first::2]) for first in (2, 3))
            state.replays = [state.replays[branches < WINS * in_order]]

    def launch_all(self, calls: Sequence[Call]) -> None:
        """Launch kernels on the parameters their tables hold now."""
        launch, stream = self.driver.module.cuLaunchKernel, self.stream
        for function, grid, block, shared, params in calls:
            (status,) = launch(function, grid, 1, 1, block, 1, 1, shared, stream, params, 0)
            if status:
                raise self.driver.error("cuLaunchKernel", status)

    def run_loop(
        self, tape: Tape, addresses: Sequence[int], rules: Sequence[Rule], length: int
    ) -> None:
        """Launch all steps of a loop; the driver has copied the addresses when they move on.

        A graph too: what its nodes are given later is not what an earlier launch of it runs on.
        Steps of a loop that comes again are nodes of one graph.
        """
        numbers, base, step, mask, shift = np.array(rules, np.int64).reshape(-1, 5).T
        times = np.arange(length)[:, None]
        rows = (base + step * ((times + shift) & mask)).astype(np.uint64)
        with self.lock:
            whole = self.state_of(tape)
            before = self.launcher.running
            try:
                self.launcher.running = tape
                state, steps = whole.unrolled(tape, length)
                words = np.frombuffer(state.table, np.uint64)[: steps * tape.slot_count]
                table = words.reshape(steps, tape.slot_count)
                table[:] = np.array(addresses, np.uint64)
                for first in range(0, length, steps):
                    table[:, numbers] = rows[first : first + steps]
                    state.follow()
                    self.run(state)
            finally:
                self.launcher.running = before

    def time_tape(
        self, tape: Tape, addresses: Sequence[int], scalars: Sequence[int | float] = ()
    ) -> list[float]:
        """Launch everything, a few kernels at a time; seconds each took on the GPU."""
        found: list[float] = []
        with self.lock:
            state = self.state_of(tape)
            before = self.launcher.running
            try:
                self.launcher.running = tape
                state.fill(addresses, scalars)
                for first in range(0, len(state.calls), TIMED):
                    found += self.time_calls(state.calls[first : first + TIMED], state.events)
            finally:
                self.launcher.running = before
        times = iter(found)
        return [next(times) if step.executable.code.tasks else 0.0 for step in tape.launches]

    def time_calls(self, calls: Sequence[Call], events: list[Any]) -> list[float]:
        """Launch with an event after each launch; seconds between the events.

        The GPU starts when everything is queued: it never waits for the host in between.
        """
        call = self.driver.call
        while len(events) <= len(calls):
            events.append(call("cuEventCreate", 0))
        for function, *_ in calls:
            call("cuFuncLoad", function)  # the driver may wait for the GPU to do so
        with self.gate.closed():
            call("cuEventRecord", events[0], self.stream)
            for (function, grid, block, shared, params), event in zip(calls, events[1:]):
                shape = (grid, 1, 1, block, 1, 1)
                call("cuLaunchKernel", function, *shape, shared, self.stream, params, 0)
                call("cuEventRecord", event, self.stream)
        call("cuStreamSynchronize", self.stream)
        used = pairwise(events[: len(calls) + 1])
        return [call("cuEventElapsedTime", a, b) / 1e3 for a, b in used]

    def synchronize(self) -> None:
        """Wait for the stream."""
        self.activate()
        self.driver.call("cuStreamSynchronize", self.stream)

    def empty_cache(self) -> None:
        """Give memory nobody uses back to the driver."""
        with self.lock:
            self.activate()
            self.unload()
            self.pool.empty()


class Module:
    """A loaded cubin. Dropping it calls no driver: any thread may, while the GPU still runs it."""

    __slots__ = ("__weakref__", "dropped", "handle")

    def __init__(self, handle: Any, dropped: "deque[tuple[str, Any]]") -> None:
        self.handle: Any = handle
        self.dropped: deque[tuple[str, Any]] = dropped

    def __del__(self) -> None:
        self.dropped.append(("cuModuleUnload", self.handle))


def open_cuda(ordinal: int = 0, name_compiler: Callable[[], str] = nvrtc_version) -> CudaDevice:
    """Open a GPU; DeviceError naming what is missing: package, driver, compiler or device."""
    return CudaDevice(open_driver(), ordinal, name_compiler)

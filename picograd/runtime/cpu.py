"""The CPU: kernels in LLVM IR, run by native threads on memory that is reused, not faulted anew.

A launch is finished when the call that made it returns.
"""

import ctypes
import os
import platform
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import count
from typing import Any

import numpy as np

from picograd.buffer import Buffer
from picograd.code import ALL, Code, unpacked
from picograd.dtype import DType, to_dtype, uint8
from picograd.errors import DeviceError
from picograd.helpers import on_demand, round_up
from picograd.runtime.boxes import Along, common_box, pieces
from picograd.runtime.compiler import Compiler, Host, loaded_bytes
from picograd.runtime.device import (
    Bytes,
    Device,
    Entry,
    Executable,
    HostFunction,
    Rule,
    Scalars,
    Shaped,
    Tape,
    check_size,
)
from picograd.runtime.log import log_action
from picograd.runtime.memory import Allocation, Pool, Workspaces
from picograd.runtime.native import RECORD_WORDS
from picograd.runtime.pieces import Records, drop_rest, finish_pieces, improve, inside, loop_pieces
from picograd.runtime.pools import pool
from picograd.runtime.workers import Remember, Runner
from picograd.target import Target

description = on_demand("picograd.runtime.llvm", "description")
# Operations and bytes of a tape that machine code runs: some 4 ms of elementwise work, 0.3 of
# products; Python keeps its lock for 5.
SHORT = 1 << 25
ALIGNMENT = 64  # a cache line and the widest vector
SMALL_COPY = 4096  # bytes
LARGE_COPY = 128 << 10  # bytes from which the C library maps and unmaps fresh pages each time
HUGE = 2 << 20  # bytes of a huge page
SPARE = 64 << 20  # bytes that may lie free beside twice what was ever in use
MADV_HUGEPAGE = 14  # linux/mman.h
ARCH_PRCTL, REQUEST_STATE, TILE_DATA = 158, 0x1023, 18  # asm/unistd_64.h, asm/prctl.h
Keep = Callable[[Device, Executable, Code, bytes], None]
COPY_RANK, MOST_COPIED = 4, 1 << 62  # axes of a native copy; it may be of any length


def cpu_target(machine: Host, threads: int) -> Target:
    """Describe this machine to code generation."""
    has = set(machine.features.split(","))
    if "+amx-bf16" in has and not may_use_tiles():
        has.remove("+amx-bf16")
    vector_bytes = 64 if "+avx512f" in has else 32 if "+avx2" in has else 16
    registers = 32 if vector_bytes == 64 or platform.machine() in ("aarch64", "arm64") else 16
    features = ",".join(sorted(name for name in has if name.startswith("+")))
    return Target("llvm", machine.cpu, vector_bytes, threads, registers, features=features)


@cache
def may_use_tiles() -> bool:
    """Ask Linux for the registers of tiles (AMX): they enlarge what it saves of every thread."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(ARCH_PRCTL, REQUEST_STATE, TILE_DATA) == 0


def usable_memory() -> int:
    """Bytes of memory this process may use: the machine's, or the container's limit."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            limit = file.read().strip()
    except OSError:
        return machine
    return min(machine, int(limit)) if limit.isdecimal() else machine


class System:
    """Aligned memory from the C library, up to `capacity` bytes."""

    def __init__(self, capacity: int) -> None:
        self.left: int = capacity
        self.sizes: dict[int, int] = {}
        library = ctypes.CDLL(None)
        self.take, self.drop = library.aligned_alloc, library.free
        self.take.restype, self.take.argtypes = ctypes.c_void_p, [ctypes.c_size_t] * 2
        self.drop.restype, self.drop.argtypes = None, [ctypes.c_void_p]
        self.advise = library.madvise if platform.system() == "Linux" else None

    def reserve(self, size: int) -> int | None:
        """Take memory; None if there is not enough. Past capacity the kernel would kill us."""
        if size > self.left:
            return None
        alignment = HUGE if size >= HUGE else ALIGNMENT
        address = self.take(alignment, round_up(size, alignment))
        if address is None:
            return None
        if size >= HUGE and self.advise:  # one fault per 2 MiB instead of 512
            self.advise(ctypes.c_void_p(address), ctypes.c_size_t(size), MADV_HUGEPAGE)
        self.left -= size
        self.sizes[address] = size
        return int(address)

    def give_back(self, address: int) -> None:
        """Free memory taken before."""
        self.left += self.sizes.pop(address)
        self.drop(address)


def compile_always(code: Code, make: Callable[[], bytes]) -> bytes:
    """Compile the native runner anew: what a device without a disk cache does."""
    return make()


def keep_nothing(device: Device, executable: Executable, code: Code, binary: bytes) -> None:
    """Let go what a kernel became that ran often: what a device without a disk cache does."""


class HostView:
    """Memory of a buffer under NumPy's array interface; arrays made from it keep it alive."""

    def __init__(self, buffer: Buffer) -> None:
        self.owner = buffer
        self.__array_interface__ = {
            "shape": (buffer.nbytes,),
            "typestr": "|u1",
            "data": (buffer.address, False),
            "version": 3,
        }


class CpuDevice(Device):
    """The host processor; see the module docstring."""

    def __init__(
        self,
        threads: int = 1,
        remember: Remember = compile_always,
        capacity: int | None = None,
        described: tuple[Host, str] | None = None,
        keep: Keep = keep_nothing,
    ) -> None:
        """Open with that many threads; `remember(code, make)` may cache the runner's object.

        `keep` gets each kernel that was compiled anew, as it ran often, and what it became.
        `described` are the processor and the compiler, where LLVM need not be asked.
        """
        if platform.system() == "Windows":
            raise DeviceError("cpu", "Windows is not supported", "use WSL")
        machine, self.compiler = described or description()
        self.name = "cpu"
        self.target = cpu_target(machine, threads)
        self.machine, self.remember, self.keep = Compiler(machine), remember, keep
        self.runner: Runner = Runner(self.machine, threads, remember)
        system = System(capacity or usable_memory())
        self.pool: Pool = Pool(self.name, system.reserve, system.give_back, SPARE)
        self.workspaces: Workspaces = Workspaces(self.pool, fill_zero)

    def allocate(self, nbytes: int) -> Allocation:
        """Reserve memory aligned to 64 bytes."""
        return self.pool.allocate(nbytes)

    def adopt(self, array: "np.ndarray[Any, Any]", dtype: DType | None = None) -> Buffer:
        """Make a buffer of a NumPy array's own memory; copies only a strided or misaligned one.

        Changes of the array show in the buffer. Kernels may count on alignment to one element.
        """
        flags = array.flags
        is_plain = flags.c_contiguous and flags.aligned
        kept = array if is_plain else np.array(array, order="C")
        address = kept.__array_interface__["data"][0]
        return Buffer(self.name, dtype or to_dtype(kept.dtype), kept.size, address, kept)

    def view(self, buffer: Buffer) -> Bytes:
        """Show a buffer's memory as a uint8 array without copying it."""
        return np.empty(0, np.uint8) if buffer.nbytes == 0 else np.asarray(HostView(buffer))

    def shown(self, buffer: Buffer, shape: tuple[int, ...], kind: str = "") -> Bytes:
        """Show a buffer's memory as an array, for as long as the caller keeps the buffer."""
        kind = kind or buffer.dtype.storage
        if buffer.nbytes == 0:
            return np.empty(shape, kind)
        raw = (ctypes.c_char * buffer.nbytes).from_address(buffer.address)
        return np.ndarray(shape, kind, raw)

    def copy_in(self, buffer: Buffer, array: Bytes) -> None:
        """Write the bytes of an array into a buffer."""
        check_size(buffer, array.nbytes)
        if array.nbytes <= SMALL_COPY:  # asking an array for its address takes longer
            ctypes.memmove(buffer.address, array.tobytes(), buffer.nbytes)
            return
        packed = np.ascontiguousarray(array)
        ctypes.memmove(buffer.address, packed.ctypes.data, buffer.nbytes)

    def fill(self, buffer: Buffer, cell: Bytes) -> None:
        """Write a NumPy array of one element into every place of a buffer."""
        self.view(buffer).view(cell.dtype)[:] = cell

    def copy_out(self, buffer: Buffer) -> Bytes:
        """Read a buffer as a new uint8 array; a large one lies in memory of ours, faulted once."""
        if buffer.nbytes < LARGE_COPY:
            return self.view(buffer).copy()
        result = self.new_buffer(uint8, buffer.nbytes, "copied to NumPy")
        self.copy(result, buffer)
        return self.view(result)

    def copy(self, destination: Buffer, source: Buffer) -> None:
        """Copy between two buffers of equal size."""
        check_size(destination, source.nbytes)
        ctypes.memmove(destination.address, source.address, source.nbytes)

    def copy_common(self, destination: Shaped, source: Shaped) -> None:
        """Copy what two layouts have both, by runs."""
        (to, wanted), (other, now) = destination, source
        copy = self.runner.copy
        for there, here, words in copy_calls(wanted, now, to.dtype.itemsize):
            copy(to.address + there, other.address + here, *words)

    def compile(self, code: Code) -> bytes:
        """Translate LLVM IR to an object file."""
        return self.machine.compile(code)

    def compile_many(self, codes: Iterable[Code]) -> Iterator[tuple[int, bytes]]:
        """Compile on all threads, the first while the next are still being written."""
        if isinstance(codes, list) and len(codes) < 2:  # no threads for what nothing runs beside
            yield from enumerate(map(self.machine.compile, codes))
            return
        work: deque[tuple[Any, Any]] = deque()
        numbers = count()

        def first() -> tuple[int, bytes]:
            job, done = work[0]
            done.result()
            binary = job.result()
            work.popleft()
            return next(numbers), binary

        try:
            with pool(self.target.threads) as executor:
                try:
                    for code in codes:
                        job = self.machine.start(code)
                        work.append((job, executor.submit(job.run)))
                        while work and work[0][1].done():  # its TargetMachine serves another
                            yield first()
                    while work:
                        yield first()
                finally:
                    for _, done in work:
                        done.cancel()
        finally:  # one that a second Ctrl-C left running goes when its thread lets go of it
            for job, done in work:
                if done.done():
                    job.close()

    def assembly(self, code: Code) -> str:
        """Translate LLVM IR to assembly text (DEBUG=4)."""
        return self.machine.start(code).assembly()

    def load(self, code: Code, binary: bytes) -> Executable:
        """Load an object file; DeviceError if it is damaged."""
        try:
            library = self.machine.load(binary, (code.entry,))
        except RuntimeError as error:
            problem = f"the object of kernel {code.name} cannot be loaded: {error}"
            fix = "empty the cache folder"
            if "undefined symbol" in str(error):  # of an op that somebody added
                fix = "give the op a formula in codegen/polynomial.py: C's library has none"
            raise DeviceError("load", problem, fix) from None
        self.runner.reserve_scratch(code.scratch_bytes)
        workspaces = self.workspaces.own(code)
        nbytes = loaded_bytes(binary) + len(code.source)
        return Executable(code, library[code.entry], library, workspaces, nbytes)

    def prepare(self, tape: Tape) -> Records:
        """Build the native records of the launches."""
        return Records(tape, self.target.threads, self.workspaces)

    def run_tape(self, tape: Tape, addresses: Sequence[int], scalars: Scalars = ()) -> None:
        """Run a tape: in one native call, or in pieces if that takes long."""
        self.enter(tape, addresses, scalars, False)

    def is_settled(self, tape: Tape) -> bool:
        """Tell whether its kernels will not be compiled anew."""
        return bool(tape.state.left < 0)

    def entry(self, tape: Tape) -> Entry | None:
        """Say how machine code may run a short tape, which comes back when it is done."""
        state, runner = tape.state, self.runner
        work = sum(max(launch.executable.code.work, 1) for launch in tape.launches)
        if work > SHORT:
            return None
        tables = ctypes.addressof(state.addresses), ctypes.addressof(state.scalars)
        return Entry(runner, runner.run_address, state.calls[0], *tables)

    def time_tape(self, tape: Tape, addresses: Sequence[int], scalars: Scalars = ()) -> list[float]:
        """Run a tape; seconds each launch took."""
        self.enter(tape, addresses, scalars, True)
        words, size = tape.state.words, RECORD_WORDS
        return [(words[i + 10] - words[i + 9]) / 1e9 for i in range(0, len(words) - size, size)]

    def enter(self, tape: Tape, addresses: Sequence[int], scalars: Scalars, timed: bool) -> None:
        """Fill the tables of a tape and run it, as pieces.py says."""
        state, runner = tape.state, self.runner
        if state.is_parallel and runner.state is runner.serial and runner.running is None:
            runner.start()
        with runner.lock:
            if runner.running is not None:
                with inside(runner, tape):
                    return self.enter(tape, addresses, scalars, timed)
            try:
                runner.running = tape
                state.pack_addresses(state.addresses, 0, *addresses)
                if scalars:
                    state.pack_scalars(state.scalars, 0, *scalars)
                if runner.enter(runner.state.address, state.calls[timed]):
                    finish_pieces(runner, tape, timed)
                if state.left >= 0:
                    self.count_run(tape, 1)
            except BaseException:
                drop_rest(runner, tape)
                raise
            finally:
                runner.running = None

    def run_loop(
        self, tape: Tape, addresses: Sequence[int], rules: Sequence[Rule], length: int
    ) -> None:
        """Run all steps of a loop."""
        runner = self.runner
        is_parallel = tape.state.is_parallel
        if is_parallel and runner.state is runner.serial and runner.running is None:
            runner.start()
        with runner.lock:
            loop_pieces(runner, tape, addresses, rules, length)
            self.count_run(tape, length)

    def count_run(self, tape: Tape, times: int) -> None:
        """Count runs of a tape with kernels that are compiled anew if it runs often."""
        if tape.state.left >= 0:
            tape.state.left = max(tape.state.left - times, 0)
            if not tape.state.left:
                improve(tape, self.compile_all_again)

    def compile_all_again(self, executables: Sequence[Executable]) -> list[Any]:
        """Load kernels that have run often with all passes, compiled on all threads."""
        if len(executables) < 2 or self.target.threads < 2:
            return list(map(self.compile_again, executables))
        with pool(self.target.threads) as executor:
            return list(executor.map(self.compile_again, executables))

    def compile_again(self, executable: Executable) -> Any:
        """Load a kernel that has run often with all passes, with which other processes begin."""
        code = unpacked(executable.code)
        log_action("compile", f"{code.name}, which runs often, with all passes")
        binary = self.machine.compile(code, ALL)
        self.keep(self, executable, code, binary)
        return self.machine.load(binary, (code.entry,))

    def call_host(self, function: HostFunction, inputs: Sequence[Shaped], output: Shaped) -> None:
        """Call a function on the memory itself."""
        given = [self.shown(buffer, shape) for buffer, shape in inputs]
        np.copyto(self.shown(*output), function(*given), casting="unsafe")

    def synchronize(self) -> None:
        """Return at once: launches are finished when they return."""

    def empty_cache(self) -> None:
        """Give memory nobody uses back to the system."""
        self.pool.empty()


@lru_cache(1024)
def copy_calls(
    to: tuple[int, ...], source: tuple[int, ...], itemsize: int
) -> list[tuple[int, int, tuple[int, ...]]]:
    """List the native copies of what two layouts have both: the bytes where each begins, its words.

    Those are three counts, steps where it goes to and where it comes from, and the bytes of a run.
    """
    box = common_box(to, source)
    found = []
    for there, here, part in pieces(box, COPY_RANK, MOST_COPIED) if box else ():
        *outer, run = (Along(1, 0, 0),) * (COPY_RANK - len(part)) + part
        counts = [axis.count for axis in outer]
        steps = [axis.to * itemsize for axis in outer], [axis.source * itemsize for axis in outer]
        words = (*counts, *steps[0], *steps[1], run.count * itemsize)
        found.append((there * itemsize, here * itemsize, words))
    return found


def fill_zero(address: int, size: int) -> None:
    """Zero host memory."""
    ctypes.memset(address, 0, size)

"""Device: what the engine may ask of a machine that runs kernels.

    memory   allocate, copy_in, fill, copy_out, copy, copy_common, memory_stats, empty_cache
    kernels  compile (text -> bytes, may be cached on disk), load (bytes -> Executable)
    runs     launch (one kernel), make_tape + run_tape (a whole plan in one call), run_loop,
             call_host (a function of NumPy arrays, between tapes)

A device runs its work in the order it was given. `run_tape` may return before the work is done;
`synchronize` and `copy_out` wait for it. Every method may be called from any thread.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from picograd.buffer import Buffer
from picograd.code import Code
from picograd.dtype import DType
from picograd.errors import CompileError, check, internal
from picograd.late_methods import dataclass
from picograd.runtime.backlog import Backlog
from picograd.runtime.memory import Allocation, Pool

Bytes = np.ndarray[Any, np.dtype[Any]]  # C-contiguous array; only its bytes matter
HostFunction = Callable[..., Any]  # arrays -> array
Shaped = tuple[Buffer, tuple[int, ...]]  # row-major memory
Scalars = Sequence[int | float]  # of a kernel's call, by value


@dataclass(eq=False)
class Executable:
    """A loaded kernel; `function` and `library` mean something to the device that made it."""

    code: Code
    function: Any
    library: Any = None  # keeps the machine code loaded
    workspaces: tuple[Allocation, ...] = ()  # that are zero between its launches
    nbytes: int = 0  # of memory the code takes, about
    single: "Tape | None" = None  # the tape `launch` runs it through
    canonical: str = ""  # of its kernel
    is_improved: bool = False  # compiled anew, as it runs often
    packs: set[str] = field(default_factory=set)  # entries on disk with it and others of a plan

    def take(self, other: "Executable") -> None:
        """Be what another one of the same code is: this one's was being compiled."""
        self.library, self.workspaces, self.nbytes = other.library, other.workspaces, other.nbytes
        self.function = other.function


@dataclass(frozen=True, slots=True)
class TapeLaunch:
    """One step of a tape: which entries of the tape's address and scalar tables the kernel gets.

    It waits for the steps that `waits` numbers, those before it; with None for all of them. The
    last `spaces` of its slots are its workspaces that need not be zero, or none is.
    """

    executable: Executable
    slots: tuple[int, ...]
    scalars: tuple[int, ...] = ()
    waits: tuple[int, ...] | None = None
    spaces: int = 0


# How an entry of the address table moves in a loop: (entry, base, step, mask, shift) makes it
# base + step * ((t + shift) & mask) at step t.
Rule = tuple[int, int, int, int, int]


def at_step(addresses: Sequence[int], rules: Sequence[Rule], t: int) -> list[int]:
    """Find the table of addresses at one step of a loop."""
    found = list(addresses)
    for number, base, step, mask, shift in rules:
        found[number] = base + step * ((t + shift) & mask)
    return found


@dataclass(slots=True)
class Tape:
    """Launches in order, with everything prebuilt; `state` belongs to the device."""

    launches: tuple[TapeLaunch, ...]
    slot_count: int
    scalar_dtypes: tuple[DType, ...]
    state: Any = None
    keep: list[Any] = field(default_factory=list)
    is_shown: bool = False  # its launches were printed one by one


class Running:
    """This class is what machine code looks at before it runs a tape: the head of a runner."""

    __slots__ = ("context", "is_inside", "running")
    context: int  # an address
    is_inside: bool  # the handler of a signal runs tapes, while one is in the middle of a launch
    running: Any  # what fills the tables of tapes; None: nobody does


class Entry(NamedTuple):
    """This class says how machine code runs a tape.

    `function(runner.context, call)` gives 0; or another number, if nothing was run.
    """

    runner: Running
    function: int  # its address; 0: `picograd_kernels`
    call: int
    addresses: int  # of the tables
    scalars: int
    singles: int = 0  # bits of the numbers that are kept as float32; the others take 8 bytes


class Device(ABC):
    """One machine that runs kernels; see the module docstring."""

    name: str  # normalised: "cpu", "cuda:0", "null"
    target: Any  # picograd.target.Target: what kernels are generated for
    compiler: str  # compiler and options: part of the key of every cached binary
    pool: Pool
    backlog: Backlog | None = None  # of a device that works while its kernels are compiled

    @abstractmethod
    def allocate(self, nbytes: int) -> Allocation:
        """Reserve memory, content undefined; freed when the Allocation is dropped."""

    def sort(self, sizes: Iterable[int]) -> None:  # noqa: B027
        """Hand out blocks of some sizes by address from now on, where it matters which they are.

        A graph of launches has addresses in its nodes.
        """

    @abstractmethod
    def copy_in(self, buffer: Buffer, array: Bytes) -> None:
        """Write the bytes of a C-contiguous NumPy array into a buffer of the same size."""

    def fill(self, buffer: Buffer, cell: Bytes) -> None:
        """Write a NumPy array of one element into every place of a buffer."""
        self.copy_in(buffer, np.full(buffer.count, cell))

    @abstractmethod
    def copy_out(self, buffer: Buffer) -> Bytes:
        """Read a buffer as a new uint8 array, after all work given before."""

    def read_bytes(self, buffers: Sequence[Buffer]) -> bytes:
        """Read many buffers of one byte, after all work given before."""
        return b"".join(self.copy_out(buffer).tobytes() for buffer in buffers)

    @abstractmethod
    def copy(self, destination: Buffer, source: Buffer) -> None:
        """Copy between two buffers of this device and of equal size."""

    @abstractmethod
    def copy_common(self, destination: Shaped, source: Shaped) -> None:
        """Copy what two layouts of one array have both: the first elements of every axis."""

    @abstractmethod
    def compile(self, code: Code) -> bytes:
        """Translate source to machine code that `load` takes, in this process or another.

        Raises CompileError, with the source lines around the first error.
        """

    @abstractmethod
    def compile_many(self, codes: Iterable[Code]) -> Iterator[tuple[int, bytes]]:
        """Compile several kernels, together where that is faster; yields (position, binary).

        All of `codes` are taken before the first is yielded.
        """

    @abstractmethod
    def load(self, code: Code, binary: bytes) -> Executable:
        """Make machine code runnable, and find memory for its workspaces."""

    def make_tape(
        self,
        launches: Sequence[TapeLaunch],
        slot_count: int = 0,
        scalar_dtypes: Sequence[DType] = (),
    ) -> Tape:
        """Prepare launches that run in order, as often as wanted, on tables given at each run.

        `slot_count` and `scalar_dtypes` describe tables that are longer than the launches need.
        """
        tape = empty_tape(launches, slot_count, scalar_dtypes)
        tape.state = self.prepare(tape)
        return tape

    def prepare(self, tape: Tape) -> Any:
        """Make what the device runs a tape by: its `state`."""
        return None

    @abstractmethod
    def run_tape(self, tape: Tape, addresses: Sequence[int], scalars: Scalars = ()) -> None:
        """Run a tape. The lengths of the tables are `slot_count` and those of `scalar_dtypes`."""

    def run_loop(
        self, tape: Tape, addresses: Sequence[int], rules: Sequence[Rule], length: int
    ) -> None:
        """Run a tape without scalars `length` times, moving addresses by `rules`."""
        for t in range(length):
            self.run_tape(tape, at_step(addresses, rules, t))

    @abstractmethod
    def time_tape(self, tape: Tape, addresses: Sequence[int], scalars: Scalars = ()) -> list[float]:
        """Run a tape and wait for it; seconds each launch took by the clock of the device."""

    def is_settled(self, tape: Tape) -> bool:
        """Tell whether a tape will be run in the same way from now on."""
        return True

    def entry(self, tape: Tape) -> Entry | None:
        """Say how machine code may run a settled tape, with the interpreter's lock held; or None.

        It then fills the tables itself, between two calls of Python's.
        """
        return None

    def call_host(self, function: HostFunction, inputs: Sequence[Shaped], output: Shaped) -> None:
        """Call a function of arrays on the host, after all work given before; copies both ways.

        Nothing is written where the function raises.
        """
        given = [as_array(self.copy_out(buffer), buffer, shape) for buffer, shape in inputs]
        buffer, shape = output
        found = np.ascontiguousarray(function(*given), buffer.dtype.storage)
        self.copy_in(buffer, found.reshape(shape))

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all work given so far is done."""

    def memory_stats(self) -> dict[str, int]:
        """Bytes `in_use`, `reserved`, at the `peak`, and the number of `allocations`."""
        return self.pool.stats()

    @abstractmethod
    def empty_cache(self) -> None:
        """Give memory nobody uses back to the system."""

    def peak_bandwidth(self) -> float:
        """Bytes a second its memory can deliver; 0 where that is not known."""
        return 0.0

    def new_buffer(self, dtype: DType, count: int, origin: Any = "") -> Buffer:
        """Allocate a buffer; `origin` is the user's line, for out-of-memory reports."""
        block = self.allocate(count * dtype.itemsize)
        buffer = Buffer(self.name, dtype, count, block.address, block)
        buffer.origin = origin
        return buffer

    def launch(
        self, executable: Executable, addresses: Sequence[int], scalars: Scalars = ()
    ) -> None:
        """Run one kernel on buffers given by address."""
        tape = executable.single
        if tape is None:
            numbers = tuple(range(len(addresses)))
            step = TapeLaunch(executable, numbers, tuple(range(len(scalars))))
            tape = executable.single = self.make_tape((step,))
        self.run_tape(tape, addresses, scalars)


def empty_tape(
    launches: Sequence[TapeLaunch], slot_count: int, scalar_dtypes: Sequence[DType]
) -> Tape:
    """Make a tape without state, with tables as large as its launches need, or larger."""
    dtypes = dict(enumerate(scalar_dtypes))
    for launch in launches:
        name, wanted = launch.executable.code.name, launch.executable.code.scalars
        check(len(wanted) == len(launch.scalars), f"{name} takes {len(wanted)} scalars")
        slot_count = max([slot_count, *(slot + 1 for slot in launch.slots)])
        for number, dtype in zip(launch.scalars, wanted, strict=True):
            same = dtypes.setdefault(number, dtype)
            check(same is dtype, f"scalar {number} is {same.name} here and {dtype.name} there")
    check(max(dtypes, default=-1) + 1 == len(dtypes), f"scalars {sorted(dtypes)}: one is missing")
    in_order = tuple(dtypes[number] for number in range(len(dtypes)))
    return Tape(tuple(launches), slot_count, in_order)


def as_array(raw: Bytes, buffer: Buffer, shape: tuple[int, ...]) -> Bytes:
    """Read the bytes of a buffer as an array of its dtype."""
    return raw[: buffer.nbytes].view(buffer.dtype.storage).reshape(shape)


def check_size(buffer: Buffer, nbytes: int) -> None:
    """Check that a copy fits its buffer exactly."""
    if buffer.nbytes != nbytes:  # a text for each copy would take longer than small ones
        internal(f"copy of {nbytes} bytes to or from {buffer}")


def compile_error(code: Code, log: str, line: int | None) -> CompileError:
    """Make the error for a kernel that does not compile: the log, and the lines around the error.

    `line` counts from 1; None when the compiler did not say.
    """
    lines = code.source.splitlines()
    at = min(max(line or 1, 1), max(len(lines), 1))
    first = max(at - 4, 0)
    shown = [
        f"{'>' if number == at and line else ' '}{number:5} {text}"
        for number, text in enumerate(lines[first : at + 3], first + 1)
    ]
    problem = f"kernel {code.name} does not compile\n{log.strip()}\n" + "\n".join(shown) + "\n"
    return CompileError("compile", problem, "report this kernel with DEBUG=3 output")
